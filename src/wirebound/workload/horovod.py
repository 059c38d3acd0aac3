"""Horovod's real fusion: a background thread, its cycle, and its negotiation.

The published simulator's rule is `bucketing.PaperFusion`; this is what Horovod does
(`RunLoopOnce`, `ComputeResponseList` and `FuseResponses` in its source).
"""

import math
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from wirebound.errors import ScenarioError
from wirebound.units import MIB
from wirebound.workload.bucketing import Bucket
from wirebound.workload.record import Gradient

SHORTEST_S = 1e-9
"""A cycle shorter than this is a thread that never sleeps."""


class Cycle(msgspec.Struct, frozen=True):
    """One turn of the background thread that found something to do.

    Attributes:
        start_s: When it woke [s after backward began].
        done_s: When the ranks had agreed and the buckets were launched [s].
        buckets: What it launched, in order.
    """

    start_s: float
    done_s: float
    buckets: tuple[Bucket, ...]


class Horovod(msgspec.Struct, frozen=True, tag="horovod"):
    """Wake every cycle, agree on what is ready everywhere, pack it greedily.

    A packed response never exceeds the threshold; a larger tensor travels alone. With
    the collective on the device's own stream the thread does not wait for it.

    Attributes:
        cycle_time_s: `HOROVOD_CYCLE_TIME` (which counts ms): 5 ms up to 0.20, 1 ms since.
        threshold_bytes: `HOROVOD_FUSION_THRESHOLD`: 64 MiB up to 0.20, 128 MiB since.
        response_cache: Whether ranks agree by one bit-vector all-reduce (true after the
            first steps) or by gathering requests and broadcasting responses.
    """

    is_timed: ClassVar[bool] = True
    cycle_time_s: float = 0.001
    threshold_bytes: float = 128 * MIB
    response_cache: bool = True

    def __post_init__(self) -> None:
        """Refuse a cycle without end or a threshold without room."""
        if not (
            SHORTEST_S <= self.cycle_time_s < math.inf and 0 <= self.threshold_bytes < math.inf
        ):
            raise ScenarioError(
                f"Horovod cycle of {self.cycle_time_s} s and threshold of "
                f"{self.threshold_bytes} bytes, expected a positive cycle such as 1ms "
                "and a size such as 128MiB"
            )

    def negotiation_messages(self, ranks: float) -> float:
        """Serialized messages of one agreement among `ranks` workers.

        With the cache, one recursive-doubling all-reduce of a bit vector: ceil(log2 N).
        Without it, four binomial trees: gather of lengths and of requests, broadcast of
        length and of response. Both are lower bounds: packing requests costs host time.
        """
        hops = math.ceil(math.log2(ranks)) if ranks > 1 else 0
        return float(hops if self.response_cache else 4 * hops)

    def cycles(self, gradients: Sequence[Gradient], negotiation_s: float) -> tuple[Cycle, ...]:
        """The turns that launch something, from the start of the backward pass.

        Args:
            gradients: In ready order.
            negotiation_s: Time of one agreement [s]; a longer one delays the next turn.
        """
        cycles: list[Cycle] = []
        start, sent = 0.0, 0
        while sent < len(gradients):
            ready = gradients[sent].ready_s
            # Turns that find nothing ready are skipped in one go; they keep the rhythm.
            start += max(0, math.floor((ready - start) / self.cycle_time_s)) * self.cycle_time_s
            if start < ready:
                start = max(ready, start + self.cycle_time_s)
            stop = sent
            while stop < len(gradients) and gradients[stop].ready_s <= start:
                stop += 1
            done = start + negotiation_s
            cycles.append(Cycle(start, done, self._fuse(gradients, sent, stop, done)))
            start, sent = max(start + self.cycle_time_s, done), stop
        return tuple(cycles)

    def buckets(self, gradients: Sequence[Gradient]) -> tuple[Bucket, ...]:
        """The buckets when agreement takes no time."""
        return tuple(bucket for cycle in self.cycles(gradients, 0.0) for bucket in cycle.buckets)

    def _fuse(
        self, gradients: Sequence[Gradient], first: int, stop: int, launched: float
    ) -> tuple[Bucket, ...]:
        groups: list[list[int]] = []
        filled = math.inf
        for index in range(first, stop):
            nbytes = gradients[index].nbytes
            if filled + nbytes > self.threshold_bytes:
                groups.append([])
                filled = 0.0
            groups[-1].append(index)
            filled += nbytes
        return tuple(
            Bucket(float(sum(gradients[i].nbytes for i in group)), launched, tuple(group))
            for group in groups
        )

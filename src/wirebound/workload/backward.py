"""A backward pass cut where its buckets become ready, with the collectives it starts."""

import math
from collections.abc import Iterator, Sequence

import msgspec

from wirebound.errors import ScenarioError
from wirebound.workload.bucketing import Bucket
from wirebound.workload.horovod import Cycle, Horovod
from wirebound.workload.record import Gradient, Kind, Operation, Workload
from wirebound.workload.schedule import Bucketing, Schedule, Timing

MOST_PIECES = 10_000
"""Of one bucket; a smaller partition is a unit mistaken, 4B for 4MiB."""


def bucket_backward(workload: Workload, bucketing: Bucketing, timing: Timing) -> tuple[Bucket, ...]:
    """The buckets of a backward pass, `ready_s` in the seconds of the recording."""
    turns: list[tuple[Bucket, ...]]
    if isinstance(bucketing, Horovod):
        turns = [cycle.buckets for cycle in _cycles(workload, bucketing, timing)]
    else:
        stretched = _stretched(workload.gradients, bucketing, timing)
        turns = [(bucket,) for bucket in bucketing.buckets(stretched)]
    ready_s = 0.0
    recorded: list[Bucket] = []
    for turn in turns:
        members = (index for bucket in turn for index in bucket.members)
        ready_s = max(ready_s, *(workload.gradients[index].ready_s for index in members))
        recorded += [Bucket(bucket.nbytes, ready_s, bucket.members) for bucket in turn]
    return tuple(recorded)


def needed_s(workload: Workload, bucket: Bucket) -> float:
    """When the next forward first needs a gradient of this bucket [s after it began].

    Where nobody measured it, the forward pass is taken to mirror the backward pass:
    the gradient that is ready last is needed first.
    """
    forward_s, backward_s = workload.span_s(Kind.FORWARD), workload.span_s(Kind.BACKWARD)
    scale = forward_s / backward_s if backward_s > 0 else 0.0
    return min(
        forward_s,
        *(
            (backward_s - gradient.ready_s) * scale
            if gradient.needed_s is None
            else gradient.needed_s
            for gradient in (workload.gradients[index] for index in bucket.members)
        ),
    )


class Backward(msgspec.Struct, frozen=True):
    """One backward pass of a schedule and the names of everything it starts.

    Attributes:
        op: The backward operation that is cut.
        previous: The operation before it on the compute lane, if any.
        schedule: How the step is organised.
        timing: The durations that decide which operations exist.
        suffix: Appended to every name, to tell micro-steps and steps apart.
    """

    op: Operation
    previous: str | None
    schedule: Schedule
    timing: Timing
    suffix: str

    def operations(self, workload: Workload, buckets: Sequence[Bucket]) -> Iterator[Operation]:
        """Segments of the pass, and per bucket its encoding and its collective.

        The last segment has the name of the pass, for the operations that wait for it.
        """
        launched_by = self._negotiations(workload)
        urgency = self._urgency(workload, buckets)
        cut_s = 0.0
        segment = ""
        for index, bucket in enumerate(buckets):
            ready_s = min(bucket.ready_s, self.op.seconds)
            if ready_s > cut_s or index == 0:
                is_last = ready_s == self.op.seconds
                segment = self.op.name if is_last else f"backward[{index}]{self.suffix}"
                after = self.op.after if index == 0 else ()
                yield Operation(segment, Kind.BACKWARD, seconds=ready_s - cut_s, after=after)
                cut_s = ready_s
            start = segment
            if self._encodes_on_device:
                start = f"encode[{index}]{self.suffix}"
                yield Operation(start, Kind.ENCODE, nbytes=bucket.nbytes, after=(segment,))
            if index in launched_by:
                yield from self._negotiate(launched_by[index], segment)
            if launched_by:
                start = f"negotiate[{_turn(launched_by, index)}]{self.suffix}"
            pieces = self.pieces(index, bucket)
            for piece in pieces:
                yield Operation(
                    piece,
                    Kind.ALL_REDUCE,
                    lane="comm",
                    nbytes=bucket.nbytes / len(pieces),
                    after=(start,),
                    priority=urgency[index],
                    is_gradient=True,
                )
        if self.op.seconds > cut_s:
            yield Operation(self.op.name, Kind.BACKWARD, seconds=self.op.seconds - cut_s)

    def pieces(self, index: int, bucket: Bucket) -> tuple[str, ...]:
        """Names of the collectives that reduce one bucket.

        Raises:
            ScenarioError: Far too many.
        """
        limit = self.schedule.partition_bytes
        count = 1 if limit is None else max(1, math.ceil(bucket.nbytes / limit))
        if count > MOST_PIECES:
            raise ScenarioError(
                f"partition of {limit:g} bytes cuts a bucket of {bucket.nbytes:g} bytes into "
                f"{count} pieces, expected at most {MOST_PIECES}",
                "use a larger partition such as 4MiB",
            )
        if count == 1:
            return (f"all_reduce[{index}]{self.suffix}",)
        return tuple(f"all_reduce[{index}.{piece}]{self.suffix}" for piece in range(count))

    def reductions(self, buckets: Sequence[Bucket]) -> tuple[str, ...]:
        """Names of all collectives of this pass."""
        return tuple(
            piece for index, bucket in enumerate(buckets) for piece in self.pieces(index, bucket)
        )

    def decodes(self, buckets: Sequence[Bucket]) -> Iterator[Operation]:
        """Decoding of every bucket, where the device does it after the backward pass."""
        for index, bucket in enumerate(buckets):
            yield from self.decode(index, bucket, self.suffix)

    def decode(self, index: int, bucket: Bucket, suffix: str) -> Iterator[Operation]:
        """Decoding of one bucket, where the device does it, in the step of that suffix."""
        if self._encodes_on_device:
            yield Operation(
                f"decode[{index}]{suffix}",
                Kind.DECODE,
                nbytes=bucket.nbytes,
                after=self.pieces(index, bucket),
            )

    @property
    def _encodes_on_device(self) -> bool:
        return self.timing.has_codec and self.schedule.codec_lane == "compute"

    def _urgency(self, workload: Workload, buckets: Sequence[Bucket]) -> list[int]:
        """Rank of each bucket by the next forward's need; all equal when order is by readiness."""
        if self.schedule.order == "ready":
            return [0] * len(buckets)
        order = sorted(range(len(buckets)), key=lambda i: needed_s(workload, buckets[i]))
        return [order.index(index) for index in range(len(buckets))]

    def _negotiations(self, workload: Workload) -> dict[int, "_Turn"]:
        """First bucket of each Horovod cycle -> the cycle."""
        bucketing = self.schedule.bucketing
        if not isinstance(bucketing, Horovod):
            return {}
        turns: dict[int, _Turn] = {}
        first, awake = 0, 0.0
        for number, cycle in enumerate(_cycles(workload, bucketing, self.timing)):
            slept_s = max(0.0, cycle.start_s - awake)
            turns[first] = _Turn(number, slept_s, first + len(cycle.buckets) - 1)
            first, awake = first + len(cycle.buckets), cycle.done_s
        return turns

    def _negotiate(self, turn: "_Turn", segment: str) -> Iterator[Operation]:
        """The thread's sleep and the agreement; gradients are encoded before they are offered."""
        yield Operation(
            f"cycle[{turn.number}]{self.suffix}",
            Kind.HOST,
            lane="coordinator",
            seconds=turn.slept_s,
            after=(self.previous,) if turn.number == 0 and self.previous else (),
        )
        encoded = f"encode[{turn.last}]{self.suffix}"
        yield Operation(
            f"negotiate[{turn.number}]{self.suffix}",
            Kind.NEGOTIATE,
            lane="coordinator",
            after=(encoded if self._encodes_on_device else segment,),
        )


class _Turn(msgspec.Struct, frozen=True):
    """A Horovod cycle: its number, how long the thread slept before it, its last bucket."""

    number: int
    slept_s: float
    last: int


def _turn(launched_by: dict[int, _Turn], index: int) -> int:
    return launched_by[max(first for first in launched_by if first <= index)].number


def _cycles(workload: Workload, bucketing: Horovod, timing: Timing) -> tuple[Cycle, ...]:
    gradients = _stretched(workload.gradients, bucketing, timing)
    return bucketing.cycles(gradients, timing.negotiation_s)


def _stretched(
    gradients: tuple[Gradient, ...], bucketing: Bucketing, timing: Timing
) -> tuple[Gradient, ...]:
    if not bucketing.is_timed or timing.stretch == 1:
        return gradients
    return tuple(
        msgspec.structs.replace(gradient, ready_s=gradient.ready_s * timing.stretch)
        for gradient in gradients
    )

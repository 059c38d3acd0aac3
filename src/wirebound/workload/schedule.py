"""How a step is organised: the discrete part of a scenario.

A `Schedule` decides which operations exist and in which order they run, never how
long they take.
"""

from typing import Literal

import msgspec

from wirebound.errors import ScenarioError
from wirebound.workload.bucketing import DDP, Explicit, OneBucket, PaperFusion, PerTensor
from wirebound.workload.horovod import Horovod

MOST_MICRO_STEPS = 10_000
"""Of one optimizer step; each is simulated."""

Bucketing = DDP | Horovod | PaperFusion | OneBucket | PerTensor | Explicit


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """How a step is organised.

    Attributes:
        bucketing: Which gradients travel together.
        accumulation: Micro-steps an optimizer step.
        sync_every_micro_step: Reduce after each micro-step instead of after the last.
        order: Order of waiting buckets: as they become ready, or by the next forward's need.
        overlap_next_forward: Whether the next forward may start before all buckets are
            done, each layer waiting for its own (ByteScheduler, SOSP 2019).
        partition_bytes: Cut buckets into pieces of at most this size, so that an urgent
            one need not wait for a whole bucket; None leaves them whole.
        codec_lane: Where a compressor runs: on the device's `compute` lane, beside
            backward, or in line with the collective on its own (`comm`).
    """

    bucketing: Bucketing = DDP()
    accumulation: int = 1
    sync_every_micro_step: bool = False
    order: Literal["ready", "priority"] = "ready"
    overlap_next_forward: bool = False
    partition_bytes: float | None = None
    codec_lane: Literal["compute", "comm"] = "compute"

    def __post_init__(self) -> None:
        """Refuse what no step can do."""
        if not 1 <= self.accumulation <= MOST_MICRO_STEPS:
            raise ScenarioError(
                f"accumulation is {self.accumulation}, expected 1 to {MOST_MICRO_STEPS}"
            )
        if self.partition_bytes is not None and not self.partition_bytes > 0:
            raise ScenarioError(
                f"partition is {self.partition_bytes}, expected a size such as 4MiB"
            )
        if self.overlap_next_forward and (
            isinstance(self.bucketing, Horovod) or self.accumulation > 1
        ):
            raise ScenarioError(
                "overlap with the next forward is modelled without Horovod's cycle and "
                "without accumulation",
                "use bucketing ddp, one, none or explicit and accumulation 1",
            )


class Timing(msgspec.Struct, frozen=True):
    """The few durations that decide which operations exist.

    Attributes:
        stretch: Backward time here over backward time as recorded; timed bucketing
            policies see gradients that much later.
        negotiation_s: One agreement among all ranks [s], for Horovod's cycle.
        has_codec: Whether encoding and decoding gradients costs anything.
    """

    stretch: float = 1.0
    negotiation_s: float = 0.0
    has_codec: bool = False

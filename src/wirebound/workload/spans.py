"""How long each rank worked on what in each micro-step, without the time it waited.

Legend: R ranks, T steps, M micro-steps.
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.intervals import both, coverage, difference, union
from wirebound.trace import EXPOSED_WAIT, GRADIENT, STEP, Trace
from wirebound.workload.exposed import exposed, handed_over_s

UNPACK = "unpack"
"""Copying reduced gradients out of their buckets, which DDP does before `backward` returns."""

BUSY = (UNPACK, "backward", "optimizer", "forward", "input")
"""Kinds of work; an instant that lies in spans of several belongs to the first of them."""

ONCE_A_STEP = (UNPACK, "optimizer")

Seconds = NDArray[np.float64]


class Spans(msgspec.Struct, frozen=True, eq=False):
    """Time by rank, step and micro-step.

    Attributes:
        steps: That were measured.
        busy_s: By kind of work, shape [R, T, M] [s].
        step_s: Of each whole step, shape [R, T] [s].
        wait_s: Waiting for collectives, shape [R, T] [s].
        gradient_place: For each operation of the trace that is a gradient, the share of its
            micro-step's backward pass that was done when it became ready; for the last one of
            a bucket, when it was in the bucket and that was handed over.
    """

    steps: tuple[int, ...]
    busy_s: dict[str, Seconds]
    step_s: Seconds
    wait_s: Seconds
    gradient_place: Seconds

    @property
    def slowest_s(self) -> Seconds:
        """Steps of the rank whose median step is the longest, shape [T] [s].

        Not the longest of all ranks in each step: ranks that wait for each other take turns
        at being late, and none of them takes that long.
        """
        slowest: Seconds = self.step_s[np.argmax(np.median(self.step_s, axis=1))]
        return slowest

    def medians(self) -> dict[str, float]:
        """Of each kind of work in a micro-step, or in a step if it is done once in it [s]."""
        return {
            kind: float(np.median(np.sum(busy_s, axis=2) if kind in ONCE_A_STEP else busy_s))
            for kind, busy_s in self.busy_s.items()
        }

    def host_s(self, medians: dict[str, float]) -> float:
        """What is left of the median step beside work and waiting, for a micro-step [s].

        Gaps that the recorder named and gaps that nobody named are both in it, and with it
        the spans add up to the median of a step without its waiting.
        """
        micro_steps = int(self.busy_s["backward"].shape[2])
        work_s = sum(
            seconds * (1 if kind in ONCE_A_STEP else micro_steps)
            for kind, seconds in medians.items()
        )
        left_s = float(np.median(self.step_s - self.wait_s)) - work_s
        return max(0.0, left_s) / micro_steps


def measure(trace: Trace, steps: tuple[int, ...], micro_steps: int) -> Spans:
    """Measure complete steps.

    Args:
        trace: Of these steps alone.
        steps: Ascending.
        micro_steps: Of each.
    """
    shape = (len(trace.ranks), len(steps), micro_steps)
    spans = Spans(
        steps,
        {kind: np.zeros(shape) for kind in BUSY},
        np.zeros(shape[:2]),
        np.zeros(shape[:2]),
        np.zeros(len(trace.operations)),
    )
    for row, rank in enumerate(trace.ranks):
        flags = trace.operations.rank == rank.rank
        _measure_rank(trace.select(rank=rank.rank), spans, row, flags)
    return spans


def _measure_rank(own: Trace, spans: Spans, row: int, flags: NDArray[np.bool_]) -> None:
    """Fill in what belongs to one rank."""
    step = np.searchsorted(spans.steps, own.operations.step)
    start_s, end_s = own.start_s, own.end_s
    is_step = own.is_kind(STEP)
    still = exposed(own)
    spans.step_s[row, step[is_step]] = own.duration_s[is_step]
    spans.wait_s[row, step[is_step]] = coverage(still.waiting, end_s[is_step]) - coverage(
        still.waiting, start_s[is_step]
    )
    handed_s = handed_over_s(own)
    extra = {UNPACK: still.unpacking, "backward": still.packing}
    taken = still.waiting
    shape = spans.busy_s["backward"].shape[1:]
    for kind in BUSY:
        work = union(*_edges(own, kind))
        work = both(work, extra[kind]) if kind in extra else work
        alone = difference(work, taken)
        taken = both(taken, work)
        begin_s, done_s = _hulls(own, kind, step, shape)
        busy_s = coverage(alone, done_s) - coverage(alone, begin_s)
        spans.busy_s[kind][row] = busy_s
        if kind == "backward":
            ready = own.is_kind(GRADIENT)
            micro = np.minimum(own.operations.micro[ready], shape[1] - 1)
            cell = (step[ready], micro)
            done = coverage(alone, handed_s[ready]) - coverage(alone, begin_s[cell])
            whole = np.maximum(busy_s[cell], np.finfo(np.float64).tiny)
            spans.gradient_place[np.flatnonzero(flags)[ready]] = np.clip(done / whole, 0, 1)


def _edges(own: Trace, kind: str) -> tuple[Seconds, Seconds]:
    flags = own.is_kind(kind)
    return own.start_s[flags], own.end_s[flags]


def _hulls(
    own: Trace, kind: str, step: NDArray[np.int64], shape: tuple[int, ...]
) -> tuple[Seconds, Seconds]:
    """From the first start to the last end of a kind in each micro-step; [0, 0] for none.

    Copying to and from buckets lies in the exposed wait.
    """
    begin_s, done_s = np.full(shape, np.inf), np.zeros(shape)
    with_wait = (kind, EXPOSED_WAIT) if kind in ("backward", UNPACK) else (kind,)
    flags = own.is_kind(*with_wait)
    cell = (step[flags], np.minimum(own.operations.micro[flags], shape[1] - 1))
    np.minimum.at(begin_s, cell, own.start_s[flags])
    np.maximum.at(done_s, cell, own.end_s[flags])
    begin_s[np.isinf(begin_s)] = 0.0
    return begin_s, done_s

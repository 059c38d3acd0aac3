"""What a recording measured, for comparison with what the model says."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.intervals import coverage, union
from wirebound.trace import STEP, Operations, Trace, instances
from wirebound.workload.spans import Spans

GLOO_STREAMS = 2
"""Threads of a gloo process group in PyTorch, each with a collective in flight."""


class RecordedCollective(msgspec.Struct, frozen=True):
    """One collective of a step, or several of one name and size.

    Attributes:
        name: As recorded, `bucket 3`.
        kind: `all_reduce`, ...
        nbytes: Payload [bytes].
        dtype: Of the payload.
        per_step: How many a step, mean over ranks and steps.
        seconds: From enqueued to done, median over ranks and steps [s].
        transfer_s: The same without the wait for the collective before it and for the last
            rank to join: the shortest of all ranks, median over steps [s].
    """

    name: str
    kind: str
    nbytes: int
    dtype: str | None
    per_step: float
    seconds: float
    transfer_s: float


class Recorded(msgspec.Struct, frozen=True):
    """Medians over the steps that were reduced.

    Attributes:
        step_s: Of a step on the rank where that is longest [s].
        alone_s: Of a step without its waiting for collectives, over ranks too [s].
        exposed_wait_s: Of that waiting in a step, over ranks too [s].
        comm_s: Of the time of a step in which a collective was under way, over ranks too [s].
        collectives: In the order they were first enqueued.
        steps: How many were reduced.
        ranks: How many were seen.
        world_size: Ranks of the job.
        local_world_size: Ranks of a node, where known.
        hosts: Of the ranks seen.
        device: `cpu` or `cuda`.
        backend: What carried the collectives, None without any.
    """

    step_s: float
    alone_s: float
    exposed_wait_s: float
    comm_s: float
    collectives: tuple[RecordedCollective, ...]
    steps: int
    ranks: int
    world_size: int
    local_world_size: int | None
    hosts: tuple[str, ...]
    device: str
    backend: str | None


def summarise(trace: Trace, spans: Spans, steps: tuple[int, ...]) -> Recorded:
    """Summarise complete steps.

    Args:
        trace: Of these steps alone.
        spans: Measured from it.
        steps: Ascending.
    """
    first = trace.ranks[0]
    return Recorded(
        step_s=float(np.median(spans.slowest_s)),
        alone_s=float(np.median(spans.step_s - spans.wait_s)),
        exposed_wait_s=float(np.median(spans.wait_s)),
        comm_s=float(np.median([_comm_s(trace.select(rank=one.rank)) for one in trace.ranks])),
        collectives=_collectives(trace, len(steps)),
        steps=len(steps),
        ranks=len(trace.ranks),
        world_size=trace.world_size,
        local_world_size=first.local_world_size,
        hosts=tuple(sorted({rank.host for rank in trace.ranks})),
        device=first.device,
        backend=first.backend,
    )


def _comm_s(own: Trace) -> list[float]:
    """How long a collective of one rank was under way, in each step [s]."""
    is_step, is_comm = own.is_kind(STEP), own.is_collective
    under_way = union(own.start_s[is_comm], own.end_s[is_comm])
    begun, done = own.start_s[is_step], own.end_s[is_step]
    inside: list[float] = (coverage(under_way, done) - coverage(under_way, begun)).tolist()
    return inside


def _collectives(trace: Trace, steps: int) -> tuple[RecordedCollective, ...]:
    flags = trace.is_collective
    ops = trace.operations.where(flags)
    if not len(ops):
        return ()
    duration_s = trace.duration_s[flags]
    served_s = _served_s(ops, trace.start_s[flags], trace.end_s[flags])
    number = instances(ops)
    shortest_s = np.full(number.max() + 1, np.inf)
    np.minimum.at(shortest_s, number, served_s)
    what = np.stack((ops.kind, ops.name, ops.nbytes, ops.dtype))
    _, first, which = np.unique(what, axis=1, return_index=True, return_inverse=True)
    which = which.ravel()
    rows = []
    for index in np.argsort(trace.start_s[flags][first]).tolist():
        mine, at = which == index, first[index]
        rows.append(
            RecordedCollective(
                name=trace.texts[ops.name[at]],
                kind=trace.texts[ops.kind[at]],
                nbytes=int(ops.nbytes[at]),
                dtype=trace.text(int(ops.dtype[at])),
                per_step=int(np.sum(mine)) / (steps * len(trace.ranks)),
                seconds=float(np.median(duration_s[mine])),
                transfer_s=float(np.median(shortest_s[np.unique(number[mine])])),
            )
        )
    return tuple(rows)


def _served_s(
    ops: Operations, start_s: NDArray[np.float64], end_s: NDArray[np.float64]
) -> NDArray[np.float64]:
    """From when a collective was enqueued and the one before it was done, until it was done."""
    order = np.lexsort((end_s, ops.group, ops.rank))
    queue = np.stack((ops.rank[order], ops.group[order]))
    is_behind = np.zeros(order.size, dtype=np.bool_)
    is_behind[1:] = np.all(queue[:, 1:] == queue[:, :-1], axis=0)
    before_s = np.where(is_behind, np.roll(end_s[order], 1), -np.inf)
    served_s = np.empty(order.size)
    served_s[order] = end_s[order] - np.maximum(start_s[order], before_s)
    return served_s

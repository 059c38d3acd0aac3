"""Operations with their predecessors, in an order in which they can be computed."""

import heapq
from collections.abc import Collection, Iterable, Sequence

import msgspec

from wirebound.errors import WorkloadError
from wirebound.workload.record import SPAN_RESOURCE, Operation


class Graph(msgspec.Struct, frozen=True):
    """A step as a directed acyclic graph.

    Attributes:
        operations: K operations in topological order.
        predecessors: For each, the positions of the operations it waits for: those it
            names and the one before it on its lane. Timed operations come first, so that
            of two predecessors ending together compute is billed rather than the network.
        sinks: Positions of the operations nobody waits for, timed ones first.
    """

    operations: tuple[Operation, ...]
    predecessors: tuple[tuple[int, ...], ...]
    sinks: tuple[int, ...]


def compile_graph(operations: Sequence[Operation], free_lanes: Collection[str] = ()) -> Graph:
    """Order operations so that each comes after all it waits for.

    Args:
        operations: In issue order per lane.
        free_lanes: Lanes whose order is decided while running; no edge along them.

    Raises:
        WorkloadError: A cycle, with the operations on it.
    """
    position = {op.name: index for index, op in enumerate(operations)}
    waits_for: list[set[int]] = []
    last_on_lane: dict[str, int] = {}
    for index, op in enumerate(operations):
        before = {position[name] for name in op.after}
        if op.lane not in free_lanes and op.lane in last_on_lane:
            before.add(last_on_lane[op.lane])
        last_on_lane[op.lane] = index
        waits_for.append(before)
    order = _topological(operations, waits_for)
    rank = {index: place for place, index in enumerate(order)}

    def timed_first(indices: Iterable[int]) -> tuple[int, ...]:
        chosen = sorted(indices, key=lambda i: (operations[i].kind not in SPAN_RESOURCE, i))
        return tuple(rank[index] for index in chosen)

    return Graph(
        operations=tuple(operations[index] for index in order),
        predecessors=tuple(timed_first(waits_for[index]) for index in order),
        sinks=timed_first(set(range(len(operations))).difference(*waits_for)),
    )


def _topological(operations: Sequence[Operation], waits_for: Sequence[set[int]]) -> list[int]:
    """Kahn's algorithm; among operations that are free to go, the first listed goes first."""
    followers: list[list[int]] = [[] for _ in operations]
    missing = [len(before) for before in waits_for]
    for index, before in enumerate(waits_for):
        for predecessor in before:
            followers[predecessor].append(index)
    free = [index for index, count in enumerate(missing) if count == 0]
    heapq.heapify(free)
    order: list[int] = []
    while free:
        index = heapq.heappop(free)
        order.append(index)
        for follower in followers[index]:
            missing[follower] -= 1
            if missing[follower] == 0:
                heapq.heappush(free, follower)
    if len(order) < len(operations):
        raise WorkloadError(
            f"operations wait for each other: {_cycle(operations, waits_for, order)}"
        )
    return order


def _cycle(
    operations: Sequence[Operation], waits_for: Sequence[set[int]], order: Sequence[int]
) -> str:
    """One cycle among the operations that never became free, as `a -> b -> a`."""
    done = set(order)
    index = next(i for i in range(len(operations)) if i not in done)
    trail: list[int] = []
    while index not in trail:
        trail.append(index)
        index = min(before for before in waits_for[index] if before not in done)
    loop = [*trail[trail.index(index) :], index]
    return " -> ".join(operations[i].name for i in reversed(loop))

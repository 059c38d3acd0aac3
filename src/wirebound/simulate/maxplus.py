"""The engine for a fixed order: max and plus over arrays, all scenarios at once.

`end[k] = max(end of what k waits for) + duration[k]`, each operation one vector over
the S scenarios. A duration is the longest of an operation's legs; a leg is a sum of
seconds by resource. With plain floats the same code answers one scenario.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirebound.resources import Resource
from wirebound.simulate.graph import Graph
from wirebound.simulate.run import Array, Costs, Leg, Run, leg_s, longest_leg


def without(costs: Costs, resources: Iterable[Resource]) -> Costs:
    """The same costs with some resources free."""
    free = frozenset(resources)
    return [
        tuple({name: s for name, s in leg.items() if name not in free} for leg in legs)
        for legs in costs
    ]


def durations(costs: Costs) -> list[Array]:
    """Seconds of each of K operations: its longest leg."""
    maximum = _maximum(costs)
    result: list[Array] = []
    for legs in costs:
        longest: Array = 0.0
        for index, leg in enumerate(legs):
            seconds: Array = leg_s(leg)
            longest = seconds if index == 0 else maximum(longest, seconds)
        result.append(longest)
    return result


def schedule(graph: Graph, seconds: Sequence[Array]) -> tuple[list[Array], list[Array]]:
    """Start and end of each of K operations [s], each a float or shaped like the scenarios."""
    maximum = np.maximum if any(isinstance(s, np.ndarray) for s in seconds) else max
    starts: list[Array] = []
    ends: list[Array] = []
    for before, duration in zip(graph.predecessors, seconds, strict=True):
        start: Array = ends[before[0]] if before else 0.0
        for index in before[1:]:
            start = maximum(start, ends[index])
        starts.append(start)
        ends.append(start + duration)
    return starts, ends


def step_s(graph: Graph, costs: Costs) -> Array:
    """End of the last operation [s], a float or shaped like the scenarios."""
    seconds = durations(costs)
    _, ends = schedule(graph, seconds)
    maximum = _maximum(costs)
    longest: Array = 0.0
    for index in graph.sinks:
        longest = maximum(longest, ends[index])
    return longest


def run(graph: Graph, costs: Costs) -> Run:
    """One scenario with its causes; costs are plain floats."""
    starts, ends = schedule(graph, durations(costs))
    return Run(
        starts=tuple(float(start) for start in starts),
        ends=tuple(float(end) for end in ends),
        causes=tuple(
            next((index for index in before if ends[index] == start), None)
            for before, start in zip(graph.predecessors, starts, strict=True)
        ),
        spent=tuple(longest_leg(legs) for legs in costs),
    )


def on_critical_path(graph: Graph, costs: Costs) -> list[list[NDArray[np.bool_]]]:
    """For each operation and leg: in which scenarios its seconds are on the critical path.

    One path a scenario, walked back from the last end. Of operations that end together
    the one that `Graph` lists first is taken.

    Returns:
        K lists of L masks, each shaped like the scenarios.
    """
    seconds = durations(costs)
    starts, ends = schedule(graph, seconds)
    shape = np.broadcast_shapes(*(np.shape(end) for end in ends))
    finish = np.max([np.broadcast_to(end, shape) for end in ends], axis=0)
    nowhere = np.zeros(shape, dtype=bool)
    wanted = [nowhere] * len(ends)
    rest = np.ones(shape, dtype=bool)
    for index in graph.sinks:
        wanted[index] = rest & (ends[index] == finish)
        rest = rest & ~wanted[index]
    masks: list[list[NDArray[np.bool_]]] = [[] for _ in ends]
    for index in range(len(ends) - 1, -1, -1):
        here = wanted[index]
        if not here.any():
            masks[index] = [here] * len(costs[index])
            continue
        masks[index] = _binding_legs(costs[index], seconds[index], here)
        rest = here
        for before in graph.predecessors[index]:
            reached = rest & (ends[before] == starts[index])
            rest = rest & ~reached
            wanted[before] = wanted[before] | reached
    return masks


def collect(
    costs: Costs,
    masks: Sequence[Sequence[NDArray[np.bool_]]],
    into: Callable[[Resource], Any],
) -> dict[Any, NDArray[np.float64]]:
    """Sum the seconds on the critical path by whatever `into` makes of their resource."""
    totals: dict[Any, NDArray[np.float64]] = {}
    for legs, leg_masks in zip(costs, masks, strict=True):
        for leg, mask in zip(legs, leg_masks, strict=True):
            if mask.any():
                for resource, s in leg.items():
                    key = into(resource)
                    totals[key] = totals.get(key, 0.0) + np.where(mask, s, 0.0)
    return totals


def bill(graph: Graph, costs: Costs) -> dict[Resource, NDArray[np.float64]]:
    """Seconds of the critical path by resource [s]; they add up to the step time."""
    return collect(costs, on_critical_path(graph, costs), lambda resource: resource)


def _binding_legs(
    legs: tuple[Leg, ...], longest: Array, here: NDArray[np.bool_]
) -> list[NDArray[np.bool_]]:
    """Which leg decides where the operation is on the path: the first of the longest."""
    masks: list[NDArray[np.bool_]] = []
    rest = here
    for leg in legs:
        binding = rest & np.asarray(leg_s(leg) == longest)
        rest = rest & ~binding
        masks.append(binding)
    return masks


def _maximum(costs: Costs) -> Callable[..., Any]:
    vector = any(isinstance(s, np.ndarray) for legs in costs for leg in legs for s in leg.values())
    return np.maximum if vector else max

"""One step out of a run: the whole run, or one period of steps that overlap."""

from collections.abc import Callable

import msgspec

from wirebound.resources import Resource
from wirebound.simulate.graph import Graph
from wirebound.simulate.run import Run, path_from

UNROLLED = (4, 8, 16, 32)
"""Consecutive steps tried until the last two take equally long."""

SETTLED = 1e-9
"""Relative difference of two periods that count as equal."""


class Window(msgspec.Struct, frozen=True):
    """A stretch of a run that stands for `steps` steps.

    Attributes:
        graph: What ran.
        run: When.
        last: Position of the operation from which the critical path is walked back: the
            one that ends the window, or a later one.
        begin_s: Start of the window [s].
        end_s: End of the window [s].
        steps: How many steps it holds.
        is_settled: Whether the period is the same from step to step.
    """

    graph: Graph
    run: Run
    last: int
    begin_s: float
    end_s: float
    steps: int = 1
    is_settled: bool = True

    @property
    def step_s(self) -> float:
        """Time of one step [s]."""
        return (self.end_s - self.begin_s) / self.steps

    def bill(self) -> dict[Resource, float]:
        """Critical-path seconds of one step by resource [s]; they add up to `step_s`."""
        totals: dict[Resource, float] = {}
        for index in path_from(self.run, self.last):
            start_s, end_s = self.run.starts[index], self.run.ends[index]
            inside_s = min(end_s, self.end_s) - max(start_s, self.begin_s)
            if inside_s <= 0:
                continue
            share = inside_s / (end_s - start_s) / self.steps
            for resource, seconds in self.run.spent[index].items():
                totals[resource] = totals.get(resource, 0.0) + float(seconds) * share
        return totals


def whole(graph: Graph, run: Run) -> Window:
    """A run that is one step."""
    ends = run.ends
    last = max(graph.sinks, key=lambda index: (ends[index], -graph.sinks.index(index)))
    return Window(graph, run, last, 0.0, ends[last])


def settle(simulate: Callable[[int], tuple[Graph, Run]]) -> Window:
    """Unroll steps that overlap until their period no longer changes.

    Args:
        simulate: Runs a number of consecutive steps whose names end in `@step`.

    Returns:
        The last period but one; if it never settles (priorities can make steps alternate), the
        second half of the longest run, with `is_settled` false.
    """
    for steps in UNROLLED:
        graph, run = simulate(steps)
        lasts = [_last_of_step(graph, run, step) for step in range(steps)]
        marks = [run.ends[index] for index in lasts]
        period, before = marks[-1] - marks[-2], marks[-2] - marks[-3]
        if abs(period - before) <= SETTLED * period:
            # The path into the last period comes from the end of the run, and repeats only
            # before it: the period before is the one whose bill stands for all.
            return Window(graph, run, lasts[-1], marks[-3], marks[-2])
    half = steps // 2
    return Window(graph, run, lasts[-1], marks[half - 1], marks[-1], half, is_settled=False)


def _last_of_step(graph: Graph, run: Run, step: int) -> int:
    own = [
        index
        for index, op in enumerate(graph.operations)
        if op.lane == "compute" and op.name.endswith(f"@{step}")
    ]
    return max(own, key=lambda index: (run.ends[index], index))

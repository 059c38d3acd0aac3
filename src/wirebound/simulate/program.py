"""A workload under one schedule, ready to be priced: the place where the engines meet."""

from collections.abc import Collection, Iterator, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.network.record import Network
from wirebound.resources import LINKS, NETWORK, Resource
from wirebound.simulate import events, maxplus
from wirebound.simulate.graph import Graph, compile_graph
from wirebound.simulate.pricing import Prices, negotiation_messages, price, prices
from wirebound.simulate.run import Array, Costs, Run, leg_s
from wirebound.simulate.scenario import Scenario
from wirebound.simulate.steady import Window, settle, whole
from wirebound.workload.expand import alone, expand
from wirebound.workload.horovod import Horovod
from wirebound.workload.record import SPAN_RESOURCE, Operation, Workload
from wirebound.workload.schedule import Timing

Columns = Mapping[str, NDArray[np.float64]]
"""Numeric scenario fields -> one value a scenario, all shaped (S,)."""

NO_COLUMNS: Columns = {}


class Outcome(msgspec.Struct, frozen=True):
    """Step times of S scenarios.

    Attributes:
        step_s: On all workers (S,).
        alone_s: On one worker, without communication (S,).
        free_network_s: On all workers with free links and no latency (S,).
        bill: Critical-path seconds by resource (S,), adding up to `step_s`; empty unless
            asked for.
    """

    step_s: NDArray[np.float64]
    alone_s: NDArray[np.float64]
    free_network_s: NDArray[np.float64]
    bill: Mapping[Resource, NDArray[np.float64]]


class Program:
    """One workload, one network, one scenario whose numeric fields may still vary.

    Fields that decide which operations exist must not vary: see `structural_fields`.

    Args:
        workload: What a step needs.
        network: What moving bytes costs.
        scenario: The base.
    """

    def __init__(self, workload: Workload, network: Network, scenario: Scenario) -> None:
        self.workload = workload
        self.network = network
        self.scenario = scenario
        self.lanes = _free_lanes(scenario)
        self.graph = self._compile(1)
        self._alone = compile_graph(alone(workload, scenario.schedule), self.lanes)

    @property
    def has_parallel_compute(self) -> bool:
        """Whether one worker computes on several lanes, so that its step is no plain sum."""
        timed = (op for op in self._alone.operations if op.kind in SPAN_RESOURCE)
        return len({op.lane for op in timed}) > 1

    def costs(self, columns: Columns = NO_COLUMNS) -> Costs:
        """Seconds by resource of each operation; floats without columns."""
        return price(self.graph, self.network, self.scenario, self._prices(columns))

    def evaluate(self, columns: Columns = NO_COLUMNS, *, with_bill: bool = False) -> Outcome:
        """Step times of all scenarios of the columns, or of the base as the only one.

        Args:
            columns: Fields that vary.
            with_bill: Whether to walk the critical paths too.
        """
        if needs_events(self.network, self.scenario):
            return self._one_by_one(columns, with_bill=with_bill)
        size = _length(columns)
        costs = self.costs(columns)
        bill = maxplus.bill(self.graph, costs) if with_bill else {}
        return self._outcome(
            columns,
            _by_scenario(maxplus.step_s(self.graph, costs), size),
            _by_scenario(maxplus.step_s(self.graph, maxplus.without(costs, NETWORK)), size),
            {name: _by_scenario(seconds, size) for name, seconds in bill.items()},
        )

    def step_s(self, columns: Columns = NO_COLUMNS) -> NDArray[np.float64]:
        """Step time on all workers (S,)."""
        return self.step_without((), columns)

    def alone_s(self, columns: Columns = NO_COLUMNS) -> NDArray[np.float64]:
        """Step time of one worker alone (S,)."""
        size = _length(columns)
        scenario = msgspec.structs.replace(self.scenario, workers=1, jitter=None)
        one = {name: values for name, values in columns.items() if name != "workers"}
        at = prices(self.network, scenario, one)
        costs = price(self._alone, self.network, scenario, at)
        return _by_scenario(maxplus.step_s(self._alone, costs), size)

    def window(
        self, columns: Columns = NO_COLUMNS, *, draw: int = 0, free: Collection[Resource] = ()
    ) -> Window:
        """One scenario with every operation's times; one period where steps overlap.

        Args:
            columns: Fields of the scenario, one value each.
            draw: Which of the jitter's draws.
            free: Resources that cost nothing.
        """
        at = self._prices(columns)

        def simulate(steps: int) -> tuple[Graph, Run]:
            graph = self.graph if steps == 1 else self._compile(steps)
            costs = price(graph, self.network, self.scenario, at)
            costs = _scalar(maxplus.without(costs, free), draw)
            if not needs_events(self.network, self.scenario):
                return graph, maxplus.run(graph, costs)
            # Bytes that move for free take nothing from anybody.
            contention = None if set(free).issuperset(LINKS) else self.network.contention
            inflation = self.scenario.compute_inflation
            return graph, events.run(graph, costs, self.lanes, inflation, contention)

        if self.scenario.schedule.overlap_next_forward and self.workload.gradients:
            return settle(simulate)
        return whole(*simulate(1))

    def step_without(
        self, free: Collection[Resource], columns: Columns = NO_COLUMNS
    ) -> NDArray[np.float64]:
        """Step time on all workers where some resources cost nothing (S,)."""
        size = _length(columns)
        if not needs_events(self.network, self.scenario):
            costs = maxplus.without(self.costs(columns), free)
            return _by_scenario(maxplus.step_s(self.graph, costs), size)
        return np.array(
            [
                np.mean([self.window(row, draw=draw, free=free).step_s for draw in self._draws])
                for row in _rows(columns)
            ]
        )

    def link_s(self, columns: Columns = NO_COLUMNS) -> NDArray[np.float64]:
        """Seconds a step for which one node's ports would be busy at line rate (S,)."""
        perfect = msgspec.structs.replace(self.scenario, efficiency=1.0, jitter=None)
        rest = {name: values for name, values in columns.items() if name != "efficiency"}
        costs = price(self.graph, self.network, perfect, prices(self.network, perfect, rest))
        return _by_scenario(_total(costs, (Resource.LINK_INTER,)), _length(columns))

    def communication_s(
        self, columns: Columns = NO_COLUMNS, resources: Collection[Resource] = NETWORK
    ) -> NDArray[np.float64]:
        """Seconds a step of links and latency, or one of them, as if nothing overlapped (S,)."""
        return _by_scenario(_total(self.costs(columns), resources), _length(columns))

    @property
    def _draws(self) -> range:
        return range(1 if self.scenario.jitter is None else self.scenario.jitter.draws)

    def _one_by_one(self, columns: Columns, *, with_bill: bool) -> Outcome:
        steps, bills = [], []
        for row in _rows(columns):
            windows = [self.window(row, draw=draw) for draw in self._draws]
            steps.append(np.mean([window.step_s for window in windows]))
            if with_bill:
                each = [window.bill() for window in windows]
                bills.append({r: np.mean([bill.get(r, 0.0) for bill in each]) for r in Resource})
        bill = {r: np.array([row[r] for row in bills]) for r in Resource if with_bill}
        return self._outcome(columns, np.array(steps), self.step_without(NETWORK, columns), bill)

    def _outcome(
        self,
        columns: Columns,
        step_s: NDArray[np.float64],
        free_s: NDArray[np.float64],
        bill: Mapping[Resource, NDArray[np.float64]],
    ) -> Outcome:
        """Put the one-worker step in place where there is one worker: exact, not re-summed."""
        alone_s = self.alone_s(columns)
        is_one = np.broadcast_to(columns.get("workers", self.scenario.workers), alone_s.shape) == 1
        return Outcome(
            step_s=np.where(is_one, alone_s, step_s),
            alone_s=alone_s,
            free_network_s=np.where(is_one, alone_s, free_s),
            bill=bill,
        )

    def _prices(self, columns: Columns) -> Prices:
        return prices(self.network, self.scenario, columns)

    def _compile(self, steps: int) -> Graph:
        return compile_graph(self._operations(steps), self.lanes)

    def _operations(self, steps: int) -> tuple[Operation, ...]:
        scenario = self.scenario
        if scenario.workers == 1 and "workers" in structural_fields(scenario):
            return alone(self.workload, scenario.schedule)
        latency_s = self.network.inter.alpha_s if scenario.latency_s is None else scenario.latency_s
        timing = Timing(
            stretch=scenario.batch_scale / scenario.compute_speed,
            negotiation_s=float(negotiation_messages(scenario, scenario.workers) * latency_s),
            has_codec=scenario.encode_s_per_byte > 0 or scenario.decode_s_per_byte > 0,
        )
        return expand(self.workload, scenario.schedule, timing, steps=steps)


def needs_events(network: Network, scenario: Scenario) -> bool:
    """Whether only the event engine can answer."""
    return scenario.order_depends_on_durations or network.contention is not None


def structural_fields(scenario: Scenario) -> frozenset[str]:
    """Numeric fields that decide which operations exist, so that they cannot be columns.

    A bucketing policy that looks at the clock sees faster compute; Horovod's cycle also
    sees the length of its negotiation.
    """
    bucketing = scenario.schedule.bucketing
    fields: set[str] = set()
    if bucketing.is_timed:
        fields |= {"compute_speed", "batch_scale"}
    if isinstance(bucketing, Horovod):
        fields |= {"workers", "latency_s"}
    return frozenset(fields)


def _free_lanes(scenario: Scenario) -> Mapping[str, events.Lane]:
    by_priority = scenario.schedule.order == "priority"
    if by_priority or scenario.streams > 1:
        return {"comm": events.Lane(by_priority=by_priority, slots=scenario.streams)}
    return {}


def _length(columns: Columns) -> int:
    return max((len(values) for values in columns.values()), default=1)


def _total(costs: Costs, resources: Collection[Resource]) -> Array:
    """Sum over operations of what their costliest leg spends on some resources."""
    total: Array = 0.0
    for legs in costs:
        longest: Array = 0.0
        for leg in legs:
            chosen = leg_s({name: s for name, s in leg.items() if name in resources})
            longest = np.maximum(longest, chosen)
        total = total + longest
    return total


def _rows(columns: Columns) -> Iterator[Columns]:
    """Each scenario as columns of its own."""
    for index in range(_length(columns)):
        yield {name: values[index : index + 1] for name, values in columns.items()}


def _by_scenario(seconds: Array, size: int) -> NDArray[np.float64]:
    """Shape (S,): one number for each scenario, averaged over the draws of a jitter."""
    values = np.asarray(seconds, dtype=np.float64)
    return np.broadcast_to(values.mean(axis=-1) if values.ndim > 1 else values, (size,))


def _scalar(costs: Costs, draw: int) -> Costs:
    """One scenario's costs as floats."""

    def pick(value: Array) -> float:
        values = np.ravel(value)
        return float(values[draw if len(values) > 1 else 0])

    return [
        tuple({resource: pick(value) for resource, value in leg.items()} for leg in legs)
        for legs in costs
    ]

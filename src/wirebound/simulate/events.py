"""The engine for an order that depends on durations: a heap of events, one scenario.

Needed where the next operation of a lane is chosen while running (priority, several
streams) or where operations slow each other down (streams that share a link, compute
beside communication). Ties are broken by position, so the same input gives the same
timeline. Where `maxplus` applies too, both give the same answer; a property test holds
them to it.
"""

import heapq
from collections.abc import Mapping

import msgspec

from wirebound.network.record import Contention
from wirebound.resources import LINKS, Resource
from wirebound.simulate.graph import Graph
from wirebound.simulate.run import Costs, Leg, Run, leg_s, longest_leg
from wirebound.workload.record import COLLECTIVES, Kind

DISTURBING = COLLECTIVES - {Kind.NEGOTIATE}
"""Kinds that take something from compute beside them: agreement runs on the host."""


class Lane(msgspec.Struct, frozen=True):
    """How a lane without a fixed order chooses.

    Attributes:
        by_priority: Smallest priority first among those ready; otherwise first listed.
        slots: Operations that may be in flight at once; they share the link equally.
    """

    by_priority: bool = False
    slots: int = 1


def run(
    graph: Graph,
    costs: Costs,
    lanes: Mapping[str, Lane] = {},
    compute_inflation: float = 0.0,
    contention: Contention | None = None,
) -> Run:
    """Run a graph to its end.

    Args:
        graph: Compiled with the keys of `lanes` as its free lanes.
        costs: Seconds by resource, plain floats.
        lanes: The lanes that choose while running; all others follow the graph's order.
        compute_inflation: How much longer compute takes while a collective runs.
        contention: What computation and collectives on the same processors cost each other.
    """
    kernel = _Kernel(graph, costs, lanes, compute_inflation, contention)
    kernel.run()
    return Run(
        starts=tuple(kernel.starts),
        ends=tuple(kernel.ends),
        causes=tuple(kernel.causes),
        spent=tuple(
            _spent(leg, kernel.ends[index] - kernel.starts[index])
            for index, leg in enumerate(kernel.legs)
        ),
    )


class _Job:
    """An operation in flight: seconds left alone, then seconds that share the link.

    Beside computation it has a pace of its own below 1, and leaves a share to compute.
    """

    def __init__(self, alone_s: float, shared_s: float, beside: tuple[float, float]) -> None:
        self.left_s = alone_s
        self.shared_s = shared_s
        self.pace, self.left_to_compute = beside
        self.is_sharing = False
        self.rate = 0.0
        self.since = 0.0
        self.version = 0


class _Kernel:
    """State of a run. Time moves only in `run`."""

    def __init__(
        self,
        graph: Graph,
        costs: Costs,
        lanes: Mapping[str, Lane],
        inflation: float,
        contention: Contention | None,
    ) -> None:
        self.graph = graph
        self.lanes = lanes
        self.inflation = inflation
        self.contention = contention
        size = len(graph.operations)
        self.legs: list[Leg] = [longest_leg(legs) for legs in costs]
        self.missing = [len(before) for before in graph.predecessors]
        self.followers: list[list[int]] = [[] for _ in range(size)]
        for index, before in enumerate(graph.predecessors):
            for predecessor in before:
                self.followers[predecessor].append(index)
        self.starts = [0.0] * size
        self.ends = [0.0] * size
        self.causes: list[int | None] = [None] * size
        self.waiting: dict[str, list[tuple[int, int]]] = {name: [] for name in lanes}
        self.in_flight = dict.fromkeys(lanes, 0)
        self.freed_by: dict[str, int] = {}
        self.jobs: dict[int, _Job] = {}
        self.events: list[tuple[float, int, int]] = []

    def run(self) -> None:
        now = 0.0
        for index, missing in enumerate(self.missing):
            if missing == 0:
                self._make_ready(index, now)
        self._dispatch(now)
        while self.events:
            now = self.events[0][0]
            while self.events and self.events[0][0] == now:
                _, index, version = heapq.heappop(self.events)
                job = self.jobs.get(index)
                if job is not None and job.version == version:
                    self._finish_phase(index, job, now)
            self._dispatch(now)

    def _finish_phase(self, index: int, job: _Job, now: float) -> None:
        if job.shared_s > 0 and not job.is_sharing:
            job.is_sharing, job.left_s, job.rate = True, job.shared_s, 0.0
            return
        del self.jobs[index]
        self.ends[index] = now
        lane = self.graph.operations[index].lane
        if lane in self.lanes:
            self.in_flight[lane] -= 1
            self.freed_by[lane] = index
        for follower in self.followers[index]:
            self.missing[follower] -= 1
            if self.missing[follower] == 0:
                self._make_ready(follower, now)

    def _make_ready(self, index: int, now: float) -> None:
        op = self.graph.operations[index]
        lane = self.lanes.get(op.lane)
        if lane is None:
            self._start(index, now)
        else:
            urgency = op.priority if lane.by_priority else 0
            heapq.heappush(self.waiting[op.lane], (urgency, index))

    def _dispatch(self, now: float) -> None:
        """Fill free slots, then give every job in flight its present rate."""
        for name, lane in self.lanes.items():
            while self.waiting[name] and self.in_flight[name] < lane.slots:
                _, index = heapq.heappop(self.waiting[name])
                self.in_flight[name] += 1
                self._start(index, now)
        sharing = sum(job.is_sharing for job in self.jobs.values())
        beside = [
            job.left_to_compute
            for index, job in self.jobs.items()
            if self.graph.operations[index].kind in DISTURBING
        ]
        compute_rate = min(beside, default=1.0) / (1 + (self.inflation if beside else 0.0))
        computing = {index for index in self.jobs if Resource.COMPUTE in self.legs[index]}
        for index, job in self.jobs.items():
            if index in computing:
                rate = compute_rate
            else:
                rate = (job.pace if computing else 1.0) / (sharing if job.is_sharing else 1)
            self._set_rate(index, job, rate, now)

    def _start(self, index: int, now: float) -> None:
        self.starts[index] = now
        self.causes[index] = self._cause(index, now)
        leg = self.legs[index]
        total = float(leg_s(leg))
        lane = self.lanes.get(self.graph.operations[index].lane)
        shared = 0.0
        if lane and lane.slots > 1:
            shared = min(total, float(sum(leg.get(link, 0.0) for link in LINKS)))
        self.jobs[index] = _Job(total - shared, shared, self._beside_compute(index, total))

    def _beside_compute(self, index: int, total_s: float) -> tuple[float, float]:
        """Pace of an operation while its rank computes, and what it leaves of compute's."""
        op = self.graph.operations[index]
        if self.contention is None or op.kind not in DISTURBING or total_s == 0:
            return 1.0, 1.0
        delay_s, share = self.contention.at(op.nbytes)
        return total_s / (total_s + delay_s), share

    def _cause(self, index: int, now: float) -> int | None:
        for before in self.graph.predecessors[index]:
            if self.ends[before] == now:
                return before
        return self.freed_by.get(self.graph.operations[index].lane)

    def _set_rate(self, index: int, job: _Job, rate: float, now: float) -> None:
        if rate == job.rate:
            return
        job.left_s = max(0.0, job.left_s - (now - job.since) * job.rate)
        job.rate, job.since, job.version = rate, now, job.version + 1
        heapq.heappush(self.events, (now + job.left_s / rate, index, job.version))


def _spent(leg: Leg, elapsed_s: float) -> Leg:
    """Elapsed seconds by resource: what it took beyond its own cost is contention.

    A collective that shared its link waited for the link, so the link is billed.
    """
    own = leg_s(leg)
    extra = elapsed_s - own
    if extra <= 1e-12 * own:
        return leg
    link = next((name for name in LINKS if leg.get(name)), None)
    billed = Resource.CONTENTION if link is None else link
    return {**leg, billed: leg.get(billed, 0.0) + extra}

"""The engine for an order that depends on durations, by hand."""

import msgspec
import pytest

from wirebound.network.record import Contention, Network, Tier
from wirebound.resources import Resource
from wirebound.simulate import events
from wirebound.simulate.graph import compile_graph
from wirebound.simulate.program import Program
from wirebound.simulate.run import Costs, Run
from wirebound.simulate.scenario import Scenario
from wirebound.workload.bucketing import PerTensor
from wirebound.workload.record import Gradient, Kind, Operation, Workload, data_parallel
from wirebound.workload.schedule import Schedule

LINK, COMPUTE, LATENCY = Resource.LINK_INTER, Resource.COMPUTE, Resource.LATENCY_INTER
NETWORK = Network("n", Tier("t", bandwidth_bps=8e9, alpha_s=0.0))
"""A gigabyte a second; among two workers a ring moves each byte once."""


def reduce(name: str, *after: str, priority: int = 0) -> Operation:
    """A collective."""
    return Operation(name, Kind.ALL_REDUCE, lane="comm", after=after, priority=priority)


def run(
    operations: list[Operation], costs: Costs, lane: events.Lane, inflation: float = 0.0
) -> dict[str, tuple[float, float]]:
    """Start and end by name, with `comm` as a free lane."""
    graph = compile_graph(operations, {"comm"})
    by_name = dict(zip((op.name for op in operations), costs, strict=True))
    ordered = [by_name[op.name] for op in graph.operations]
    done: Run = events.run(graph, ordered, {"comm": lane}, inflation)
    return {
        op.name: (start, end)
        for op, start, end in zip(graph.operations, done.starts, done.ends, strict=True)
    }


def test_an_urgent_bucket_overtakes_those_that_wait() -> None:
    """It is listed last and ready last, and goes as soon as the lane is free."""
    operations = [reduce("a", priority=1), reduce("b", priority=2), reduce("urgent", priority=0)]
    costs: Costs = [({LINK: 2.0},)] * 3
    by_priority = run(operations, costs, events.Lane(by_priority=True))
    assert by_priority["urgent"] == (0.0, 2.0)
    assert by_priority["b"] == (4.0, 6.0)
    in_order = run(operations, costs, events.Lane())
    assert in_order["urgent"] == (4.0, 6.0)


def test_priority_beats_first_come_where_an_urgent_bucket_comes_late() -> None:
    """The first layer's gradient is the last one ready and the first one needed.

    Backward 0.2 s; `back` of 0.4 s of link is ready at once with `middle`, `front` at the
    end. The next forward needs `front` first.
    """
    workload = data_parallel(
        "w",
        [
            Gradient("back", 400_000_000, 0.1, needed_s=0.2),
            Gradient("middle", 400_000_000, 0.1, needed_s=0.15),
            Gradient("front", 100_000_000, 0.2, needed_s=0.0),
        ],
        forward_s=0.3,
        backward_s=0.2,
    )

    def step_s(order: str) -> float:
        schedule = Schedule(bucketing=PerTensor(), order=order, overlap_next_forward=True)
        scenario = Scenario(workers=2, schedule=schedule)
        return Program(workload, NETWORK, scenario).window().step_s

    # In order: back 0.1-0.5, middle -0.9, front -1.0, then forward and half of backward.
    assert pytest.approx(1.3) == step_s("ready")
    # By need: middle 0.1-0.5 (needed before back), front -0.6 starts forward, which waits
    # from its 0.2 s on for back (-1.0); forward ends at 1.1, the next bucket is ready at 1.2.
    assert pytest.approx(1.1) == step_s("priority")


def test_a_partition_lets_the_urgent_bucket_in() -> None:
    """Without it, the urgent bucket waits for the end of a whole large one."""
    workload = data_parallel(
        "w",
        [Gradient("large", 800_000_000, 0.1), Gradient("urgent", 100_000_000, 0.2)],
        backward_s=0.2,
        forward_s=0.1,
    )

    def end_of_urgent(partition_bytes: float | None) -> float:
        schedule = Schedule(
            bucketing=PerTensor(), order="priority", partition_bytes=partition_bytes
        )
        window = Program(workload, NETWORK, Scenario(workers=2, schedule=schedule)).window()
        ends = dict(zip((o.name for o in window.graph.operations), window.run.ends, strict=True))
        return ends["all_reduce[1]"]

    # Ready at 0.3 s of the step; the large one runs from 0.2 to 1.0.
    assert pytest.approx(1.1) == end_of_urgent(None)
    # In pieces of 0.1 s one just ends when the urgent one is ready.
    assert pytest.approx(0.4) == end_of_urgent(100_000_000)


def test_streams_share_the_link_and_overlap_latencies() -> None:
    """Two at once: bytes take as long as one after the other, latency is paid once."""
    operations = [reduce("a"), reduce("b")]
    costs: Costs = [({LINK: 1.0, LATENCY: 0.25},)] * 2
    in_turn = run(operations, costs, events.Lane())
    at_once = run(operations, costs, events.Lane(slots=2))
    assert in_turn == {"a": (0.0, 1.25), "b": (1.25, 2.5)}
    assert at_once == {"a": (0.0, 2.25), "b": (0.0, 2.25)}


def test_a_stream_that_joins_slows_the_one_in_flight() -> None:
    """Rates change when one comes and when one goes."""
    operations = [
        reduce("a"),
        Operation("compute", Kind.COMPUTE, seconds=1.0),
        reduce("b", "compute"),
    ]
    costs: Costs = [({LINK: 3.0},), ({COMPUTE: 1.0},), ({LINK: 1.0},)]
    # Alone until 1, then half each: b has its second by 3, a its last by 4.
    at_once = run(operations, costs, events.Lane(slots=2))
    assert at_once == {"a": (0.0, 4.0), "compute": (0.0, 1.0), "b": (1.0, 3.0)}


def test_slots_bound_what_is_in_flight() -> None:
    """The third waits for the first that ends."""
    operations = [reduce("a"), reduce("b"), reduce("c")]
    costs: Costs = [({LATENCY: 1.0},), ({LATENCY: 2.0},), ({LATENCY: 1.0},)]
    at_once = run(operations, costs, events.Lane(slots=2))
    assert at_once == {"a": (0.0, 1.0), "b": (0.0, 2.0), "c": (1.0, 2.0)}


def test_compute_is_slowed_only_while_a_collective_runs() -> None:
    """25 % slower for the 2 s of the collective: 1.6 s of work, then 0.4 s at full speed."""
    operations = [
        Operation("first", Kind.COMPUTE, seconds=1.0),
        reduce("r", "first"),
        Operation("second", Kind.COMPUTE, seconds=2.0),
    ]
    costs: Costs = [({COMPUTE: 1.0},), ({LINK: 2.0},), ({COMPUTE: 2.0},)]
    done = run(operations, costs, events.Lane(), inflation=0.25)
    assert done["first"] == (0.0, 1.0)
    assert done["r"] == (1.0, 3.0)
    assert done["second"] == (1.0, pytest.approx(3.4))


def test_contention_is_billed_as_such() -> None:
    """What compute took beyond its own seconds."""
    workload = data_parallel(
        "w",
        [Gradient("a", 400_000_000, 0.5), Gradient("b", 100_000_000, 1.0)],
        backward_s=1.0,
    )
    schedule = Schedule(bucketing=PerTensor())
    scenario = Scenario(workers=2, schedule=schedule, compute_inflation=0.25)
    outcome = Program(workload, NETWORK, scenario).evaluate(with_bill=True)
    # 0.4 s of collective do 0.32 s of work, 0.18 s are left: 0.58 s instead of 0.5.
    assert pytest.approx(0.5 + 0.58 + 0.1) == outcome.step_s[0]
    assert pytest.approx(0.08) == outcome.bill[Resource.CONTENTION][0]
    assert pytest.approx(1.0) == outcome.bill[Resource.COMPUTE][0]
    assert outcome.alone_s[0] == 1.0


def test_agreement_on_the_host_slows_nothing() -> None:
    """Negotiation uses the network and not the device."""
    operations = [
        Operation("agree", Kind.NEGOTIATE, lane="coordinator"),
        Operation("compute", Kind.COMPUTE, seconds=1.0),
    ]
    costs: Costs = [({LATENCY: 1.0},), ({COMPUTE: 1.0},)]
    done = run(operations, costs, events.Lane(), inflation=0.5)
    assert done["compute"] == (0.0, 1.0)


def test_ties_are_broken_by_position() -> None:
    """Equal priorities, ready together: first listed goes first."""
    operations = [reduce("x"), reduce("y"), reduce("z")]
    costs: Costs = [({LINK: 1.0},)] * 3
    done = run(operations, costs, events.Lane(by_priority=True))
    assert [done[name][0] for name in "xyz"] == [0.0, 1.0, 2.0]


def test_operations_without_duration_pass_through() -> None:
    """Nothing hangs, nothing takes time."""
    operations = [reduce("a"), reduce("b", "a"), Operation("c", Kind.COMPUTE, after=("b",))]
    done = run(operations, [(), ({},), ({COMPUTE: 0.0},)], events.Lane(slots=2), inflation=0.1)
    assert set(done.values()) == {(0.0, 0.0)}


def test_collective_and_computation_on_the_same_processors_slow_each_other() -> None:
    """By hand: 8 s of compute; a second in, 2 s of link that take 4 beside it.

    From 1 to 5 s the collective runs at half its pace and leaves three quarters to compute,
    which then has done 1 + 3 of its 8 s and ends at 9 s.
    """
    network = msgspec.structs.replace(NETWORK, contention=Contention(((2e9, 2.0, 0.75),)))
    workload = Workload(
        "w",
        (
            Operation("first", Kind.COMPUTE, seconds=1.0),
            Operation("reduce", Kind.ALL_REDUCE, lane="comm", nbytes=2e9, after=("first",)),
            Operation("rest", Kind.COMPUTE, seconds=7.0),
        ),
    )
    program = Program(workload, network, Scenario(workers=2))
    window = program.window()
    names = [op.name for op in window.graph.operations]
    ends = dict(zip(names, window.run.ends, strict=True))
    assert ends["reduce"] == pytest.approx(5.0)
    assert ends["rest"] == pytest.approx(9.0)
    assert window.bill()[Resource.CONTENTION] == pytest.approx(1.0)
    assert program.evaluate().free_network_s[0] == pytest.approx(8.0)


def test_what_is_left_when_computation_ends_runs_at_full_pace() -> None:
    """By hand: half of a collective of 2 s beside 2 s of compute takes them all, the rest 1 s."""
    network = msgspec.structs.replace(NETWORK, contention=Contention(((2e9, 2.0, 1.0),)))
    workload = Workload(
        "w",
        (
            Operation("reduce", Kind.ALL_REDUCE, lane="comm", nbytes=2e9),
            Operation("compute", Kind.COMPUTE, seconds=2.0),
        ),
    )
    assert Program(workload, network, Scenario(workers=2)).step_s()[0] == pytest.approx(3.0)

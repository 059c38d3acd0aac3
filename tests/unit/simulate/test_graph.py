"""Operations as a graph: who waits for whom, and what cannot run."""

from itertools import pairwise

import pytest

from wirebound.errors import WorkloadError
from wirebound.network.record import Network, Tier
from wirebound.simulate.graph import compile_graph
from wirebound.simulate.program import Program
from wirebound.simulate.scenario import Scenario
from wirebound.workload.record import Kind, Operation, Workload


def op(name: str, *after: str, lane: str = "compute", kind: Kind = Kind.COMPUTE) -> Operation:
    """An operation of one second."""
    return Operation(name, kind, lane=lane, seconds=1.0, after=after)


def test_lanes_run_in_order_and_wait_for_what_is_named() -> None:
    """One edge along the lane, one for each name."""
    graph = compile_graph([op("a"), op("x", lane="comm"), op("b", "x")])
    assert [o.name for o in graph.operations] == ["a", "x", "b"]
    assert graph.predecessors == ((), (), (0, 1))
    assert graph.sinks == (2,)


def test_operations_come_after_all_they_wait_for() -> None:
    """Even when listed before."""
    graph = compile_graph([op("late", "early"), op("early", lane="other")])
    assert [o.name for o in graph.operations] == ["early", "late"]


def test_free_lanes_have_no_edges() -> None:
    """Their order is decided while running."""
    graph = compile_graph([op("x", lane="comm"), op("y", lane="comm")], {"comm"})
    assert graph.predecessors == ((), ())
    assert graph.sinks == (0, 1)


def test_timed_operations_come_first_among_equals() -> None:
    """So that compute is billed rather than the network when both end together."""
    operations = [
        op("x", lane="comm", kind=Kind.ALL_REDUCE),
        op("a"),
        op("b", "x"),
        op("y", lane="late", kind=Kind.ALL_REDUCE),
        op("z", lane="host"),
    ]
    graph = compile_graph(operations)
    assert graph.predecessors[2] == (1, 0)
    assert [graph.operations[i].name for i in graph.sinks] == ["b", "z", "y"]


def test_a_cycle_is_named() -> None:
    """In the order in which its operations wait."""
    operations = [
        op("free", lane="z"),
        op("a", "c"),
        op("b", "a", lane="x"),
        op("c", "b", lane="y"),
    ]
    with pytest.raises(WorkloadError, match=r"operations wait for each other: ") as caught:
        compile_graph(operations)
    loop = str(caught.value).partition(": ")[2].split(" -> ")
    assert loop[0] == loop[-1]
    assert sorted(loop[1:]) == ["a", "b", "c"]
    follows = {"a": "b", "b": "c", "c": "a"}
    assert all(follows[first] == second for first, second in pairwise(loop))


def test_a_cycle_through_a_lane_is_found_when_a_program_is_made() -> None:
    """`first` is listed before `second` on their lane, and says it comes after it."""
    workload = Workload("w", (op("first", "second"), op("second")))
    network = Network("n", Tier("t", bandwidth_bps=1e10, alpha_s=0.0))
    with pytest.raises(WorkloadError, match=r"first -> second -> first|second -> first -> second"):
        Program(workload, network, Scenario())


def test_waiting_for_itself_is_a_cycle() -> None:
    """The shortest one."""
    with pytest.raises(WorkloadError, match=r"a -> a"):
        compile_graph([op("a", "a")])

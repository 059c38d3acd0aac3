"""The engine for a fixed order, by hand."""

import numpy as np
import pytest

from wirebound.resources import NETWORK, Resource
from wirebound.simulate import maxplus
from wirebound.simulate.graph import Graph, compile_graph
from wirebound.simulate.run import Costs, leg_s, longest_leg, path_from
from wirebound.workload.record import Kind, Operation

LINK, COMPUTE, LATENCY = Resource.LINK_INTER, Resource.COMPUTE, Resource.LATENCY_INTER


def two_buckets() -> Graph:
    """Two buckets: the first hides behind the second half of backward."""
    return compile_graph(
        [
            Operation("b0", Kind.BACKWARD, seconds=1.0),
            Operation("r0", Kind.ALL_REDUCE, lane="comm", after=("b0",)),
            Operation("b1", Kind.BACKWARD, seconds=1.0),
            Operation("r1", Kind.ALL_REDUCE, lane="comm", after=("b1",)),
        ]
    )


def costs(first: float, second: float) -> Costs:
    """One second of backward for each bucket, and these seconds of link."""
    return [
        ({COMPUTE: 1.0},),
        ({LINK: first, LATENCY: 0.25},),
        ({COMPUTE: 1.0},),
        ({LINK: second, LATENCY: 0.25},),
    ]


def test_a_hidden_bucket_costs_nothing() -> None:
    """The last one is exposed."""
    assert maxplus.step_s(two_buckets(), costs(0.5, 0.5)) == 2.75
    assert maxplus.bill(two_buckets(), costs(0.5, 0.5)) == {COMPUTE: 2.0, LINK: 0.5, LATENCY: 0.25}


def test_a_long_bucket_delays_the_next() -> None:
    """The path leaves compute after the first segment."""
    assert maxplus.step_s(two_buckets(), costs(3.0, 0.5)) == 5.0
    assert maxplus.bill(two_buckets(), costs(3.0, 0.5)) == {COMPUTE: 1.0, LINK: 3.5, LATENCY: 0.5}


def test_compute_is_billed_when_both_end_together() -> None:
    """The first bucket ends with backward: without it the step would be as long."""
    assert maxplus.bill(two_buckets(), costs(0.75, 0.5))[COMPUTE] == 2.0


def test_starts_ends_and_causes() -> None:
    """A run says for each operation what it waited for last."""
    run = maxplus.run(two_buckets(), costs(3.0, 0.5))
    assert run.starts == (0.0, 1.0, 1.0, 4.25)
    assert run.ends == (1.0, 4.25, 2.0, 5.0)
    assert run.causes == (None, 0, 0, 1)
    assert list(path_from(run, 3)) == [3, 1, 0]


def test_many_scenarios_at_once() -> None:
    """Arrays in, arrays out."""
    costs_S: Costs = [
        ({COMPUTE: 1.0},),
        ({LINK: np.array([0.5, 3.0]), LATENCY: 0.25},),
        ({COMPUTE: 1.0},),
        ({LINK: np.array([0.5, 0.5]), LATENCY: 0.25},),
    ]
    assert np.asarray(maxplus.step_s(two_buckets(), costs_S)).tolist() == [2.75, 5.0]
    bill = maxplus.bill(two_buckets(), costs_S)
    assert bill[COMPUTE].tolist() == [2.0, 1.0]
    assert bill[LINK].tolist() == [0.5, 3.5]


def test_the_longest_leg_decides_and_is_billed() -> None:
    """Legs run at once: of two that take equally long the first is billed."""
    graph = compile_graph([Operation("r", Kind.ALL_REDUCE, lane="comm")])
    intra = Resource.LINK_INTRA
    assert maxplus.bill(graph, [({LINK: 1.0}, {intra: 2.0, LATENCY: 0.5})]) == {
        intra: 2.0,
        LATENCY: 0.5,
    }
    assert maxplus.bill(graph, [({LINK: 1.0}, {intra: 1.0})]) == {LINK: 1.0}


def test_without_frees_resources() -> None:
    """What is left of a collective is what is not network."""
    paid = [({LINK: 1.0, Resource.REDUCTION: 0.5}, {LATENCY: 2.0})]
    assert maxplus.durations(paid) == [2.0]
    assert maxplus.durations(maxplus.without(paid, NETWORK)) == [0.5]


def test_legs_add_up_numbers_and_arrays() -> None:
    """An empty leg takes no time."""
    assert leg_s({}) == 0.0
    assert leg_s({LINK: 1.0, LATENCY: 0.5}) == 1.5
    total = leg_s({LINK: np.array([1.0, 2.0]), LATENCY: 0.5, COMPUTE: np.array([0.0, 1.0])})
    assert np.asarray(total).tolist() == [1.5, 3.5]
    assert longest_leg(()) == {}


def test_slack_off_the_path_is_not_billed() -> None:
    """A free operation off the path changes nothing."""
    run = maxplus.run(two_buckets(), costs(0.0, 0.0))
    assert pytest.approx(2.25) == max(run.ends)

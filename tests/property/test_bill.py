"""Every second of the step is billed to exactly one resource."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import (
    jitters,
    networks,
    overlapping_schedules,
    scenarios,
    unordered_scenarios,
    workloads,
)
from wirebound.network.record import Network
from wirebound.resources import Resource
from wirebound.simulate.program import Program
from wirebound.simulate.scenario import Scenario
from wirebound.workload.record import Workload


def assert_adds_up(program: Program) -> None:
    """The bill is complete, and no line of it negative."""
    outcome = program.evaluate(with_bill=True)
    assert outcome.step_s[0] == pytest.approx(
        sum(float(seconds[0]) for seconds in outcome.bill.values()), rel=1e-12
    )
    assert all(seconds[0] >= 0 for seconds in outcome.bill.values())


@given(workloads, networks(), scenarios(jitter=st.none() | jitters))
def test_fixed_order(workload: Workload, network: Network, scenario: Scenario) -> None:
    """By the engine for a fixed order, averaged over the draws of a jitter."""
    assert_adds_up(Program(workload, network, scenario))


@given(workloads, networks(), unordered_scenarios())
def test_order_that_depends_on_durations(
    workload: Workload, network: Network, scenario: Scenario
) -> None:
    """By events: priorities, streams, contention, steps that overlap."""
    assert_adds_up(Program(workload, network, scenario))


@given(workloads, networks(), scenarios(overlapping_schedules))
def test_steps_that_overlap(workload: Workload, network: Network, scenario: Scenario) -> None:
    """Of one period: what lies outside of it is not billed."""
    assert_adds_up(Program(workload, network, scenario))


@given(
    workloads,
    networks(),
    scenarios(jitter=st.none() | jitters),
    st.lists(st.floats(1e8, 1e12), min_size=1, max_size=4),
)
def test_vector_and_scalar_bills_agree(
    workload: Workload, network: Network, scenario: Scenario, rates: list[float]
) -> None:
    """One evaluation of many scenarios bills what many evaluations of one do."""
    program = Program(workload, network, scenario)
    many = program.evaluate({"link_bps": np.array(rates)}, with_bill=True)
    for index, rate in enumerate(rates):
        one = program.evaluate({"link_bps": np.array([rate])}, with_bill=True)
        assert many.step_s[index] == pytest.approx(one.step_s[0], rel=1e-12)
        for resource, seconds in one.bill.items():
            assert many.bill[resource][index] == pytest.approx(
                seconds[0], rel=1e-9, abs=1e-12 * one.step_s[0]
            )


@given(
    workloads,
    networks(),
    scenarios(jitter=st.none() | jitters) | scenarios(overlapping_schedules),
    st.sampled_from([0.5, 0.99, 1.01, 2.0]),
)
def test_the_bill_is_a_derivative(
    workload: Workload, network: Network, scenario: Scenario, factor: float
) -> None:
    """With a fixed order, the link's seconds are the slope of a convex function of its price."""
    schedule = msgspec.structs.replace(scenario.schedule, order="ready")
    base = msgspec.structs.replace(scenario, schedule=schedule, link_bps=1e10)
    outcome = Program(workload, network, base).evaluate(with_bill=True)
    dearer = msgspec.structs.replace(base, link_bps=1e10 / factor)
    step_s = Program(workload, network, dearer).evaluate().step_s[0]
    link_s = outcome.bill.get(Resource.LINK_INTER, np.zeros(1))[0]
    assert step_s >= (outcome.step_s[0] + (factor - 1) * link_s) * (1 - 1e-9)

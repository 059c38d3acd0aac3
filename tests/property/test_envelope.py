"""The envelope is the sweep: same values at every point, its breakpoints included."""

from itertools import pairwise
from typing import get_args

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from strategies import jitters, networks, scenarios, schedules, untimed_bucketings, workloads
from wirebound.network.record import Network
from wirebound.simulate.curve import Curve, Field
from wirebound.simulate.envelope import Envelope, Vector, envelope
from wirebound.simulate.program import Program
from wirebound.simulate.scenario import Scenario
from wirebound.simulate.thresholds import enough, required
from wirebound.workload.record import Workload

replace = msgspec.structs.replace

fields: st.SearchStrategy[Field] = st.sampled_from(get_args(Field))
exact_scenarios = scenarios(schedules(untimed_bucketings, in_ready_order=True), st.none() | jitters)
targets = st.sampled_from([0.2, 0.5, 0.8, 0.95, 0.99])


def inside(low: float, high: float, places: list[float]) -> Vector:
    """Points of an interval, at its ends and near them too."""
    return np.array([low, high, *(low + (high - low) * place for place in places)])


@given(
    workloads,
    networks(),
    exact_scenarios,
    fields,
    st.lists(st.floats(0, 1) | st.floats(0, 1e-5), max_size=5),
)
def test_envelope_equals_the_sweep(
    workload: Workload, network: Network, scenario: Scenario, field: Field, places: list[float]
) -> None:
    """On every piece of every field, at random points and at every breakpoint."""
    curve = Curve(workload, network, scenario, field)
    for low, high in pairwise(curve.pieces()):
        found = curve.envelope(low, high)
        x = np.concatenate([inside(low, high, places), found.breakpoints])
        swept, _ = curve.outcome(x)
        assert found.at(x) == pytest.approx(swept, rel=1e-9, abs=1e-15)
        assert np.all(np.diff(found.slopes) > 0)
        assert np.all(np.diff(found.breakpoints) >= 0)


@given(workloads, networks(with_curve=True), exact_scenarios)
def test_pieces_of_compression_join(
    workload: Workload, network: Network, scenario: Scenario
) -> None:
    """With an efficiency that depends on the message size, one piece ends where the next starts."""
    curve = Curve(workload, network, scenario, "compression_ratio")
    pieces = [curve.envelope(low, high) for low, high in pairwise(curve.pieces())]
    for left, right in pairwise(pieces):
        assert left.high == right.low
        assert left.at(left.high) == pytest.approx(right.at(right.low), rel=1e-9)


@given(workloads, networks(), exact_scenarios, fields, targets)
def test_required_value_is_the_edge(
    workload: Workload, network: Network, scenario: Scenario, field: Field, target: float
) -> None:
    """At the value the target holds; a little beyond it, it does not."""
    curve = Curve(workload, network, scenario, field)
    assume(curve.is_exact)
    threshold = required(curve, target)
    is_worse_above = field in ("latency_s", "compute_speed")
    best = curve.low if field not in ("compute_speed", "batch_scale") else curve.high
    if threshold.value is None:
        step_s, alone_s = curve.outcome(np.array([max(best, 1e-9)]))
        assert alone_s[0] <= target * step_s[0] * (1 + 1e-6)
        return
    x = curve.base / threshold.value if curve.is_inverse else threshold.value / curve.base
    step_s, alone_s = curve.outcome(np.array([x]))
    assert alone_s[0] >= target * step_s[0] * (1 - 1e-9)
    is_at_the_end = not curve.low * 1.01 < x < curve.high * 0.99
    if not is_at_the_end:
        farther = 1.001 if is_worse_above else 1 / 1.001
        value = threshold.value * farther
        x = curve.base / value if curve.is_inverse else value / curve.base
        step_s, alone_s = curve.outcome(np.array([x]))
        assert alone_s[0] <= target * step_s[0] * (1 + 1e-12)


@given(workloads, networks(), exact_scenarios, fields)
def test_enough_leaves_little_to_gain(
    workload: Workload, network: Network, scenario: Scenario, field: Field
) -> None:
    """At the value, perfection would gain no more than one per cent of the step."""
    curve = Curve(workload, network, scenario, field)
    threshold = enough(curve, gain=0.01)
    assume(threshold.value is not None)
    assert threshold.value is not None
    x = curve.base / threshold.value if curve.is_inverse else threshold.value / curve.base
    step_s, _ = curve.outcome(np.array([curve.low, x]))
    assert step_s[1] * (1 - 0.01) <= step_s[0] * (1 + 1e-9)


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=1, max_size=12),
    st.floats(0, 10),
)
def test_envelope_of_any_lines(lines: list[tuple[float, float]], x: float) -> None:
    """Found by asking for one line at a time, it is the maximum of them all."""
    intercepts, slopes = np.array(lines).T

    def evaluate(points: Vector) -> tuple[Vector, Vector]:
        best = np.argmax(intercepts + slopes * points[:, None], axis=1)
        return intercepts[best], slopes[best]

    found: Envelope = envelope(evaluate, 0.0, 10.0)
    expected = np.max(intercepts + slopes * x)
    assert expected == pytest.approx(float(found.at(x)), rel=1e-9)


@given(workloads, networks(), exact_scenarios, targets)
def test_step_time_at_the_base_is_on_the_curve(
    workload: Workload, network: Network, scenario: Scenario, target: float
) -> None:
    """As x is relative, at x = 1 the curve is the scenario itself."""
    del target
    curve = Curve(workload, network, scenario, "link_bps")
    expected = Program(workload, network, scenario).evaluate().step_s[0]
    assert expected == pytest.approx(float(curve.envelope().at(1.0)), rel=1e-9)

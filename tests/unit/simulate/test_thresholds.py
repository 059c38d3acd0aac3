"""Exact inversions of the step time, checked by simulating the answer."""

import msgspec
import numpy as np
import pytest

from wirebound.errors import ScenarioError
from wirebound.network.record import Network, Tier
from wirebound.simulate.curve import Curve, Field
from wirebound.simulate.program import Program
from wirebound.simulate.scenario import Jitter, Scenario
from wirebound.simulate.thresholds import (
    effective_bps,
    enough,
    largest_workers,
    required,
    required_efficiency,
)
from wirebound.workload.bucketing import OneBucket, PaperFusion, PerTensor
from wirebound.workload.horovod import Horovod
from wirebound.workload.record import Gradient, Kind, Operation, Workload, data_parallel
from wirebound.workload.schedule import Schedule

NETWORK = Network("n", Tier("t", bandwidth_bps=8e9, alpha_s=1e-3, efficiency=0.5))
"""Half a gigabyte a second; among two workers a ring moves each byte once, in two messages."""

WORKLOAD = data_parallel("w", [Gradient("g", 100_000_000, 0.2)], forward_s=0.1, backward_s=0.2)
ONE = Scenario(workers=2, schedule=Schedule(bucketing=OneBucket()))
"""0.3 s of compute, then 0.2 s of link and 2 ms of latency."""

replace = msgspec.structs.replace


def curve(field: Field, scenario: Scenario = ONE, workload: Workload = WORKLOAD) -> Curve:
    """A field of the usual step."""
    return Curve(workload, NETWORK, scenario, field)


def scaling(scenario: Scenario, workload: Workload = WORKLOAD) -> float:
    """By simulation."""
    outcome = Program(workload, NETWORK, scenario).evaluate()
    return float(outcome.alone_s[0] / outcome.step_s[0])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        # 0.3 / 0.75 = 0.4 s of step leave 98 ms of link, 0.1 s with latency.
        ("link_bps", 8e9 * 0.2 / 0.098),
        ("compression_ratio", 0.2 / 0.098),
        ("compute_speed", 0.3 / (3 * 0.202)),
        ("batch_scale", 3 * 0.202 / 0.3),
    ],
)
def test_required_by_hand(field: Field, value: float) -> None:
    """The scaling factor of 75 % is met there and not beyond."""
    threshold = required(curve(field), 0.75)
    assert threshold.is_exact
    assert threshold.field == field
    assert value == pytest.approx(threshold.value)
    assert scaling(replace(ONE, **{field: threshold.value})) == pytest.approx(0.75)


def test_required_latency() -> None:
    """On a faster link, two messages may take what the bytes leave."""
    fast = replace(ONE, link_bps=80e9)
    threshold = required(curve("latency_s", fast), 0.75)
    assert threshold.value == pytest.approx((0.1 - 0.02) / 2)


def test_what_no_value_reaches_is_none() -> None:
    """Latency alone keeps the step above the target."""
    assert required(curve("link_bps"), 0.999).value is None
    assert required(curve("compression_ratio"), 0.999).value is None


def test_what_only_an_infinite_value_reaches_is_none() -> None:
    """A link without end is no link to buy."""
    free_latency = replace(ONE, latency_s=0.0)
    assert required(curve("link_bps", free_latency), 1.0).value is None
    assert required(curve("compression_ratio", free_latency), 1.0).value is None


def test_what_the_base_reaches_needs_no_compression() -> None:
    """A ratio of one is none at all."""
    fast = replace(ONE, link_bps=800e9)
    assert required(curve("compression_ratio", fast), 0.9).value == 1.0


@pytest.mark.parametrize("target", [0.0, -0.5, 1.01, float("nan")])
def test_impossible_targets_are_refused(target: float) -> None:
    """A scaling factor lies above 0, up to 1."""
    with pytest.raises(ScenarioError, match="expected a scaling factor above 0, up to 1"):
        required(curve("link_bps"), target)
    with pytest.raises(ScenarioError, match="expected a scaling factor above 0, up to 1"):
        largest_workers(WORKLOAD, NETWORK, ONE, target)


def test_enough_of_a_link() -> None:
    """Beyond it even an infinite link gains less than one per cent."""
    threshold = enough(curve("link_bps"), gain=0.01)
    assert threshold.value is not None
    at = Program(WORKLOAD, NETWORK, replace(ONE, link_bps=threshold.value)).evaluate()
    assert pytest.approx(at.step_s[0]) == 0.302 / 0.99


def test_enough_of_a_device() -> None:
    """Where all that is left is communication, a faster device gains little."""
    threshold = enough(curve("compute_speed"), gain=0.01)
    assert threshold.value == pytest.approx(0.3 / (0.202 / 0.99 - 0.202), rel=1e-3)
    by_cycle = replace(ONE, schedule=Schedule(bucketing=PaperFusion()))
    assert not enough(curve("compute_speed", by_cycle)).is_exact
    assert enough(curve("compute_speed", by_cycle)).value == pytest.approx(
        threshold.value, rel=1e-3
    )


@pytest.mark.parametrize("gain", [-0.1, 1.0, float("nan")])
def test_impossible_gains_are_refused(gain: float) -> None:
    """A share of the step."""
    with pytest.raises(ScenarioError, match="expected a share of the step such as 1%"):
        enough(curve("link_bps"), gain=gain)


def test_effective_rate_is_that_of_a_perfect_transport() -> None:
    """Half the efficiency at 8 Gbit/s is 4 Gbit/s."""
    threshold = effective_bps(WORKLOAD, NETWORK, ONE, scaling(ONE))
    assert threshold.value == pytest.approx(4e9)


def test_required_efficiency_is_a_share_of_the_line_rate() -> None:
    """None where the line itself is too slow."""
    threshold = required_efficiency(WORKLOAD, NETWORK, ONE, scaling(ONE))
    assert threshold.field == "efficiency"
    assert threshold.value == pytest.approx(0.5)
    assert required_efficiency(WORKLOAD, NETWORK, ONE, 0.9).value is None


def test_largest_workers() -> None:
    """All full sets of nodes up to it meet the target, the next does not."""
    slow = replace(ONE, link_bps=80e9, latency_s=1e-4)
    threshold = largest_workers(WORKLOAD, NETWORK, slow, 0.8)
    assert threshold.is_exact
    assert threshold.value is not None
    assert scaling(replace(slow, workers=int(threshold.value))) >= 0.8
    assert scaling(replace(slow, workers=int(threshold.value) + 1)) < 0.8


def test_largest_workers_at_the_ends() -> None:
    """A limit that all meet, a first node that does not, a node beyond the limit."""
    assert largest_workers(WORKLOAD, NETWORK, ONE, 0.01, limit=64).value == 64
    assert largest_workers(WORKLOAD, NETWORK, ONE, 0.99).value == 1
    node = Network("n", NETWORK.inter, Tier("i", bandwidth_bps=1e9, alpha_s=0.0), 8)
    eight = replace(ONE, gpus_per_node=8)
    assert largest_workers(WORKLOAD, node, eight, 0.99).value is None
    assert largest_workers(WORKLOAD, node, eight, 0.01, limit=4).value is None


def test_largest_workers_by_powers_where_each_count_is_a_program() -> None:
    """Horovod's agreement depends on the number of ranks."""
    horovod = replace(ONE, schedule=Schedule(bucketing=Horovod()))
    threshold = largest_workers(WORKLOAD, NETWORK, horovod, 0.5, limit=256)
    assert not threshold.is_exact
    assert threshold.value is not None
    assert scaling(replace(horovod, workers=int(threshold.value))) >= 0.5
    assert scaling(replace(horovod, workers=int(threshold.value) * 2)) < 0.5


@pytest.mark.parametrize(
    "scenario",
    [
        replace(ONE, streams=2),
        replace(ONE, compute_inflation=0.1),
        replace(ONE, schedule=Schedule(bucketing=PerTensor(), order="priority")),
        replace(ONE, schedule=Schedule(bucketing=OneBucket(), overlap_next_forward=True)),
    ],
)
def test_orders_that_depend_on_durations_are_bisected(scenario: Scenario) -> None:
    """And say so; on one bucket the answer is the exact one."""
    threshold = required(curve("link_bps", scenario), 0.75)
    assert not threshold.is_exact
    assert threshold.value == pytest.approx(8e9 * 0.2 / 0.098)
    assert required(curve("link_bps", scenario), 0.999).value is None


def test_jitter_has_an_envelope_too() -> None:
    """The mean of convex functions is convex."""
    jitter = Jitter(distribution="exponential", spread=0.02, draws=5)
    shaken = replace(ONE, jitter=jitter)
    threshold = required(curve("link_bps", shaken), 0.75)
    assert threshold.is_exact
    assert threshold.value is not None
    assert scaling(replace(shaken, link_bps=threshold.value)) == pytest.approx(0.75)


def test_a_threshold_on_a_curve_of_efficiencies() -> None:
    """Compression makes messages small and transport slow, piece by piece."""
    points = ((1e6, 0.02), (1e7, 0.1), (1e8, 0.5))
    network = Network("n", Tier("t", bandwidth_bps=8e9, alpha_s=0.0, efficiency=points))
    bent = Curve(WORKLOAD, network, ONE, "compression_ratio")
    assert pytest.approx([0.0, 0.01, 0.1, 1.0]) == bent.pieces()
    for target in (0.62, 0.74):
        threshold = required(bent, target)
        assert threshold.value is not None
        at = replace(ONE, compression_ratio=threshold.value)
        outcome = Program(WORKLOAD, network, at).evaluate()
        assert target == pytest.approx(outcome.alone_s[0] / outcome.step_s[0])


def test_the_inside_of_a_node_keeps_its_curve() -> None:
    """A perfect transport between nodes changes nothing inside them."""
    bent = Tier("i", bandwidth_bps=8e8, alpha_s=0.0, efficiency=((1e6, 0.1), (1e8, 0.5)))
    network = Network("n", NETWORK.inter, bent, gpus_per_node=2)
    perfect = replace(ONE, gpus_per_node=2, efficiency=1.0)
    inside = Curve(WORKLOAD, network, perfect, "compression_ratio")
    assert pytest.approx([0.0, 0.01, 1.0]) == inside.pieces()


def test_a_worker_that_computes_on_two_lanes_is_bisected() -> None:
    """Its own step may then be no line in the price of compute."""
    loader = Operation("load", Kind.INPUT, lane="loader", seconds=0.25)
    forward, backward = WORKLOAD.operations
    workload = replace(WORKLOAD, operations=(loader, replace(forward, after=("load",)), backward))
    two_lanes = curve("compute_speed", workload=workload)
    assert not two_lanes.is_exact
    assert curve("link_bps", workload=workload).is_exact
    threshold = required(two_lanes, 0.7)
    assert threshold.value is not None
    at = replace(ONE, compute_speed=threshold.value)
    assert scaling(at, workload) == pytest.approx(0.7)


def test_latency_of_zero_has_no_multiples() -> None:
    """Nothing to vary."""
    with pytest.raises(ScenarioError, match="latency is 0, so no multiple of it"):
        curve("latency_s", replace(ONE, latency_s=0.0))


def test_values_along_the_curve() -> None:
    """At x = 1 is the base; seconds a byte, and so on, grow with x."""
    x = np.array([0.5, 1.0, 2.0])
    assert curve("link_bps").value(x).tolist() == [16e9, 8e9, 4e9]
    assert curve("latency_s").value(x).tolist() == [0.5e-3, 1e-3, 2e-3]
    assert np.isinf(curve("link_bps").value(np.array([0.0]))).all()

"""From simulated step times to verdicts."""

from typing import Any

import pytest

from wirebound.api import whatif
from wirebound.errors import ScenarioError, WorkloadError
from wirebound.verdict.judge import DEFAULT_TARGET
from wirebound.verdict.record import Verdict
from wirebound.workload.record import Gradient, Kind, Operation, Source, Workload, data_parallel


def training(source: Source = Source()) -> Workload:
    """Half a second of compute and 100 MB of gradients."""
    gradients = [Gradient(f"g{k}", 10**7, 0.03 * (k + 1)) for k in range(10)]
    return data_parallel("job", gradients, backward_s=0.3, forward_s=0.2, source=source)


def one(workload: Workload | None = None, **keys: Any) -> Verdict:  # noqa: ANN401 - as the API
    """The verdict of one scenario."""
    (verdict,) = whatif(workload or training(), **{"workers": 16, "link": "2Gbps", **keys})
    return verdict


def test_numbers_agree() -> None:
    """The ratios are those of the times beside them."""
    verdict = one()
    assert verdict.alone_s == pytest.approx(0.5)
    assert verdict.exposed_comm_s == verdict.step_s - verdict.free_network_s
    assert verdict.scaling_factor == verdict.alone_s / verdict.step_s
    assert verdict.network_share == pytest.approx(verdict.exposed_comm_s / verdict.step_s)
    assert verdict.target == DEFAULT_TARGET
    assert verdict.is_exact


def test_utilization() -> None:
    """While communicating the link is used as its transport allows, on average less."""
    verdict = one(efficiency="50%", latency="0s")
    assert verdict.utilization == pytest.approx(0.5)
    link_s = 1e8 * 8 * 2 * 15 / 16 / 2e9
    assert verdict.average_utilization == pytest.approx(link_s / verdict.step_s)


def test_thresholds_hold() -> None:
    """Each threshold, put back into the scenario, gives the target."""
    verdict = one()
    again = {
        "link_for_target": "link",
        "compression_for_target": "compression",
        "batch_for_target": "batch_scale",
    }
    for name, key in again.items():
        value = verdict.thresholds[name].value
        assert value is not None
        given = f"{value!r}bit/s" if key == "link" else value
        changed: dict[str, Any] = {key: given}
        there = one(**changed)
        assert there.scaling_factor == pytest.approx(DEFAULT_TARGET, rel=1e-6), name


def test_largest_world() -> None:
    """One more node than the threshold misses the target."""
    verdict = one(link="20Gbps", target=0.99)
    most = verdict.thresholds["workers_for_target"].value
    assert most is not None
    assert one(link="20Gbps", workers=int(most)).scaling_factor >= 0.99
    assert one(link="20Gbps", workers=int(most) + 1).scaling_factor < 0.99


def test_no_thresholds_without_a_question() -> None:
    """A grid without a target has none."""
    verdicts = whatif(training(), workers=[2, 4], link="10Gbps")
    assert [v.thresholds for v in verdicts] == [{}, {}]
    assert [v.target for v in verdicts] == [None, None]
    assert all(v.step_range_s == (v.step_s, v.step_s) for v in verdicts)


def test_target_gives_a_grid_thresholds() -> None:
    """With a target every scenario of a grid has them."""
    verdicts = whatif(training(), workers=[2, 4], link="10Gbps", target="90%")
    assert all(v.target == 0.9 and "link_for_target" in v.thresholds for v in verdicts)


@pytest.mark.parametrize("target", [0, "0%"])
def test_impossible_target(target: float | str) -> None:
    """Nobody scales to nothing."""
    with pytest.raises(ScenarioError, match="scaling factor above 0"):
        one(target=target)


def test_range_follows_uncertainty() -> None:
    """A step time known to ten percent gives a range around the answer."""
    verdict = one(training(Source("modelled", "by counts", 0.1)))
    low, high = verdict.step_range_s
    assert low < verdict.step_s < high
    slower = one(compute_speed=1 / 1.1)
    assert high == pytest.approx(slower.step_s)


@pytest.mark.parametrize("uncertainty", [1.0, 3.0, 1e18])
def test_range_of_a_guess(uncertainty: float) -> None:
    """An uncertainty of the whole and more is answered, not refused."""
    low, high = one(training(Source("given", "", uncertainty))).step_range_s
    assert 0 < low < high


def test_step_without_time() -> None:
    """Of a step that takes no time nothing can be a share."""
    nothing = Workload("empty", (Operation("b", Kind.BACKWARD),))
    with pytest.raises(WorkloadError, match="'empty': a step takes no time at all"):
        one(nothing)


def test_only_communication() -> None:
    """A step of nothing but gradients is all network."""
    bare = data_parallel("bare", [Gradient("g", 10**6, 0.0)], backward_s=0.0)
    verdict = one(bare)
    assert verdict.network_share == 1
    assert verdict.scaling_factor == 0


def test_fields() -> None:
    """The scenario is told in base units, with what the network supplied."""
    fields = one(link="25Gbps").scenario
    assert fields["link_bps"] == 25e9
    assert fields["latency_s"] == pytest.approx(27e-6)
    assert fields["efficiency"] == pytest.approx(0.94, abs=0.01)
    assert fields["bucketing"] == "ddp"
    assert fields["cap_bytes"] == 25 * 2**20
    assert fields["accumulation"] == 1


def test_rows_of_a_grid() -> None:
    """Each row tells its own values, and equals the scenario asked alone."""
    verdicts = whatif(training(), workers=[2, 16], link=["1Gbps", "2Gbps"], compression=[1, 2])
    for verdict in verdicts:
        keys: dict[str, Any] = {
            "workers": verdict.scenario["workers"],
            "link": f"{verdict.scenario['link_bps']!r}bps",
        }
        alone = one(compression=verdict.scenario["compression_ratio"], **keys)
        assert verdict.step_s == pytest.approx(alone.step_s, rel=1e-12)
        assert verdict.bill == pytest.approx(alone.bill, rel=1e-9)


def test_overlapping_steps_settle() -> None:
    """Steps that overlap take less than steps that wait, and find their period."""
    overlapping = one(overlap_next_forward=True, bucketing="none", target=1e-6)
    assert overlapping.is_exact
    assert overlapping.step_s < one(bucketing="none").step_s

"""The original study from its published logs, held against the figures it printed.

Golden values are an exact computation of the published algorithm on the published data;
figures are read off the paper by pixel, to one point.
"""

import json
from pathlib import Path

import pytest

from wirebound.cli import run
from wirebound.simulate.paper import RATES_BPS, STEP_S, study
from wirebound.verdict.paper import (
    FIGURE_3,
    FIGURE_4,
    FIGURE_6_SIMULATED,
    FIGURE_8_10G,
    PaperVerdict,
    judge_paper,
)
from wirebound.workload.bucketing import PaperFusion
from wirebound.workload.record import Kind

BACKWARD_US = {"resnet50": 64806.567, "resnet101": 106406.763, "vgg16": 111620.484}

BUCKETS = {
    "resnet50": (
        "5486.4:43896736 11575.6:24158208 17197.9:9994240 22515.7:11298816 27895.3:6574080 "
        "33462.2:1912832 38613.8:1976320 43940.8:1383424 49447.2:347648 54555.1:281600 "
        "59900.9:201216 64806.6:203008"
    ),
    "resnet101": (
        "5722.9:43896736 11732.4:24158208 16786.2:8941568 22115.2:9990144 27424.9:11298816 "
        "32837.7:9988096 37915.5:8941568 43208.4:9990144 48576.8:11298816 54059.1:9988096 "
        "59708.8:9994240 65472.9:9986048 70814.5:4210688 75971.6:1976320 81245.1:1912832 "
        "87337.3:722944 92549.9:281600 97784.7:281600 102788.2:283136 106406.8:55040"
    ),
    "vgg16": (
        "834.0:83513248 2456.3:411058176 8296.7:9449472 16867.1:18886656 22871.8:9443328 "
        "28096.1:14162944 34520.5:2048 41996.8:2362368 50096.2:3542528 63727.4:1024 "
        "73792.7:591360 79768.2:295168 101631.5:512 111599.7:148224 111620.5:6912"
    ),
}
"""Ready time [us]:size [bytes]."""

OVERHEAD_MS = {
    "resnet50": (1558.304, 109.220, 12.615, 0.740, 0.693),
    "resnet101": (2718.130, 192.192, 23.796, 0.624, 0.611),
    "vgg16": (8617.310, 771.959, 248.935, 118.179, 1.277),
}
FACTORS = {
    64: {
        "resnet50": (0.075953, 0.539749, 0.910344, 0.994252, 0.994622),
        "resnet101": (0.065978, 0.499758, 0.889730, 0.996762, 0.996830),
        "vgg16": (0.022075, 0.201270, 0.438651, 0.622072, 0.993478),
    },
    32: {
        "resnet50": (0.0773, 0.5545, 0.9423, 0.9971, 0.9975),
        "resnet101": (0.0671, 0.5137, 0.9228, 0.9983, 0.9984),
        "vgg16": (0.0224, 0.2052, 0.4490, 0.6388, 0.9969),
    },
    16: {
        "resnet50": (0.0798, 0.5718, 0.9702, 0.9983, 0.9987),
        "resnet101": (0.0694, 0.5307, 0.9533, 0.9991, 0.9991),
        "vgg16": (0.0232, 0.2119, 0.4634, 0.6589, 0.9985),
    },
}
DIGITS = {64: 1e-6, 32: 1e-4, 16: 1e-4}
"""What the last printed digit is worth; half of it would do but for the rounding of both."""

FIGURE_8_EXACT = {
    "resnet50": (0.5397, 0.8169, 0.9944, 0.9946, 0.9948, 0.9948),
    "resnet101": (0.4998, 0.7873, 0.9968, 0.9968, 0.9969, 0.9969),
    "vgg16": (0.2013, 0.3666, 0.7228, 0.9935, 0.9936, 0.9936),
}
IDEAL_UTILIZATION = {
    "resnet50": (0.955, 0.678, 0.458, 0.312, 0.125),
    "resnet101": (0.964, 0.731, 0.520, 0.364, 0.146),
    "vgg16": (0.989, 0.902, 0.786, 0.697, 0.445),
}
EFFECTIVE_GBPS = (0.97, 8.3, 14.8, 15.5, 15.8)
POINT = 0.0105
"""One percentage point, and what the rounding of a figure read off adds to it."""


@pytest.fixture(scope="module")
def verdict(paper_logs: Path) -> PaperVerdict:
    """The study, judged."""
    return judge_paper(study(paper_logs))


@pytest.fixture(scope="module")
def printed(paper_logs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What `wirebound paper --data` says as JSON."""
    target = tmp_path_factory.mktemp("paper") / "paper.json"
    assert run(["paper", "--data", str(paper_logs), "--json", "-o", str(target)]) == 0
    found = json.loads(target.read_text())
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", STEP_S)
def test_inputs(paper_logs: Path, name: str) -> None:
    """The logs give the published backward times and hand-overs, the step the rest."""
    workload = study(paper_logs).workloads[name]
    assert workload.span_s(Kind.BACKWARD) == pytest.approx(BACKWARD_US[name] * 1e-6, abs=1e-9)
    assert workload.compute_s == pytest.approx(STEP_S[name], rel=1e-12)
    buckets = PaperFusion().buckets(workload.gradients)
    found = " ".join(f"{bucket.ready_s * 1e6:.1f}:{bucket.nbytes:.0f}" for bucket in buckets)
    assert found == BUCKETS[name]


@pytest.mark.parametrize("workers", FACTORS)
@pytest.mark.parametrize("name", STEP_S)
def test_scaling_factors(verdict: PaperVerdict, workers: int, name: str) -> None:
    """Every rate, model and number of GPUs equals the exact computation."""
    expected = FACTORS[workers][name]
    assert verdict.by_rate[workers][name] == pytest.approx(expected, abs=DIGITS[workers])


@pytest.mark.parametrize("name", STEP_S)
def test_overhead(verdict: PaperVerdict, name: str) -> None:
    """The overhead on 64 GPUs equals the exact computation to a microsecond."""
    expected = [ms * 1e-3 for ms in OVERHEAD_MS[name]]
    assert verdict.overhead_s[name] == pytest.approx(expected, abs=1e-6)


def test_configurations(verdict: PaperVerdict) -> None:
    """Three models, three sizes, five rates and six ratios."""
    assert verdict.configurations == 270
    assert verdict.is_published


def test_figure_6(verdict: PaperVerdict) -> None:
    """The printed simulated curve of ResNet-50 comes back within a point."""
    assert verdict.by_rate[64]["resnet50"] == pytest.approx(FIGURE_6_SIMULATED, abs=POINT)


@pytest.mark.parametrize("name", STEP_S)
def test_figure_8(verdict: PaperVerdict, name: str) -> None:
    """The compression curves equal the exact ones, and the printed ones within a point."""
    assert verdict.by_ratio_10g[name] == pytest.approx(FIGURE_8_EXACT[name], abs=1e-4)
    assert verdict.by_ratio_10g[name] == pytest.approx(FIGURE_8_10G[name], abs=POINT)
    assert all(0.9934 < factor < 0.997 for factor in verdict.by_ratio_100g[name])


def test_ratio_for_99(verdict: PaperVerdict) -> None:
    """Two to five times is enough for two of three models; VGG-16 needs nearly nine."""
    expected = {"resnet50": 3.03, "resnet101": 3.10, "vgg16": 8.57}
    assert dict(verdict.ratio_for_99) == pytest.approx(expected, abs=0.006)


def test_two_servers(verdict: PaperVerdict) -> None:
    """Two servers measured more than the flat ring allows, less than the other algorithms."""
    bounds = {bound.algorithm: bound for bound in verdict.two_servers}
    assert FIGURE_3[2][:2] == (0.127, 0.683)
    assert bounds["ring"].scaling_factor[:2] == pytest.approx((0.0798, 0.5718), abs=1e-4)
    assert bounds["hierarchical"].scaling_factor[:2] == pytest.approx((0.144, 0.840), abs=5e-3)
    assert bounds["ring"].is_exceeded == (True, True, False, False, False)
    assert not any(bounds["hierarchical"].is_exceeded)
    assert not any(bounds["tree"].is_exceeded)


@pytest.mark.parametrize("name", STEP_S)
def test_average_utilization(verdict: PaperVerdict, name: str) -> None:
    """A perfectly used network looks as the exact computation says, at 1 Gbit/s as measured."""
    found = verdict.average_utilization[name]
    assert found == pytest.approx(IDEAL_UTILIZATION[name], abs=6e-4)
    assert found[0] == pytest.approx(FIGURE_4[name][0], abs=0.0065)


def test_effective_rates(verdict: PaperVerdict) -> None:
    """What was measured on 100 Gbit/s is what a perfect 16 Gbit/s would give."""
    found = [rate / 1e9 for rate in verdict.effective_bps if rate is not None]
    assert found == pytest.approx(EFFECTIVE_GBPS, abs=0.1)


def test_json(verdict: PaperVerdict, printed: dict[str, object]) -> None:
    """The command's JSON carries the same numbers as the verdict."""
    assert printed["schema_version"] == 1
    assert printed["is_published"] is True
    assert printed["configurations"] == 270
    assert printed["rates_bps"] == list(RATES_BPS)
    by_rate = printed["by_rate"]
    assert isinstance(by_rate, dict)
    for workers, curves in verdict.by_rate.items():
        assert by_rate[str(workers)] == {name: list(curve) for name, curve in curves.items()}
    for field in ("by_ratio_10g", "by_ratio_100g", "overhead_s", "average_utilization"):
        curves = getattr(verdict, field)
        assert printed[field] == {name: list(curve) for name, curve in curves.items()}
    assert printed["effective_bps"] == list(verdict.effective_bps)
    assert printed["ratio_for_99"] == dict(verdict.ratio_for_99)

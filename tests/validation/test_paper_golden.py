"""The published simulator's numbers, from its published inputs.

Golden values: an exact discrete-event version of the algorithm of Zhang et al. ("Is Network
the Bottleneck of Distributed Training?", NetAI 2020), computed apart from this program. The
logs and the vector-add table are read here, not by the program's own reader.
"""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from wirebound.network.record import Network, Reduction, Tier
from wirebound.simulate.curve import Curve
from wirebound.simulate.program import Program
from wirebound.simulate.scenario import Scenario
from wirebound.simulate.thresholds import effective_bps, required
from wirebound.workload.bucketing import PaperFusion
from wirebound.workload.record import Gradient, Workload, data_parallel
from wirebound.workload.schedule import Schedule

STEP_S = {
    "resnet50": 0.12808580219559176,
    "resnet101": 0.19200599479476405,
    "vgg16": 0.19452352295080985,
}
"""Iteration on one GPU [s], constants of the published simulator."""

BACKWARD_US = {"resnet50": 64806.567, "resnet101": 106406.763, "vgg16": 111620.484}

RATES_GBPS = (1, 10, 25, 40, 100)

AT_64 = {
    "resnet50": """1558.304/0.075953 109.220/0.539749 12.615/0.910344
        0.740/0.994252 0.693/0.994622""",
    "resnet101": """2718.130/0.065978 192.192/0.499758 23.796/0.889730
        0.624/0.996762 0.611/0.996830""",
    "vgg16": """8617.310/0.022075 771.959/0.201270 248.935/0.438651
        118.179/0.622072 1.277/0.993478""",
}
"""Overhead [ms] / scaling factor at `RATES_GBPS`, 64 GPUs, no compression."""

AT_FEWER = {
    ("resnet50", 16): ".0798 .5718 .9702 .9983 .9987",
    ("resnet101", 16): ".0694 .5307 .9533 .9991 .9991",
    ("vgg16", 16): ".0232 .2119 .4634 .6589 .9985",
    ("resnet50", 32): ".0773 .5545 .9423 .9971 .9975",
    ("resnet101", 32): ".0671 .5137 .9228 .9983 .9984",
    ("vgg16", 32): ".0224 .2052 .4490 .6388 .9969",
}
"""Scaling factors at `RATES_GBPS`."""

RATIOS = (1, 2, 5, 10, 50, 100)

COMPRESSED = {
    ("resnet50", 10): "53.97 81.69 99.44 99.46 99.48 99.48",
    ("resnet101", 10): "49.98 78.73 99.68 99.68 99.69 99.69",
    ("vgg16", 10): "20.13 36.66 72.28 99.35 99.36 99.36",
}
"""Scaling factors [%] at `RATIOS`, 64 GPUs."""

NEEDED = {
    (10, 0.99): {"resnet50": "3.03", "resnet101": "3.10", "vgg16": "8.57"},
    (10, 0.95): {"resnet50": "2.75", "resnet101": "2.85", "vgg16": "7.93"},
    (25, 0.99): {"resnet50": "1.21", "resnet101": "1.24", "vgg16": "3.43"},
    (1, 0.99): {"resnet50": "30", "resnet101": "31", "vgg16": "86"},
}
"""(rate [Gbit/s], target) -> smallest compression ratio, 64 GPUs."""

MEASURED = {7.4: "0.97", 47.3: "8.3", 69.2: "14.8", 71.2: "15.5", 71.8: "15.8"}
"""ResNet-50, 64 GPUs: measured scaling factor [%] (Figure 3) -> effective rate [Gbit/s]."""

SCENARIO = Scenario(workers=64, schedule=Schedule(bucketing=PaperFusion()))


def decimals(printed: str) -> int:
    """Digits after the point."""
    return len(printed.partition(".")[2])


@pytest.fixture(scope="module")
def network(paper_logs: Path) -> Network:
    """One port a GPU, no latency, additions from the published table."""
    lines = (paper_logs / "cuda_vec_add.log").read_text().split()
    table = tuple((float(size), float(s)) for size, s in (line.split(",") for line in lines))
    assert len(table) == 25
    return Network(
        name="paper",
        inter=Tier(name="port", bandwidth_bps=1e11, alpha_s=0.0),
        reduction=Reduction(table=table),
    )


@pytest.fixture(scope="module")
def workloads(paper_logs: Path) -> dict[str, Workload]:
    """Backward passes as logged; whatever else is in the iteration comes before them."""
    built: dict[str, Workload] = {}
    for name, step_s in STEP_S.items():
        lines = (paper_logs / "bk_time_logs" / f"{name}.bk.log").read_text().splitlines()
        rows = [line.split(",") for line in lines[3:] if line.strip()]
        assert len(rows) == int(lines[2])
        ready_s = np.cumsum([float(interval_us) for interval_us, _ in rows]) * 1e-6
        backward_s = float(ready_s[-1])
        built[name] = data_parallel(
            name,
            [
                Gradient(f"g{index}", int(nbytes), float(at_s))
                for index, ((_, nbytes), at_s) in enumerate(zip(rows, ready_s, strict=True))
            ],
            backward_s=backward_s,
            host_s=step_s - backward_s,
        )
    return built


def at_rates(workload: Workload, network: Network, workers: int) -> tuple[list[float], list[float]]:
    """Overhead [ms] and scaling factor at each of `RATES_GBPS`."""
    scenario = msgspec.structs.replace(SCENARIO, workers=workers)
    outcome = Program(workload, network, scenario).evaluate(
        {"link_bps": np.array(RATES_GBPS) * 1e9}
    )
    overhead_ms = (outcome.step_s - outcome.alone_s) * 1e3
    return overhead_ms.tolist(), (outcome.alone_s / outcome.step_s).tolist()


@pytest.mark.parametrize("model", STEP_S)
def test_backward_passes(model: str, workloads: dict[str, Workload]) -> None:
    """The sum of the logged intervals."""
    assert BACKWARD_US[model] == round(workloads[model].gradients[-1].ready_s * 1e6, 3)


@pytest.mark.parametrize("model", STEP_S)
def test_64_gpus(model: str, workloads: dict[str, Workload], network: Network) -> None:
    """Overhead to the microsecond, scaling factor to six digits."""
    overhead_ms, scaling = at_rates(workloads[model], network, 64)
    actual = [f"{ms:.3f}/{sf:.6f}" for ms, sf in zip(overhead_ms, scaling, strict=True)]
    assert AT_64[model].split() == actual


@pytest.mark.parametrize(("model", "workers"), AT_FEWER)
def test_fewer_gpus(
    model: str, workers: int, workloads: dict[str, Workload], network: Network
) -> None:
    """Scaling factors to four digits."""
    _, scaling = at_rates(workloads[model], network, workers)
    assert AT_FEWER[model, workers].split() == [f"{sf:.4f}"[1:] for sf in scaling]


@pytest.mark.parametrize(("model", "gbps"), COMPRESSED)
def test_compression(
    model: str, gbps: int, workloads: dict[str, Workload], network: Network
) -> None:
    """Figure 8a: compression divides bytes on the wire, not additions."""
    scenario = msgspec.structs.replace(SCENARIO, link_bps=gbps * 1e9)
    outcome = Program(workloads[model], network, scenario).evaluate(
        {"compression_ratio": np.array(RATIOS, dtype=np.float64)}
    )
    percent = outcome.alone_s / outcome.step_s * 100
    assert COMPRESSED[model, gbps].split() == [f"{value:.2f}" for value in percent]


@pytest.mark.parametrize("model", STEP_S)
@pytest.mark.parametrize(("gbps", "target"), NEEDED)
def test_compression_needed(
    model: str, gbps: int, target: float, workloads: dict[str, Workload], network: Network
) -> None:
    """The smallest ratio that reaches a scaling factor, read off the envelope."""
    scenario = msgspec.structs.replace(SCENARIO, link_bps=gbps * 1e9)
    threshold = required(Curve(workloads[model], network, scenario, "compression_ratio"), target)
    assert threshold.is_exact
    printed = NEEDED[gbps, target][model]
    assert printed == f"{threshold.value:.{decimals(printed)}f}"


@pytest.mark.parametrize("percent", MEASURED)
def test_effective_bandwidth(
    percent: float, workloads: dict[str, Workload], network: Network
) -> None:
    """The rate at which a perfect transport would scale as measured.

    Figure 3's row for 8 servers gives these values; the slightly different read-off of the
    what-if figure (47.2, 69.0, 71.3, 72.0 %) does not: 8.3, 14.7, 15.6, 15.8.
    """
    threshold = effective_bps(workloads["resnet50"], network, SCENARIO, percent / 100)
    assert threshold.value is not None
    printed = MEASURED[percent]
    assert printed == f"{threshold.value / 1e9:.{decimals(printed)}f}"


def test_average_utilization(workloads: dict[str, Workload], network: Network) -> None:
    """What a perfectly used network shows on a monitor that averages over the step [%]."""
    printed = {
        "resnet50": "95.5 67.8 45.8 31.2 12.5",
        "resnet101": "96.4 73.1 52.0 36.4 14.6",
        "vgg16": "98.9 90.2 78.6 69.7 44.5",
    }
    columns = {"link_bps": np.array(RATES_GBPS) * 1e9}
    for model, expected in printed.items():
        program = Program(workloads[model], network, SCENARIO)
        percent = program.link_s(columns) / program.step_s(columns) * 100
        assert expected.split() == [f"{value:.1f}" for value in percent]

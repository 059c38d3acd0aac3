"""The original study judged: its curves beside its figures, and where it contradicts itself."""

from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.simulate import paper
from wirebound.simulate.curve import Curve
from wirebound.simulate.paper import RATES_BPS, RATIOS, STEP_S, WORKERS, Study
from wirebound.simulate.thresholds import effective_bps, required

Curves = Mapping[str, tuple[float, ...]]
"""Model -> one number a rate or ratio."""

# Read off the published figures by pixel, +-1 point (percent / 100).
FIGURE_3 = {
    2: (0.127, 0.683, 0.745, 0.75, 0.753),
    4: (0.074, 0.503, 0.736, 0.741, 0.75),
    8: (0.074, 0.473, 0.692, 0.712, 0.718),
}
"""Measured scaling factor of ResNet-50 by servers, at `RATES_BPS`."""

FIGURE_4: Curves = {
    "resnet50": (0.955, 0.655, 0.333, 0.214, 0.09),
    "resnet101": (0.97, 0.783, 0.50, 0.334, 0.123),
    "vgg16": (0.99, 0.923, 0.81, 0.675, 0.315),
}
"""Measured network utilization, averaged over the run, at `RATES_BPS`."""

FIGURE_6_MEASURED = (0.074, 0.472, 0.69, 0.713, 0.72)
FIGURE_6_SIMULATED = (0.075, 0.54, 0.91, 0.99, 0.995)
"""ResNet-50 on 8 servers, at `RATES_BPS`; the panels of the other models were not published
where they could be read."""

FIGURE_8_10G: Curves = {
    "resnet50": (0.541, 0.818, 0.99, 0.99, 0.99, 0.99),
    "resnet101": (0.50, 0.78, 0.99, 0.9968, 0.9969, 0.9969),
    "vgg16": (0.201, 0.367, 0.722, 0.985, 0.985, 0.986),
}
"""Simulated scaling factor at 10 Gbit/s by compression ratio, at `RATIOS`."""

CLAIMED_RATIOS = (2.0, 5.0)
"""What the paper's abstract says is enough at 10 Gbit/s."""

TEN_BPS, HUNDRED_BPS = RATES_BPS[1], RATES_BPS[4]

ALGORITHMS = ("ring", "hierarchical", "tree")


class Bound(msgspec.Struct, frozen=True):
    """What one algorithm can reach at best on two servers, beside what was measured.

    Attributes:
        algorithm: Of the all-reduce.
        scaling_factor: At `RATES_BPS`, perfect transport.
        is_exceeded: Where the measurement is above it, so that it is no bound.
    """

    algorithm: str
    scaling_factor: tuple[float, ...]
    is_exceeded: tuple[bool, ...]


class PaperVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the paper's simulator says, and what it does not.

    Attributes:
        is_published: From the published logs; otherwise from the zoo, scaled.
        rates_bps: Of the curves over bandwidth [bit/s].
        ratios: Of the curves over compression.
        by_rate: Workers -> model -> scaling factor at each rate (Figures 6 and 7).
        by_ratio_10g: Model -> scaling factor at each ratio at 10 Gbit/s (Figure 8a).
        by_ratio_100g: The same at 100 Gbit/s (Figure 8b).
        overhead_s: Model -> communication overhead at each rate, 64 GPUs [s].
        configurations: Scenarios simulated.
        ratio_for_99: Model -> smallest compression ratio for 99 % at 10 Gbit/s, 64 GPUs.
        two_servers: Bounds for ResNet-50 on two servers.
        average_utilization: Model -> what a perfectly used network would show.
        effective_bps: Line rates whose perfect use gives ResNet-50's measured figures, 8 servers.
        measured: The figures read off, by number.
    """

    schema_version: int = 1
    is_published: bool
    rates_bps: tuple[float, ...] = RATES_BPS
    ratios: tuple[float, ...] = RATIOS
    by_rate: Mapping[int, Curves]
    by_ratio_10g: Curves
    by_ratio_100g: Curves
    overhead_s: Curves
    configurations: int
    ratio_for_99: Mapping[str, float | None]
    two_servers: tuple[Bound, ...]
    average_utilization: Curves
    effective_bps: tuple[float | None, ...]
    measured: Mapping[str, object]


def judge_paper(study: Study) -> PaperVerdict:
    """Simulate all 270 configurations and hold them against the published figures."""
    grids = {
        name: paper.scaling_factors(
            workload, study.network, paper.scenario(max(WORKERS)), WORKERS, RATIOS
        )
        for name, workload in study.workloads.items()
    }
    most = {name: grid[WORKERS.index(max(WORKERS))] for name, grid in grids.items()}
    ten, hundred = RATES_BPS.index(TEN_BPS), RATES_BPS.index(HUNDRED_BPS)
    return PaperVerdict(
        is_published=study.is_published,
        by_rate={
            workers: {name: _floats(grid[index, :, 0]) for name, grid in grids.items()}
            for index, workers in enumerate(WORKERS)
        },
        by_ratio_10g={name: _floats(grid[ten]) for name, grid in most.items()},
        by_ratio_100g={name: _floats(grid[hundred]) for name, grid in most.items()},
        overhead_s={
            name: _floats(STEP_S[name] / grid[:, 0] - STEP_S[name]) for name, grid in most.items()
        },
        configurations=sum(grid.size for grid in grids.values()),
        ratio_for_99={name: _ratio_for_99(study, name) for name in study.workloads},
        two_servers=tuple(_bound(study, algorithm) for algorithm in ALGORITHMS),
        average_utilization={
            name: _floats(paper.average_utilization(workload, study.network))
            for name, workload in study.workloads.items()
        },
        effective_bps=tuple(
            effective_bps(
                study.workloads["resnet50"],
                study.network,
                paper.scenario(max(WORKERS)),
                factor,
            ).value
            for factor in FIGURE_6_MEASURED
        ),
        measured={
            "figure_3": {str(servers): values for servers, values in FIGURE_3.items()},
            "figure_4": FIGURE_4,
            "figure_6": FIGURE_6_MEASURED,
            "figure_6_simulated": FIGURE_6_SIMULATED,
            "figure_8_10g": FIGURE_8_10G,
        },
    )


def _bound(study: Study, algorithm: str) -> Bound:
    """The ring as the paper has it, over all GPUs; the others know that a server has eight."""
    servers, measured = 2, FIGURE_3[2]
    per_node = 1 if algorithm == "ring" else paper.GPUS_PER_SERVER
    workers = servers * paper.GPUS_PER_SERVER
    base = paper.scenario(workers, algorithm, per_node)
    grid = paper.scaling_factors(study.workloads["resnet50"], study.network, base, (workers,))
    factors = _floats(grid[0, :, 0])
    exceeded = tuple(m > f for m, f in zip(measured, factors, strict=True))
    return Bound(algorithm, factors, exceeded)


def _ratio_for_99(study: Study, name: str) -> float | None:
    base = msgspec.structs.replace(paper.scenario(max(WORKERS)), link_bps=TEN_BPS)
    curve = Curve(study.workloads[name], study.network, base, "compression_ratio")
    return required(curve, 0.99).value


def _floats(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)

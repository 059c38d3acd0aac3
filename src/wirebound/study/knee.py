"""Where a faster link stops helping: measured along the links of a study, and predicted.

The knee is the rate at which a step takes 1.1 times what it takes on an unlimited link.
Measured, it is read off between two links of the study, on the line through their steps over
the seconds that a byte takes. Predicted, it is a threshold of the engine on the network that
was measured on the one link nearest to it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from wirebound.network.record import Network
from wirebound.simulate.curve import Curve
from wirebound.simulate.program import Program
from wirebound.simulate.scenario import Scenario
from wirebound.simulate.thresholds import required
from wirebound.study.predict import Sources, scenario
from wirebound.study.record import Config
from wirebound.workload.record import Workload

MATTERS = 1.1
"""Step over the one on an unlimited link, above which the network matters."""


class Knee(msgspec.Struct, frozen=True):
    """Where the network stops mattering for one script and its settings.

    Attributes:
        config: Of its runs, on an unlimited link.
        measured_bps: Between two links of the study [bit/s].
        predicted_bps: By the engine, from a bench on one link [bit/s].
        benched_bps: That link's rate [bit/s].
    """

    config: Config
    measured_bps: float
    predicted_bps: float
    benched_bps: float


def knees(steps_s: Mapping[Config, float], known: Sources) -> Iterator[Knee]:
    """The knees that lie between links of a study.

    Args:
        steps_s: Measured steps by config, repeats taken together [s].
        known: What predictions are made from.
    """
    for config, unlimited_s in steps_s.items():
        if config.link_bps is not None:
            continue
        series = sorted(
            (1 / other.link_bps if other.link_bps else 0.0, step_s)
            for other, step_s in steps_s.items()
            if msgspec.structs.replace(other, link_bps=None) == config
        )
        measured_bps = _crossing_bps(series, MATTERS * unlimited_s)
        predicted = _predicted(config, known)
        if measured_bps is not None and predicted is not None:
            yield Knee(config, measured_bps, *predicted)


def _crossing_bps(series: Sequence[tuple[float, float]], limit_s: float) -> float | None:
    """Where steps over seconds a bit pass a limit for good, coming from slow links."""
    for (fast, below_s), (slow, above_s) in reversed(list(pairwise(series))):
        if below_s <= limit_s < above_s:
            share = (limit_s - below_s) / (above_s - below_s)
            return 1 / (fast + share * (slow - fast))
    return None


def _predicted(config: Config, known: Sources) -> tuple[float, float] | None:
    """The threshold, and the link whose bench it comes from."""
    workload = known.typical_workload(config)
    asked = msgspec.structs.replace(scenario(config, workload), jitter=None)
    unlimited = Program(workload, known.network(config), asked)
    target = unlimited.alone_s()[0] / (MATTERS * unlimited.step_s()[0])
    found = [
        (needed_bps, link_bps)
        for (workers, link_bps), network in known.networks.items()
        if workers == config.workers
        and link_bps is not None
        and (needed_bps := _needed_bps(workload, network, asked, float(target))) is not None
    ]
    return min(found, key=lambda pair: abs(math.log(pair[0] / pair[1])), default=None)


def _needed_bps(
    workload: Workload, network: Network, asked: Scenario, target: float
) -> float | None:
    return required(Curve(workload, network, asked, "link_bps"), target).value

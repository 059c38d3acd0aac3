"""Predicting the runs of a study from its one-worker recordings and its fitted networks.

Nothing of the run that is predicted is looked at. Computation comes from a recording of
workers that did not talk to each other, as many at once as the run has, or from the
one-worker recording where the study has none of those; the network from the bench on the
same link.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from statistics import median

import msgspec
import numpy as np

from wirebound.errors import StudyError
from wirebound.network.fit import fit
from wirebound.network.record import Network
from wirebound.resources import Resource
from wirebound.simulate.program import Program
from wirebound.simulate.scenario import Jitter, Scenario
from wirebound.study.record import Bench, Config, Run, Study
from wirebound.units import bytes_per_second
from wirebound.workload.bucketing import DDP, PaperFusion
from wirebound.workload.record import Workload
from wirebound.workload.recorded import GLOO_STREAMS
from wirebound.workload.reduce import Reduced
from wirebound.workload.schedule import Schedule

CENTRAL_SIGMAS = 1.2816
"""Half the width of the central 80 % of a normal distribution, in standard deviations."""


class Sources(msgspec.Struct, frozen=True):
    """What predictions of a study are made from.

    Attributes:
        apart: Recordings without communication, by script, workers, batch, accumulation.
        networks: By workers and rate of the link [bit/s].
    """

    apart: Mapping[tuple[str, int, int, int], Reduced]
    networks: Mapping[tuple[int, float | None], Network]

    def workload(self, config: Config) -> Workload:
        """What one worker of a run computes.

        Raises:
            StudyError: No worker of this script ran without communication.
        """
        alone = (config.script, 1, config.batch, config.accumulation)
        apart = (config.script, config.workers, config.batch, config.accumulation)
        found = self.apart.get(apart) or self.apart.get(alone)
        if found is None:
            raise StudyError(
                f"script {config.script!r}, batch {config.batch}, accumulation "
                f"{config.accumulation}: no recording of one worker alone",
                "run the study with its [baseline]",
            )
        return found.workload

    def network(self, config: Config) -> Network:
        """The network of a run.

        Raises:
            StudyError: Its link was not measured.
        """
        found = self.networks.get((config.workers, config.link_bps))
        if found is None:
            raise StudyError(
                f"{config.workers} workers on a link of {config.link_bps} bit/s: not measured",
                "run the study with its [bench]",
            )
        return found


def sources(study: Study, runs: Sequence[Run]) -> Sources:
    """Gather what predictions are made from."""
    silent: dict[tuple[str, int, int, int], list[Reduced]] = {}
    for run in runs:
        config = run.config
        if run.reduced is None or not (config.mode == "apart" or config.workers == 1):
            continue
        key = (config.script, config.workers, config.batch, config.accumulation)
        silent.setdefault(key, []).append(run.reduced)
    return Sources(
        {key: _middle(recordings) for key, recordings in silent.items()},
        {
            (bench.workers, bench.link_bps): _network(bench)
            for bench in study.benches
            if bench.samples is not None
        },
    )


def _middle(recordings: Sequence[Reduced]) -> Reduced:
    """The recording whose step is the median of the repeats, the lower one of two.

    Its uncertainty becomes the median of theirs: one recording may have been disturbed.
    """
    ordered = sorted(recordings, key=lambda reduced: reduced.recorded.alone_s)
    middle = ordered[(len(ordered) - 1) // 2]
    doubt = median(reduced.workload.source.uncertainty for reduced in recordings)
    source = msgspec.structs.replace(middle.workload.source, uncertainty=doubt)
    workload = msgspec.structs.replace(middle.workload, source=source)
    return msgspec.structs.replace(middle, workload=workload)


def _network(bench: Bench) -> Network:
    assert bench.samples is not None  # noqa: S101 - the caller has looked
    return fit([bench.samples], link_bps=bench.link_bps)


def scenario(config: Config, workload: Workload) -> Scenario:
    """The scenario of a run: its settings, and how much one worker's steps vary."""
    cap_bytes = float(config.bucket_cap_bytes)
    spread = workload.source.uncertainty / CENTRAL_SIGMAS
    return Scenario(
        workers=config.workers,
        streams=GLOO_STREAMS,
        schedule=Schedule(
            bucketing=DDP(cap_bytes=cap_bytes, first_bytes=cap_bytes),
            accumulation=config.accumulation,
        ),
        jitter=Jitter(distribution="normal", spread=spread) if spread > 0 else None,
    )


class Predicted(msgspec.Struct, frozen=True):
    """What a step should take.

    Attributes:
        step_s: Of a step [s].
        bill: Critical-path seconds by resource; they add up to it.
        baselines: What trivial rules say instead, by name [s].
    """

    step_s: float
    bill: Mapping[Resource, float]
    baselines: Mapping[str, float]


def predict(config: Config, of: Sources) -> Predicted:
    """Predict the step time of a run.

    Raises:
        StudyError: Its script never ran without communication, or its link was not measured.
    """
    workload, network = of.workload(config), of.network(config)
    asked = scenario(config, workload)
    program = Program(workload, network, asked)
    outcome = program.evaluate(with_bill=True)
    return Predicted(
        step_s=float(outcome.step_s[0]),
        bill={name: float(seconds[0]) for name, seconds in outcome.bill.items() if seconds[0]},
        baselines={
            name: rule(config, workload, network, asked) for name, rule in BASELINES.items()
        },
    )


def predict_all(study: Study, runs: Sequence[Run]) -> dict[Config, float]:
    """Predicted step times of all runs that communicate and can be predicted, by config [s].

    Repeats are one config, with repeat 0.
    """
    known = sources(study, runs)
    found: dict[Config, float] = {}
    for run in runs:
        config = msgspec.structs.replace(run.config, repeat=0)
        if config.workers == 1 or config.mode == "apart" or config in found:
            continue
        # A link without a bench has no prediction; the measured point stays.
        with contextlib.suppress(StudyError):
            found[config] = predict(config, known).step_s
    return found


Rule = Callable[[Config, Workload, Network, Scenario], float]


def _nothing_changes(
    config: Config, workload: Workload, network: Network, asked: Scenario
) -> float:
    """The step of one worker."""
    del config
    return float(Program(workload, network, asked).alone_s()[0])


def _linear_in_bytes(
    config: Config, workload: Workload, network: Network, asked: Scenario
) -> float:
    """The step of one worker, and all bytes of a ring at line rate."""
    rate_Bps = bytes_per_second(config.link_bps or network.inter.bandwidth_bps)
    crossing = 2 * (config.workers - 1) / config.workers * workload.gradient_bytes
    return _nothing_changes(config, workload, network, asked) + crossing / rate_Bps


def _no_overlap(config: Config, workload: Workload, network: Network, asked: Scenario) -> float:
    """The step of one worker, and every collective of the fitted network after it."""
    del config
    plain = msgspec.structs.replace(asked, streams=1, jitter=None)
    program = Program(workload, msgspec.structs.replace(network, contention=None), plain)
    costs = program.costs()
    network_s = sum(
        max(sum(float(np.max(value)) for value in leg.values()) for leg in legs)
        for op, legs in zip(program.graph.operations, costs, strict=True)
        if op.lane == "comm"
    )
    return float(program.alone_s()[0]) + network_s


def _papers_rule(config: Config, workload: Workload, network: Network, asked: Scenario) -> float:
    """The paper's fusion and its ring at line rate, with free additions."""
    inter = msgspec.structs.replace(
        network.inter,
        bandwidth_bps=config.link_bps or network.inter.bandwidth_bps,
        alpha_s=0.0,
        efficiency=1.0,
    )
    perfect = Network("line rate", inter)
    schedule = Schedule(bucketing=PaperFusion(), accumulation=config.accumulation)
    rule = Scenario(workers=config.workers, schedule=schedule)
    del asked
    return float(Program(workload, perfect, rule).step_s()[0])


BASELINES: Mapping[str, Rule] = {
    "nothing changes": _nothing_changes,
    "linear in bytes": _linear_in_bytes,
    "no overlap": _no_overlap,
    "the paper's rule": _papers_rule,
}
"""Rules that a model must beat, by the name that tables give them."""

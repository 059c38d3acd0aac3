"""Predicting the runs of a study from its one-worker recordings and its fitted networks.

Nothing of the run that is predicted is looked at. Computation comes from a recording of
workers that did not talk to each other, as many at once as the run has and as near to it in
the study as there is, or of one worker alone where there is none of those; the network comes
from the bench on the same link.
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

DRAWS = 16
"""Of the steps that are averaged; they are stratified, and more change nothing that is shown."""

CENTRAL_SIGMAS = 1.2816
"""Half the width of the central 80 % of a normal distribution, in standard deviations."""


class Sources(msgspec.Struct, frozen=True):
    """What predictions of a study are made from.

    Attributes:
        silent: Recordings of workers that did not communicate, apart or alone, with what they
            were recorded under.
        networks: By workers and rate of the link [bit/s].
    """

    silent: tuple[tuple[Config, Reduced], ...]
    networks: Mapping[tuple[int, float | None], Network]

    def workload(self, config: Config) -> Workload:
        """What one worker of a run computes, recorded as near to the run as there is.

        Raises:
            StudyError: No worker of this script ran without communication.
        """
        found = self._of(config)
        for is_near in (_is_beside, _is_on_link):
            near = [pair for pair in found if is_near(pair[0], config)]
            if near:
                return _middle([reduced for _, reduced in near])
        return _middle([reduced for _, reduced in found])

    def typical_workload(self, config: Config) -> Workload:
        """The same over all links and repeats.

        Raises:
            StudyError: No worker of this script ran without communication.
        """
        return _middle([reduced for _, reduced in self._of(config)])

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

    def _of(self, config: Config) -> list[tuple[Config, Reduced]]:
        """With as many workers at once as a run has, or of one alone."""
        job = _job(config)
        for workers in (config.workers, 1):
            found = [
                (other, reduced)
                for other, reduced in self.silent
                if (_job(other), other.workers) == (job, workers)
            ]
            if found:
                return found
        raise StudyError(
            f"script {config.script!r}, batch {config.batch}, accumulation "
            f"{config.accumulation}: no recording of one worker alone",
            "run the study with its [baseline]",
        )


def _job(config: Config) -> tuple[str, int, int]:
    return config.script, config.batch, config.accumulation


def _is_on_link(other: Config, config: Config) -> bool:
    return other.link_bps == config.link_bps


def _is_beside(other: Config, config: Config) -> bool:
    return _is_on_link(other, config) and other.repeat == config.repeat


def sources(study: Study, runs: Sequence[Run]) -> Sources:
    """Gather what predictions are made from."""
    return Sources(
        tuple(
            (run.config, run.reduced)
            for run in runs
            if run.reduced is not None and (run.config.mode == "apart" or run.config.workers == 1)
        ),
        {
            (bench.workers, bench.link_bps): _network(bench)
            for bench in study.benches
            if bench.samples is not None
        },
    )


def _middle(recordings: Sequence[Reduced]) -> Workload:
    """The workload whose step is the median, the lower one of two.

    Its uncertainty becomes the median of theirs: one recording may have been disturbed.
    """
    ordered = sorted(recordings, key=lambda reduced: reduced.recorded.alone_s)
    workload = ordered[(len(ordered) - 1) // 2].workload
    doubt = median(reduced.workload.source.uncertainty for reduced in recordings)
    source = msgspec.structs.replace(workload.source, uncertainty=doubt)
    return msgspec.structs.replace(workload, source=source)


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
        jitter=Jitter(distribution="normal", spread=spread, draws=DRAWS) if spread > 0 else None,
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
    """Predicted step times of all runs that communicate and can be predicted, by config [s]."""
    known = sources(study, runs)
    found: dict[Config, float] = {}
    for run in runs:
        config = run.config
        if config.workers == 1 or config.mode == "apart":
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

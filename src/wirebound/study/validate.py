"""How far predictions are from what a study measured, beside what trivial rules say."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import msgspec
import numpy as np

from wirebound.errors import StudyError, WireboundError
from wirebound.resources import Resource
from wirebound.study.knee import MATTERS, Knee, knees
from wirebound.study.predict import BASELINES, Sources, predict, sources
from wirebound.study.record import Config, Run, Study
from wirebound.study.replay import replayed_s
from wirebound.verdict.record import ErrorBar, Verdict

SCHEMA_VERSION = 1

MODEL = "wirebound"
"""Name of the prediction beside those of the trivial rules."""


class Checked(msgspec.Struct, frozen=True):
    """One run, measured and predicted.

    Attributes:
        id: Of the run.
        config: Of the run.
        measured_s: Median step on its slowest rank [s].
        predicted_s: From what ran without communication and the fitted network [s].
        error: predicted_s / measured_s - 1.
        baselines: The same error of each trivial rule.
        bill: What the predicted step is spent on; adds up to `predicted_s` [s].
        replayed_s: The run's own times, put together again by the engine [s].
        is_oversubscribed: Whether workers shared cores.
        network_matters: Whether the step is longer than 1.1 times that on an unlimited link;
            None where the study has no such run.
    """

    id: str
    config: Config
    measured_s: float
    predicted_s: float
    error: float
    baselines: Mapping[str, float]
    bill: Mapping[Resource, float]
    replayed_s: float
    is_oversubscribed: bool
    network_matters: bool | None


class Errors(msgspec.Struct, frozen=True):
    """Absolute relative errors of several predictions.

    Attributes:
        runs: How many.
        median: Of them.
        p90: Their 90th percentile.
        worst: The largest.
    """

    runs: int
    median: float
    p90: float
    worst: float


class Validation(msgspec.Struct, frozen=True):
    """Predictions of a study held against its measurements.

    Attributes:
        study: Its name.
        checked: Every run with several workers, in the order of the study.
        skipped: Why other runs of several workers are not among them, by id.
        overall: Errors by the name of the rule, of the runs that are not oversubscribed.
        where_it_matters: Of those of them in which the network matters.
        oversubscribed: Of the others, by the name of the rule.
        replay: Of putting each run's own times together again; not oversubscribed ones.
        knees: Where the network stops mattering, measured and predicted; likewise.
        schema_version: Of the JSON form.
    """

    study: str
    checked: tuple[Checked, ...]
    skipped: Mapping[str, str]
    overall: Mapping[str, Errors]
    where_it_matters: Mapping[str, Errors]
    oversubscribed: Mapping[str, Errors]
    replay: Errors | None
    knees: tuple[Knee, ...]
    schema_version: int = SCHEMA_VERSION


def validate(study: Study, runs: Sequence[Run]) -> Validation:
    """Predict every run of a study that communicates.

    Args:
        study: How it was made.
        runs: What it measured.

    Raises:
        StudyError: There is nothing to compare.
    """
    known = sources(study, runs)
    steps_s = _steps_s(runs)
    checked: list[Checked] = []
    skipped: dict[str, str] = {}
    for run in runs:
        if run.config.workers == 1 or run.config.mode == "apart":
            continue
        try:
            checked.append(_check(run, known, steps_s))
        except WireboundError as error:
            skipped[run.id] = error.message
    if not checked:
        reason = next(iter(skipped.values()), "it has no runs of several workers")
        raise StudyError(f"study {study.name}: nothing can be validated: {reason}")
    fair = [one for one in checked if not one.is_oversubscribed]
    return Validation(
        study=study.name,
        checked=tuple(checked),
        skipped=skipped,
        overall=_by_rule(fair),
        where_it_matters=_by_rule([one for one in fair if one.network_matters]),
        oversubscribed=_by_rule([one for one in checked if one.is_oversubscribed]),
        replay=_errors(one.replayed_s / one.measured_s - 1 for one in fair),
        knees=tuple(knees(_fair_only(steps_s, fair), known)),
    )


def with_error_bar(verdict: Verdict, validation: Validation) -> Verdict:
    """A verdict whose step time has the error bar of a validation.

    Raises:
        StudyError: All runs of the study had workers that shared cores.
    """
    errors = validation.overall.get(MODEL)
    if errors is None:
        raise StudyError(f"study {validation.study}: no run without oversubscribed cores")
    bar = ErrorBar(
        study=validation.study,
        runs=errors.runs,
        p90=errors.p90,
        low_s=verdict.step_s / (1 + errors.p90),
        high_s=verdict.step_s / (1 - errors.p90) if errors.p90 < 1 else None,
    )
    return msgspec.structs.replace(verdict, error_bar=bar)


def same(config: Config, **changes: object) -> Config:
    """A config with repeats taken together, and some settings changed."""
    return msgspec.structs.replace(config, repeat=0, **changes)


def _steps_s(runs: Sequence[Run]) -> dict[Config, float]:
    """Median step of the repeats of workers that train together, by config [s]."""
    steps: dict[Config, list[float]] = {}
    for run in runs:
        if run.reduced is not None and run.config.mode == "joined":
            steps.setdefault(same(run.config), []).append(run.reduced.recorded.step_s)
    return {config: median(each) for config, each in steps.items()}


def _fair_only(steps_s: Mapping[Config, float], fair: Sequence[Checked]) -> dict[Config, float]:
    wanted = {same(one.config) for one in fair}
    return {config: seconds for config, seconds in steps_s.items() if config in wanted}


def _check(run: Run, known: Sources, steps_s: Mapping[Config, float]) -> Checked:
    if run.reduced is None:
        reason = (run.failure or "no reason given").splitlines()[0]
        raise StudyError(f"it failed: {reason}")
    said, measured_s = predict(run.config, known), run.reduced.recorded.step_s
    unlimited_s = steps_s.get(same(run.config, link_bps=None))
    return Checked(
        id=run.id,
        config=run.config,
        measured_s=measured_s,
        predicted_s=said.step_s,
        error=said.step_s / measured_s - 1,
        baselines={name: seconds / measured_s - 1 for name, seconds in said.baselines.items()},
        bill=said.bill,
        replayed_s=replayed_s(run.reduced),
        is_oversubscribed=run.is_oversubscribed,
        network_matters=None if unlimited_s is None else bool(measured_s > MATTERS * unlimited_s),
    )


def _by_rule(checked: Sequence[Checked]) -> dict[str, Errors]:
    found = {MODEL: _errors(one.error for one in checked)}
    found |= {name: _errors(one.baselines[name] for one in checked) for name in BASELINES}
    return {name: errors for name, errors in found.items() if errors is not None}


def _errors(relative: Iterable[float]) -> Errors | None:
    sizes = np.abs(np.fromiter(relative, dtype=np.float64))
    if not sizes.size:
        return None
    return Errors(
        runs=sizes.size,
        median=float(np.median(sizes)),
        p90=float(np.percentile(sizes, 90)),
        worst=float(np.max(sizes)),
    )

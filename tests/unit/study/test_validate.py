"""Validation: a study whose truth is known is predicted, and rules are held against it."""

import msgspec
import pytest

from studies import LINKS, MIB, WORKLOAD, config, reduced, study
from wirebound.errors import StudyError
from wirebound.study.predict import predict, sources
from wirebound.study.record import Run
from wirebound.study.replay import replayed_s
from wirebound.study.validate import MODEL, Validation, validate, with_error_bar
from wirebound.verdict.record import Verdict
from wirebound.workload.recorded import RecordedCollective


def errors(validation: Validation) -> list[float]:
    """Of every run."""
    return [one.error for one in validation.checked]


def test_a_known_truth_is_predicted_from_what_did_not_communicate() -> None:
    """Bench and one-worker recording give back the steps that the true network made."""
    found = validate(*study())
    assert [one.id for one in found.checked] == [f"run-{link}" for link in LINKS]
    assert errors(found) == pytest.approx([0.0, 0.0, 0.0], abs=2e-3)
    assert found.overall[MODEL].worst < 2e-3
    assert found.overall["nothing changes"].worst > 0.2
    assert {one.network_matters for one in found.checked if one.config.link_bps} == {True}
    assert found.where_it_matters[MODEL].runs == 2


def test_the_run_itself_is_not_looked_at() -> None:
    """Runs that took a tenth longer are predicted as before, and the error says so."""
    found = validate(*study(1.1))
    assert errors(found) == pytest.approx([1 / 1.1 - 1] * 3, abs=2e-3)


def test_bill_adds_up_to_the_prediction() -> None:
    """What the predicted step is spent on."""
    for one in validate(*study()).checked:
        assert sum(one.bill.values()) == pytest.approx(one.predicted_s)


def test_workers_apart_are_preferred_to_one_alone() -> None:
    """Computation that is slower with all workers at once is taken from a run like that."""
    made, runs = study()
    spans = tuple(msgspec.structs.replace(op, seconds=2 * op.seconds) for op in WORKLOAD.operations)
    slower = msgspec.structs.replace(WORKLOAD, operations=spans)
    apart = reduced(2 * WORKLOAD.compute_s, workload=slower)
    with_apart = [*runs, Run("apart", config(mode="apart"), 0.0, 1.0, reduced=apart)]
    before = predict(config(), sources(made, runs)).step_s
    assert predict(config(), sources(made, with_apart)).step_s > before + WORKLOAD.compute_s / 2
    assert [one.id for one in validate(made, with_apart).checked] == [run.id for run in runs[1:]]


def test_failed_and_unmeasured_runs_are_named() -> None:
    """A run without a recording, and one on a link without a bench."""
    made, runs = study()
    failed = Run("failed", config(), 0.0, 1.0, failure="rank 1 ended with status 1\nmore")
    strange = Run("strange", config(link_bps=7e9), 0.0, 1.0, reduced=reduced(1.0))
    found = validate(made, [*runs, failed, strange])
    assert found.skipped["failed"] == "it failed: rank 1 ended with status 1"
    assert "not measured" in found.skipped["strange"]


def test_oversubscribed_runs_are_apart() -> None:
    """They do not count among the others."""
    made, runs = study()
    shared = [msgspec.structs.replace(run, is_oversubscribed=True) for run in runs[1:2]]
    found = validate(made, [runs[0], *shared, *runs[2:]])
    assert found.overall[MODEL].runs == 2
    assert found.oversubscribed[MODEL].runs == 1


def test_nothing_to_validate() -> None:
    """One line that says why."""
    made, runs = study()
    with pytest.raises(StudyError, match="nothing can be validated: it has no runs of several"):
        validate(made, runs[:1])
    with pytest.raises(StudyError, match="no recording of one worker alone"):
        validate(made, runs[1:])


def test_replay_gives_collectives_what_they_took() -> None:
    """By hand: five buckets at 20 to 100 ms of backward, each done 80 ms after it was ready.

    The last is done 180 ms after backward began, which is 230 ms after the step; the update
    takes 10 more.
    """
    taken = tuple(
        RecordedCollective(f"bucket {number}", "all_reduce", 4 * MIB, None, 1.0, 0.08, 0.03)
        for number in range(5)
    )
    recording = reduced(0.24)
    recorded = msgspec.structs.replace(recording.recorded, collectives=taken)
    assert replayed_s(msgspec.structs.replace(recording, recorded=recorded)) == pytest.approx(0.24)


def test_the_link_at_which_the_network_stops_mattering() -> None:
    """Read off between two links, and found by the engine from the bench of one."""
    links = (5e8, 1e9, 1.5e9, 2e9, 2.5e9, 3e9, 4e9, None)
    [knee] = validate(*study(links=links)).knees
    assert 1e9 < knee.measured_bps < 3e9
    assert knee.predicted_bps == pytest.approx(knee.measured_bps, rel=0.03)
    assert knee.benched_bps in links


def test_error_bar_of_a_verdict() -> None:
    """By hand: a prediction of 1 s that is up to 10 % short of the truth means up to 1.11 s."""
    verdict = msgspec.convert(
        {
            "word": "LINK", "workload": "w", "source": {}, "network": "n", "scenario": {},
            "bound": "b", "step_s": 1.0, "step_range_s": [1.0, 1.0], "alone_s": 1.0,
            "free_network_s": 1.0, "exposed_comm_s": 0.0, "scaling_factor": 1.0,
            "network_share": 0.0, "utilization": 0.0, "average_utilization": 0.0, "bill": {},
            "bill_shares": {}, "causes": [],
        },
        Verdict,
    )  # fmt: skip
    found = with_error_bar(verdict, validate(*study(1 / 0.9))).error_bar
    assert found is not None
    assert (found.study, found.runs) == ("made", 3)
    assert found.p90 == pytest.approx(0.1, abs=2e-3)
    assert found.low_s == pytest.approx(1 / 1.1, abs=2e-3)
    assert found.high_s == pytest.approx(1 / 0.9, abs=3e-3)

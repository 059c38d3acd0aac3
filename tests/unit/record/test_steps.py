"""Where steps begin and end, and how gaps are named."""

import pytest

from wirebound.record import steps
from wirebound.record.models import Slot
from wirebound.record.rendering import render
from wirebound.record.steps import Step, StepLog

SLOT = Slot("weight", 8, 2, "float32", 0, 0)


class Ticks:
    """A clock that counts its marks in microseconds."""

    def __init__(self) -> None:
        self.ticks = 0

    def mark(self) -> int:
        """One later each time."""
        self.ticks += 1000
        return self.ticks

    def passed(self, _: int) -> bool:
        """Always."""
        return True

    def wait(self, _: int) -> None:
        """Nothing to do."""

    def times_ns(self, marks: list[int]) -> list[int]:
        """As they are."""
        return list(marks)


def recorder() -> tuple[StepLog, list[Step]]:
    """A log on counted time, and the list it delivers to."""
    taken: list[Step] = []
    log = StepLog(taken.append)
    log.clock = Ticks()  # type: ignore[assignment]
    return log, taken


def backward(log: StepLog) -> None:
    """One backward pass with one gradient."""
    start = log.begin()
    count = len(log.gradients)
    log.gradients.append((SLOT, log.clock.mark()))
    log.backward_ends(start, count, 0)


def optimize(log: StepLog) -> None:
    """One optimizer."""
    log.optimizer_begins()
    log.optimizer_ends()


def test_step_lasts_until_the_next_one_begins() -> None:
    """What follows the optimizer belongs to the step that caused it."""
    log, taken = recorder()
    backward(log)
    optimize(log)
    assert taken == []
    log.note("input", log.begin())
    assert [step.index for step in taken] == [0]
    assert log.step is not None
    assert log.step.start > taken[0].end


def test_several_optimizers_are_one_step() -> None:
    """As long as nothing begins between them."""
    log, taken = recorder()
    backward(log)
    optimize(log)
    optimize(log)
    log.finish()
    [step] = taken
    assert [span.kind for span in step.spans] == ["optimizer", "optimizer"]


def test_optimizer_without_a_backward_pass_ends_nothing() -> None:
    """Some schedules step before they train."""
    log, taken = recorder()
    log.note("input", log.begin())
    optimize(log)
    log.finish()
    assert taken == []


def test_accumulated_gradients_know_their_micro_step() -> None:
    """Two passes, one optimizer."""
    log, taken = recorder()
    backward(log)
    backward(log)
    optimize(log)
    log.finish()
    events = render(taken[0], {}, log.clock, 0, 0)
    gradients = [one for one in events if one.cat == "gradient"]
    assert [one.args["micro"] for one in gradients] == [0, 1]


def test_closure_of_an_optimizer_is_not_counted_twice() -> None:
    """The backward pass inside of it is backward, the rest optimizer."""
    log, taken = recorder()
    log.begin()
    log.optimizer_begins()
    backward(log)
    log.optimizer_ends()
    log.finish()
    [span] = taken[0].spans
    assert span.start == taken[0].backwards[0].end


def test_gaps_are_the_host_and_spans_cover_the_step() -> None:
    """Every microsecond of a step has one name."""
    log, taken = recorder()
    log.note("input", log.begin())
    log.note("forward", log.begin())
    backward(log)
    optimize(log)
    log.begin()
    events = render(taken[0], {}, log.clock, 0, 0)
    spans = [one for one in events if one.tid == "compute" and one.ph == "X"]
    assert sum(one.dur or 0.0 for one in spans) == events[-1].dur
    assert "host" in {one.cat for one in spans}
    assert events[-1].cat == "step"


def test_input_of_an_evaluation_is_forgotten() -> None:
    """A forward pass without gradients shows that it was no training."""
    log, _ = recorder()
    log.note("input", log.begin())
    log.forget_input()
    assert log.step is not None
    assert log.step.spans == []


def test_script_that_never_steps_stays_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its notes are dropped, and so is the part of a step behind them."""
    monkeypatch.setattr(steps, "MAX_NOTES", 3)
    log, taken = recorder()
    for _ in range(10):
        backward(log)
    assert len(log.gradients) <= 4
    optimize(log)
    log.finish()
    assert taken == []
    backward(log)
    optimize(log)
    log.finish()
    assert len(taken) == 1

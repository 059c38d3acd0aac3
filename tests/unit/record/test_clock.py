"""Marks on a device that is made up, so that no GPU is needed."""

from typing import Any

from wirebound.record.clock import DeviceClock, HostClock
from wirebound.record.models import Model, Slot
from wirebound.record.rendering import is_settled, render
from wirebound.record.steps import Collective, StepLog

NS_PER_MS = 10**6


class Device:
    """A device whose time passes when the test says so."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.reached_ms = 0.0
        self.released: list[Any] = []
        self.waits = 0

    def record(self) -> list[float]:
        """An event at the end of the work so far."""
        return [self.now_ms]

    def passed(self, event: list[float]) -> bool:
        """Whether the device got there."""
        return event[0] <= self.reached_ms

    def between_ms(self, first: list[float], second: list[float]) -> float:
        """As a device says it, and only of what it has passed."""
        assert self.passed(first)
        assert self.passed(second)
        return second[0] - first[0]

    def release(self, events: list[Any]) -> None:
        """Count what comes back."""
        self.released += events

    def wait(self, event: list[float]) -> None:
        """Let the device work until then."""
        self.waits += 1
        self.reached_ms = max(self.reached_ms, event[0])


def test_host_marks_are_times() -> None:
    """On a CPU there is nothing to wait for or to look up."""
    clock = HostClock()
    first, second = clock.mark(), clock.mark()
    assert first <= second
    assert clock.passed(second)
    assert clock.times_ns([first, second]) == [first, second]


def test_device_waits_once_and_measures_from_a_moving_anchor() -> None:
    """Times are on the host's clock, and every event but the anchor comes back."""
    device = Device()
    clock = DeviceClock(device)
    base_ns = clock.times_ns([clock.mark()])[0]
    marks = []
    for now_ms in (1.0, 2.5, 4.0):
        device.now_ms = now_ms
        marks.append(clock.mark())
    assert not clock.passed(marks[0])
    device.reached_ms = 4.0
    times = clock.times_ns([5, *marks])
    assert times[0] == 5
    assert [time - base_ns for time in times[1:]] == [NS_PER_MS, 2.5 * NS_PER_MS, 4 * NS_PER_MS]
    assert device.waits == 1
    assert marks[-1] not in device.released
    assert all(mark in device.released for mark in marks[:-1])


def test_step_on_a_device_is_rendered_when_the_device_has_passed_it() -> None:
    """A whole step, without a wait, in the device's time and not the host's."""
    device = Device()
    taken = []
    log = StepLog(taken.append)
    log.clock = DeviceClock(device)
    base_ns = log.clock.times_ns([log.clock.mark()])[0]
    slot = Slot("weight", 8, 2, "float32", 0, 0)
    model = Model(0, [slot], ((0,),), {})

    start = log.begin()
    device.now_ms = 10.0
    log.note("forward", start)
    backward = log.begin()
    device.now_ms = 25.0
    log.gradients.append((slot, log.clock.mark()))
    assert log.step is not None
    collective = Collective("all_reduce", 8, 2, "float32", "0", 0, 0, log.clock.mark())
    log.step.collectives.append(collective)
    device.now_ms = 40.0
    collective.done = log.clock.mark()
    log.backward_ends(backward, 0, 0)
    log.optimizer_begins()
    device.now_ms = 42.0
    log.optimizer_ends()
    log.finish()

    [step] = taken
    assert not is_settled(step, log.clock)
    device.reached_ms = 42.0
    assert is_settled(step, log.clock)
    events = render(step, {(0, model.index, 0): 0}, log.clock, base_ns, 3)
    assert [(one.cat, one.ts, one.dur) for one in events] == [
        ("forward", 0.0, 10_000.0),
        ("optimizer", 40_000.0, 2000.0),
        ("backward", 10_000.0, 15_000.0),
        ("exposed_wait", 25_000.0, 15_000.0),
        ("gradient", 25_000.0, None),
        ("all_reduce", 25_000.0, 15_000.0),
        ("step", 0.0, 42_000.0),
    ]
    assert device.waits == 1

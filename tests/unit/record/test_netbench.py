"""The network bench without a network: sizes, clocks, and what stops it before it starts."""

import sys
from collections.abc import Iterator

import pytest

from wirebound.errors import MeasureError
from wirebound.record.netbench import Plan, bench
from wirebound.record.stopwatch import CpuClock, CudaClock

PLAN = Plan(1024, 4096)
TORCHRUN = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost"}


class Event:
    """A GPU event that happened when it was recorded, at the next of given milliseconds."""

    def __init__(self, instants: Iterator[float]) -> None:
        self.instants = instants
        self.at = -1.0

    def record(self) -> None:
        """Happen."""
        self.at = next(self.instants)

    def elapsed_time(self, later: "Event") -> float:
        """Milliseconds, as torch counts them."""
        return later.at - self.at


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (PLAN, [1024, 2048, 4096]),
        (Plan(1024, 5000), [1024, 2048, 4096]),
        (Plan(8, 8), [8]),
    ],
)
def test_sizes_are_powers_of_two_times_the_first(plan: Plan, expected: list[int]) -> None:
    """From the smallest to no more than the largest."""
    assert list(plan.sizes()) == expected


def test_cpu_clock_measures_intervals() -> None:
    """Marks are instants in seconds; there is one interval fewer."""
    assert CpuClock().intervals_s([1.0, 1.5, 3.5]) == [0.5, 2.0]
    assert CpuClock().mark() <= CpuClock().mark()


def test_cuda_clock_measures_intervals_between_events() -> None:
    """Events are recorded at each mark and read once, after the queue is done."""
    instants = iter([10.0, 12.0, 17.0])
    waits: list[str] = []
    clock = CudaClock(lambda: Event(instants), lambda: waits.append("synchronized"))

    marks = [clock.mark() for _ in range(3)]
    before = list(waits)

    assert clock.intervals_s(marks) == pytest.approx([0.002, 0.005])
    assert before == []
    assert waits == ["synchronized"]


def test_without_torchrun() -> None:
    """The error holds the command to use."""
    with pytest.raises(MeasureError, match=r"torchrun .* -m wirebound bench"):
        bench(PLAN, {})


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(MeasureError, match=r"install 'wirebound\[record\]'"):
        bench(PLAN, TORCHRUN)


def test_nccl_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backend is refused before any rank waits for another."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    with pytest.raises(MeasureError, match="nccl needs a GPU"):
        bench(Plan(1024, 4096, backend="nccl"), TORCHRUN)

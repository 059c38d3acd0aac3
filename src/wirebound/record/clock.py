"""Marks in time: the monotonic clock on a CPU, events of the stream on a GPU.

A mark is what a hook takes and nothing looks at until its step is written. On a CPU it
is a time already. On a GPU it is an event that the device passes when it has done all
work before it; asking when that was would wait for the device, so nobody asks before
the device has passed it.
"""

import functools
import time
from collections.abc import Iterable
from typing import Any, Protocol

NS_PER_MS = 10**6

Mark = Any
"""An instant: nanoseconds of the monotonic clock, or an event of a device."""


class Clock(Protocol):
    """Takes marks and, later, says when they were."""

    def mark(self) -> Mark:
        """Now, in the order of the work of this thread."""

    def passed(self, mark: Mark) -> bool:
        """Whether the mark lies in the past, so that its time is known."""

    def wait(self, mark: Mark) -> None:
        """Until a mark has passed."""

    def times_ns(self, marks: Iterable[Mark]) -> list[int]:
        """When marks were on the monotonic clock [ns]; all have passed."""


class HostClock:
    """The monotonic clock of the host."""

    mark = staticmethod(time.perf_counter_ns)

    def passed(self, mark: Mark) -> bool:  # noqa: ARG002 - the protocol's
        """Always: a time is a time."""
        return True

    def wait(self, mark: Mark) -> None:
        """No need to."""

    def times_ns(self, marks: Iterable[Mark]) -> list[int]:
        """The marks themselves."""
        return list(marks)


class Events(Protocol):
    """The calls of a device that a clock needs; a test has its own."""

    def record(self) -> Any:  # noqa: ANN401 - the device's own type
        """An event behind all work of the current stream."""

    def passed(self, event: Any) -> bool:  # noqa: ANN401
        """Whether the device has got to it."""

    def between_ms(self, first: Any, second: Any) -> float:  # noqa: ANN401
        """Time from one passed event to another [ms]; negative if it came before."""

    def release(self, events: list[Any]) -> None:
        """Events that nobody will ask for again."""

    def wait(self, event: Any) -> None:  # noqa: ANN401
        """Until the device has got to it."""


class CudaEvents:
    """Events of CUDA with times, used again and again since making them is slow."""

    def __init__(self) -> None:
        import torch

        self._make: Any = functools.partial(torch.cuda.Event, enable_timing=True)
        self._free: list[Any] = []

    def record(self) -> Any:  # noqa: ANN401
        """An event behind all work of the current stream."""
        event = self._free.pop() if self._free else self._make()
        event.record()
        return event

    def passed(self, event: Any) -> bool:  # noqa: ANN401
        """Whether the device has got to it."""
        return bool(event.query())

    def between_ms(self, first: Any, second: Any) -> float:  # noqa: ANN401
        """Time from one passed event to another [ms]."""
        return float(first.elapsed_time(second))

    def release(self, events: list[Any]) -> None:
        """Keep events for later."""
        self._free += events

    def wait(self, event: Any) -> None:  # noqa: ANN401
        """Until the device has got to it."""
        event.synchronize()


class DeviceClock:
    """Events on the stream of a device, placed on the host's clock.

    The first event is waited for, once, before the first step. Times are measured from
    an anchor that moves along with the steps, because a device counts milliseconds in 32
    bits of floating point: after an hour a microsecond would be lost in them.

    Args:
        events: The device.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._anchor = events.record()
        events.wait(self._anchor)
        self._anchor_ns = time.perf_counter_ns()
        self.mark = events.record

    def passed(self, mark: Mark) -> bool:
        """Whether the device has got to a mark; those of the host are in the past."""
        return isinstance(mark, int) or self._events.passed(mark)

    def wait(self, mark: Mark) -> None:
        """Until the device has got to a mark."""
        if not isinstance(mark, int):
            self._events.wait(mark)

    def times_ns(self, marks: Iterable[Mark]) -> list[int]:
        """When marks were [ns]. The last one becomes the anchor, the others are released."""
        asked = list(marks)
        times = [mark if isinstance(mark, int) else self._time_ns(mark) for mark in asked]
        used = {id(mark): mark for mark in asked if not isinstance(mark, int)}
        if asked and not isinstance(asked[-1], int):
            used.pop(id(asked[-1]))
            self._events.release([*used.values(), self._anchor])
            self._anchor, self._anchor_ns = asked[-1], times[-1]
        return times

    def _time_ns(self, event: Any) -> int:  # noqa: ANN401
        since_ms = self._events.between_ms(self._anchor, event)
        return self._anchor_ns + round(since_ms * NS_PER_MS)

"""Clocks of the network bench: one for what returns when it is done, one for what is queued."""

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

MILLISECOND_S = 1e-3


class CpuClock:
    """Instants of the monotonic clock, for operations that return when they are done."""

    def mark(self) -> float:
        """Now."""
        return time.perf_counter()

    def intervals_s(self, marks: Sequence[Any]) -> list[float]:
        """Seconds between successive marks."""
        return [later - mark for mark, later in pairwise(marks)]


class CudaClock:
    """Events on the stream that the operations are queued on.

    Args:
        event: Makes an event that can be timed.
        synchronize: Waits for all that is queued.
    """

    def __init__(self, event: Callable[[], Any], synchronize: Callable[[], None]) -> None:
        self._event = event
        self._synchronize = synchronize

    def mark(self) -> Any:  # noqa: ANN401 - torch is untyped here
        """An event at the end of the queue."""
        event = self._event()
        event.record()
        return event

    def intervals_s(self, marks: Sequence[Any]) -> list[float]:
        """Seconds between successive marks, after waiting for the last."""
        self._synchronize()
        return [mark.elapsed_time(later) * MILLISECOND_S for mark, later in pairwise(marks)]

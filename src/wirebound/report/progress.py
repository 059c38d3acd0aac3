"""How far a long work is: a bar on a terminal, a line for each item elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from wirebound.report.console import cell, console, line
from wirebound.report.visible import visible
from wirebound.units import format_time

DAY_S = 86400.0
"""Items count for the time left, however long they take."""


class Shown:
    """Shows items that begin and end.

    Args:
        file: Where.
    """

    def __init__(self, file: TextIO) -> None:
        self._console = console(file)
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
            auto_refresh=False,  # the work is being measured, and a clock that ticks is work
            speed_estimate_period=DAY_S,
        )
        self._task = self.bar.add_task("", total=None)
        self._begun_s = time.monotonic()
        self._done = 0
        self._total = 0

    def expect(self, total: int) -> None:
        """Say how many items there will be."""
        self._total = total
        self.bar.update(self._task, total=total, refresh=True)

    def begin(self, item: str) -> None:
        """An item begins."""
        self._begun_s = time.monotonic()
        self.bar.update(self._task, description=visible(item), refresh=True)

    def end(self, item: str, failure: str | None) -> None:
        """It has ended; what failed is said on a terminal too."""
        self._done += 1
        self.bar.update(self._task, advance=1, refresh=True)
        if failure is not None:
            first, *rest = failure.splitlines() or [""]
            self._say(": ".join([item, "failed", first, *rest[-1:]]), "red")
        elif not self._console.is_terminal:
            self._say(f"{item}: {format_time(time.monotonic() - self._begun_s)}")

    def _say(self, text: str, style: str = "") -> None:
        counted = f"[{self._done}/{self._total}] {text}"
        if self._console.is_terminal:
            self.bar.console.print(cell(counted, style))
        else:
            line(self._console, counted)


@contextmanager
def shown(file: TextIO) -> Iterator[Shown]:
    """Progress, until the work is done.

    Args:
        file: A terminal, or whatever takes lines.
    """
    progress = Shown(file)
    with progress.bar:
        yield progress

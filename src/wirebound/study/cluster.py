"""Where a program can be run on several hosts: what a study needs of it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import msgspec

from wirebound.study.gather import Host
from wirebound.study.record import Mode

WORKER = "{worker}"
"""In a word: the number of the host that gets it, where each has a job of its own."""


class Finished(msgspec.Struct, frozen=True):
    """How a program ended.

    Attributes:
        elapsed_s: From the first start to the last end [s].
        failure: Why it failed, with the end of what it complained about; None if it did not.
    """

    elapsed_s: float
    failure: str | None = None


class Cluster(Protocol):
    """Hosts and the links between them."""

    @property
    def hosts(self) -> Sequence[Host]:
        """What is known of each host; empty if nothing is."""

    @property
    def verified_bps(self) -> float | None:
        """What the slowest link carried when it was verified [bit/s]."""

    @property
    def is_oversubscribed(self) -> bool:
        """Whether workers share cores."""

    def run(self, words: Sequence[str], mode: Mode, folder: Path, timeout_s: float) -> Finished:
        """Run a program on all hosts and wait for its end.

        Args:
            words: `-m`, a module and its arguments, which may hold `WORKER`.
            mode: Whether the hosts share a job.
            folder: Empty, for what the program prints.
            timeout_s: When to stop it [s].
        """


Open = Callable[[int, float | None], AbstractContextManager[Cluster]]
"""Makes a cluster of so many workers, with links of a rate [bit/s] or without a limit."""

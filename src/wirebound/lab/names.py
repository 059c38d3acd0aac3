"""Whose a namespace is: its name carries the process that owns it and when that started.

A process id alone would not do, since the kernel gives it away again: a later process with
the id of a killed lab would keep that lab's leftovers alive.
"""

import itertools
import os
import re
from pathlib import Path

import msgspec

from wirebound.errors import LabError

PREFIX = "wb"

_NAME = re.compile(rf"{PREFIX}-([1-9][0-9]*)-([0-9]+)-[0-9a-z-]+")
_ENDED = {"Z", "X"}
_FIRST_FIELD, _STATE, _START = 3, 3, 22
"""Of /proc/PID/stat as proc(5) counts them; what follows the command name starts at 3."""

_serial = itertools.count()


class Owner(msgspec.Struct, frozen=True):
    """A process, told apart from later ones with the same id.

    Attributes:
        pid: Its id.
        start_ticks: When it started, in the kernel's clock ticks since boot.
    """

    pid: int
    start_ticks: int

    @property
    def is_alive(self) -> bool:
        """Whether this very process still runs."""
        return _start_ticks(self.pid) == self.start_ticks

    @property
    def prefix(self) -> str:
        """What the names of everything it owns begin with."""
        return f"{PREFIX}-{self.pid}-{self.start_ticks}-"


def this_process() -> Owner:
    """The owner of what this process makes."""
    pid = os.getpid()
    start = _start_ticks(pid)
    if start is None:
        raise LabError(
            f"/proc/{pid}/stat: not there, and a lab's names hold its start", "mount /proc"
        )
    return Owner(pid, start)


def new_lab() -> str:
    """A name that no other lab has, of this process or of another."""
    return f"{this_process().prefix}{next(_serial)}"


def owner_of(name: str) -> Owner | None:
    """Who owns what bears this name, or None where it is not a lab's."""
    match = _NAME.fullmatch(name)
    return None if match is None else Owner(int(match[1]), int(match[2]))


def _start_ticks(pid: int) -> int | None:
    """When a process started, or None where it has ended, even if nobody has collected it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name may itself contain spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    if fields[_STATE - _FIRST_FIELD] in _ENDED:
        return None
    return int(fields[_START - _FIRST_FIELD])

"""How a program ended, rank by rank."""

import re
from pathlib import Path

import msgspec

FAILED = 1
"""What Python and torchrun end with when something raises."""

SIGNALLED = 128
"""A shell adds the signal's number to it."""

TAIL_BYTES = 2**16

_CHILD_FAILED = re.compile(rb"^\s*exitcode\s*: (-?[0-9]+) \(pid: [0-9]+\)", re.MULTILINE)
"""In torchrun's closing report, once for each failure, the root cause last."""


class RankOutcome(msgspec.Struct, frozen=True):
    """How one rank ended.

    Attributes:
        rank: Its number.
        status: Exit status of the program itself; negative, the signal that killed it.
        is_stopped: Whether the lab stopped it, because of the time or of another rank.
        stdout: File with what it printed.
        stderr: File with what it complained about, torchrun's lines among it.
    """

    rank: int
    status: int
    is_stopped: bool
    stdout: Path
    stderr: Path


class RunOutcome(msgspec.Struct, frozen=True):
    """How a program ended in a lab.

    Attributes:
        ranks: Every rank, in order.
        elapsed_s: From the first start to the last end [s].
        failure: What went wrong with the lab or the time, in a sentence, or None.
    """

    ranks: tuple[RankOutcome, ...]
    elapsed_s: float
    failure: str | None

    @property
    def culprit(self) -> RankOutcome | None:
        """The rank that the program failed on, or None.

        Of several, the first one with a status other than 1: a rank that loses its peer
        raises, and so ends with 1.
        """
        failed = [one for one in self.ranks if one.status != 0 and not one.is_stopped]
        telling = [one for one in failed if one.status != FAILED]
        return next(iter(telling or failed), None)

    @property
    def status(self) -> int:
        """Exit status of the whole as a shell counts, signals above 128; 0 if all is well."""
        if self.culprit is not None:
            status = self.culprit.status
            return SIGNALLED - status if status < 0 else status
        return 0 if self.failure is None else FAILED


def program_status(agent_status: int, stderr: Path) -> int:
    """The exit status of a program that ran under torchrun, which itself ends with 1.

    Args:
        agent_status: Exit status of the agent.
        stderr: File with its complaints.
    """
    reported = _CHILD_FAILED.findall(tail(stderr)) if agent_status == FAILED else []
    return int(reported[-1]) if reported else agent_status


def tail(path: Path) -> bytes:
    """The end of a file, however long it is."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL_BYTES))
        return file.read(TAIL_BYTES)

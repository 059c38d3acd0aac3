"""What is published of a program's complaints: their end, without what identifies a machine."""

import re
import socket

from wirebound.lab import RunOutcome
from wirebound.lab.outcome import tail

MAX_LINES = 20
MAX_LINE = 200

_PATH = re.compile(r"(?<![\w.~/-])~?(?:/[\w.+@~-]+)+/([\w.+@~-]+)")
"""An absolute path of several parts; its last part says enough."""

_HOST = re.compile(r"^(\s*host\s*: ).*$", re.MULTILINE)
"""In torchrun's closing report."""

_AGENT = re.compile(r"^E\d{4} .*failed \(exitcode: .*$", re.MULTILINE)
"""The first line of what torchrun says when a worker has failed."""

_NOISE = re.compile(r"^(?:W\d{4} .*|\[W.*\].*|\s*|[=-]+)$")
"""Warnings of torch about itself, empty lines and rules."""


def failure_of(outcome: RunOutcome) -> str | None:
    """What went wrong, with the end of what the rank complained about that it began with."""
    culprit = outcome.culprit
    if culprit is None:
        return outcome.failure
    end = f"signal {-culprit.status}" if culprit.status < 0 else f"status {culprit.status}"
    return "\n".join(
        [
            *([] if outcome.failure is None else [outcome.failure]),
            f"rank {culprit.rank} ended with {end}",
            *last_lines(tail(culprit.stderr)),
        ]
    )


def last_lines(complaint: bytes) -> list[str]:
    """The last lines of what a program complained about, as they may be published.

    What its agent has to say about its end comes behind, at length, and only counts where
    there is nothing else.
    """
    text = complaint.decode(errors="replace")
    own, *_ = _AGENT.split(text, maxsplit=1)
    lines = [line for line in text.splitlines() if line.strip()]
    telling = [line for line in own.splitlines() if not _NOISE.match(line)] or lines
    return [public(line)[:MAX_LINE] for line in telling[-MAX_LINES:]]


def public(text: str) -> str:
    """A text without absolute paths and without the name of this machine."""
    text = _HOST.sub(r"\1host", _PATH.sub(r"…/\1", text))
    return re.sub(rf"(?<![\w.-]){re.escape(socket.gethostname())}(?![\w-])", "host", text)

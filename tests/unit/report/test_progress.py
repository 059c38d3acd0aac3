"""Progress: a line for each item, or a bar on a terminal."""

import io
import re

import pytest

from wirebound.report.progress import shown


class Terminal(io.StringIO):
    """A terminal that is a string."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def work(file: io.StringIO) -> str:
    """Two items, of which one fails; what was shown."""
    with shown(file) as progress:
        progress.expect(2)
        progress.begin("one")
        progress.end("one", None)
        progress.begin("two")
        progress.end("two", "rank 0 ended with status 1\nTraceback\nValueError: \x1bno")
    return file.getvalue()


def test_lines() -> None:
    """How long what went well took, and why the rest failed."""
    one, two = work(io.StringIO()).splitlines()

    assert re.fullmatch(r"\[1/2\] one: [\d.]+ \S+", one)
    assert two.startswith("[2/2] two: failed: rank 0 ended with status 1: ValueError: ")
    assert "\x1b" not in two


def test_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts, and says what failed."""
    monkeypatch.setenv("TERM", "xterm")
    text = work(Terminal())

    assert "1/2" in text
    assert "[2/2] two: failed" in text
    assert "[1/2] one" not in text

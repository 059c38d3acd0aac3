"""Complaints of programs: their end, and nothing that identifies the machine."""

import socket
from pathlib import Path

import pytest

from wirebound.lab import RankOutcome, RunOutcome
from wirebound.study.complaint import MAX_LINE, MAX_LINES, failure_of, last_lines, public


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('File "/home/ann/jobs/train.py", line 3', 'File "…/train.py", line 3'),
        ("see https://example.org/a/b and 1/2/3", "see https://example.org/a/b and 1/2/3"),
        ("~/secret/train.py: no such file", "…/train.py: no such file"),
        ("  host      : node7.example", "  host      : host"),
        ("a/b/c and ./d/e", "a/b/c and ./d/e"),
    ],
)
def test_paths_and_hosts_are_left_out(text: str, expected: str) -> None:
    """The last part of a path says enough."""
    assert public(text) == expected


def test_the_name_of_this_machine_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a word, not as a part of one."""
    monkeypatch.setattr(socket, "gethostname", lambda: "vm")
    assert public("[vm]:29500, vms, vm-2") == "[host]:29500, vms, vm-2"


def test_only_the_last_lines_are_kept() -> None:
    """And of each line only so much."""
    lines = last_lines(b"".join(b"%d %s\n" % (number, b"x" * 900) for number in range(99)))

    assert len(lines) == MAX_LINES
    assert lines[-1].startswith("98 x")
    assert {len(line) for line in lines} == {MAX_LINE}
    assert last_lines(b"W0101 12:00:00 noise\n\nValueError: no\n") == ["ValueError: no"]
    assert last_lines(b"") == []


def test_the_agent_comes_last() -> None:
    """Where it is all there is."""
    agent = b"E1201 09:00:00 1 api.py:980] failed (exitcode: 1) local_rank: 0\nTraceback\n"

    assert last_lines(b"ValueError: no\n" + agent) == ["ValueError: no"]
    assert last_lines(agent)[-1] == "Traceback"


def test_failure_names_the_rank_and_its_end(tmp_path: Path) -> None:
    """Of a timeout there is no rank to name."""
    stderr = tmp_path / "rank1.stderr"
    stderr.write_text("ValueError: no\n", encoding="utf-8")
    rank = RankOutcome(1, -9, is_stopped=False, stdout=tmp_path / "none", stderr=stderr)

    assert failure_of(RunOutcome((rank,), 1.0, None)) == (
        "rank 1 ended with signal 9\nValueError: no"
    )
    assert failure_of(RunOutcome((), 1.0, "it took too long")) == "it took too long"
    assert failure_of(RunOutcome((), 1.0, None)) is None

"""Names of what labs make, and whose it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wirebound.lab import leftovers
from wirebound.lab.names import Owner, new_lab, owner_of, this_process


def test_a_lab_bears_its_owner() -> None:
    """The name of a namespace leads back to the process that made it."""
    assert owner_of(f"{new_lab()}-h0") == this_process()
    assert this_process().pid == os.getpid()


def test_labs_of_one_process_differ() -> None:
    """No name is given twice."""
    assert new_lab() != new_lab()


@pytest.mark.parametrize(
    "name",
    ["", "wb", "wb-1", "wb-x-2-h0", "wb-0-2-0-h0", "web-1-2-0-h0", "wb-1-2-", "wb-1-2-0-h0\n"],
)
def test_foreign_names_have_no_owner(name: str) -> None:
    """What merely looks similar belongs to nobody here."""
    assert owner_of(name) is None


def test_a_recycled_process_id_is_another_owner() -> None:
    """The same id with another start time is dead."""
    me = this_process()
    assert me.is_alive
    assert not Owner(me.pid, me.start_ticks + 1).is_alive


def test_an_ended_process_that_nobody_collected_is_dead() -> None:
    """A zombie owns nothing."""
    ask = "from wirebound.lab.names import this_process as t; print(t().pid, t().start_ticks)"
    with subprocess.Popen(
        [sys.executable, "-c", ask], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid, start = map(int, process.stdout.read().split())
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

        assert not Owner(pid, start).is_alive


def test_only_folders_of_dead_owners_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders of living labs, foreign ones, files and links stay."""
    me = this_process()
    gone = f"wb-{me.pid}-{me.start_ticks + 1}"
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(leftovers, "network_namespaces", list)
    dead = tmp_path / f"{gone}-0-output"
    kept = [tmp_path / f"{me.prefix}0-output", tmp_path / "wb-mine-output"]
    for folder in [dead, *kept]:
        folder.mkdir()
        (folder / "rank0.stdout").touch()
    (tmp_path / f"{gone}-1-output").symlink_to(kept[1])
    (tmp_path / f"{gone}-2-output").touch()

    assert leftovers.remove_dead() == [str(dead)]
    assert len(list(tmp_path.iterdir())) == 4
    assert all((folder / "rank0.stdout").exists() for folder in kept)

"""Studies on hosts: the commands to give there, and what is made of their recordings."""

import shlex
from pathlib import Path

import pytest

import recordings
from wirebound.study.archive import Archive
from wirebound.study.by_hand import Collector, commands
from wirebound.study.open import opened
from wirebound.study.plan import plan
from wirebound.study.spec import parse_spec

TEXT = """
name = "small"
where = "hosts"
[[script]]
name = "net"
program = ["train.py", "--batch={batch}"]
[[grid]]
workers = [2]
[baseline]
alone = false
"""
RUNS = ["net-w2-unlimited-apart-cap25MiB-b32-a1-r0", "net-w2-unlimited-cap25MiB-b32-a1-r0"]


class Silent:
    """Hears nothing."""

    def begin(self, item: str) -> None:
        """Nothing."""

    def end(self, item: str, failure: str | None) -> None:
        """Nothing."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the script is."""
    (tmp_path / "train.py").touch()
    return tmp_path


def printed(folder: Path) -> list[str]:
    """The commands of what is missing."""
    spec = parse_spec(TEXT)
    groups = plan(spec, folder)
    with opened(folder / "study", spec, TEXT, groups) as archive:
        return list(commands(spec, archive, groups))


def collect(folder: Path, *, retry_failed: bool = False) -> list[tuple[str, str | None]]:
    """Read what is there; every run in the archive and why it failed."""
    spec = parse_spec(TEXT)
    groups = plan(spec, folder)
    with opened(folder / "study", spec, TEXT, groups) as archive:
        collector = Collector(spec, archive, Silent(), retry_failed=retry_failed)
        for group in groups:
            collector.collect(group)
        return [(run.id, run.failure) for run in archive.runs]


def test_a_line_for_each_host(folder: Path) -> None:
    """torchrun, with the recorder before the script, into a folder of the archive."""
    lines = [shlex.split(line) for line in printed(folder) if line.startswith("torchrun")]
    place = folder / "study" / "recordings"
    script = [str(folder / "train.py"), "--batch=32"]

    assert len(lines) == 6
    assert lines[0][:11] == [
        "torchrun", "--nnodes", "2", "--node-rank", "0", "--rdzv-endpoint", "HEAD:29500",
        "--nproc-per-node", "1", "-m", "wirebound",
    ]  # fmt: skip
    assert lines[3] == [
        "torchrun", "--standalone", "--nproc-per-node", "1", "-m", "wirebound.record",
        "-o", f"{place / RUNS[0]}/worker1", *script,
    ]  # fmt: skip
    assert lines[5] == [
        "torchrun", "--nnodes", "2", "--node-rank", "1", "--rdzv-endpoint", "HEAD:29500",
        "--nproc-per-node", "1", "-m", "wirebound.record", "-o", str(place / RUNS[1]), *script,
    ]  # fmt: skip


def test_what_was_recorded_is_collected(folder: Path) -> None:
    """What is missing stays missing, what is broken can be read again, recordings stay."""
    place = folder / "study" / "recordings" / RUNS[1]
    printed(folder)
    assert collect(folder) == []

    place.mkdir(parents=True)
    recordings.Run(0, 2, node=0, local_rank=0).write(place)
    assert collect(folder) == [(RUNS[1], "1 of 2 ranks left a recording")]

    recordings.Run(1, 2, node=1, local_rank=0).write(place)
    assert collect(folder) == [(RUNS[1], "1 of 2 ranks left a recording")]
    assert collect(folder, retry_failed=True) == [(RUNS[1], None)]

    with Archive(folder / "study") as archive:
        [run] = archive.runs
    assert run.started_s == pytest.approx(recordings.STARTED_NS / 1e9)
    assert run.elapsed_s == pytest.approx(0.6)
    assert (place / "rank0.trace.json").exists()
    assert not any(RUNS[1] in line for line in printed(folder))

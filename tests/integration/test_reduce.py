"""`wirebound reduce`, and `whatif` on a recording."""

import json
from pathlib import Path

import pytest

from recordings import Run
from wirebound.cli import run
from wirebound.workload.files import read_workload


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """The folder of a recording of two ranks."""
    for rank in (0, 1):
        Run(rank, 2, micro_steps=2).write(tmp_path / "run")
    return tmp_path / "run"


def test_reduce_writes_a_workload(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file is a workload, the screen shows what was measured."""
    job = recording.parent / "job.json"
    assert run(["reduce", str(recording), "-o", str(job)]) == 0
    assert read_workload(job).name == "run"
    said = capsys.readouterr()
    assert "bucket 1" in said.out
    words = " ".join(said.out.split())
    assert "--set bucket_cap=8000B --set first_bucket=8000B --set accumulation=2" in words
    assert said.err == f"Wrote {job}\n"


def test_reduce_as_json(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One object with the workload in it."""
    assert run(["reduce", str(recording), "--name", "job", "--warmup", "0", "--json"]) == 0
    reduced = json.loads(capsys.readouterr().out)
    assert reduced["workload"]["name"] == "job"
    assert reduced["recorded"]["steps"] == 6


def test_whatif_takes_a_recording(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder, or the file of one rank, is a workload too."""
    for place in (recording, recording / "rank0.trace.json"):
        assert run(["whatif", str(place), "--workers", "2", "--link", "1Gbps", "--json"]) == 0
        (verdict,) = json.loads(capsys.readouterr().out)["verdicts"]
        assert verdict["source"]["kind"] == "recorded"


def test_what_is_no_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, status 2."""
    assert run(["reduce", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1

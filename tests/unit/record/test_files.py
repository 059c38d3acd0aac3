"""The file of a rank, and what its header may say."""

import json
import resource
from pathlib import Path

import pytest

from wirebound.errors import MeasureError
from wirebound.record.environment import interfaces, variables
from wirebound.record.events import Event, header
from wirebound.record.layout import layout
from wirebound.record.writer import TraceFile, claim

EVENT = Event("X", "step 0", 0, "steps", {"step": 0}, cat="step", ts=1.5, dur=2.0)


def test_finished_file_is_json(tmp_path: Path) -> None:
    """An array of events that Perfetto opens."""
    file = TraceFile(claim(tmp_path, 0, force=False))
    file.write(header(0, {"world_size": 1}))
    file.finish([EVENT])
    events = json.loads(file.path.read_text())
    assert [one["name"] for one in events] == ["process_name", "wirebound", "step 0"]
    assert events[1]["args"] == {"schema_version": 1, "rank": 0, "world_size": 1}


def test_every_write_is_in_the_file_at_once(tmp_path: Path) -> None:
    """Nothing waits in this process."""
    file = TraceFile(claim(tmp_path, 0, force=False))
    file.write([EVENT])
    assert file.path.read_text().splitlines()[0] == "["
    assert file.path.stat().st_size == file.nbytes
    file.close()


def test_what_does_not_fit_is_taken_back_whole(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk."""
    file = TraceFile(claim(tmp_path, 0, force=False))
    file.write([EVENT])
    before = file.path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, limits[1]))
    try:
        with pytest.raises(OSError, match="large"):
            file.write([EVENT])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    file.close()
    assert file.path.read_bytes() == before


def test_recording_is_replaced_only_when_asked(tmp_path: Path) -> None:
    """Nothing is lost by accident."""
    claim(tmp_path, 0, force=False).write_text("precious")
    with pytest.raises(MeasureError, match="exists already"):
        claim(tmp_path, 0, force=False)
    assert claim(tmp_path, 0, force=True).read_text() == ""


def test_place_that_is_a_file(tmp_path: Path) -> None:
    """A folder is expected."""
    (tmp_path / "file").write_text("")
    with pytest.raises(MeasureError):
        claim(tmp_path / "file", 0, force=False)


def test_only_variables_that_shape_communication() -> None:
    """And none that gives something away."""
    allowed = {"NCCL_ALGO": "Ring", "OMP_NUM_THREADS": "1", "RANK": "0", "SLURM_PROCID": "3"}
    hidden = {
        "HOME": "/root",
        "NCCL_AUTH_TOKEN": "hush",
        "GLOO_SECRET": "hush",
        "NCCL_PROXY": "http://user:hush@host",
        "NCCL_LONG": "x" * 300,
        "SLURM_JOB_USER": "somebody",
        "MASTER_ADDR": "10.0.0.1",
    }
    assert variables(allowed | hidden) == allowed


def test_layout_by_launcher() -> None:
    """The first is torchrun, before Slurm before Open MPI; without any, alone."""
    torchrun = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "GROUP_RANK": "1"}
    slurm = {"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "2", "SLURM_NODEID": "6"}
    assert tuple(
        getattr(layout(slurm | torchrun), key)
        for key in ("rank", "world_size", "local_rank", "node")
    ) == (3, 4, 1, 1)
    assert (layout(slurm).rank, layout(slurm).node) == (5, 6)
    alone = layout({"RANK": "none"})
    assert (alone.rank, alone.world_size, alone.local_world_size) == (0, 1, 1)


def test_speed_of_interfaces(tmp_path: Path) -> None:
    """In bits a second; a virtual one has none."""
    for name, speed in (("eth0", "25000\n"), ("veth0", "-1\n"), ("lo", None)):
        (tmp_path / name / "statistics").mkdir(parents=True)
        if speed is not None:
            (tmp_path / name / "speed").write_text(speed)
    assert interfaces(tmp_path) == [
        {"name": "eth0", "speed_bps": 25 * 10**9},
        {"name": "lo", "speed_bps": None},
        {"name": "veth0", "speed_bps": None},
    ]

"""From recordings to the record of a run: all hosts, and no name of a machine."""

import json
from pathlib import Path

import msgspec
import pytest

import recordings
from wirebound.errors import StudyError, WireboundError
from wirebound.study.gather import Host, gather
from wirebound.study.plan import Planned
from wirebound.study.record import Config, Run

CONFIG = Config("net", 2, "joined", 1e9, 8000, 32, 1, 0)
RUN = Run("net-r0", CONFIG, started_s=1.0, elapsed_s=2.0)
MACHINE = "alpha"


def write(folder: Path, rank: int, world_size: int, node: int) -> None:
    """A rank of a host of its own, and its monitor: eth0 sends 1 MB/s, core 0 is half busy."""
    recordings.Run(
        rank, world_size, steps=6, local_rank=0, local_world_size=1, node=node, host=MACHINE
    ).write(folder)
    facts = {"schema_version": 1, "rank": rank, "host": MACHINE, "interfaces": []}
    events = [
        {"ph": "M", "name": "wirebound_monitor", "args": facts},
        {"ph": "C", "name": "net eth0", "ts": 0, "args": {"rx_Bps": 2e6, "tx_Bps": 1e6}},
        {"ph": "C", "name": "cpu 0", "ts": 0, "args": {"busy": 0.5}},
        *({"ph": "i", "name": f"step {step}", "ts": 1e5 * (step + 1)} for step in range(6)),
    ]
    suffix = f"-rank{rank}" if rank else ""
    path = folder / f"host-{MACHINE}{suffix}.monitor.json"
    path.write_text("[\n" + ",\n".join(json.dumps(one) for one in events) + "\n]\n")


def test_hosts_of_one_job(tmp_path: Path) -> None:
    """What tells them apart is their node; what they are called is a number."""
    for rank in (0, 1):
        write(tmp_path, rank, 2, node=rank)
    hosts = [Host((0,), {"eth0": 1e9}), Host((0,), {"eth0": 1e9})]

    run = gather(RUN, tmp_path, Planned("net-r0", CONFIG, ()), hosts, warmup=2)

    assert [len(own) for own in run.step_s] == [4, 4]
    assert run.step_s[0] == pytest.approx([0.1] * 4)
    assert [(one.host, one.interface, one.is_carrying, one.rate_bps) for one in run.traffic] == [
        ("host0", "eth0", True, 1e9), ("host1", "eth0", True, 1e9),
    ]  # fmt: skip
    assert [one.sent_bytes for one in run.traffic] == pytest.approx([1e5, 1e5])
    assert [one.busy_received_bps for one in run.traffic] == pytest.approx([16e6, 16e6])
    assert [(one.host, one.mean, one.communicating) for one in run.processors] == [
        ("host0", 0.5, 0.5), ("host1", 0.5, 0.5),
    ]  # fmt: skip
    assert run.reduced is not None
    assert run.reduced.recorded.hosts == ("host0", "host1")
    assert run.reduced.recorded.steps == 4
    assert MACHINE.encode() not in msgspec.json.encode(run)


def test_workers_that_ran_apart(tmp_path: Path) -> None:
    """Each has a folder, in which it is rank 0 of node 0."""
    for worker in (0, 1):
        place = tmp_path / f"worker{worker}"
        place.mkdir()
        write(place, 0, 1, node=0)
    config = msgspec.structs.replace(CONFIG, mode="apart", link_bps=None)

    run = gather(RUN, tmp_path, Planned("net-r0", config, ()), (), warmup=2)

    assert [len(own) for own in run.step_s] == [4, 4]
    assert [one.host for one in run.traffic] == ["host0", "host1"]
    assert [one.host for one in run.processors] == ["host0", "host1"]
    assert run.reduced is not None
    assert run.reduced.recorded.world_size == 1


def test_a_rank_without_a_recording_is_a_failure(tmp_path: Path) -> None:
    """Half a job says too little."""
    write(tmp_path, 0, 2, node=0)
    with pytest.raises(StudyError, match="1 of 2 ranks left a recording"):
        gather(RUN, tmp_path, Planned("net-r0", CONFIG, ()), (), warmup=2)
    with pytest.raises(WireboundError, match="No such file"):
        gather(RUN, tmp_path / "none", Planned("net-r0", CONFIG, ()), (), warmup=2)


def test_a_recording_without_a_monitor(tmp_path: Path) -> None:
    """Times are known, use is not."""
    recordings.Run(steps=6, is_ddp=False).write(tmp_path)
    config = msgspec.structs.replace(CONFIG, workers=1)

    run = gather(RUN, tmp_path, Planned("net-r0", config, ()), (), warmup=2)

    assert (len(run.step_s), run.traffic, run.processors) == (1, (), ())
    assert run.hook_us_per_gradient is None

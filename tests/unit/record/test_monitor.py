"""Counters of a host, and events made of them."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from wirebound.record import counters, monitor
from wirebound.record.monitor import Sampler

NET = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets
    lo:     100       1    0    0    0     0          0         0      100       1
  eth0:    4000       9    0    0    0     0          0         0     7000      12
"""
STAT = """cpu  1 2 3 4 5 6 7 8 9 0
cpu0 100 0 50 800 50 0 0 0 0 0
cpu1 0 0 0 1000 0 0 0 0 0 0
intr 1
"""
SNMP = "Ip: Forwarding\nIp: 1\nTcp: ActiveOpens RetransSegs InErrs\nTcp: 5 17 0\n"


def test_bytes_of_interfaces(tmp_path: Path) -> None:
    """Received and sent, from the kernel's table."""
    (tmp_path / "dev").write_text(NET)
    reading = counters.interfaces(counters.content(tmp_path / "dev"))
    assert reading["net eth0"] == {"rx_Bps": 4000, "tx_Bps": 7000}
    assert set(reading) == {"net lo", "net eth0"}


def test_ports_count_words_of_four_bytes(tmp_path: Path) -> None:
    """InfiniBand counts no bytes."""
    folder = tmp_path / "mlx5_0" / "ports" / "1" / "counters"
    folder.mkdir(parents=True)
    (folder / "port_rcv_data").write_text("10\n")
    (folder / "port_xmit_data").write_text("20\n")
    assert counters.ports(tmp_path) == {"ib mlx5_0/1": {"rx_Bps": 40, "tx_Bps": 80}}


def test_busy_seconds_of_cores(tmp_path: Path) -> None:
    """Idle and waiting for a disk are not busy."""
    (tmp_path / "stat").write_text(STAT)
    reading = counters.cores(100.0, tmp_path / "stat")
    assert reading == {"cpu 0": {"busy": 1.5}, "cpu 1": {"busy": 0.0}}


def test_retransmits(tmp_path: Path) -> None:
    """The column is found by its name."""
    (tmp_path / "snmp").write_text(SNMP)
    assert counters.retransmits(tmp_path / "snmp") == {"tcp": {"retransmits_per_s": 17}}


def test_missing_files_are_empty_readings(tmp_path: Path) -> None:
    """A container may have none of them."""
    gone = tmp_path / "gone"
    assert not counters.interfaces(counters.content(gone))
    assert not counters.ports(gone)
    assert not counters.cores(100.0, gone)
    assert not counters.retransmits(gone)


def test_rate_holds_from_the_reading_before() -> None:
    """And the time that passed is the time that is divided by."""
    sampler = Sampler(0)
    assert sampler.grow("net", {"net a": {"tx_Bps": 0.0}}, 1000.0) == []
    [event] = sampler.grow("net", {"net a": {"tx_Bps": 500.0}}, 3000.0)
    assert (event.ts, event.args) == (1000.0, {"tx_Bps": 250_000.0})


def test_unchanged_rates_are_not_repeated() -> None:
    """An idle interface costs one line."""
    sampler = Sampler(0)
    events = [
        event
        for now_us in range(0, 5000, 1000)
        for event in sampler.grow("net", {"net a": {"tx_Bps": 7.0}}, float(now_us))
    ]
    assert len(events) == 1


def test_interface_that_vanishes_falls_to_zero() -> None:
    """One that comes back with smaller counters has no rate until its next reading."""
    sampler = Sampler(0)
    sampler.grow("net", {"net a": {"tx_Bps": 0.0}}, 0.0)
    sampler.grow("net", {"net a": {"tx_Bps": 9.0}}, 1000.0)
    [gone] = sampler.grow("net", {}, 2000.0)
    assert gone.args == {"tx_Bps": 0.0}
    assert sampler.grow("net", {"net a": {"tx_Bps": 3.0}}, 3000.0) == []
    assert sampler.grow("net", {"net a": {"tx_Bps": 1.0}}, 4000.0) == []


def test_monitor_ends_with_its_pipe_and_marks_steps(tmp_path: Path) -> None:
    """The file is whole, whoever ends the training."""
    path = tmp_path / "host-x.monitor.json"
    path.touch()
    source = Path(monitor.__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-m", "wirebound.record.monitor", str(path), "0", "0", "1"],
        stdin=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(source)},
    )
    process.communicate(b"0 12.5\n1 20.0\n", timeout=60)
    events = msgspec.json.decode(path.read_bytes())
    assert process.returncode == 0
    assert events[0]["name"] == "wirebound_monitor"
    assert [(one["name"], one["ts"]) for one in events if one["ph"] == "i"] == [
        ("step 0", 12.5),
        ("step 1", 20.0),
    ]


def test_second_namespace_of_a_host_gets_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hosts of a lab have one name."""
    source = Path(monitor.__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", str(source))
    both = [monitor.Monitor(tmp_path, rank, 0, 10) for rank in (0, 1)]
    for one in both:
        one.stop()
    assert len(list(tmp_path.glob("host-*.monitor.json"))) == 2

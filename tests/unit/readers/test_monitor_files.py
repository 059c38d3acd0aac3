"""Monitor files: what is read, what of a killed one, and how what is none is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from wirebound.errors import ReadError
from wirebound.readers import monitor
from wirebound.readers.monitor import read_monitor

FACTS = {
    "schema_version": 1,
    "rank": 2,
    "host": "alpha",
    "interval_ms": 10,
    "interfaces": [{"name": "eth0", "speed_bps": 1e9}],
}
HEADER = {"ph": "M", "name": "wirebound_monitor", "pid": 2, "tid": 0, "args": FACTS}


def counter(track: str, ts: float, **args: float) -> dict[str, Any]:
    """A value that holds from a time on."""
    return {"ph": "C", "name": track, "pid": 2, "tid": 0, "ts": ts, "args": args}


def marker(step: object, ts: float) -> dict[str, Any]:
    """Where a step ended."""
    return {"ph": "i", "name": f"step {step}", "pid": 2, "tid": 0, "ts": ts, "s": "p", "args": {}}


def write(folder: Path, *events: dict[str, Any], end: str = "\n]\n") -> Path:
    """A monitor file."""
    path = folder / "host-alpha.monitor.json"
    path.write_text("[\n" + ",\n".join(json.dumps(one) for one in events) + end, encoding="utf-8")
    return path


def test_values_hold_until_the_next(tmp_path: Path) -> None:
    """By track and series, in seconds, the last until the last event of the file."""
    path = write(
        tmp_path,
        HEADER,
        counter("net eth0", 1_000_000, rx_Bps=10, tx_Bps=20),
        counter("cpu 0", 1_500_000, busy=0.5),
        marker(0, 2_000_000),
        counter("net eth0", 2_500_000, rx_Bps=0, tx_Bps=0),
        marker("nobody", 3_000_000),
    )

    found = read_monitor(path)

    received = found.series["net eth0", "rx_Bps"]
    assert (received.since_s.tolist(), received.value.tolist()) == ([1.0, 2.5, 3.0], [10.0, 0.0])
    busy = found.series["cpu 0", "busy"]
    assert (busy.since_s.tolist(), busy.value.tolist()) == ([1.5, 3.0], [0.5])
    assert found.marks_s == {0: 2.0}
    assert (found.rank, found.host) == (2, "alpha")
    assert [(one.name, one.speed_bps) for one in found.interfaces] == [("eth0", 1e9)]


def test_the_line_of_a_killed_monitor_is_left_out(tmp_path: Path) -> None:
    """What came before it counts."""
    path = write(tmp_path, HEADER, marker(0, 1_000_000), end=',\n{"ph": "C", "na')

    assert read_monitor(path).marks_s == {0: 1.0}


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (counter("net eth0", 1.0, rx_Bps=-1), ">= 0.0"),
        (counter("net eth0", 1e30, rx_Bps=1), "<= 100000000000000"),
        ({"ph": "Q"}, "Invalid value 'Q'"),
        ({**HEADER, "args": {**FACTS, "rank": -1}}, ">= 0"),
        (marker("9" * 5000, 1.0), "digits"),
    ],
    ids=["negative", "far away", "other", "rank", "huge"],
)
def test_what_is_no_event_is_refused_with_its_line(
    tmp_path: Path, event: dict[str, Any], reason: str
) -> None:
    """One sentence."""
    path = write(tmp_path, HEADER, event, marker(0, 1.0))

    with pytest.raises(ReadError) as caught:
        read_monitor(path)

    assert "line 3 is no event" in caught.value.message
    assert reason in caught.value.message


def test_other_files_are_refused(tmp_path: Path) -> None:
    """Missing, nameless, of another time, or of something else."""
    nameless = write(tmp_path, marker(0, 1.0))
    with pytest.raises(ReadError, match="does not say whose it is"):
        read_monitor(nameless)
    later = write(tmp_path, {**HEADER, "args": {**FACTS, "schema_version": 2}})
    with pytest.raises(ReadError, match="schema_version 2, this program reads 1"):
        read_monitor(later)
    later.write_text("{}")
    with pytest.raises(ReadError, match="does not begin with a line"):
        read_monitor(later)
    with pytest.raises(ReadError, match="No such file"):
        read_monitor(tmp_path / "none")


def test_size_and_number_of_counters_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that never ends, or names ever new counters."""
    path = write(tmp_path, HEADER, counter("a", 1.0, x=1, y=1), marker(0, 1.0))
    monkeypatch.setattr(monitor, "MAX_SERIES", 1)
    with pytest.raises(ReadError, match="more than 1 counters"):
        read_monitor(path)
    monkeypatch.setattr(monitor, "MAX_BYTES", 10)
    with pytest.raises(ReadError, match="larger than"):
        read_monitor(path)

"""Monitor files of wirebound's own recorder: the counters of one host, one event a line.

A value holds from its event to the next of the same track. The times are those of the rank
that started the monitor; markers stand where its steps ended, which puts the file on the
clock of the recording.
"""

from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from wirebound.errors import ReadError
from wirebound.readers.events import Metadata, Microseconds, NotedInterface, Number
from wirebound.readers.recording import MICROSECOND_S, lines
from wirebound.trace import NONE, Interface

SCHEMA_VERSION = 1

EXPECTED = "a monitor file of wirebound"
FILES = "host-*.monitor.json"

MAX_BYTES = 256 * 10**6
"""An hour of a host with a dozen busy interfaces."""
MAX_SERIES = 10_000
"""Interfaces and cores of one host, far below."""

Value = Annotated[float, Meta(ge=0, le=1e15)]


class _Counter(msgspec.Struct, frozen=True, gc=False, tag_field="ph", tag="C"):
    name: str
    ts: Microseconds
    args: Mapping[str, Value]


class _Marker(msgspec.Struct, frozen=True, gc=False, tag_field="ph", tag="i"):
    name: str
    ts: Microseconds


class _Header(msgspec.Struct, frozen=True):
    schema_version: int
    rank: Number
    host: str = ""
    interfaces: tuple[NotedInterface, ...] = ()


_decode = msgspec.json.Decoder(_Counter | _Marker | Metadata).decode


class Series(msgspec.Struct, frozen=True, eq=False):
    """A value over time.

    Attributes:
        since_s: When each value begins to hold, ascending [s]; the last entry is where the
            last value ends, shape [N + 1].
        value: Shape [N].
    """

    since_s: NDArray[np.float64]
    value: NDArray[np.float64]


class Monitor(msgspec.Struct, frozen=True, eq=False):
    """What the counters of one host said.

    Attributes:
        rank: Who started it.
        host: Name of the host.
        interfaces: Of the host.
        series: By track and name: `("net eth0", "rx_Bps")`, `("cpu 0", "busy")`.
        marks_s: When each step of that rank ended, by the number of the step [s].
    """

    rank: int
    host: str
    interfaces: tuple[Interface, ...]
    series: Mapping[tuple[str, str], Series]
    marks_s: Mapping[int, float]


class _Notes:
    """What has been read so far."""

    def __init__(self) -> None:
        self.header: _Header | None = None
        self.series: dict[tuple[str, str], tuple[array[float], array[float]]] = {}
        self.marks_s: dict[int, float] = {}
        self.latest_s = -np.inf

    def note(self, event: _Counter | _Marker | Metadata) -> None:
        """Keep what an event says."""
        if isinstance(event, Metadata):
            if event.name == "wirebound_monitor":
                self.header = msgspec.json.decode(event.args, type=_Header)
            return
        at_s = event.ts * MICROSECOND_S
        self.latest_s = max(self.latest_s, at_s)
        if isinstance(event, _Marker):
            word, _, number = event.name.partition(" ")
            if word == "step" and number.isdecimal():
                self.marks_s[int(number)] = at_s
            return
        for name, value in event.args.items():
            times, values = self.series.setdefault((event.name, name), (array("d"), array("d")))
            times.append(at_s)
            values.append(value)
        if len(self.series) > MAX_SERIES:
            raise msgspec.ValidationError(f"more than {MAX_SERIES} counters")


def read_monitor(path: Path) -> Monitor:
    """Read the file of one host.

    Raises:
        ReadError: A file that is missing, too large or not a monitor's, with the line.
    """
    notes = _Notes()
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ReadError(f"{path}: larger than {MAX_BYTES // 10**6} MB, expected {EXPECTED}")
        with path.open("rb") as file:
            for number, line in lines(path, file, EXPECTED):
                try:
                    notes.note(_decode(line))
                except (ValueError, msgspec.DecodeError, RecursionError) as error:
                    if number == NONE:
                        break
                    raise ReadError(
                        f"{path}: line {number} is no event ({error}), expected {EXPECTED}"
                    ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a file name"
        raise ReadError(f"{str(path)!r}: {reason}, expected {EXPECTED}") from None
    return _monitor(path, notes)


def _monitor(path: Path, notes: _Notes) -> Monitor:
    header = notes.header
    if header is None:
        raise ReadError(f"{path}: does not say whose it is, expected {EXPECTED}")
    if header.schema_version != SCHEMA_VERSION:
        raise ReadError(
            f"{path}: schema_version {header.schema_version}, this program reads {SCHEMA_VERSION}"
        )
    return Monitor(
        rank=header.rank,
        host=header.host,
        interfaces=tuple(Interface(one.name, one.speed_bps) for one in header.interfaces),
        series={
            name: _series(np.array(times), np.array(values), notes.latest_s)
            for name, (times, values) in notes.series.items()
        },
        marks_s=notes.marks_s,
    )


def _series(times: NDArray[np.float64], values: NDArray[np.float64], end_s: float) -> Series:
    order = np.argsort(times, kind="stable")
    return Series(np.append(times[order], end_s), values[order])

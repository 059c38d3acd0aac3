"""Lines of a recording: Chrome trace events, one a line, which Perfetto opens as they are."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

SCHEMA_VERSION = 1

NS_PER_US = 1000

COMPUTE, COMM, STEPS = "compute", "comm", "steps"
"""Lanes of a rank."""


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One event of a Chrome trace.

    Attributes:
        ph: `X` a span, `i` an instant, `C` a counter, `M` metadata.
        name: What Perfetto shows.
        pid: The rank.
        tid: The lane.
        args: Everything else.
        cat: The kind.
        ts: Start since the base of the rank [µs].
        dur: Duration [µs].
        s: How far an instant is drawn: `t` its lane, `p` its rank.
    """

    ph: str
    name: str
    pid: int
    tid: int | str
    args: Mapping[str, Any]
    cat: str | None = None
    ts: float | None = None
    dur: float | None = None
    s: str | None = None


SEPARATOR = b",\n"

_ENCODER = msgspec.json.Encoder()


def lines(events: Iterable[Event]) -> bytes:
    """Events as lines of a JSON array that is still open."""
    return b"".join(_ENCODER.encode(event) + SEPARATOR for event in events)


def metadata(name: str, rank: int, args: Mapping[str, Any]) -> Event:
    """A fact about a rank."""
    return Event("M", name, rank, 0, args)


def header(rank: int, args: Mapping[str, Any]) -> list[Event]:
    """What a recording begins with.

    Args:
        rank: Who records.
        args: Layout, versions and environment of that rank.
    """
    facts = {"schema_version": SCHEMA_VERSION, "rank": rank, **args}
    return [
        metadata("process_name", rank, {"name": f"rank {rank}"}),
        metadata("wirebound", rank, facts),
    ]

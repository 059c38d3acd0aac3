"""Recordings of wirebound's own recorder: one Chrome trace a rank, one event a line.

A file is read line by line, so that one of a killed run is good up to its last complete
step. The format is described in `docs/record/reading.md`.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from wirebound.errors import ReadError
from wirebound.readers.events import (
    Event,
    Header,
    Metadata,
    Name,
    NotedClock,
    NotedModel,
    NotedOverhead,
    Span,
    decode_event,
)
from wirebound.trace import (
    NANOSECOND_S,
    NONE,
    STEP,
    Clock,
    Interface,
    Model,
    Operations,
    Parameter,
    Rank,
    Trace,
)

SCHEMA_VERSION = 1

EXPECTED = "a recording of wirebound"

MAX_LINE_BYTES = 16 * 10**6
"""Of one event; the longest names 10^5 parameters."""
MAX_BYTES = 10**9
"""Of all ranks together, about 7 million events, which take as much memory."""

_COLUMN = {name: place for place, name in enumerate(Operations.__struct_fields__)}
_MENDED = ("step", "kind", "start_ns", "started_ns")
COLUMNS = len(_COLUMN)
SHOWN = 8
"""Missing ranks that are named; the others are counted."""
MICROSECOND_NS = 1000
MICROSECOND_S = 1e-6


class Texts(dict[str, int]):
    """A number for each text, in the order they come."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number

    def number(self, name: Name) -> int:
        """The number of a name that may be missing."""
        return NONE if name is None else self[str(name)]


class _Notes(msgspec.Struct):
    """What one file says, as far as it has been read."""

    rows: Any
    header: Header | None = None
    models: list[NotedModel] = []
    clock: NotedClock | None = None
    overhead: NotedOverhead = NotedOverhead()
    is_cut: bool = False


def read_recording(paths: Sequence[Path]) -> Trace:
    """Read the files of a recording.

    A file that ends before it says which rank it is of counts as missing.

    Args:
        paths: One a rank.

    Raises:
        ReadError: A file that is missing, too large or not of a recording, with the line;
            two files of one rank, or of different jobs.
    """
    texts = Texts()
    warnings: list[str] = []
    ranks: dict[int, tuple[Rank, Path]] = {}
    tables = []
    room = MAX_BYTES
    for path in paths:
        room -= _size(path)
        if room < 0:
            raise ReadError(
                f"{path}: the recording is larger than {MAX_BYTES // 10**6} MB",
                "read the file of one rank, or record fewer steps",
            )
        notes = _read(path, texts)
        if notes.header is None:
            warnings.append(f"{path.name} ends before it says which rank it is of; it is not used")
            continue
        rank = _rank(path, notes)
        _check_new(rank, path, ranks)
        ranks[rank.rank] = (rank, path)
        table, said = _complete(rank, notes, texts)
        tables.append(table)
        warnings += said
    if not ranks:
        raise ReadError(f"{paths[0]}: ends before it says which rank it is of, expected {EXPECTED}")
    order = np.argsort(list(ranks))
    trace = Trace(
        Operations.from_rows(np.concatenate([tables[index] for index in order])),
        tuple(texts),
        tuple(ranks[number][0] for number in sorted(ranks)),
    )
    return msgspec.structs.replace(trace, warnings=(*_missing(trace), *warnings))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a file name"
        raise ReadError(f"{str(path)!r}: {reason}, expected {EXPECTED}") from None


def _read(path: Path, texts: Texts) -> _Notes:
    notes = _Notes(array("q"))
    try:
        with path.open("rb") as file:
            for number, line in lines(path, file):
                try:
                    _note(notes, texts, decode_event(line))
                except (msgspec.DecodeError, UnicodeError, RecursionError, OverflowError) as error:
                    if number == NONE:
                        notes.is_cut = True
                        break
                    raise ReadError(
                        f"{path}: line {number} is no event ({_reason(error)}), expected {EXPECTED}"
                    ) from None
    except OSError as error:
        raise ReadError(f"{path}: {error.strerror}, expected {EXPECTED}") from None
    return notes


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def lines(path: Path, file: BinaryIO, expected: str = EXPECTED) -> Iterator[tuple[int, bytes]]:
    """The number and text of each event; the number is `NONE` for a line that may be cut.

    Raises:
        ReadError: The file does not begin as one, or never ends.
    """
    if file.readline(MAX_LINE_BYTES).strip() != b"[":
        raise ReadError(f"{path}: does not begin with a line '[', expected {expected}")
    number = 1
    read_bytes = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        read_bytes += len(line)
        if len(line) > MAX_LINE_BYTES or read_bytes > MAX_BYTES:
            raise ReadError(f"{path}: line {number} ends beyond any event, expected {expected}")
        event = line.strip().removesuffix(b",")
        if event and event != b"]":
            yield number if line.endswith(b"\n") else NONE, event


def _note(notes: _Notes, texts: Texts, event: Event) -> None:
    """Keep what an event says."""
    if isinstance(event, Metadata):
        _note_metadata(notes, event)
        return
    if notes.header is None:
        raise msgspec.ValidationError("an operation before the line that names the rank")
    args = event.args
    base_ns = notes.header.started_ns
    number = texts.number
    notes.rows.extend(
        (
            notes.header.rank,
            NONE if args.step is None else args.step,
            args.micro or 0,
            texts[event.cat],
            number(event.tid),
            texts[event.name],
            base_ns + round(event.ts * MICROSECOND_NS),
            round(event.dur * MICROSECOND_NS) if isinstance(event, Span) else 0,
            NONE if args.started_us is None else base_ns + round(args.started_us * MICROSECOND_NS),
            args.nbytes or 0,
            NONE if args.bucket is None else args.bucket,
            number(args.group),
            number(args.dtype),
            number(args.model),
        )
    )


def _note_metadata(notes: _Notes, event: Metadata) -> None:
    match event.name:
        case "wirebound":
            if notes.header is not None:
                raise msgspec.ValidationError("a second line that names the rank")
            notes.header = msgspec.json.decode(event.args, type=Header)
            if notes.header.schema_version != SCHEMA_VERSION:
                raise msgspec.ValidationError(
                    f"schema_version {notes.header.schema_version}, this program reads "
                    f"{SCHEMA_VERSION}"
                )
        case "wirebound_model":
            notes.models.append(msgspec.json.decode(event.args, type=NotedModel))
        case "wirebound_clock":
            notes.clock = msgspec.json.decode(event.args, type=NotedClock)
        case "wirebound_overhead":
            notes.overhead = msgspec.json.decode(event.args, type=NotedOverhead)
        case _:
            pass


def _rank(path: Path, notes: _Notes) -> Rank:
    header = notes.header
    assert header is not None  # noqa: S101 - seen by the caller
    if header.rank >= header.world_size:
        raise ReadError(f"{path}: rank {header.rank} of a world of {header.world_size} ranks")
    fields = {
        name: getattr(header, name)
        for name in header.__struct_fields__
        if name not in {"schema_version", "started_ns", "interfaces", "script"}
    }
    clock = None
    if notes.clock is not None:
        noted = notes.clock
        clock = Clock(noted.offset_us * MICROSECOND_S, noted.error_us * MICROSECOND_S)
    return Rank(
        **fields,
        interfaces=tuple(Interface(one.name, one.speed_bps) for one in header.interfaces),
        script=header.script or "",
        models=tuple(_model(one) for one in notes.models),
        clock=clock,
        hook_us_per_gradient=notes.overhead.hook_us_per_gradient,
    )


def _model(noted: NotedModel) -> Model:
    return Model(
        tuple(Parameter(*parameter) for parameter in noted.parameters),
        None if noted.model is None else str(noted.model),
        noted.bucket_cap_bytes,
        noted.first_bucket_bytes,
        bool(noted.find_unused_parameters),
        bool(noted.static_graph),
    )


def _check_new(rank: Rank, path: Path, ranks: Mapping[int, tuple[Rank, Path]]) -> None:
    if rank.rank in ranks:
        raise ReadError(
            f"{path}: is of rank {rank.rank}, as {ranks[rank.rank][1].name} is",
            "keep each recording in a folder of its own",
        )
    for other, file in ranks.values():
        if other.world_size != rank.world_size:
            raise ReadError(
                f"{path}: is of a job of {rank.world_size} ranks, {file.name} of one of "
                f"{other.world_size}",
                "keep each recording in a folder of its own",
            )


def _complete(rank: Rank, notes: _Notes, texts: Texts) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Rows of complete steps and of what lies outside of steps, on the lowest rank's clock."""
    rows = np.frombuffer(notes.rows, dtype=np.int64).reshape(-1, COLUMNS).copy()
    step, kind, start, started = (rows[:, _COLUMN[name]] for name in _MENDED)
    if rank.clock is not None:
        ahead = round(rank.clock.offset_s / NANOSECOND_S)
        start -= ahead
        started[started != NONE] -= ahead
    finished = step[kind == texts.get(STEP, NONE)]
    is_whole = np.isin(step, finished) | (step == NONE)
    dropped = np.unique(step[~is_whole]).tolist()
    warnings = []
    if notes.is_cut:
        warnings.append(f"the last line of rank {rank.rank} is cut and not used")
    if dropped:
        warnings.append(f"rank {rank.rank} did not finish {_steps(dropped)}: not used")
    return rows[is_whole], warnings


def _steps(steps: list[int]) -> str:
    return f"step {steps[0]}" if len(steps) == 1 else f"{len(steps)} steps from {steps[0]}"


def _missing(trace: Trace) -> list[str]:
    """A warning that names the ranks that were not seen, where there are any."""
    missing = trace.missing_ranks
    if not missing:
        return []
    named = ", ".join(str(rank) for rank in missing[:SHOWN])
    more = ", …" if len(missing) > SHOWN else ""
    return [f"{len(missing)} of {trace.world_size} ranks are missing: {named}{more}"]

"""The text output of nccl-tests (https://github.com/NVIDIA/nccl-tests), any version.

The columns are read from the table's own header, since they differ between versions, and
found anywhere in a line, since launchers put prefixes before it. Versions before 2.17 do
not say which collective they ran; the name of the program or of the file does.
"""

import gzip
import re
import zlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from wirebound.errors import ReadError
from wirebound.inputs import MAX_BYTES
from wirebound.samples import Measured, Sample, Samples

MICROSECOND_S = 1e-6

KINDS: Mapping[str, Measured] = {
    "all_reduce": "all_reduce",
    "allreduce": "all_reduce",
    "reduce_scatter": "reduce_scatter",
    "all_gather": "all_gather",
    "allgather": "all_gather",
    "broadcast": "broadcast",
    "alltoall": "all_to_all",
    "all_to_all": "all_to_all",
    # Every rank sends to the next and receives from the one before.
    "sendrecv": "send_recv_both_ways",
}

_TYPES = r"u?int(?:8|32|64)|half|float|double|bfloat16|f8e4m3|f8e5m2|fp8_e4m3|fp8_e5m2"
_ROW = re.compile(rf"(?:^|[\s:>\]])([0-9]{{1,18}})\s+([0-9]{{1,18}})\s+({_TYPES})\s+(\S.*)$")
_HEADER = re.compile(r"\bsize\s+count\s+type\s+(.*\bbusbw\b.*)$")
_RANK = re.compile(r"#\s+Rank\s+\d+\s+(?:Group\s+(\d+)\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device")
_START = re.compile(r"# nThread \d+ nGpus \d+ minBytes")
_PROGRAM = re.compile(r"\b([a-z_]+)_perf\b")
_CONCLUDED = re.compile(r"Collective test concluded")
_TESTS_VERSION = re.compile(r"# nccl-tests version (\S+)")
_NCCL_VERSION = re.compile(r"\bNCCL version ([\w.+-]+)")
_COMPLAINT = re.compile(
    r"fail|error|couldn't|could not|cannot|exceed|time(?:d )?out|abort|killed|denied|not found|"
    r"unhandled",
    re.IGNORECASE,
)

MAX_NOTES = 5
SHOWN = 160
"""Characters of a foreign line that a message repeats."""


def read(path: Path | str, collective: Measured | None = None) -> Samples:
    """Read what nccl-tests printed, plain or gzipped, one run or several.

    The out-of-place time of each row is taken; nccl-tests prints means of its repeats.

    Args:
        path: The output of one or more runs, launcher prefixes and all.
        collective: Which one it is, where neither the output nor the file's name says so.

    Raises:
        ReadError: A file that cannot be read, or without results; with what went wrong.
    """
    path = Path(path)
    text = _text(path)
    output = _Output(path, collective)
    for number, line in enumerate(text.splitlines(), start=1):
        output.take(number, line)
    return output.samples()


def _text(path: Path) -> str:
    expected = "the output of nccl-tests"
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if content.startswith(b"\x1f\x8b"):
            with gzip.open(path, "rb") as packed:
                content = packed.read(MAX_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ReadError(f"{path}: broken gzip ({error}), expected {expected}") from None
    except OSError as error:
        raise ReadError(f"{path}: {error.strerror}, expected {expected}") from None
    except ValueError:
        raise ReadError(f"{str(path)!r}: not a file name, expected {expected}") from None
    if len(content) > MAX_BYTES:
        raise ReadError(f"{path}: larger than {MAX_BYTES // 10**6} MB, expected {expected}")
    # Launchers mix in bytes of their own; the tables are ASCII.
    return content.decode(errors="replace")


class _Run(msgspec.Struct):
    """One table and the devices listed above it."""

    program: str | None = None
    hosts: list[str] = []
    columns: list[str] | None = None


class _Output:
    """Gathers the runs of one file, line by line."""

    def __init__(self, path: Path, collective: Measured | None) -> None:
        self.path = path
        self.given = collective
        self.run = _Run()
        self.announced: str | None = None
        self.found: list[Sample] = []
        self.hosts: dict[str, None] = {}
        self.versions: dict[str, str] = {}
        self.notes: dict[str, None] = {}
        self.complaints: list[str] = []
        self.has_table = False

    def take(self, number: int, line: str) -> None:
        """Look at one line; most say nothing."""
        if row := _ROW.search(line):
            self._row(number, row)
        elif header := _HEADER.search(line):
            self.run.columns = header[1].split()
            self.has_table = True
        elif rank := _RANK.search(line):
            self._rank(rank)
        elif _START.search(line):
            self._start()
        else:
            self._other(line)

    def samples(self) -> Samples:
        """What was found.

        Raises:
            ReadError: Nothing.
        """
        if not self.found:
            raise ReadError(f"{self.path}: {self._why_empty()}")
        complaints = (f"the run said: {line}" for line in self.complaints)
        return Samples(
            samples=tuple(self.found),
            source=str(self.path),
            backend="nccl",
            hosts=tuple(self.hosts),
            versions=self.versions,
            notes=tuple([*self.notes, *complaints][:MAX_NOTES]),
        )

    def _why_empty(self) -> str:
        if self.complaints:
            return f"no results of nccl-tests, the run failed: {self.complaints[0]!r}"
        if self.notes:
            return f"no results of nccl-tests that can be used: {next(iter(self.notes))}"
        if self.has_table:
            return "a table of nccl-tests without rows: the run ended before its first size"
        return "no table of nccl-tests, expected its text output with the line `# size count type`"

    def _other(self, line: str) -> None:
        if program := _PROGRAM.search(line):
            self.announced = None if _CONCLUDED.search(line) else program[1]
        elif version := _TESTS_VERSION.search(line):
            self.versions["nccl-tests"] = version[1]
        elif version := _NCCL_VERSION.search(line):
            self.versions["nccl"] = version[1]
        elif (
            len(self.complaints) < MAX_NOTES
            and not line.lstrip().startswith("#")
            and _COMPLAINT.search(line)
        ):
            self.complaints.append(" ".join(line.split())[:SHOWN])

    def _start(self) -> None:
        self.run = _Run(program=self.announced)
        self.announced = None

    def _rank(self, rank: re.Match[str]) -> None:
        group, host = rank.groups()
        if self.run.columns is not None:
            self._start()
        if group in (None, "0"):
            self.run.hosts.append(host)
            self.hosts[host] = None

    def _row(self, number: int, row: re.Match[str]) -> None:
        where = f"{self.path}: line {number}"
        columns = self.run.columns
        if columns is None:
            raise ReadError(f"{where}: a row of results without the header of its table")
        cells = row[4].split()
        if len(cells) < len(columns):
            raise ReadError(
                f"{where}: {len(cells) + 3} columns, expected {len(columns) + 3}: "
                "the output is cut short"
            )
        if not self.run.hosts:
            raise ReadError(
                f"{where}: results without the list of devices above them (`# Rank 0 … on HOST`), "
                "which says how many ranks there were"
            )
        kind = self._kind(where)
        if kind is None or not int(row[1]):
            return
        if self._is_wrong(columns, cells):
            self.notes[f"{kind}: rows whose results nccl-tests found wrong are left out"] = None
            return
        seconds = self._seconds(where, columns, cells)
        if seconds is None:
            return
        self.found.append(
            Sample(
                kind=kind,
                nbytes=int(row[1]),
                seconds=seconds,
                ranks=len(self.run.hosts),
                nodes=len(set(self.run.hosts)),
                dtype=row[3],
                count=int(row[2]),
            )
        )

    def _kind(self, where: str) -> Measured | None:
        """Which collective the run is, None where the model has no such one.

        Raises:
            ReadError: Nothing says it.
        """
        program = self.run.program
        if program is not None:
            if program not in KINDS:
                self.notes[f"{program}_perf: not a collective of the model, left out"] = None
            return KINDS.get(program)
        if self.given is not None:
            return self.given
        name = self.path.name.lower()
        named = [kind for word, kind in KINDS.items() if word in name]
        if len(set(named)) != 1:
            raise ReadError(
                f"{where}: neither the output nor the file's name says which collective this is",
                "name it, such as --collective all_reduce",
            )
        return named[0]

    def _is_wrong(self, columns: list[str], cells: list[str]) -> bool:
        if "#wrong" not in columns:
            return False
        count = cells[columns.index("#wrong")]
        return count.isdecimal() and count.strip("0") != ""

    def _seconds(self, where: str, columns: list[str], cells: list[str]) -> float | None:
        """Out-of-place time, in-place where only that was measured [s]."""
        if "time" not in columns:
            raise ReadError(f"{where}: a table without a column `time`")
        times = [cell for name, cell in zip(columns, cells, strict=False) if name == "time"]
        for cell in times:
            if cell.upper() == "N/A":
                continue
            try:
                seconds = float(cell) * MICROSECOND_S
            except ValueError:
                seconds = -1.0
            if not 0 < seconds < float("inf"):
                raise ReadError(f"{where}: the time is {cell[:SHOWN]!r}, expected microseconds")
            return seconds
        return None

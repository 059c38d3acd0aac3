"""The folder of a study: what is known of it, and a line for each run that has ended.

A run is on the disk before the next one starts. Whatever ends the program, at most the last
line is cut, and it is taken away when the folder is opened again.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from wirebound.errors import ReadError, StudyError, WireboundError
from wirebound.inputs import read_text
from wirebound.outputs import replace
from wirebound.study.plan import Group, Planned
from wirebound.study.record import SCHEMA_VERSION, Bench, Run, Study
from wirebound.units import GIGA

STUDY, RUNS, RECORDINGS = "study.json", "runs.jsonl", "recordings"

MAX_LINE_BYTES = 64 * 10**6
MAX_BYTES = GIGA

HINT = "choose a folder with room that may be written, with -o DIR"


class Archive:
    """A study's folder, held against a second study until the `with` block ends.

    Args:
        folder: Made if it is not there.

    Attributes:
        folder: Where it is.
        study: What the folder says of itself; None in a new one.

    Raises:
        StudyError: The folder cannot be written, or another study writes there.
        ReadError: What is in it is no study.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.study: Study | None = None
        self._runs: dict[str, Run] = {}
        self._files = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with self._files as files, _writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lines = files.enter_context((self.folder / RUNS).open("ab", buffering=0))
            _hold(self._lines.fileno(), self.folder)
            if (self.folder / STUDY).exists():
                self.study = read_study(self.folder)
            self._nbytes = _whole_bytes(self.folder / RUNS)
            self._lines.truncate(self._nbytes)
            self._runs = {run.id: run for run in read_runs(self.folder)}
            self._files = files.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._files.close()

    @property
    def runs(self) -> tuple[Run, ...]:
        """Every run that has ended, the last attempt of each."""
        return tuple(self._runs.values())

    @property
    def benches(self) -> tuple[Bench, ...]:
        """Every bench that has ended."""
        return () if self.study is None else self.study.benches

    def missing(self, group: Group, *, retry_failed: bool = False) -> list[Planned]:
        """Runs of a group that are still to be made, the failed ones too if wanted."""
        return [
            planned
            for planned in group.runs
            if _is_missing(self._runs.get(planned.id), retry_failed=retry_failed)
        ]

    def lacks_bench(self, group: Group, *, retry_failed: bool = False) -> bool:
        """Whether the network of a group is still to be measured."""
        found = [
            one for one in self.benches
            if (one.workers, one.link_bps) == (group.workers, group.link_bps)
        ]  # fmt: skip
        return group.is_benched and _is_missing(next(iter(found), None), retry_failed=retry_failed)

    def write(self, study: Study) -> None:
        """Say what the study is, whole or not at all.

        Raises:
            StudyError: It cannot be written.
        """
        content = msgspec.json.format(msgspec.json.encode(study), indent=1) + b"\n"
        with _writing(self.folder / STUDY):
            replace(self.folder / STUDY, content)
        self.study = study

    def add_bench(self, bench: Bench) -> None:
        """Keep a bench, in place of an earlier one of the same link.

        Raises:
            StudyError: It cannot be written.
        """
        assert self.study is not None  # noqa: S101 - written before the first bench
        place = bench.workers, bench.link_bps
        others = [one for one in self.benches if (one.workers, one.link_bps) != place]
        self.write(msgspec.structs.replace(self.study, benches=(*others, bench)))

    def add(self, run: Run) -> None:
        """Keep a run; it is on the disk when this returns.

        Raises:
            StudyError: It cannot be written; what was written of it is taken back.
        """
        line = memoryview(msgspec.json.encode(run) + b"\n")
        whole = len(line)
        with _writing(self.folder / RUNS):
            try:
                while line:
                    line = line[self._lines.write(line) :]
                os.fsync(self._lines.fileno())
            except BaseException:
                self._lines.truncate(self._nbytes)
                raise
        self._nbytes += whole
        self._runs[run.id] = run


def _is_missing(found: Run | Bench | None, *, retry_failed: bool) -> bool:
    return found is None or (retry_failed and found.failure is not None)


def read_study(folder: Path) -> Study:
    """What the folder of a study says of itself.

    Raises:
        ReadError: There is none, or it is none.
    """
    path = folder / STUDY
    text = read_text(path, "a study that wirebound made")
    try:
        study = msgspec.json.decode(text, type=Study)
    except (msgspec.DecodeError, RecursionError, WireboundError) as error:
        raise ReadError(f"{path}: holds no study: {error}") from None
    if study.schema_version != SCHEMA_VERSION:
        raise ReadError(
            f"{path}: schema_version {study.schema_version}, this program reads {SCHEMA_VERSION}"
        )
    return study


def read_runs(folder: Path) -> tuple[Run, ...]:
    """The runs of a study, the last attempt of each; a last line that is cut does not count.

    Raises:
        ReadError: There are none, or a line is no run.
    """
    path = folder / RUNS
    decoder = msgspec.json.Decoder(Run)
    runs: dict[str, Run] = {}
    for number, line in enumerate(_lines(path), start=1):
        try:
            run = decoder.decode(line)
        except (msgspec.DecodeError, RecursionError, WireboundError) as error:
            raise ReadError(f"{path}: line {number} is no run: {error}") from None
        runs.pop(run.id, None)
        runs[run.id] = run
    return tuple(runs.values())


def _lines(path: Path) -> Iterator[bytes]:
    """Whole lines, as many and as long as allowed."""
    read_bytes = 0
    try:
        with path.open("rb") as file:
            while line := file.readline(MAX_LINE_BYTES + 1):
                read_bytes += len(line)
                if len(line) > MAX_LINE_BYTES or read_bytes > MAX_BYTES:
                    raise ReadError(f"{path}: larger than any study, expected a run a line")
                if line.endswith(b"\n"):
                    yield line
    except OSError as error:
        raise ReadError(f"{path}: {error.strerror}, expected the runs of a study") from None


def _whole_bytes(path: Path) -> int:
    """How much of a file is whole lines."""
    return sum(len(line) for line in _lines(path))


def _hold(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StudyError(
            f"{folder}: another study is writing there", "wait for its end, or choose another -o"
        ) from None


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn what the system says into a sentence."""
    try:
        yield
    except OSError as error:
        raise StudyError(f"{path}: cannot be written: {error.strerror}", HINT) from None

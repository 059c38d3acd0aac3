"""The file of one rank: written a step at a time, readable wherever it ends."""

import os
from collections.abc import Iterable
from pathlib import Path

from wirebound.errors import MeasureError
from wirebound.record.events import SEPARATOR, Event, lines

PLACE_HINT = "name a folder with room that may be written, with -o FOLDER"


def claim(folder: Path, rank: int, *, force: bool) -> Path:
    """Make a folder and see that a rank can write there, before the training begins.

    Args:
        folder: Where the recording goes.
        rank: Who records.
        force: Whether to replace what is there.

    Returns:
        Where the rank's file will be.

    Raises:
        MeasureError: A folder that cannot be written, or that holds a recording already.
    """
    path = folder / f"rank{rank}.trace.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if force:
            path.unlink(missing_ok=True)
        path.open("xb").close()
    except FileExistsError:
        raise MeasureError(
            f"{path if path.exists() else folder}: exists already, expected a new place",
            "name another folder with -o FOLDER, or replace it with --force",
        ) from None
    except OSError as error:
        raise MeasureError(f"{folder}: cannot be written: {error.strerror}", PLACE_HINT) from None
    return path


class TraceFile:
    """A JSON array of events that grows by whole lines.

    Nothing waits in memory after `write`: the operating system has it, so that a killed
    process loses what it had not handed over and nothing else.

    Args:
        path: An empty file that is there already.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events = 0
        self.nbytes = 0
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._put(b"[\n")

    def write(self, events: Iterable[Event]) -> None:
        """Append events, whole.

        Raises:
            OSError: No room, or no longer a place to write; what was written of these
                events is taken back.
        """
        batch = list(events)
        self._put(lines(batch))
        self.events += len(batch)

    def finish(self, events: Iterable[Event]) -> None:
        """Append the last events and close the array."""
        self.write(events)
        if self.events:
            self.nbytes -= len(SEPARATOR)
            os.ftruncate(self._file, self.nbytes)
        self._put(b"\n]\n")
        self.close()

    def close(self) -> None:
        """Let go of the file as it is."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _put(self, content: bytes) -> None:
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            os.ftruncate(self._file, self.nbytes)
            raise
        self.nbytes += len(content)

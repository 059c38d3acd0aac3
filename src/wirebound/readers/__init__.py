"""From the files of other programs to records: one module for each format."""

from pathlib import Path

from wirebound.errors import ReadError
from wirebound.trace import Trace

FILES = "rank*.trace.json"


def read_trace(path: Path | str) -> Trace:
    """Read what happened in a training.

    Args:
        path: The folder of a recording, or the file of one of its ranks.

    Raises:
        ReadError: There is no recording, or one of its files is not what it should be.
    """
    from wirebound.readers.recording import read_recording

    path = Path(path)
    try:
        files = sorted(path.glob(FILES)) if path.is_dir() else [path]
    except (OSError, ValueError) as error:
        raise ReadError(f"{str(path)!r}: cannot be listed ({error})") from None
    if not files:
        raise ReadError(
            f"{path}: holds no recording, expected files such as rank0.trace.json",
            "record one with python -m wirebound.record train.py",
        )
    return read_recording(files)

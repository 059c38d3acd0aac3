"""Reading files that people name: bounded, as text, with one sentence for each way to fail."""

from pathlib import Path

from wirebound.errors import ReadError

MAX_BYTES = 64 * 10**6
"""Far above any workload, network or scenario: 10^5 gradients are about 10 MB."""


def read_text(path: Path, expected: str) -> str:
    """A file's text, read once and no further than allowed, since it may be a pipe.

    Args:
        path: Any name.
        expected: What it should be, for the error: `a workload in JSON`.

    Raises:
        ReadError: A file that is missing, a directory, too large, or not text.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ReadError(f"{path}: {error.strerror}, expected {expected}") from None
    except ValueError:
        raise ReadError(f"{str(path)!r}: not a file name, expected {expected}") from None
    if len(content) > MAX_BYTES:
        raise ReadError(f"{path}: larger than {MAX_BYTES // 10**6} MB, expected {expected}")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ReadError(f"{path}: not text, expected {expected}") from None

"""Files that are there whole or not at all."""

import os
import tempfile
from pathlib import Path


def replace(path: Path, content: bytes) -> None:
    """Put a file in place at once; whatever goes wrong, the one that was there stays.

    Raises:
        OSError: No room, or no place to write.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".wirebound-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes private files; a result is as readable as any new file.
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise

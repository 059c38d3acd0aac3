"""What killed labs left behind, told by their owners' names, and its removal."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

from wirebound.lab.names import PREFIX, owner_of
from wirebound.lab.tools import network_namespaces, remove_namespaces


def output_folder(lab: str) -> Path:
    """Where a lab that was given no other place keeps the output of its ranks.

    Args:
        lab: Its name.
    """
    return Path(tempfile.gettempdir()) / f"{lab}-output"


def dead_namespaces() -> list[str]:
    """Network namespaces of labs whose owner has ended."""
    return sorted(name for name in network_namespaces() if _is_dead(name))


def remove_dead() -> list[str]:
    """Remove everything of labs whose owner has ended, and nothing else.

    Returns:
        Names of the namespaces and paths of the folders that were removed.

    Raises:
        LabError: A namespace cannot be removed.
    """
    removed = remove_namespaces(dead_namespaces())
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}-*-output")):
        if _is_dead(folder.name) and _is_own_folder(folder):
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(str(folder))
    return removed


def _is_dead(name: str) -> bool:
    owner = owner_of(name)
    return owner is not None and not owner.is_alive


def _is_own_folder(path: Path) -> bool:
    """Whether it is a real folder of this user: anyone may put a name where all may write."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()

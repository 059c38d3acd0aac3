"""Where and with what a study is made, without a name that identifies the machine."""

import ast
import hashlib
import importlib.metadata
import os
import platform
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from wirebound import __version__
from wirebound.errors import StudyError
from wirebound.lab.shaping import shaping
from wirebound.study.plan import Group
from wirebound.units import format_exact_rate, format_size

CPUINFO = Path("/proc/cpuinfo")

SCRIPT, MODULE, STARTED = "script ", "module ", "started"


def provenance(groups: Iterable[Group], where: str) -> dict[str, str]:
    """What a reader needs to know to judge, or repeat, a study.

    Args:
        groups: Of its plan.
        where: It is made.

    Raises:
        StudyError: A script that cannot be read.
    """
    groups = list(groups)
    found = {
        STARTED: time.strftime("%Y-%m-%d", time.gmtime()),
        "cpu": _cpu(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": format_size(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "wirebound": __version__,
    }
    found |= {name: _version(name) for name in ("torch", "numpy")}
    if where == "lab":
        found |= _shaping(groups)
    scripts = {
        planned.config.script: Path(planned.program[0]) for one in groups for planned in one.runs
    }
    return found | _digests(scripts)


def differing(there: Mapping[str, str], here: Mapping[str, str], where: str) -> str | None:
    """What differs between two studies that should be one, or None.

    Only the scripts count where a study is made on other machines than the one asked.
    """
    for name in [*there, *here]:
        counts = where == "lab" or name.startswith((SCRIPT, MODULE))
        if counts and name != STARTED and there.get(name) != here.get(name):
            return name
    return None


def _cpu() -> str:
    try:
        text = CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    match = re.search(r"^(?:model name|Hardware|cpu model)\s*: (.+)$", text, re.MULTILINE)
    return match[1] if match else platform.machine()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _shaping(groups: Iterable[Group]) -> dict[str, str]:
    shapes = {}
    for link_bps in sorted({one.link_bps for one in groups if one.link_bps is not None}):
        shape = shaping(link_bps)
        shapes[f"shaping {format_exact_rate(link_bps)}"] = (
            f"tbf rate {shape.rate_bps} bit/s, burst {shape.burst_bytes} B, "
            f"limit {shape.limit_bytes} B"
        )
    return shapes


def _digests(scripts: Mapping[str, Path]) -> dict[str, str]:
    """SHA-256 of each script, and of each module beside it that it imports."""
    digests = {f"{SCRIPT}{name}": _digest(path) for name, path in scripts.items()}
    seen: set[Path] = set(scripts.values())
    waiting = list(seen)
    while waiting:
        for path in _imported(waiting.pop()):
            if path not in seen:
                seen.add(path)
                waiting.append(path)
                digests[f"{MODULE}{path.name}"] = _digest(path)
    return digests


def _digest(path: Path) -> str:
    return hashlib.sha256(_content(path)).hexdigest()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StudyError(f"{path}: {error.strerror}, expected a script in Python") from None


def _imported(path: Path) -> list[Path]:
    """Modules beside a script that it imports, as far as can be read off."""
    try:
        tree = ast.parse(_content(path))
    except (SyntaxError, ValueError, RecursionError):
        return []
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    files = sorted(path.parent / f"{name.partition('.')[0]}.py" for name in names)
    return [file for file in files if file.is_file()]

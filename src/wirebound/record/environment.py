"""Where a recording was made: versions, allowed variables, network interfaces."""

import os
import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wirebound import __version__

NET = Path("/sys/class/net")

MBPS = 10**6

ALLOWED = re.compile(
    "(?:NCCL|GLOO|TORCH_NCCL)_[A-Z0-9_]+"
    "|OMP_NUM_THREADS|CUDA_VISIBLE_DEVICES"
    "|(?:LOCAL_|GROUP_)?RANK|(?:LOCAL_|GROUP_)?WORLD_SIZE"
    "|SLURM_(?:PROCID|NTASKS|LOCALID|NODEID|NNODES|NTASKS_PER_NODE|CPUS_PER_TASK)"
    "|OMPI_COMM_WORLD_(?:RANK|SIZE|LOCAL_RANK|LOCAL_SIZE|NODE_RANK)"
)
"""Names of variables that shape communication; no other is looked at."""

SECRET = re.compile("TOKEN|SECRET|PASS|KEY|CREDENTIAL|AUTH|COOKIE")
"""In a name: it stays out even where the rule above lets it in."""

MAX_VALUE = 200
"""Longer values are no setting of a library."""


def variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that explain a recording and give nothing away."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if ALLOWED.fullmatch(name)
        and not SECRET.search(name)
        and len(value) <= MAX_VALUE
        and "://" not in value  # an address can carry a password
    }


def interfaces(net: Path = NET) -> list[dict[str, Any]]:
    """Network interfaces and their line rates [bits/s]; None where the kernel knows none."""
    try:
        names = sorted(path.name for path in net.iterdir() if (path / "statistics").is_dir())
    except OSError:
        return []
    return [{"name": name, "speed_bps": _speed_bps(net / name / "speed")} for name in names]


def versions() -> dict[str, str | None]:
    """Of what decides how a step runs. torch must be imported already to be named."""
    torch = sys.modules.get("torch")
    found = {
        "wirebound": __version__,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "torch": None if torch is None else str(torch.__version__),
        "cuda": None if torch is None else torch.version.cuda,
    }
    return found | {"nccl": _nccl(torch)}


def _nccl(torch: Any) -> str | None:  # noqa: ANN401 - the module, where there is one
    if torch is None or torch.version.cuda is None or not torch.cuda.is_available():
        return None
    return ".".join(str(part) for part in torch.cuda.nccl.version())


def _speed_bps(path: Path) -> int | None:
    try:
        megabits = int(path.read_text())
    except (OSError, ValueError):
        return None  # virtual interfaces have none and say so with an error
    return megabits * MBPS if megabits > 0 else None

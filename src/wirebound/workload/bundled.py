"""Workloads that come with the program: recordings of the examples."""

import functools
from importlib import resources

import msgspec

from wirebound.errors import WorkloadError
from wirebound.workload.record import Workload

SUFFIX = ".json"

_FOLDER = "bundled_data"


@functools.cache
def names() -> tuple[str, ...]:
    """Names of all bundled workloads, sorted."""
    found = (file.name for file in resources.files(__package__).joinpath(_FOLDER).iterdir())
    return tuple(sorted(name.removesuffix(SUFFIX) for name in found if name.endswith(SUFFIX)))


@functools.cache
def load(name: str) -> Workload:
    """The bundled workload of that name.

    Raises:
        WorkloadError: There is none.
    """
    if name not in names():
        raise WorkloadError(
            f"no workload named {name!r} comes with the program", f"known are {', '.join(names())}"
        )
    path = resources.files(__package__).joinpath(_FOLDER, f"{name}{SUFFIX}")
    return msgspec.json.decode(path.read_bytes(), type=Workload)

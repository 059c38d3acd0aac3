"""Who records: rank, world size and place of a process, as its launcher says."""

import os
from collections.abc import Mapping

import msgspec

_SOURCES = {
    "rank": ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"),
    "world_size": ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"),
    "local_rank": ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"),
    "local_world_size": ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    "node": ("GROUP_RANK", "SLURM_NODEID", "OMPI_COMM_WORLD_NODE_RANK"),
    "restart": ("TORCHELASTIC_RESTART_COUNT",),
}
"""Where each number is found: torchrun first, then Slurm, then Open MPI."""

_ALONE = {"world_size": 1, "local_world_size": 1}


class Layout(msgspec.Struct, frozen=True):
    """The place of a process in a job.

    Attributes:
        rank: Among all processes.
        world_size: How many there are.
        local_rank: Among the processes of the host.
        local_world_size: How many the host has.
        node: The host's number.
        restart: How often torchrun has started the job again.
    """

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    node: int
    restart: int


def layout(environment: Mapping[str, str] = os.environ) -> Layout:
    """The place of this process.

    Args:
        environment: Variables that a launcher sets; without any, one process alone.
    """
    return Layout(
        **{
            field: _first(environment, names, _ALONE.get(field, 0))
            for field, names in _SOURCES.items()
        }
    )


def _first(environment: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    for name in names:
        text = environment.get(name, "")
        if text.isdecimal():
            return int(text)
    return default

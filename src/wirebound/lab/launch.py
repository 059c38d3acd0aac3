"""Command lines: how a program is started inside a host."""

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from wirebound.errors import LabError
from wirebound.lab.tools import find
from wirebound.lab.wiring import Host

MASTER_PORT = 29500

Launcher = Callable[[Host, Sequence[Host], Sequence[str]], list[str]]
"""Gives the command line for one host, of all hosts, that runs a program."""


def torchrun(host: Host, cluster: Sequence[Host], program: Sequence[str]) -> list[str]:
    """One job over all hosts: a torchrun agent on each, and one worker under it.

    Args:
        host: Where the agent runs.
        cluster: All hosts; the first is the master.
        program: A script and its arguments, or `-m`, a module and its arguments.
    """
    return _torchrun(host.rank, len(cluster), cluster[0].address, host.address, program)


def alone(host: Host, cluster: Sequence[Host], program: Sequence[str]) -> list[str]:
    """A job of one worker on each host: as many at once as there are hosts, and no traffic.

    Args:
        host: Where the agent runs.
        cluster: All hosts, which know nothing of each other.
        program: A script and its arguments, or `-m`, a module and its arguments.
    """
    del cluster
    return _torchrun(0, 1, host.address, host.address, program)


def _torchrun(
    rank: int, hosts: int, master: str, address: str, program: Sequence[str]
) -> list[str]:
    return [
        *(sys.executable, "-m", "torch.distributed.run"),
        *("--nnodes", str(hosts), "--node-rank", str(rank), "--nproc-per-node", "1"),
        *("--master-addr", master, "--master-port", str(MASTER_PORT), "--local-addr", address),
        *program,
    ]


def check(program: Sequence[str]) -> None:
    """Find out early what torchrun would find out late, and at length.

    Raises:
        LabError: torch is missing, or the script.
    """
    if importlib.util.find_spec("torch") is None:
        raise LabError(
            "torch is not installed, and the lab starts programs with its torchrun",
            "install wirebound[record], or torch",
        )
    if not program:
        raise LabError("nothing to run, expected a script, or -m and a module")
    script = Path(program[0])
    if program[0] == "-m":
        if len(program) == 1:
            raise LabError("-m names no module, expected -m MODULE")
    elif program[0].startswith("-"):
        raise LabError(f"{program[0]}: not a script, expected a script, or -m and a module")
    elif not script.is_file():
        problem = "a directory" if script.is_dir() else "no such file"
        raise LabError(f"{script}: {problem}, expected a Python script")
    elif not os.access(script, os.R_OK):
        raise LabError(f"{script}: may not be read, expected a Python script")


def enclosed(host: Host, words: Sequence[str]) -> list[str]:
    """A command line that runs another one inside a host, on its processors.

    The processes get a namespace of their own for process ids too: when the first of them
    ends, the kernel ends all others, wherever they have moved themselves. And the first
    ends with the lab, even if that is killed.
    """
    return [
        *(find("setpriv"), "--pdeathsig", "KILL"),
        *(find("ip"), "netns", "exec", host.namespace),
        *(find("unshare"), "--pid", "--fork", "--kill-child=KILL", "--mount-proc"),
        *(find("taskset"), "--cpu-list", ",".join(map(str, host.cores))),
        *words,
    ]


def environment(host: Host, inherited: Mapping[str, str]) -> dict[str, str]:
    """Variables of a program inside a host.

    Args:
        host: Where it runs.
        inherited: Variables of the lab itself, which are passed on.
    """
    return {
        **inherited,
        "GLOO_SOCKET_IFNAME": host.interface,
        "NCCL_SOCKET_IFNAME": host.interface,
        "OMP_NUM_THREADS": str(len(host.cores)),
    }


def share_cores(
    available: Sequence[int], workers: int, cores_per_worker: int
) -> tuple[list[tuple[int, ...]], bool]:
    """Give processors to workers, in turn where there are not enough.

    Args:
        available: Processors that this process may use.
        workers: How many share them.
        cores_per_worker: How many each one gets.

    Returns:
        The processors of each worker, and whether any processor has several.

    Raises:
        LabError: A worker wants more processors than there are.
    """
    if cores_per_worker > len(available):
        raise LabError(
            f"{cores_per_worker} cores a worker, but this process may use {len(available)}"
        )
    groups = [
        tuple(available[start : start + cores_per_worker])
        for start in range(0, len(available) - cores_per_worker + 1, cores_per_worker)
    ]
    return [groups[rank % len(groups)] for rank in range(workers)], workers > len(groups)

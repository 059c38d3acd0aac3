"""Studies in an allocation of Slurm: a job step for each run."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from wirebound.errors import StudyError
from wirebound.lab import RankOutcome, RunOutcome
from wirebound.lab.outcome import program_status
from wirebound.study.cluster import WORKER, Cluster, Finished, Open
from wirebound.study.complaint import failure_of
from wirebound.study.record import Mode
from wirebound.units import format_time

if TYPE_CHECKING:
    from wirebound.study.gather import Host

PORT = 29500
GRACE_S = 10.0
"""Between asking srun to end its step and killing it."""

_FIRST = re.compile(r"([^\[,]+)(?:\[(\d+)[^\]]*\])?([^,\[]*)")
"""Of a list such as `node[01-04,7],other`."""


def opener(workers: int, environment: Mapping[str, str] = os.environ) -> Open:
    """Makes clusters of the nodes of this allocation.

    Args:
        workers: Most that will be wanted.
        environment: Variables that Slurm sets.

    Raises:
        StudyError: No allocation, no srun, or too few nodes.
    """
    if "SLURM_JOB_ID" not in environment:
        raise StudyError(
            'where = "slurm", but SLURM_JOB_ID is not set: this is no allocation of Slurm',
            "start the study with sbatch, or inside salloc",
        )
    if shutil.which("srun") is None:
        raise StudyError("srun: not found, and a study in Slurm is run with it")
    nodes = environment.get("SLURM_JOB_NUM_NODES", "")
    if not nodes.isdecimal() or int(nodes) < workers:
        raise StudyError(
            f"the allocation has {nodes or 'no known number of'} nodes, and the study needs "
            f"{workers}, one a worker",
            f"ask for them with --nodes {workers}",
        )
    head = first_node(environment.get("SLURM_JOB_NODELIST", ""))

    @contextmanager
    def open_nodes(workers: int, link_bps: float | None) -> Iterator[Cluster]:
        assert link_bps is None  # noqa: S101 - refused when the study was read
        yield SlurmCluster(workers, head)

    return open_nodes


def first_node(nodes: str) -> str:
    """The first node of a list as Slurm writes it.

    Raises:
        StudyError: No list.
    """
    match = _FIRST.match(nodes)
    if match is None:
        raise StudyError(
            f"SLURM_JOB_NODELIST is {nodes!r}, expected nodes such as node[01-04]",
            "start the study with sbatch, or inside salloc",
        )
    return f"{match[1]}{match[2] or ''}{match[3]}"


class SlurmCluster:
    """Nodes of an allocation as a study sees them.

    Args:
        workers: How many are used, with one worker each.
        head: The first of them.
    """

    def __init__(self, workers: int, head: str) -> None:
        self._workers = workers
        self._head = head
        self.hosts: Sequence[Host] = ()
        self.verified_bps: float | None = None
        self.is_oversubscribed = False

    def run(self, words: Sequence[str], mode: Mode, folder: Path, timeout_s: float) -> Finished:
        """Run a program on all nodes and wait for its end, as `Cluster` says."""
        begun_s = time.monotonic()
        status, failure = _wait([*self._srun(folder), *self._job(words, mode)], timeout_s)
        elapsed_s = time.monotonic() - begun_s
        ranks = () if status == 0 else tuple(self._outcomes(folder, status))
        if status and failure is None and not ranks:
            failure = f"srun ended with status {status}"
        return Finished(elapsed_s, failure or failure_of(RunOutcome(ranks, elapsed_s, None)))

    def _srun(self, folder: Path) -> list[str]:
        count = str(self._workers)
        return [
            *("srun", "--nodes", count, "--ntasks", count, "--ntasks-per-node", "1"),
            *("--kill-on-bad-exit=1", "--output", f"{folder}/rank%t.stdout"),
            *("--error", f"{folder}/rank%t.stderr"),
        ]

    def _job(self, words: Sequence[str], mode: Mode) -> list[str]:
        agent = sys.executable, "-m", "torch.distributed.run"
        if mode == "joined":
            return [
                *(*agent, "--nnodes", str(self._workers), "--nproc-per-node", "1"),
                *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"{self._head}:{PORT}"),
                *words,
            ]
        # Only a shell on the node knows which of them it is.
        quoted = shlex.join([*agent, "--standalone", "--nproc-per-node", "1", *words])
        return ["sh", "-c", "exec " + quoted.replace(WORKER, "'\"$SLURM_PROCID\"'")]

    def _outcomes(self, folder: Path, status: int) -> Iterator[RankOutcome]:
        """How each rank ended, as far as its agent said so."""
        for rank in range(self._workers):
            stderr = folder / f"rank{rank}.stderr"
            if stderr.is_file():
                own = program_status(1, stderr) if status > 0 else status
                stdout = folder / f"rank{rank}.stdout"
                yield RankOutcome(rank, own, is_stopped=False, stdout=stdout, stderr=stderr)


def _wait(words: Sequence[str], timeout_s: float) -> tuple[int, str | None]:
    """Run a command to its end; its status, and what stopped it."""
    with subprocess.Popen(  # noqa: S603 - an argument list
        words,
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C reaches the study, which then ends the step
    ) as process:
        try:
            return process.wait(timeout_s), None
        except subprocess.TimeoutExpired:
            _end(process)
            return 0, f"the program did not end within {format_time(timeout_s)}"
        except BaseException:
            _end(process)
            raise


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    process.kill()
    process.wait()

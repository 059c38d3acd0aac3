"""A lab from its making to its end."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from wirebound.errors import LabError
from wirebound.lab.agents import Agent, stop
from wirebound.lab.interrupts import uninterrupted
from wirebound.lab.launch import Launcher, check, enclosed, environment, share_cores, torchrun
from wirebound.lab.leftovers import remove_dead
from wirebound.lab.names import new_lab
from wirebound.lab.outcome import RunOutcome
from wirebound.lab.privilege import require
from wirebound.lab.shaping import shaping
from wirebound.lab.tools import network_namespaces, remove_namespaces
from wirebound.lab.verify import Transfer, verify
from wirebound.lab.watch import Echo, Watch
from wirebound.lab.wiring import MOST_WORKERS, Egress, hosts, lost, wire


class Lab:
    """A cluster of hosts on this machine, there while the `with` block runs.

    ```
    with Lab(workers=2, link_bps=1e9) as lab:
        outcome = lab.run(["train.py", "--epochs", "1"], output=Path("run"))
    ```

    Entering removes what killed labs left, builds the hosts, and verifies every link by a
    transfer. Leaving removes everything, whatever happened in between.

    Args:
        workers: How many hosts, with one worker each.
        link_bps: Rate of each host's link in each direction, or None for no limit [bits/s].
        cores_per_worker: Processors that each worker is pinned to.

    Attributes:
        name: What the names of its namespaces begin with.
        hosts: Its hosts, in the order of ranks.
        shaping: How links are limited, or None.
        transfers: What each link carried when it was verified; empty with one worker.
        is_oversubscribed: Whether workers share processors.

    Raises:
        LabError: A number that makes no lab.
    """

    def __init__(
        self, workers: int = 2, link_bps: float | None = None, *, cores_per_worker: int = 1
    ) -> None:
        if not 1 <= workers <= MOST_WORKERS:
            raise LabError(f"{workers} workers, expected 1 to {MOST_WORKERS}")
        if cores_per_worker < 1:
            raise LabError(f"{cores_per_worker} cores a worker, expected 1 or more")
        available = sorted(os.sched_getaffinity(0))
        cores, self.is_oversubscribed = share_cores(available, workers, cores_per_worker)
        self.name = new_lab()
        self.hosts = hosts(self.name, cores)
        self.shaping = None if link_bps is None else shaping(link_bps)
        self.transfers: tuple[Transfer, ...] = ()
        self._sending: tuple[Egress, ...] = ()

    def __enter__(self) -> Self:
        require()
        remove_dead()
        try:
            self._sending = wire(self.name, self.hosts, self.shaping)
            self.transfers = verify(self.hosts, self.shaping)
        except BaseException:
            self._undo()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._undo()

    @property
    def verified_bps(self) -> float | None:
        """What the slowest link carried when it was verified [bits/s]; None without links."""
        return min((found.rate_bps for found in self.transfers), default=None)

    def run(
        self,
        program: Sequence[str],
        *,
        output: Path,
        timeout_s: float | None = None,
        launcher: Launcher = torchrun,
        echo: Echo | None = None,
    ) -> RunOutcome:
        """Run a program on all hosts and wait for its end.

        Args:
            program: A script and its arguments, or `-m`, a module and its arguments.
            output: Folder for what the ranks print, made if it is not there.
            timeout_s: When to stop it, or None for never [s].
            launcher: What starts it on a host: `torchrun` for one job over all hosts, `alone`
                for a job on each.
            echo: Takes what rank 0 writes, as it comes.

        Raises:
            LabError: A program or a folder that cannot be used.
        """
        if launcher is torchrun:
            check(program)
        start = time.monotonic()
        agents: list[Agent] = []
        try:
            _make(output)
            for host in self.hosts:
                words = enclosed(host, launcher(host, self.hosts, program))
                agents.append(Agent(host, words, output, environment(host, os.environ)))
            failure = Watch(agents, timeout_s).wait(echo)
        except OSError as error:
            if error.filename is None:
                raise
            raise LabError(
                f"{error.filename}: {error.strerror}, expected room for the output of the ranks",
                "choose a new or an empty folder that may be written",
            ) from None
        finally:
            with uninterrupted():
                stop(agents)
        return RunOutcome(
            ranks=tuple(agent.outcome() for agent in agents),
            elapsed_s=time.monotonic() - start,
            failure=failure or lost(self._sending, self.shaping),
        )

    def _undo(self) -> None:
        with uninterrupted():
            prefix = f"{self.name}-"
            remove_namespaces([name for name in network_namespaces() if name.startswith(prefix)])


def _make(folder: Path) -> None:
    """Make a folder that only its user may read, if it is not there."""
    folder.mkdir(mode=0o700, exist_ok=True)

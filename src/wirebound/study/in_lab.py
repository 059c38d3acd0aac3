"""Studies in the lab: a cluster in a box for each rate and number of workers."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from wirebound.lab import Lab, alone, torchrun
from wirebound.lab.launch import check
from wirebound.lab.privilege import require
from wirebound.lab.tools import PACKAGES, find
from wirebound.lab.wiring import Host as LabHost
from wirebound.study.cluster import WORKER, Cluster, Finished, Open
from wirebound.study.complaint import failure_of
from wirebound.study.gather import Host
from wirebound.study.measure import RECORDER
from wirebound.study.plan import Group
from wirebound.study.record import Mode


def check_lab(groups: Iterable[Group], cores_per_worker: int) -> None:
    """Find out early what every run would find out.

    Raises:
        LabError: No privilege, no torch, a tool that is missing, more cores than there are.
    """
    require()
    for tool in PACKAGES:
        find(tool)
    check(RECORDER)
    for group in groups:
        Lab(group.workers, group.link_bps, cores_per_worker=cores_per_worker)


def opener(cores_per_worker: int) -> Open:
    """Makes labs with so many cores a worker."""

    @contextmanager
    def open_lab(workers: int, link_bps: float | None) -> Iterator[Cluster]:
        with Lab(workers, link_bps, cores_per_worker=cores_per_worker) as lab:
            yield LabCluster(lab, link_bps)

    return open_lab


class LabCluster:
    """A lab as a study sees it.

    Args:
        lab: Built already.
        link_bps: Rate of its links, None without a limit [bit/s].
    """

    def __init__(self, lab: Lab, link_bps: float | None) -> None:
        self._lab = lab
        self.hosts = [Host(host.cores, {host.interface: link_bps}) for host in lab.hosts]
        self.verified_bps = lab.verified_bps
        self.is_oversubscribed = lab.is_oversubscribed

    def run(self, words: Sequence[str], mode: Mode, folder: Path, timeout_s: float) -> Finished:
        """Run a program on all hosts and wait for its end, as `Cluster` says."""
        launcher = torchrun if mode == "joined" else _each
        outcome = self._lab.run(words, output=folder, timeout_s=timeout_s, launcher=launcher)
        return Finished(outcome.elapsed_s, failure_of(outcome))


def _each(host: LabHost, cluster: Sequence[LabHost], program: Sequence[str]) -> list[str]:
    """A job of one worker on each host, which knows its number."""
    return alone(host, cluster, [word.replace(WORKER, str(host.rank)) for word in program])

"""The runs of a study, one after the other, each kept before the next begins."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from wirebound.errors import LabError
from wirebound.study.archive import RECORDINGS, Archive
from wirebound.study.cluster import Cluster, Open
from wirebound.study.complaint import public
from wirebound.study.measure import bench, failed, measure
from wirebound.study.plan import Group, Planned
from wirebound.study.record import Bench
from wirebound.study.spec import Spec


class Progress(Protocol):
    """Hears what happens."""

    def begin(self, item: str) -> None:
        """A run or a bench begins."""

    def end(self, item: str, failure: str | None) -> None:
        """It has ended, and is kept."""


class Runner:
    """Makes what is missing in an archive.

    Args:
        spec: The study.
        archive: Where it is kept, open.
        open_cluster: Where it is run.
        progress: Hears what happens.
        keep: Whether recordings stay.
        retry_failed: Whether runs that failed are made again.
    """

    def __init__(  # noqa: PLR0913 - all of it is chosen by the caller
        self,
        spec: Spec,
        archive: Archive,
        open_cluster: Open,
        progress: Progress,
        *,
        keep: bool = False,
        retry_failed: bool = False,
    ) -> None:
        self._spec = spec
        self._archive = archive
        self._open = open_cluster
        self._progress = progress
        self._keep = keep
        self._retry_failed = retry_failed

    def make(self, group: Group) -> None:
        """Make what is missing of a group, in one cluster.

        Raises:
            StudyError: The archive cannot be written.
        """
        retry = self._retry_failed
        benches = [group] if self._archive.lacks_bench(group, retry_failed=retry) else []
        runs = self._archive.missing(group, retry_failed=retry)
        if not benches and not runs:
            return
        try:
            with self._open(group.workers, group.link_bps) as cluster:
                while benches:
                    self._bench(group, cluster)
                    benches.pop()
                while runs:
                    self._run(runs[0], cluster)
                    runs.pop(0)
        except LabError as error:
            if not benches and not runs:
                raise
            self._give_up(benches, runs, error)

    def _bench(self, group: Group, cluster: Cluster) -> None:
        self._progress.begin(group.id)
        with self._folder(group.id) as folder:
            found = bench(group, self._spec, cluster, folder)
            self._archive.add_bench(found)
        self._progress.end(group.id, found.failure)

    def _run(self, planned: Planned, cluster: Cluster) -> None:
        self._progress.begin(planned.id)
        with self._folder(planned.id) as folder:
            run = measure(planned, self._spec, cluster, folder)
            self._archive.add(run)
        self._progress.end(planned.id, run.failure)

    def _give_up(self, benches: list[Group], runs: list[Planned], error: LabError) -> None:
        """Keep why there was no place to run."""
        reason = public(str(error))
        for group in benches:
            self._archive.add_bench(Bench(group.workers, group.link_bps, failure=reason))
            self._progress.end(group.id, reason)
        for planned in runs:
            self._archive.add(failed(planned, reason))
            self._progress.end(planned.id, reason)

    @contextmanager
    def _folder(self, item: str) -> Iterator[Path]:
        """Where a run keeps its recordings; gone afterwards, unless they are wanted."""
        folder = self._archive.folder.absolute() / RECORDINGS / item
        try:
            yield folder
        finally:
            if not self._keep:
                shutil.rmtree(folder, ignore_errors=True)
                with suppress(OSError):
                    folder.parent.rmdir()  # where it was the last one

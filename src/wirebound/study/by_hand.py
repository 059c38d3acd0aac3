"""Studies on hosts that nobody here can start programs on: commands to give, recordings to read."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from wirebound.errors import WireboundError
from wirebound.readers import FILES, read_trace
from wirebound.study.archive import RECORDINGS, Archive
from wirebound.study.cluster import WORKER
from wirebound.study.complaint import public
from wirebound.study.gather import gather, recordings
from wirebound.study.measure import SAMPLES, bench_words, read_samples, run_words
from wirebound.study.plan import Group, Planned
from wirebound.study.record import Bench, Mode, Run
from wirebound.study.runner import Progress
from wirebound.study.spec import Spec

HEAD = "HEAD:29500"


def commands(spec: Spec, archive: Archive, groups: Sequence[Group]) -> Iterator[str]:
    """A line for each host of each run that is missing, and what to do with it."""
    yield "# Put the name of host 0 in place of HEAD, and run each line on its host."
    for group in groups:
        if archive.lacks_bench(group):
            folder = _folder(archive, group.id)
            folder.mkdir(parents=True, exist_ok=True)
            yield from _lines(group.id, bench_words(spec, folder), group.workers, "joined")
        for planned in archive.missing(group):
            words = run_words(planned, _folder(archive, planned.id))
            yield from _lines(planned.id, words, planned.config.workers, planned.config.mode)


def _lines(item: str, words: Sequence[str], workers: int, mode: Mode) -> Iterator[str]:
    yield f"\n# {item}"
    for number in range(workers):
        place = (
            ["--nnodes", str(workers), "--node-rank", str(number), "--rdzv-endpoint", HEAD]
            if mode == "joined"
            else ["--standalone"]
        )
        own = [word.replace(WORKER, str(number)) for word in words]
        yield f"# host {number}"
        yield shlex.join(["torchrun", *place, "--nproc-per-node", "1", *own])


class Collector:
    """Reads what was recorded by hand into an archive; the recordings stay.

    Args:
        spec: The study.
        archive: Open.
        progress: Hears what happens.
        retry_failed: Whether what could not be read is read again.
    """

    def __init__(
        self, spec: Spec, archive: Archive, progress: Progress, *, retry_failed: bool
    ) -> None:
        self._spec = spec
        self._archive = archive
        self._progress = progress
        self._retry_failed = retry_failed

    def found(self, group: Group) -> tuple[list[Group], list[Planned]]:
        """Benches and runs of a group that have been made and not been read."""
        retry = self._retry_failed
        lacks = self._archive.lacks_bench(group, retry_failed=retry)
        benches = [group] if lacks and (self._folder(group.id) / SAMPLES).exists() else []
        return benches, [
            planned
            for planned in self._archive.missing(group, retry_failed=retry)
            if any(
                any(place.glob(FILES)) for place in recordings(self._folder(planned.id), planned)
            )
        ]

    def collect(self, group: Group) -> None:
        """Read what there is of a group."""
        benches, runs = self.found(group)
        for one in benches:
            self._progress.begin(one.id)
            bench = self._bench(one)
            self._archive.add_bench(bench)
            self._progress.end(one.id, bench.failure)
        for planned in runs:
            self._progress.begin(planned.id)
            run = self._run(planned)
            self._archive.add(run)
            self._progress.end(planned.id, run.failure)

    def _bench(self, group: Group) -> Bench:
        try:
            return Bench(group.workers, group.link_bps, read_samples(self._folder(group.id)))
        except WireboundError as error:
            return Bench(group.workers, group.link_bps, failure=public(str(error)))

    def _run(self, planned: Planned) -> Run:
        folder = self._folder(planned.id)
        run = Run(planned.id, planned.config, started_s=0.0, elapsed_s=0.0)
        try:
            # Nobody here saw it start; its first operation comes next.
            trace = read_trace(recordings(folder, planned)[0])
            run = msgspec.structs.replace(
                run, started_s=trace.began_s, elapsed_s=float(trace.end_s.max(initial=0.0))
            )
            return gather(run, folder, planned, (), self._spec.warmup)
        except WireboundError as error:
            return msgspec.structs.replace(run, failure=public(str(error)))

    def _folder(self, item: str) -> Path:
        return _folder(self._archive, item)


def _folder(archive: Archive, item: str) -> Path:
    return archive.folder.absolute() / RECORDINGS / item

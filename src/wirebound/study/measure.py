"""One run, or one bench, from its start to its record."""

import shutil
import time
from pathlib import Path

import msgspec

from wirebound import samples
from wirebound.errors import StudyError, WireboundError
from wirebound.study.cluster import WORKER, Cluster
from wirebound.study.complaint import public
from wirebound.study.gather import gather, own_folder
from wirebound.study.plan import Group, Planned
from wirebound.study.record import Bench, Run
from wirebound.study.spec import Spec

RECORDER = "-m", "wirebound.record"
SAMPLES = "samples.json"


def run_words(planned: Planned, folder: Path) -> list[str]:
    """The words that torchrun is given for a run.

    Args:
        planned: The run.
        folder: Where it keeps its recordings.
    """
    place = folder if planned.config.mode == "joined" else own_folder(folder, WORKER)
    return [*RECORDER, "-o", str(place), *planned.program]


def bench_words(spec: Spec, folder: Path) -> list[str]:
    """The words that torchrun is given for a bench."""
    file = str(folder / SAMPLES)
    asked = spec.bench
    kinds = [f"--kind={kind}" for kind in asked.kinds]
    options = [f"--largest={asked.largest}", f"--budget={asked.budget}", *kinds]
    return ["-m", "wirebound", "bench", *options, "-o", file]


def measure(planned: Planned, spec: Spec, cluster: Cluster, folder: Path) -> Run:
    """Make a run; what goes wrong with it is part of its record.

    Args:
        planned: What to run.
        spec: The study.
        cluster: Where.
        folder: For its recordings; what is there is removed.
    """
    run = Run(
        id=planned.id,
        config=planned.config,
        started_s=time.time(),
        elapsed_s=0.0,
        is_oversubscribed=cluster.is_oversubscribed,
        verified_bps=cluster.verified_bps,
    )
    begun_s = time.monotonic()
    try:
        fresh(folder)
        words = run_words(planned, folder)
        finished = cluster.run(words, planned.config.mode, folder, spec.timeout_s)
        run = msgspec.structs.replace(
            run, elapsed_s=finished.elapsed_s, failure=_public(finished.failure, folder)
        )
        if run.failure is None:
            run = gather(run, folder, planned, cluster.hosts, spec.warmup)
    except WireboundError as error:
        elapsed_s = run.elapsed_s or time.monotonic() - begun_s
        failure = _public(str(error), folder)
        run = msgspec.structs.replace(run, elapsed_s=elapsed_s, failure=failure)
    return run


def failed(planned: Planned, reason: str) -> Run:
    """The record of a run that had no place to run."""
    return Run(planned.id, planned.config, time.time(), 0.0, reason)


def bench(group: Group, spec: Spec, cluster: Cluster, folder: Path) -> Bench:
    """Measure the network of a group."""
    try:
        fresh(folder)
        finished = cluster.run(bench_words(spec, folder), "joined", folder, spec.timeout_s)
        failure = _public(finished.failure, folder)
        found = None if failure else read_samples(folder)
    except WireboundError as error:
        found, failure = None, _public(str(error), folder)
    return Bench(group.workers, group.link_bps, found, failure)


def read_samples(folder: Path) -> samples.Samples:
    """What a bench wrote, with its hosts called by number."""
    found = samples.read(folder / SAMPLES)
    hosts = tuple(f"host{number}" for number in range(len(found.hosts)))
    notes = tuple(public(note) for note in found.notes)
    return msgspec.structs.replace(found, hosts=hosts, notes=notes)


def fresh(folder: Path) -> None:
    """An empty folder, whatever an earlier attempt left.

    Raises:
        StudyError: It cannot be made.
    """
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    except OSError as error:
        raise StudyError(f"{folder}: cannot be written: {error.strerror}") from None


def _public(failure: str | None, folder: Path) -> str | None:
    return None if failure is None else public(failure.replace(str(folder), folder.name))

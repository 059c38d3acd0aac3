"""Making what is missing: what is kept when a run, a bench or a cluster fails."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import recordings
from wirebound.errors import LabError
from wirebound.samples import Sample, Samples, dumps
from wirebound.study.archive import Archive
from wirebound.study.cluster import Cluster, Finished
from wirebound.study.gather import Host
from wirebound.study.open import opened
from wirebound.study.plan import Group, plan
from wirebound.study.record import Mode
from wirebound.study.runner import Runner
from wirebound.study.spec import Spec, parse_spec

TEXT = """
name = "small"
[[script]]
name = "net"
program = ["train.py"]
[[grid]]
workers = [2]
batch = [1, 2]
"""


class Made:
    """A cluster that makes recordings up; a failure where one is told."""

    hosts: Sequence[Host] = ()
    verified_bps = 9e8
    is_oversubscribed = True

    def __init__(self, workers: int, failures: dict[str, str]) -> None:
        self.workers = workers
        self.failures = failures

    def run(self, words: Sequence[str], mode: Mode, folder: Path, timeout_s: float) -> Finished:
        """What a run leaves behind."""
        assert timeout_s == 600
        failure = self.failures.get(folder.name)
        if failure is not None:
            return Finished(1.5, f"{folder}/x.py: {failure}")
        if "bench" in words:
            sample = Sample("all_reduce", 1024, 1e-3, ranks=2, nodes=2)
            found = Samples((sample,), "bench", hosts=("secret",))
            (folder / "samples.json").write_bytes(dumps(found))
        for worker in range(self.workers):
            if mode == "joined":
                recordings.Run(worker, self.workers, node=worker, local_rank=0).write(folder)
            else:
                recordings.Run(host="secret").write(folder / f"worker{worker}")
        return Finished(1.5)


class Heard:
    """Progress as a list."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def begin(self, item: str) -> None:
        """Is not kept."""

    def end(self, item: str, failure: str | None) -> None:
        """Keeps whether it failed."""
        self.lines.append(f"{item}: {failure or 'done'}")


class Bench:
    """A study, a folder for it, and what goes wrong."""

    def __init__(self, folder: Path) -> None:
        (folder / "train.py").touch()
        self.folder = folder / "study"
        self.spec: Spec = parse_spec(TEXT)
        self.groups: tuple[Group, ...] = plan(self.spec, folder)
        self.failures: dict[str, str] = {}
        self.broken: set[int] = set()

    @contextmanager
    def open(self, workers: int, link_bps: float | None) -> Iterator[Cluster]:
        """A cluster, or none."""
        assert link_bps is None
        if workers in self.broken:
            raise LabError("no links today")
        yield Made(workers, self.failures)

    def make(self, *, keep: bool = False, retry_failed: bool = False) -> list[str]:
        """Make what is missing; what was heard."""
        heard = Heard()
        with opened(self.folder, self.spec, TEXT, self.groups) as archive:
            runner = Runner(
                self.spec, archive, self.open, heard, keep=keep, retry_failed=retry_failed
            )
            for group in self.groups:
                runner.make(group)
        return heard.lines

    def failed(self) -> list[str | None]:
        """Of each run."""
        with Archive(self.folder) as archive:
            return [run.failure for run in archive.runs]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Nothing goes wrong yet."""
    return Bench(tmp_path)


ITEMS = [
    "net-w1-unlimited-cap25MiB-b1-a1-r0",
    "net-w1-unlimited-cap25MiB-b2-a1-r0",
    "bench-w2-unlimited",
    "net-w2-unlimited-apart-cap25MiB-b1-a1-r0",
    "net-w2-unlimited-cap25MiB-b1-a1-r0",
    "net-w2-unlimited-apart-cap25MiB-b2-a1-r0",
    "net-w2-unlimited-cap25MiB-b2-a1-r0",
]


def test_all_is_made_once_and_kept(bench: Bench) -> None:
    """A second time there is nothing to do."""
    assert bench.make() == [f"{item}: done" for item in ITEMS]
    assert bench.make() == []

    with Archive(bench.folder) as archive:
        assert [run.id for run in archive.runs] == [one for one in ITEMS if "bench" not in one]
        run = archive.runs[-1]
        assert (run.elapsed_s, run.verified_bps, run.is_oversubscribed) == (1.5, 9e8, True)
        assert run.reduced is not None
        assert run.reduced.workload.name == "net"
        [measured] = archive.benches
    assert measured.samples is not None
    assert measured.samples.hosts == ("host0",)
    assert b"secret" not in (bench.folder / "runs.jsonl").read_bytes()
    assert sorted(path.name for path in bench.folder.iterdir()) == ["runs.jsonl", "study.json"]


def test_recordings_stay_where_they_are_wanted(bench: Bench) -> None:
    """In a folder with the name of the run."""
    bench.make(keep=True)
    assert sorted(path.name for path in (bench.folder / "recordings").iterdir()) == sorted(ITEMS)


def test_a_failed_run_is_kept_and_the_study_goes_on(bench: Bench) -> None:
    """It is made again where that is wanted, and the place of its folder is not told."""
    bench.failures = {ITEMS[0]: "it broke", ITEMS[2]: "no bench"}

    heard = bench.make()

    assert heard[0] == f"{ITEMS[0]}: {ITEMS[0]}/x.py: it broke"
    assert [line.endswith("done") for line in heard] == [False, True, False, *[True] * 4]
    assert bench.make() == []
    bench.failures = {}
    assert bench.make(retry_failed=True) == [f"{ITEMS[0]}: done", f"{ITEMS[2]}: done"]
    assert bench.failed() == [None] * 6


def test_a_cluster_that_cannot_be_built_fails_its_runs_alone(bench: Bench) -> None:
    """The others are made."""
    bench.broken = {2}

    assert bench.make() == [
        *(f"{item}: done" for item in ITEMS[:2]),
        *(f"{item}: no links today" for item in ITEMS[2:]),
    ]
    assert bench.failed() == [None] * 2 + ["no links today"] * 4


def test_a_recording_that_cannot_be_reduced_is_a_failure(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the sentence of whoever could not."""
    monkeypatch.setattr(Made, "run", lambda *_: Finished(1.0))
    bench.make()
    assert bench.failed()[0] == (
        f"{ITEMS[0]}: holds no recording, expected files such as rank0.trace.json "
        "(record one with python -m wirebound.record train.py)"
    )

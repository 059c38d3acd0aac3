"""Archives: what is kept, after whatever, and for whom."""

import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from wirebound.errors import ReadError, StudyError
from wirebound.study.archive import Archive, read_runs, read_study
from wirebound.study.plan import Group, Planned
from wirebound.study.record import Bench, Config, Run, Study

CONFIG = Config("net", 2, "joined", 1e9, 2**20, 32, 1, 0)
RUN = Run("net-r0", CONFIG, started_s=1.0, elapsed_s=2.0)
FAILED = Run("net-r1", CONFIG, started_s=1.0, elapsed_s=2.0, failure="it broke")
STUDY = Study("small", 'name = "small"', "lab", {"cpu": "any"})
GROUP = Group(
    2, 1e9, is_benched=True, runs=(Planned("net-r0", CONFIG, ()), Planned("net-r1", CONFIG, ()))
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a study with a run that failed and one that did not."""
    place = tmp_path / "study"
    with Archive(place) as archive:
        archive.write(STUDY)
        archive.add(RUN)
        archive.add(FAILED)
    return place


def test_runs_and_study_are_read_as_they_were_written(folder: Path) -> None:
    """In the order in which they ended."""
    assert read_study(folder) == STUDY
    assert read_runs(folder) == (RUN, FAILED)
    assert sorted(path.name for path in folder.iterdir()) == ["runs.jsonl", "study.json"]


def test_what_is_missing(folder: Path) -> None:
    """Failed runs only where they are wanted again; a bench until there is one."""
    with Archive(folder) as archive:
        assert archive.missing(GROUP) == []
        assert [one.id for one in archive.missing(GROUP, retry_failed=True)] == ["net-r1"]
        assert archive.lacks_bench(GROUP)
        archive.add_bench(Bench(2, 1e9, failure="it broke"))
        assert not archive.lacks_bench(GROUP)
        assert archive.lacks_bench(GROUP, retry_failed=True)
        archive.add_bench(Bench(2, 1e9))
        assert not archive.lacks_bench(GROUP, retry_failed=True)
    assert read_study(folder).benches == (Bench(2, 1e9),)


def test_the_last_attempt_counts(folder: Path) -> None:
    """A run that was made again has two lines."""
    again = msgspec.structs.replace(FAILED, failure=None)
    with Archive(folder) as archive:
        archive.add(again)
        assert archive.runs == (RUN, again)

    assert len((folder / "runs.jsonl").read_bytes().splitlines()) == 3
    assert read_runs(folder) == (RUN, again)


def test_a_cut_last_line_is_taken_away(folder: Path) -> None:
    """A reader passes over it; the next study removes it, and writes in its place."""
    path = folder / "runs.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert read_runs(folder) == (RUN,)

    with Archive(folder) as archive:
        assert archive.runs == (RUN,)
        archive.add(FAILED)

    assert path.read_bytes() == whole


def test_other_contents_are_refused_with_the_line(folder: Path) -> None:
    """A line in the middle is not forgiven."""
    path = folder / "runs.jsonl"
    path.write_bytes(b"{}\n" + path.read_bytes())
    with pytest.raises(ReadError, match="line 1 is no run: Object missing required field `id`"):
        read_runs(folder)
    (folder / "study.json").write_text("[]")
    with pytest.raises(ReadError, match="holds no study"):
        read_study(folder)
    with pytest.raises(ReadError, match=r"runs\.jsonl: No such file"):
        read_runs(folder.parent)


def test_a_study_of_another_time_is_refused(folder: Path) -> None:
    """Rather than misunderstood."""
    later = msgspec.structs.replace(STUDY, schema_version=2)
    (folder / "study.json").write_bytes(msgspec.json.encode(later))
    with pytest.raises(ReadError, match="schema_version 2, this program reads 1"):
        read_study(folder)


def test_two_studies_at_once_are_refused(folder: Path) -> None:
    """The second one, in a line."""
    with Archive(folder), pytest.raises(StudyError, match="another study is writing there"):
        Archive(folder).__enter__()
    with Archive(folder) as archive:
        assert archive.runs == (RUN, FAILED)


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    """A file where the folder should be."""
    (tmp_path / "file").touch()
    with pytest.raises(StudyError, match=r"file: cannot be written: File exists"):
        Archive(tmp_path / "file").__enter__()


@pytest.fixture
def full_disk(folder: Path) -> Iterator[Path]:
    """No file may grow beyond what the runs have now and a little more."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    size = (folder / "runs.jsonl").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limits[1]))
    yield folder
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_leaves_whole_lines(full_disk: Path) -> None:
    """What was written of a run is taken back, and the sentence says why."""
    with Archive(full_disk) as archive, pytest.raises(StudyError, match="File too large"):
        archive.add(RUN)

    assert (full_disk / "runs.jsonl").read_bytes().endswith(b"\n")
    assert read_runs(full_disk) == (RUN, FAILED)

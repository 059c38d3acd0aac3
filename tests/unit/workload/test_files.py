"""Workloads as files: what is read, and how what is not is refused."""

import json
import os
from pathlib import Path

import pytest

from wirebound import inputs
from wirebound.errors import ReadError, WireboundError, WorkloadError
from wirebound.workload.files import dumps, read_backward_log, read_workload
from wirebound.workload.modelled import scaled
from wirebound.workload.record import Gradient, Kind, Operation, Workload, data_parallel
from wirebound.workload.zoo import load

LOG = "# layer-wise backward times\n1\n3\n100.5,4000\n0,8\n49.5,12000\n"
JOB = data_parallel("job", [Gradient("g", 1000, 0.5)], backward_s=1.0, forward_s=0.5, batch=4)


def written(folder: Path, content: str | bytes, name: str = "job.json") -> Path:
    """A file with this content."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    "workload",
    [
        JOB,
        scaled(load("resnet50"), 0.128, 32),
        Workload("replay", (Operation("c", Kind.ALL_REDUCE, "comm", nbytes=5.0, priority=1),)),
    ],
    ids=lambda workload: workload.name,
)
def test_round_trip(tmp_path: Path, workload: Workload) -> None:
    """What is written is read back equal."""
    content = dumps(workload)
    assert content.endswith(b"}\n")
    assert read_workload(written(tmp_path, content)) == workload


def test_backward_log(tmp_path: Path) -> None:
    """Gaps add up to ready times; the name is the file's."""
    workload = read_workload(written(tmp_path, LOG, "net.bk.log"))
    assert workload == read_backward_log(tmp_path / "net.bk.log")
    assert workload.name == "net"
    assert [g.nbytes for g in workload.gradients] == [4000, 8, 12000]
    assert [g.ready_s for g in workload.gradients] == pytest.approx([100.5e-6, 100.5e-6, 150e-6])
    assert workload.span_s(Kind.BACKWARD) == workload.gradients[-1].ready_s
    assert workload.source.kind == "log"


def test_blank_lines_at_the_end(tmp_path: Path) -> None:
    """An editor's empty lines are no gradients."""
    assert len(read_workload(written(tmp_path, LOG + "\n \n")).gradients) == 3


def test_pipe() -> None:
    """A pipe is read once, whichever of the two it carries."""
    reading, writing = os.pipe()
    os.write(writing, LOG.encode())
    os.close(writing)
    try:
        workload = read_workload(Path(f"/dev/fd/{reading}"))
    finally:
        os.close(reading)
    assert len(workload.gradients) == 3


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "neither a workload in JSON nor a backward log"),
        ("hello", "neither a workload in JSON nor a backward log"),
        ("#\n1\nthree\n", "line 3 is not a number of gradients"),
        (LOG[: LOG.index("49.5")], "announces 3 gradients, 2 follow"),
        (LOG[: LOG.index(".5,12000")], "line 6 is '49'"),
        (LOG.replace("0,8", "0,"), "line 5 is '0,'"),
        (LOG.replace("0,8", "0,8,9"), "line 5 is '0,8,9'"),
        (LOG.replace("0,8", "-1,8"), "line 5 is '-1,8'"),
        (LOG.replace("0,8", "nan,8"), "line 5 is 'nan,8'"),
        (LOG.replace("0,8", "inf,8"), "line 5 is 'inf,8'"),
        (LOG.replace("0,8", "0,-8"), "line 5 is '0,-8'"),
        (LOG.replace("0,8", "0,0"), "line 5 is '0,0'"),
        (LOG.replace("0,8", "0,8.5"), "line 5 is '0,8.5'"),
        ("{", "not complete JSON"),
        (dumps(JOB)[: len(dumps(JOB)) // 2], "not complete JSON"),
        ('{"name": "x", "operations": [], "name": NaN}', "not complete JSON"),
        ("{}", "missing required field `name`"),
        ('{"name": 5, "operations": []}', r"Expected `str`, got `int` - at `\$.name`"),
        ('{"name": "x", "operations": [], "extra": 1}', "unknown field `extra`"),
        ('{"name": "x", "operations": [{"name": "a", "kind": "wait"}]}', "Invalid enum value"),
        (b"\xff\xfe\x00\x01\x80", "not text"),
        (b"{\x80\x81}", "not text"),
        (bytes(range(256)), "not text"),
    ],
)
def test_not_a_workload(tmp_path: Path, content: str | bytes, says: str) -> None:
    """A file that is neither of the two is refused with its path and place."""
    path = written(tmp_path, content)
    with pytest.raises(ReadError, match=says) as caught:
        read_workload(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"operations": []}, "has no operations"),
        ({"batch": 0}, "batch is 0"),
        ({"schema_version": 9}, "schema_version 9"),
        ({"gradients": [{"name": "g", "nbytes": -5, "ready_s": 0.1}]}, "nbytes is -5"),
        ({"gradients": [{"name": "g", "nbytes": 5, "ready_s": -0.1}]}, "ready_s is -0.1"),
        ({"gradients": [{"name": "g", "nbytes": 5, "ready_s": 2.0}]}, "after the backward pass"),
        ({"operations": [{"name": "a", "kind": "forward", "after": ["z"]}]}, "does not exist"),
    ],
)
def test_impossible_step(tmp_path: Path, change: dict[str, object], says: str) -> None:
    """A file that reads well and describes no step is refused with its path."""
    path = written(tmp_path, json.dumps({**json.loads(dumps(JOB)), **change}))
    with pytest.raises(WorkloadError, match=says) as caught:
        read_workload(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_nesting(tmp_path: Path, opening: str) -> None:
    """Brackets without end are an error, not a crash."""
    content = '{"name": "x", "operations": ' + opening * 100_000
    with pytest.raises(ReadError):
        read_workload(written(tmp_path, content))


def test_missing(tmp_path: Path) -> None:
    """A missing file is named."""
    with pytest.raises(ReadError, match=r"none\.json: No such file"):
        read_workload(tmp_path / "none.json")


def test_directory(tmp_path: Path) -> None:
    """So is a directory."""
    with pytest.raises(ReadError, match="Is a directory, expected a workload in JSON"):
        read_workload(tmp_path)


def test_size_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file beyond any workload is not read to its end."""
    monkeypatch.setattr(inputs, "MAX_BYTES", 1_000_000)
    path = written(tmp_path, b" " * 1_000_001)
    with pytest.raises(ReadError, match="larger than 1 MB"):
        read_workload(path)


def test_endless_device() -> None:
    """A device that never ends is refused like a large file."""
    with pytest.raises(ReadError, match="larger than 64 MB"):
        read_workload(Path("/dev/zero"))


@pytest.mark.parametrize("place", range(0, 700, 13))
def test_any_truncation(tmp_path: Path, place: int) -> None:
    """A file cut anywhere is refused in one sentence."""
    content = dumps(scaled(load("vgg16"), 0.1, 32))[:place]
    with pytest.raises(WireboundError):
        read_workload(written(tmp_path, content))

"""Recordings: what is read, what of a killed one, and how what is none is refused."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordings import STARTED_NS, Run
from trace_strategies import damaged_recordings
from wirebound.errors import ReadError
from wirebound.readers import read_trace, recording
from wirebound.trace import NONE, Interface, Parameter, Trace


def test_operations(tmp_path: Path) -> None:
    """Each event is an operation with all that it says, in nanoseconds since 1970."""
    trace = read_trace(Run(steps=1).write(tmp_path))
    ops = trace.operations
    place = [trace.text(name) for name in ops.name].index("bucket 1")
    assert trace.text(ops.kind[place]) == "all_reduce"
    assert trace.text(ops.lane[place]) == "comm"
    assert trace.text(ops.group[place]) == "0"
    assert trace.text(ops.dtype[place]) == "float32"
    assert (ops.step[place], ops.micro[place], ops.bucket[place]) == (0, 0, 1)
    assert ops.nbytes[place] == 4040
    assert ops.start_ns[place] == STARTED_NS + 55_000_000
    assert ops.started_ns[place] == STARTED_NS + 55_000_000
    assert ops.duration_ns[place] == 20_000_000
    assert ops.model[place] == NONE


def test_rank(tmp_path: Path) -> None:
    """Where it ran is kept."""
    trace = read_trace(Run(1, 4, clock={"offset_us": 2.0, "error_us": 0.5}).write(tmp_path))
    (rank,) = trace.ranks
    assert (rank.rank, rank.world_size, rank.host, rank.device) == (1, 4, "alpha", "cpu")
    assert rank.interfaces == (Interface("eth0", 1e9), Interface("lo", None))
    assert rank.environment == {"OMP_NUM_THREADS": "1"}
    assert rank.models[0].parameters[0] == Parameter("0.weight", 4000, "float32")
    assert rank.models[0].bucket_cap_bytes == 8000
    assert rank.clock is not None
    assert rank.clock.offset_s == pytest.approx(2e-6)
    assert trace.operations.start_ns.min() == STARTED_NS - 2000


def test_what_recording_cost(tmp_path: Path) -> None:
    """Where the recorder said so."""
    run = Run()
    assert read_trace(run.write(tmp_path)).ranks[0].hook_us_per_gradient is None
    run.metadata("wirebound_overhead", hook_us_per_gradient=1.5)
    assert read_trace(run.write(tmp_path)).ranks[0].hook_us_per_gradient == 1.5


def test_a_folder_is_read_by_rank(tmp_path: Path) -> None:
    """Ten files come in the order of ranks, not of names."""
    for rank in (10, 2, 0):
        Run(rank, 11, steps=1).write(tmp_path)
    trace = read_trace(tmp_path)
    assert [rank.rank for rank in trace.ranks] == [0, 2, 10]
    assert (sorted(trace.operations.rank) == trace.operations.rank).all()
    assert trace.warnings == ("8 of 11 ranks are missing: 1, 3, 4, 5, 6, 7, 8, 9",)


def test_many_missing_ranks_are_counted(tmp_path: Path) -> None:
    """A thousand missing ranks do not fill the screen."""
    Run(0, 1000, steps=1).write(tmp_path)
    assert read_trace(tmp_path).warnings[0].endswith("missing: 1, 2, 3, 4, 5, 6, 7, 8, …")


@pytest.mark.parametrize(
    ("characters", "said"),
    [
        (0, ("rank 0 did not finish step 3: not used",)),
        (
            25,
            (
                "the last line of rank 0 is cut and not used",
                "rank 0 did not finish step 3: not used",
            ),
        ),
        (500, ()),
    ],
)
def test_killed(tmp_path: Path, characters: int, said: tuple[str, ...]) -> None:
    """What a killed rank left is good up to its last complete step."""
    run = Run(steps=4)
    trace = read_trace(run.write(tmp_path, run.killed(characters)))
    assert trace.complete_steps == ((0, 1, 2) if said else (0, 1, 2, 3))
    assert trace.warnings == said


def test_a_rank_killed_at_its_start_is_missing(tmp_path: Path) -> None:
    """A file that does not yet name its rank hinders nobody."""
    Run(0, 2).write(tmp_path)
    Run(1, 2).write(tmp_path, b'[\n{"ph":"M","na')
    trace = read_trace(tmp_path)
    assert trace.warnings == (
        "1 of 2 ranks are missing: 1",
        "rank1.trace.json ends before it says which rank it is of; it is not used",
    )


def test_several_unfinished_steps(tmp_path: Path) -> None:
    """Steps that were never finished are counted."""
    run = Run(steps=3)
    run.lines = [line for line in run.lines if line.get("cat") != "step"]
    assert read_trace(run.write(tmp_path)).warnings == (
        "rank 0 did not finish 3 steps from 0: not used",
    )


def test_outside_of_steps(tmp_path: Path) -> None:
    """What happens before the first step is kept without a step."""
    run = Run(steps=1)
    run.span("broadcast", 0.0, 5.0, "comm", nbytes=8)
    trace = read_trace(run.write(tmp_path))
    assert trace.operations.step[-1] == NONE


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "does not begin with a line '['"),
        (b'{"traceEvents": []}', "does not begin with a line '['"),
        (b"[\n", "ends before it says which rank"),
        (b"[\n]\n", "ends before it says which rank"),
        (b"[\nhello\n", "line 2 is no event"),
        (b'[\n{"ph":"C","name":"x"},\n', "line 2 is no event .*Invalid value 'C'"),
        (b"[\n" + b"[" * 100_000 + b"\n", "line 2 is no event"),
        (b'[\n{"ph":"X","cat":"a","name":"b","ts":1,"dur":1},\n', "before the line that names"),
        (b'[\n{"ph":"M","name":"wirebound","args":{}},\n', "missing required field"),
        (Run(rank=3, world_size=2).content(), "rank 3 of a world of 2 ranks"),
        (Run(schema_version=9).content(), "schema_version 9, this program reads 1"),
        (Run().content()[:-2].rstrip() + b"\n" + Run().content(), "is no event"),
        (Run().content().replace(b'"dur": 5000.0', b'"dur": -1', 1), "is no event .*>= 0"),
        (Run().content().replace(b'"dur": 5000.0', b'"dur": 1e300', 1), "is no event .*<= "),
        (Run().content().replace(b'"step": 0', b'"step": 1.5', 1), "Expected `int | null`"),
        (Run().content().replace(b'"input"', b'"\xff"', 1), "is no event"),
    ],
)
def test_not_a_recording(tmp_path: Path, content: bytes, says: str) -> None:
    """One sentence that names the file, the line and what was expected."""
    path = tmp_path / "rank0.trace.json"
    path.write_bytes(content)
    with pytest.raises(ReadError, match=says.replace("[", r"\[").replace("|", r"\|")) as caught:
        read_trace(path)
    assert str(path) in str(caught.value)
    assert "expected" in str(caught.value) or "ranks" in str(caught.value)


def test_a_second_header(tmp_path: Path) -> None:
    """Two recordings in one file are refused."""
    run = Run(steps=1)
    run.lines.append(run.lines[1])
    with pytest.raises(ReadError, match="a second line that names the rank"):
        read_trace(run.write(tmp_path))


def test_duplicate_rank(tmp_path: Path) -> None:
    """Two files of one rank are two recordings."""
    Run(0, 2).write(tmp_path)
    (tmp_path / "rank1.trace.json").write_bytes(Run(0, 2).content())
    with pytest.raises(ReadError, match=r"is of rank 0, as rank0\.trace\.json is"):
        read_trace(tmp_path)


def test_two_jobs(tmp_path: Path) -> None:
    """Ranks of jobs of different sizes do not belong together."""
    Run(0, 2).write(tmp_path)
    Run(1, 4).write(tmp_path)
    with pytest.raises(ReadError, match="a job of 4 ranks"):
        read_trace(tmp_path)


@pytest.mark.parametrize("name", ["missing", "a\0b"])
def test_no_file(tmp_path: Path, name: str) -> None:
    """A name that leads nowhere is named."""
    with pytest.raises(ReadError, match="expected a recording"):
        read_trace(tmp_path / name)


def test_empty_folder(tmp_path: Path) -> None:
    """A folder without a recording says what one looks like."""
    with pytest.raises(ReadError, match=r"holds no recording, expected files such as rank0"):
        read_trace(tmp_path)


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a line nor a recording may be longer than allowed."""
    path = Run().write(tmp_path)
    monkeypatch.setattr(recording, "MAX_LINE_BYTES", 100)
    with pytest.raises(ReadError, match="line 3 ends beyond any event"):
        read_trace(path)
    monkeypatch.setattr(recording, "MAX_BYTES", 1000)
    with pytest.raises(ReadError, match="is larger than 0 MB"):
        read_trace(path)


@given(content=st.one_of(damaged_recordings(), st.binary(max_size=200)))
def test_any_bytes(content: bytes) -> None:
    """Whatever a file holds, it is a trace or a sentence of one line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.trace.json"
        path.write_bytes(content)
        try:
            assert isinstance(read_trace(path), Trace)
        except ReadError as error:
            assert "\n" not in str(error)  # noqa: PT017 - both outcomes are right
            assert str(path) in str(error)  # noqa: PT017 - both outcomes are right

"""The trace: what it knows, parts of it, one clock for all ranks."""

from pathlib import Path

import numpy as np
import pytest

from recordings import STARTED_NS, Run
from wirebound.readers import read_trace
from wirebound.trace import NONE, Operations, Trace


def trace_of(folder: Path, *runs: Run) -> Trace:
    """The trace of some ranks."""
    for run in runs:
        run.write(folder / "run")
    return read_trace(folder / "run")


def test_repr_says_what_is_there(tmp_path: Path) -> None:
    """A glance shows size, steps, ranks and warnings."""
    trace = trace_of(tmp_path, Run(0, 3, steps=2), Run(2, 3, steps=2))
    assert repr(trace) == "Trace(44 operations, 2 complete steps, ranks 2 of 3, 1 warnings)"
    assert trace.missing_ranks == (1,)


def test_a_step_is_complete_when_all_ranks_finished_it(tmp_path: Path) -> None:
    """A step that one rank finished and another did not is not complete."""
    assert trace_of(tmp_path, Run(0, 2, steps=5), Run(1, 2, steps=3)).complete_steps == (0, 1, 2)


def test_columns_cannot_be_changed(tmp_path: Path) -> None:
    """Nobody changes what happened."""
    trace = trace_of(tmp_path, Run(steps=1))
    with pytest.raises(ValueError, match="read-only"):
        trace.operations.rank[0] = 1


def test_columns_have_one_length() -> None:
    """Columns that differ in length are a bug."""
    columns = [np.zeros(2, dtype=np.int64) for _ in Operations.__struct_fields__]
    columns[3] = np.zeros(1, dtype=np.int64)
    with pytest.raises(AssertionError, match="column kind"):
        Operations(*columns)


def test_select(tmp_path: Path) -> None:
    """Parts by rank, step and kind; times start with the part."""
    trace = trace_of(tmp_path, Run(0, 2, steps=3), Run(1, 2, steps=3, ahead_us=7.0))
    part = trace.select(rank=1, steps=[2], kinds=["forward", "input"])
    assert [part.text(kind) for kind in part.operations.kind] == ["input", "forward"]
    assert [rank.rank for rank in part.ranks] == [1]
    assert part.start_s == pytest.approx([0.0, 0.005])
    assert part.end_s == pytest.approx([0.005, 0.025])
    assert part.operations.start_ns[0] == STARTED_NS + 200_007_000


def test_when_it_began(tmp_path: Path) -> None:
    """Since 1970, or never."""
    trace = read_trace(Run(steps=1).write(tmp_path))
    assert trace.began_s == pytest.approx(STARTED_NS / 1e9)
    assert trace.select(steps=[7]).began_s == 0.0


def test_text_of_nothing(tmp_path: Path) -> None:
    """A place where nothing was recorded has no text."""
    assert trace_of(tmp_path, Run(steps=1)).text(NONE) is None


def test_aligned(tmp_path: Path) -> None:
    """A clock that is ahead is set back, and its offset noted."""
    trace = trace_of(tmp_path, Run(0, 2), Run(1, 2, ahead_us=1500.0))
    aligned = trace.aligned()
    clock = aligned.ranks[1].clock
    assert clock is not None
    assert clock.offset_s == pytest.approx(0.0015)
    assert clock.error_s == pytest.approx(0.0, abs=1e-9)
    columns = [aligned.select(rank=rank).operations.start_ns.tolist() for rank in (0, 1)]
    assert columns[0] == columns[1]


def test_aligned_keeps_a_single_rank(tmp_path: Path) -> None:
    """One rank has one clock."""
    trace = trace_of(tmp_path, Run())
    assert trace.aligned() is trace


def test_aligned_without_collectives(tmp_path: Path) -> None:
    """Without anything in common, clocks stay and a warning says so."""
    aligned = trace_of(tmp_path, Run(0, 2, is_ddp=False), Run(1, 2, is_ddp=False)).aligned()
    assert "could not be aligned" in aligned.warnings[-1]

"""Plans: which runs, in which order, called what, with which words."""

from pathlib import Path

import pytest

from wirebound.errors import StudyError
from wirebound.study.plan import plan
from wirebound.study.spec import parse_spec

TEXT = """
name = "small"
repeats = 2
[[script]]
name = "net"
program = ["train.py", "--cap={bucket_cap_mb}", "{bucket_cap}", "{batch}", "{accumulation}", "{}x"]
[[grid]]
link = ["1Gbps", "none"]
bucket_cap = ["1MiB", "512KiB"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the script is."""
    (tmp_path / "train.py").touch()
    return tmp_path


def test_groups_and_repeats(folder: Path) -> None:
    """Runs of one link together, each behind its baseline, one repeat after the other."""
    groups = plan(parse_spec(TEXT.replace(', "{}x"', "")), folder)

    assert [(one.id, one.is_benched, [run.id for run in one.runs]) for one in groups] == [
        ("bench-w1-unlimited", False, [
            "net-w1-unlimited-cap1MiB-b32-a1-r0",
            "net-w1-unlimited-cap1MiB-b32-a1-r1",
        ]),
        ("bench-w2-1Gbps", True, [
            "net-w2-1Gbps-apart-cap1MiB-b32-a1-r0",
            "net-w2-1Gbps-cap1MiB-b32-a1-r0",
            "net-w2-1Gbps-cap512KiB-b32-a1-r0",
            "net-w2-1Gbps-apart-cap1MiB-b32-a1-r1",
            "net-w2-1Gbps-cap1MiB-b32-a1-r1",
            "net-w2-1Gbps-cap512KiB-b32-a1-r1",
        ]),
        ("bench-w2-unlimited", True, [
            "net-w2-unlimited-apart-cap1MiB-b32-a1-r0",
            "net-w2-unlimited-cap1MiB-b32-a1-r0",
            "net-w2-unlimited-cap512KiB-b32-a1-r0",
            "net-w2-unlimited-apart-cap1MiB-b32-a1-r1",
            "net-w2-unlimited-cap1MiB-b32-a1-r1",
            "net-w2-unlimited-cap512KiB-b32-a1-r1",
        ]),
    ]  # fmt: skip


def test_words_are_filled_in(folder: Path) -> None:
    """DDP's cap is in MiB; the path begins at the folder."""
    groups = plan(parse_spec(TEXT.replace(', "{}x"', "")), folder)

    assert groups[-1].runs[2].program == (
        str(folder / "train.py"), "--cap=0.5", "524288", "32", "1",
    )  # fmt: skip


def test_an_empty_placeholder_is_refused() -> None:
    """It is nobody's name."""
    with pytest.raises(StudyError, match=r"unknown placeholder \{\}"):
        parse_spec(TEXT)


def test_what_two_grids_ask_for_is_made_once(folder: Path) -> None:
    """One worker has no link, so that its rates are one run."""
    text = TEXT.replace(', "{}x"', "").replace("repeats = 2", "repeats = 1")
    more = '\n[[grid]]\nworkers = [1, 2]\nlink = ["1Gbps"]\nbucket_cap = ["1MiB"]'
    ids = [run.id for group in plan(parse_spec(text + more), folder) for run in group.runs]

    assert sorted(ids) == [
        "net-w1-unlimited-cap1MiB-b32-a1-r0",
        "net-w2-1Gbps-apart-cap1MiB-b32-a1-r0",
        "net-w2-1Gbps-cap1MiB-b32-a1-r0",
        "net-w2-1Gbps-cap512KiB-b32-a1-r0",
        "net-w2-unlimited-apart-cap1MiB-b32-a1-r0",
        "net-w2-unlimited-cap1MiB-b32-a1-r0",
        "net-w2-unlimited-cap512KiB-b32-a1-r0",
    ]


def test_baselines_and_bench_can_be_left_out(folder: Path) -> None:
    """Then the grid is all."""
    text = TEXT.replace(', "{}x"', "").replace("repeats = 2", "repeats = 1")
    off = "\n[baseline]\nalone = false\napart = false\n[bench]\nenabled = false"
    groups = plan(parse_spec(text + off), folder)

    assert [(one.id, one.is_benched, len(one.runs)) for one in groups] == [
        ("bench-w2-1Gbps", False, 2),
        ("bench-w2-unlimited", False, 2),
    ]


def test_a_missing_script_is_one_sentence(tmp_path: Path) -> None:
    """Before anything is run."""
    with pytest.raises(StudyError, match=r"script net: train\.py: no such file"):
        plan(parse_spec(TEXT.replace(', "{}x"', "")), tmp_path)

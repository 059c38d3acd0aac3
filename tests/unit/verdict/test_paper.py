"""The original study without its logs: the model zoo in their place."""

from pathlib import Path

import pytest

from wirebound.errors import ReadError
from wirebound.simulate.paper import RATES_BPS, RATIOS, STEP_S, read_add_table, study
from wirebound.verdict.paper import PaperVerdict, judge_paper


@pytest.fixture(scope="module")
def verdict() -> PaperVerdict:
    """The study from the zoo, judged."""
    return judge_paper(study(None))


def test_shape(verdict: PaperVerdict) -> None:
    """Every model, size, rate and ratio is there."""
    assert not verdict.is_published
    assert verdict.configurations == 270
    assert set(verdict.by_rate) == {16, 32, 64}
    for curves in (*verdict.by_rate.values(), verdict.overhead_s, verdict.average_utilization):
        assert {name: len(curve) for name, curve in curves.items()} == dict.fromkeys(STEP_S, 5)
    for curves in (verdict.by_ratio_10g, verdict.by_ratio_100g):
        assert {name: len(curve) for name, curve in curves.items()} == dict.fromkeys(STEP_S, 6)
    assert len(RATES_BPS) == 5
    assert len(RATIOS) == 6


def test_curves_rise(verdict: PaperVerdict) -> None:
    """More bandwidth and more compression never hurt; more workers never help."""
    for curves in (*verdict.by_rate.values(), verdict.by_ratio_10g, verdict.by_ratio_100g):
        for curve in curves.values():
            assert list(curve) == sorted(curve)
    for name in STEP_S:
        sizes = [verdict.by_rate[workers][name] for workers in (64, 32, 16)]
        assert all(a <= b <= c for a, b, c in zip(*sizes, strict=True))


def test_two_views_of_one_number(verdict: PaperVerdict) -> None:
    """Overhead and scaling factor say the same; so do both tables at ratio 1."""
    for name, step_s in STEP_S.items():
        factors = verdict.by_rate[64][name]
        expected = [step_s / (step_s + overhead) for overhead in verdict.overhead_s[name]]
        assert list(factors) == pytest.approx(expected)
        assert verdict.by_ratio_10g[name][0] == factors[1]
        assert verdict.by_ratio_100g[name][0] == factors[4]


def test_missing_folder(tmp_path: Path) -> None:
    """A folder that is not there is named."""
    with pytest.raises(ReadError, match="nowhere: no such folder"):
        study(tmp_path / "nowhere")


def test_folder_without_logs(tmp_path: Path) -> None:
    """A folder without the logs says which file it lacks."""
    with pytest.raises(ReadError, match=r"no file cuda_vec_add\.log"):
        study(tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty, expected lines"),
        ("40,1e-5\nforty\n", "line 2 is 'forty'"),
        ("40,1e-5,3\n", "line 1 is"),
        ("40,nan\n", "table is nan"),
        ("nan,1e-5\n", "table is nan"),
        ("80,1e-5\n40,1e-5\n", "sizes ascending"),
        ("40,-1\n", "expected seconds >= 0"),
    ],
)
def test_add_table_that_is_none(tmp_path: Path, text: str, says: str) -> None:
    """A table that cannot be used is refused with its path and place."""
    path = tmp_path / "cuda_vec_add.log"
    path.write_text(text)
    with pytest.raises(ReadError, match=says) as caught:
        read_add_table(path)
    assert str(path) in str(caught.value)


def test_add_table_of_bytes(tmp_path: Path) -> None:
    """A binary file is no table."""
    path = tmp_path / "cuda_vec_add.log"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReadError, match="not text"):
        read_add_table(path)


def test_add_table(tmp_path: Path) -> None:
    """Times are interpolated between the lines."""
    path = tmp_path / "cuda_vec_add.log"
    path.write_text("40,1e-5\n80,3e-5\n")
    assert read_add_table(path).seconds(60) == pytest.approx(2e-5)

"""The original study in the terminal."""

import io

import pytest

from wirebound.report.console import console
from wirebound.report.paper import show_paper
from wirebound.simulate.paper import study
from wirebound.verdict.paper import PaperVerdict, judge_paper


@pytest.fixture(scope="module")
def verdict() -> PaperVerdict:
    """The study from the zoo, judged."""
    return judge_paper(study(None))


def shown(verdict: PaperVerdict, width: int) -> str:
    """What the terminal shows."""
    file = io.StringIO()
    show_paper(console(file, width), verdict)
    return file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_figures_are_the_verdicts(verdict: PaperVerdict, width: int) -> None:
    """Each curve is a row of the verdict's own numbers."""
    text = "\n".join(" ".join(row.split()) for row in shown(verdict, width).splitlines())
    curves = [
        *(curve for models in verdict.by_rate.values() for curve in models.values()),
        *verdict.by_ratio_10g.values(),
        *verdict.by_ratio_100g.values(),
        *verdict.average_utilization.values(),
        *(bound.scaling_factor for bound in verdict.two_servers),
    ]
    for curve in curves:
        assert " ".join(f"{100 * value:.1f}" for value in curve) in text
    for ratio in verdict.ratio_for_99.values():
        assert f"needs {ratio:.2f}x compression" in text.replace("\n", " ")


def test_says_where_the_numbers_come_from(verdict: PaperVerdict) -> None:
    """Numbers from the zoo are not passed off as the paper's."""
    assert "from this program's model zoo" in " ".join(shown(verdict, 80).split())


def test_broken_bound(verdict: PaperVerdict) -> None:
    """The flat ring is marked as no bound, the others as bounds."""
    marks = [
        row.split()[-1]
        for row in shown(verdict, 80).splitlines()
        if "broken" in row or "holds" in row
    ]
    assert marks[-3:] == ["broken", "holds", "holds"]


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_fits(verdict: PaperVerdict, width: int) -> None:
    """Lines fit, without trailing spaces and without lost digits."""
    rows = shown(verdict, width).splitlines()
    assert rows == [row.rstrip() for row in rows]
    assert max(len(row) for row in rows) <= width
    assert "…" not in "".join(rows)

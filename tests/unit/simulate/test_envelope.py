"""Upper envelopes of lines, and where they cross a line."""

import numpy as np
import pytest

from wirebound.simulate.envelope import Envelope, Vector, envelope


def of(lines: list[tuple[float, float]], low: float = 0.0, high: float = 10.0) -> Envelope:
    """The envelope of lines given as (intercept, slope), and how often it was asked."""
    intercepts, slopes = np.array(lines, dtype=np.float64).T

    def evaluate(x: Vector) -> tuple[Vector, Vector]:
        best = np.argmax(intercepts + slopes * x[:, None], axis=1)
        return intercepts[best], slopes[best]

    return envelope(evaluate, low, high)


CONVEX = of([(4.0, 0.0), (2.0, 1.0), (-4.0, 2.0), (0.0, 0.5)])
"""4 up to x = 2, then 2 + x up to x = 6, then -4 + 2 x; the fourth is nowhere the largest."""


def test_lines_and_breakpoints() -> None:
    """In order of slope; lines below the others are left out."""
    assert CONVEX.intercepts.tolist() == [4.0, 2.0, -4.0]
    assert CONVEX.slopes.tolist() == [0.0, 1.0, 2.0]
    assert CONVEX.breakpoints.tolist() == [2.0, 6.0]


def test_values_and_slopes() -> None:
    """At a breakpoint the slope is that of the line before."""
    assert CONVEX.at(np.array([0.0, 2.0, 3.0, 6.0, 10.0])).tolist() == [4.0, 4.0, 5.0, 8.0, 16.0]
    assert [CONVEX.slope_at(x) for x in (0.0, 2.0, 2.5, 7.0)] == [0.0, 0.0, 1.0, 2.0]
    assert float(CONVEX.at(3.0)) == 5.0


def test_largest_x_below_a_limit() -> None:
    """Exactly, not by search."""
    assert CONVEX.largest_below(5.0) == 3.0
    assert CONVEX.largest_below(4.0) == 2.0
    assert CONVEX.largest_below(3.9) is None
    assert CONVEX.largest_below(100.0) == 10.0
    # Below 3 + x: 2 + x always is, 4 from x = 1 on, -4 + 2 x up to x = 7.
    assert CONVEX.largest_below(4.0, 1.0) == 8.0


def test_smallest_x_below_a_line() -> None:
    """From which on it stays there."""
    assert CONVEX.smallest_below(0.0, 2.0) == 2.0
    assert CONVEX.smallest_below(4.0, 2.0) == 0.0
    assert CONVEX.smallest_below(5.0, 0.0) is None


def test_rounding_does_not_lead_out_of_the_domain() -> None:
    """A line exceeded by one rounding at the start is met there, at no negative x."""
    line = of([(1.0, 1.0)])
    assert line.largest_below(1.0 - 1e-16) == 0.0
    assert line.largest_below(np.nextafter(1.0, 0.0)) == 0.0


def test_a_single_line() -> None:
    """No breakpoints."""
    assert of([(1.0, 1.0), (1.0, 1.0)]).breakpoints.tolist() == []


def test_equal_slopes_keep_the_higher_line() -> None:
    """Parallels never cross."""
    found = of([(1.0, 1.0), (2.0, 1.0), (2.5, 0.0)])
    assert found.intercepts.tolist() == [2.5, 2.0]


@pytest.mark.parametrize("count", [1, 2, 7, 50])
def test_tangents_of_a_parabola(count: int) -> None:
    """Every line is found, in about twice as many evaluations."""
    asked = 0
    at = np.linspace(0.5, 9.5, count)

    def evaluate(x: Vector) -> tuple[Vector, Vector]:
        nonlocal asked
        asked += len(x)
        best = np.argmax(2 * at * x[:, None] - at**2, axis=1)
        return -(at[best] ** 2), 2 * at[best]

    found = envelope(evaluate, 0.0, 10.0)
    assert (2 * at).tolist() == found.slopes.tolist()
    assert asked <= 2 * count + 1

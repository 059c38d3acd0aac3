"""Sets of time, by example."""

import numpy as np

from wirebound.intervals import coverage, difference, length, union


def test_touching_intervals_are_one() -> None:
    """Where one ends and the next starts there is no gap."""
    merged = union(np.array([2.0, 0.0, 5.0]), np.array([3.0, 2.0, 5.0]))
    assert merged.tolist() == [[0.0, 3.0]]


def test_a_hole_leaves_two() -> None:
    """Taking the middle out of an interval leaves both sides."""
    left = difference(np.array([[0.0, 10.0]]), np.array([[4.0, 5.0]]))
    assert left.tolist() == [[0.0, 4.0], [5.0, 10.0]]


def test_nothing() -> None:
    """The empty set is a set."""
    nothing = union(np.array([]), np.array([]))
    assert nothing.shape == (0, 2)
    assert length(nothing) == 0.0
    assert coverage(nothing, np.array([1.0])).tolist() == [0.0]


def test_coverage_keeps_the_shape() -> None:
    """Instants may come as a matrix."""
    covered = coverage(np.array([[1.0, 2.0]]), np.array([[0.0, 1.5], [2.0, 9.0]]))
    assert covered.tolist() == [[0.0, 0.5], [1.0, 1.0]]

"""Sets of time against a brute-force bitmap."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trace_strategies import EDGE, intervals
from wirebound.intervals import both, coverage, difference, intersection, length, union

Pairs = list[tuple[int, int]]


def as_set(pairs: Pairs) -> np.ndarray:
    """The union of intervals."""
    starts, ends = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    return union(starts, ends)


def bitmap(pairs: np.ndarray | Pairs) -> np.ndarray:
    """One flag a unit of time."""
    flags = np.zeros(EDGE, dtype=np.bool_)
    for start, end in pairs:
        flags[int(start) : max(int(start), int(end))] = True
    return flags


@given(pairs=intervals)
def test_union(pairs: Pairs) -> None:
    """A union covers what its members cover; it ascends and nothing in it touches."""
    merged = as_set(pairs)
    np.testing.assert_array_equal(bitmap(merged), bitmap(pairs))
    assert np.all(np.diff(merged.ravel()) > 0)


@given(one=intervals, other=intervals)
def test_two_sets(one: Pairs, other: Pairs) -> None:
    """Both, intersection and difference are those of the bitmaps, and are sets again."""
    first, second = as_set(one), as_set(other)
    for made, expected in (
        (both(first, second), bitmap(one) | bitmap(other)),
        (intersection(first, second), bitmap(one) & bitmap(other)),
        (difference(first, second), bitmap(one) & ~bitmap(other)),
    ):
        np.testing.assert_array_equal(bitmap(made), expected)
        assert np.all(np.diff(made.ravel()) > 0)
        assert length(made) == np.sum(expected)


@given(pairs=intervals, until=st.lists(st.integers(-2, EDGE), min_size=1))
def test_coverage(pairs: Pairs, until: list[int]) -> None:
    """Coverage counts the flags before an instant."""
    flags = bitmap(pairs)
    expected = [np.sum(flags[: max(0, instant)]) for instant in until]
    covered = coverage(as_set(pairs), np.array(until, dtype=np.float64))
    np.testing.assert_array_equal(covered, expected)

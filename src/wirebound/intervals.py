"""Sets of time as sorted arrays of starts and ends.

A set is an array of shape [N, 2]: half-open intervals `[start, end)`, ascending, neither
empty nor touching each other. `union` makes one from anything; the other functions take sets
and give sets. No unit is assumed.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Points = NDArray[np.float64]


def union(starts: Points, ends: Points) -> Points:
    """The time that at least one interval covers.

    Args:
        starts: Of intervals in any order, shape [N].
        ends: Of the same; an interval that does not end after its start is empty.

    Returns:
        A set, shape [M, 2].
    """
    kept = ends > starts
    order = np.argsort(starts[kept], kind="stable")
    first = starts[kept][order]
    latest = np.maximum.accumulate(ends[kept][order]) if order.size else first
    opens = np.ones(first.size, dtype=np.bool_)
    opens[1:] = first[1:] > latest[:-1]
    closes = np.roll(opens, -1)
    return np.column_stack((first[opens], latest[closes]))


def both(one: Points, other: Points) -> Points:
    """The time that is in at least one of two sets."""
    merged = np.concatenate((one, other))
    return union(merged[:, 0], merged[:, 1])


def intersection(one: Points, other: Points) -> Points:
    """The time that is in both of two sets."""
    return _where(one, other, lambda inside, beside: inside & beside)


def difference(one: Points, other: Points) -> Points:
    """The time that is in the first set and not in the second."""
    return _where(one, other, lambda inside, beside: inside & ~beside)


def length(time: Points) -> float:
    """How long a set is altogether."""
    return float(np.sum(time[:, 1] - time[:, 0]))


def coverage(time: Points, until: Points) -> Points:
    """How much of a set lies before each of some instants.

    The part of a set inside `[a, b)` is the difference of its coverage until `b` and `a`.

    Args:
        time: A set.
        until: Instants in any order.

    Returns:
        Its length before each of them, same shape as `until`.
    """
    if not time.size:
        return np.zeros(until.shape)
    done = np.concatenate(([0.0], np.cumsum(time[:, 1] - time[:, 0])))
    passed = np.searchsorted(time.ravel(), until, side="right")
    index, is_inside = passed // 2, passed % 2 == 1
    begun = time[np.minimum(index, len(time) - 1), 0]
    covered: Points = done[index] + np.where(is_inside, until - begun, 0.0)
    return covered


def _where(one: Points, other: Points, keeps: Callable[[Flags, Flags], Flags]) -> Points:
    """The stretches between neighbouring edges that a rule on both memberships keeps."""
    edges = np.unique(np.concatenate((one.ravel(), other.ravel())))
    starts, ends = edges[:-1], edges[1:]
    kept = keeps(_contains(one, starts), _contains(other, starts))
    return union(starts[kept], ends[kept])


def _contains(time: Points, instants: Points) -> Flags:
    inside: Flags = np.searchsorted(time.ravel(), instants, side="right") % 2 == 1
    return inside

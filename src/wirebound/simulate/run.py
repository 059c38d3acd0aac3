"""What both engines take and give: seconds by resource in, starts and ends out."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.resources import Resource

Array = float | NDArray[np.float64]
"""A number, or one number for each scenario."""

Leg = Mapping[Resource, Array]
"""Seconds by resource of one flow of an operation."""

Costs = Sequence[tuple[Leg, ...]]
"""The legs of each of K operations; the longest leg decides."""


class Run(msgspec.Struct, frozen=True):
    """What happened.

    Attributes:
        starts: Of K operations [s].
        ends: Of K operations [s].
        causes: For each, the operation whose end let it start, or None at the beginning.
        spent: For each, its elapsed seconds by resource.
    """

    starts: tuple[float, ...]
    ends: tuple[float, ...]
    causes: tuple[int | None, ...]
    spent: tuple[Leg, ...]


def leg_s(leg: Leg) -> Array:
    """Seconds of a leg; numbers are added up first, each array costs one pass."""
    total: Array = 0.0
    arrays: list[NDArray[np.float64]] = []
    for seconds in leg.values():
        if isinstance(seconds, np.ndarray):
            arrays.append(seconds)
        else:
            total += seconds
    for seconds in arrays:
        total = seconds if isinstance(total, float) and total == 0 else total + seconds
    return total


def path_from(run: Run, last: int) -> Iterator[int]:
    """The chain of causes that ends with operation `last`, last first."""
    index: int | None = last
    while index is not None:
        yield index
        index = run.causes[index]


def longest_leg(legs: Sequence[Leg]) -> Leg:
    """The leg that decides: the first of the longest."""
    return max(legs, key=leg_s) if legs else {}

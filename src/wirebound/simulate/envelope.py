"""The step time as an exact function of one price: an upper envelope of lines.

With a fixed order the step time is a maximum of sums, so as a function of one price it
is convex and piecewise linear. Its lines are found by asking the engine itself: evaluate
at both ends, intersect the two lines found there, evaluate at the intersection; where
the engine finds more, it has found a new line (M. J. Eisner and D. G. Severance,
"Mathematical techniques for efficient record segmentation in large shared databases",
Journal of the ACM 23(4), 1976). So envelope and sweep are equal by construction.
"""

from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Evaluation = tuple[Vector, Vector]
"""Intercept and slope of the line that is the maximum at each of M points."""

RELATIVE_TOLERANCE = 1e-12


class Envelope(msgspec.Struct, frozen=True):
    """A convex piecewise-linear function on [low, high].

    Attributes:
        intercepts: Of L lines in order of slope.
        slopes: Of the lines, increasing.
        breakpoints: L - 1 abscissas where one line takes over from the one before.
        low: Start of the domain.
        high: End of the domain.
    """

    intercepts: Vector
    slopes: Vector
    breakpoints: Vector
    low: float
    high: float

    def at(self, x: Vector | float) -> Vector:
        """Values at any number of points, which must lie in the domain."""
        line = np.searchsorted(self.breakpoints, x)
        return np.asarray(self.intercepts[line] + self.slopes[line] * x)

    def slope_at(self, x: float) -> float:
        """Derivative at a point; at a breakpoint the one to its left."""
        return float(self.slopes[np.searchsorted(self.breakpoints, x)])

    def largest_below(self, intercept: float, slope: float = 0.0) -> float | None:
        """The largest x of the domain up to which the function stays at or below a line.

        Args:
            intercept: Of the line that must not be exceeded.
            slope: Of that line.

        Returns:
            None if the function exceeds the line at the start already.
        """
        excess, growth = self.intercepts - intercept, self.slopes - slope
        start = excess + growth * self.low
        if np.any(start > RELATIVE_TOLERANCE * np.abs(self.intercepts + self.slopes * self.low)):
            return None
        growing = growth > 0
        crossings = -excess[growing] / growth[growing]
        return float(np.clip(np.min(crossings, initial=self.high), self.low, self.high))

    def smallest_below(self, intercept: float, slope: float = 0.0) -> float | None:
        """The smallest x of the domain from which on the function stays at or below a line.

        Args:
            intercept: Of the line that must not be exceeded.
            slope: Of that line.

        Returns:
            None if the function exceeds the line at the end still.
        """
        excess, growth = self.intercepts - intercept, self.slopes - slope
        end = excess + growth * self.high
        if np.any(end > RELATIVE_TOLERANCE * np.abs(self.intercepts + self.slopes * self.high)):
            return None
        falling = growth < 0
        crossings = -excess[falling] / growth[falling]
        return float(np.clip(np.max(crossings, initial=self.low), self.low, self.high))


def envelope(evaluate: Callable[[Vector], Evaluation], low: float, high: float) -> Envelope:
    """Find all lines of a convex piecewise-linear function.

    Args:
        evaluate: Takes M points; gives intercept and slope of a line that is the
            maximum there.
        low: Start of the domain.
        high: End of the domain.
    """
    intercepts, slopes = evaluate(np.array([low, high]))
    lines = [(float(slopes[0]), float(intercepts[0])), (float(slopes[1]), float(intercepts[1]))]
    open_pairs = [(lines[0], lines[1])]
    found = {lines[0], lines[1]}
    while open_pairs:
        crossing = [pair for pair in open_pairs if pair[1][0] > pair[0][0]]
        if not crossing:
            break
        x = np.clip(np.array([(a[1] - b[1]) / (b[0] - a[0]) for a, b in crossing]), low, high)
        intercepts, slopes = evaluate(x)
        open_pairs = []
        for (left, right), at, intercept, slope in zip(
            crossing, x, intercepts, slopes, strict=True
        ):
            value, known = intercept + slope * at, left[1] + left[0] * at
            if value > known * (1 + RELATIVE_TOLERANCE):
                line = (float(slope), float(intercept))
                found.add(line)
                open_pairs += [(left, line), (line, right)]
    return _assemble(sorted(found), low, high)


def _assemble(lines: list[tuple[float, float]], low: float, high: float) -> Envelope:
    """Keep the lines that are the maximum somewhere, in order of slope."""
    kept: list[tuple[float, float]] = []
    breakpoints: list[float] = []
    for slope, intercept in lines:
        while kept:
            if slope == kept[-1][0]:
                crossing = -np.inf if intercept >= kept[-1][1] else np.inf
            else:
                crossing = (kept[-1][1] - intercept) / (slope - kept[-1][0])
            if crossing > (breakpoints[-1] if breakpoints else low):
                break
            kept.pop()
            if breakpoints:
                breakpoints.pop()
        else:
            crossing = low
        if crossing >= high:
            continue
        if kept:
            breakpoints.append(float(crossing))
        kept.append((slope, intercept))
    return Envelope(
        intercepts=np.array([intercept for _, intercept in kept]),
        slopes=np.array([slope for slope, _ in kept]),
        breakpoints=np.array(breakpoints),
        low=low,
        high=high,
    )

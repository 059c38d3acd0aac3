"""Where the answer changes: exact inversions of the step time in one price.

For a fixed order everything here is read off an `Envelope`; where the order depends on
durations, or a bucketing policy looks at the clock, it is a bisection on a logarithmic
scale and says so (`is_exact` false).
"""

import math
from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.errors import ScenarioError
from wirebound.network.record import Network
from wirebound.simulate.curve import COMPUTE_FIELDS, SPAN, Curve
from wirebound.simulate.envelope import RELATIVE_TOLERANCE, Vector
from wirebound.simulate.program import Program, needs_events, structural_fields
from wirebound.simulate.scenario import Scenario
from wirebound.workload.record import Workload

BISECTED = 1e-6
"""Relative width at which a bisection stops."""


class Threshold(msgspec.Struct, frozen=True):
    """The value of one field at which something becomes true.

    Attributes:
        field: Of the scenario, in its own unit; `efficiency` and `workers` too.
        value: Where it happens; None where no value does it.
        is_exact: Read off the envelope rather than found by bisection.
    """

    field: str
    value: float | None
    is_exact: bool = True


def required(curve: Curve, target: float) -> Threshold:
    """The value of a field from which on the scaling factor is at least a target.

    For the link, compression and batch the smallest such value, for latency and compute
    speed the largest.

    Raises:
        ScenarioError: A target that is no scaling factor.
    """
    _check_target(target)
    intercept, slope = curve.alone_line()
    rises = curve.field not in COMPUTE_FIELDS
    if curve.is_exact:
        x = _crossing(curve, intercept / target, slope / target, rises=rises)
        return _threshold(curve, x)

    def meets(x: float) -> bool:
        step_s, alone_s = curve.outcome(np.array([x]))
        return bool(alone_s[0] >= target * step_s[0])

    return _threshold(curve, _bisect(curve, meets, rises=rises))


def enough(curve: Curve, gain: float = 0.01) -> Threshold:
    """The value of a field beyond which even its perfection gains less than `gain` of the step.

    Raises:
        ScenarioError: A gain that is no share of the step.
    """
    if not 0 <= gain < 1:
        raise ScenarioError(f"gain is {gain}, expected a share of the step such as 1%")
    best, _ = curve.outcome(np.array([curve.low]))
    limit_s = float(best[0]) / (1 - gain)
    if curve.is_exact:
        return _threshold(curve, _crossing(curve, limit_s, 0.0, rises=True))

    def meets(x: float) -> bool:
        step_s, _ = curve.outcome(np.array([x]))
        return bool(step_s[0] <= limit_s)

    return _threshold(curve, _bisect(curve, meets, rises=True))


def effective_bps(
    workload: Workload, network: Network, scenario: Scenario, scaling_factor: float
) -> Threshold:
    """The line rate at which a perfect transport would give a measured scaling factor."""
    perfect = msgspec.structs.replace(scenario, efficiency=1.0)
    return required(Curve(workload, network, perfect, "link_bps"), scaling_factor)


def required_efficiency(
    workload: Workload, network: Network, scenario: Scenario, target: float
) -> Threshold:
    """The share of the line rate a transport must reach for a target scaling factor."""
    needed = effective_bps(workload, network, scenario, target)
    rate = network.inter.bandwidth_bps if scenario.link_bps is None else scenario.link_bps
    share = None if needed.value is None else needed.value / rate
    if share is not None and share > 1:
        share = None
    return Threshold("efficiency", share, needed.is_exact)


def largest_workers(
    workload: Workload, network: Network, scenario: Scenario, target: float, limit: int = 65_536
) -> Threshold:
    """The largest worker count up to which every full set of nodes meets a target.

    Returns:
        `limit` where all counts up to it do, None where not even one full node does.

    Raises:
        ScenarioError: A target that is no scaling factor.
    """
    _check_target(target)
    per_node = scenario.gpus_per_node
    if per_node > limit:
        return Threshold("workers", None)
    if structural_fields(scenario) & {"workers"} or needs_events(network, scenario):
        counts = np.array([per_node * 2**k for k in range(int(math.log2(limit / per_node)) + 1)])
        is_exact = False
    else:
        counts = np.arange(per_node, limit + 1, per_node)
        is_exact = True
    last: float | None = None
    for chunk in np.array_split(counts, max(1, len(counts) // 4096)):
        meets = _scaling(workload, network, scenario, chunk.astype(np.float64)) >= target
        if not meets.all():
            first = int(np.argmin(meets))
            last = float(chunk[first - 1]) if first else last
            break
        last = float(chunk[-1])
    return Threshold("workers", last, is_exact)


def _check_target(target: float) -> None:
    if not 0 < target <= 1:
        raise ScenarioError(f"target is {target}, expected a scaling factor above 0, up to 1")


def _scaling(
    workload: Workload, network: Network, scenario: Scenario, workers: Vector
) -> NDArray[np.float64]:
    if structural_fields(scenario) & {"workers"}:
        outcomes = [
            Program(workload, network, msgspec.structs.replace(scenario, workers=int(n))).evaluate()
            for n in workers
        ]
        return np.array([float(o.alone_s[0] / o.step_s[0]) for o in outcomes])
    outcome = Program(workload, network, scenario).evaluate({"workers": workers})
    return np.asarray(outcome.alone_s / outcome.step_s)


def _threshold(curve: Curve, x: float | None) -> Threshold:
    """The field's value at x; one that only infinity reaches is none."""
    value = None if x is None else float(curve.value(np.array([x]))[0])
    if value is not None and not math.isfinite(value):
        value = None
    return Threshold(curve.field, value, curve.is_exact)


def _crossing(curve: Curve, intercept: float, slope: float, *, rises: bool) -> float | None:
    """The end of the range of x in which the step time stays at or below a line."""
    ends = curve.pieces()
    low, high = ends[0], ends[-1]
    if len(ends) > 2:  # noqa: PLR2004 - more than the two ends of the domain
        steps, _ = curve.outcome(np.array(ends))
        meets = steps <= intercept * (1 + RELATIVE_TOLERANCE)
        if not meets[0]:
            return None
        last = int(np.max(np.nonzero(meets)[0]))
        low, high = ends[last], ends[min(last + 1, len(ends) - 1)]
        if low == high:
            return high
    found = curve.envelope(low, high)
    if rises:
        return found.largest_below(intercept, slope)
    return found.smallest_below(intercept, slope)


def _bisect(curve: Curve, meets: Callable[[float], bool], *, rises: bool) -> float | None:
    """The edge of the range of x that meets the goal, on a logarithmic scale."""
    small, large = max(curve.low, 1 / SPAN), curve.high
    good, bad = (small, large) if rises else (large, small)
    if not meets(good):
        return None
    if meets(bad):
        return bad
    while abs(good - bad) > BISECTED * good:
        middle = math.sqrt(good * bad)
        if meets(middle):
            good = middle
        else:
            bad = middle
    return good

"""The step time as a function of one field of a scenario."""

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.errors import ScenarioError
from wirebound.network.record import Network
from wirebound.simulate import maxplus
from wirebound.simulate.envelope import Envelope, Evaluation, Vector, envelope
from wirebound.simulate.program import Program, needs_events, structural_fields
from wirebound.simulate.run import Array, leg_s
from wirebound.simulate.scenario import Scenario
from wirebound.workload.record import Workload

Field = Literal["link_bps", "latency_s", "compression_ratio", "compute_speed", "batch_scale"]

SPAN = 1e6
"""How far from the base a price is followed, as a factor."""

COMPUTE_FIELDS = ("compute_speed", "batch_scale")
"""Fields that change the step of one worker too."""


class Curve:
    """The step time as a function of one field of a scenario, all else fixed.

    The function is followed in a variable x in which it is convex: seconds a byte for the
    link, 1 / ratio for compression, 1 / speed for compute, the field itself otherwise;
    x is relative to the base value.

    Args:
        workload: What a step needs.
        network: What moving bytes costs.
        scenario: The base.
        field: What varies.

    Raises:
        ScenarioError: A latency to vary that is zero.
    """

    def __init__(
        self, workload: Workload, network: Network, scenario: Scenario, field: Field
    ) -> None:
        self.workload = workload
        self.network = network
        self.scenario = scenario
        self.field = field
        self.base = _base(network, scenario, field)
        self.is_inverse = field in ("link_bps", "compression_ratio", "compute_speed")
        self.program = Program(workload, network, scenario)
        self.is_exact = not (
            needs_events(network, scenario)
            or field in structural_fields(scenario)
            or (field in COMPUTE_FIELDS and self.program.has_parallel_compute)
        )

    @property
    def low(self) -> float:
        """Start of the domain of x."""
        return 1 / SPAN if self.field in COMPUTE_FIELDS else 0.0

    @property
    def high(self) -> float:
        """End of the domain of x; a compression ratio below 1 is no compression."""
        return self.base if self.field == "compression_ratio" else SPAN

    def value(self, x: Vector) -> Vector:
        """The field's value at x."""
        if not self.is_inverse:
            return self.base * x
        with np.errstate(divide="ignore", over="ignore"):
            return self.base / x

    def outcome(self, x: Vector) -> tuple[Vector, Vector]:
        """Step time on all workers and on one (M,), by simulation."""
        values = self.value(x)
        if self.field in structural_fields(self.scenario):
            programs = [
                Program(
                    self.workload,
                    self.network,
                    msgspec.structs.replace(self.scenario, **{self.field: float(value)}),
                )
                for value in values
            ]
            return (
                np.array([program.step_s()[0] for program in programs]),
                np.array([program.alone_s()[0] for program in programs]),
            )
        columns: dict[str, Vector] = {self.field: values}
        return self.program.step_s(columns), self.program.alone_s(columns)

    def pieces(self) -> list[float]:
        """Ends of the intervals of x on which every cost is a line.

        One interval, unless compression changes the message size under an efficiency
        that depends on it.
        """
        inside: set[float] = set()
        tiers = [self.network.intra]
        if self.scenario.efficiency is None:
            tiers.append(self.network.inter)
        if self.field == "compression_ratio":
            for tier in tiers:
                if tier is not None and isinstance(tier.efficiency, tuple):
                    for op in self.program.graph.operations:
                        if op.is_gradient and op.nbytes:
                            inside |= {size / op.nbytes * self.base for size, _ in tier.efficiency}
        return [self.low, *sorted(x for x in inside if self.low < x < self.high), self.high]

    def envelope(self, low: float | None = None, high: float | None = None) -> Envelope:
        """The step time as a maximum of lines in x, exact between two ends of a piece."""
        low = self.low if low is None else low
        high = self.high if high is None else high
        intercepts, slopes = self._lines(low, min(high, low + 1))

        def evaluate(x: Vector) -> Evaluation:
            masks = maxplus.on_critical_path(
                self.program.graph, self.program.costs({self.field: self.value(x)})
            )
            return (
                _along_path(masks, intercepts, len(x)),
                _along_path(masks, slopes, len(x)),
            )

        return envelope(evaluate, low, high)

    def alone_line(self) -> tuple[float, float]:
        """Intercept and slope of the one-worker step time in x."""
        x = np.array([0.5, 1.0])
        alone = self.program.alone_s({self.field: self.value(x)})
        slope = float(alone[1] - alone[0]) / 0.5
        return float(alone[1]) - slope, slope

    def _lines(self, low: float, high: float) -> tuple[list[list[Array]], list[list[Array]]]:
        """Each leg's seconds as intercept + slope * x, from pricing two points."""
        costs = self.program.costs({self.field: self.value(np.array([low, high]))})
        intercepts: list[list[Array]] = []
        slopes: list[list[Array]] = []
        for legs in costs:
            totals = [np.asarray(leg_s(leg), dtype=np.float64) for leg in legs]
            ends = [(t, t) if t.ndim == 0 else (t[0], t[-1]) for t in totals]
            rise = [(last - first) / (high - low) for first, last in ends]
            slopes.append(list(rise))
            intercepts.append([a - s * low for (a, _), s in zip(ends, rise, strict=True)])
        return intercepts, slopes


def _along_path(
    masks: list[list[NDArray[np.bool_]]], amounts: list[list[Array]], size: int
) -> Vector:
    """Sum of the amounts on each scenario's path, averaged over the draws of a jitter."""
    has_draws = any(mask.ndim > 1 for legs in masks for mask in legs)
    total: Vector = np.zeros((size, 1) if has_draws else size)
    for legs, values in zip(masks, amounts, strict=True):
        for mask, value in zip(legs, values, strict=True):
            total = total + np.where(mask, value, 0.0)
    return np.asarray(total.mean(axis=-1)) if has_draws else total


def _base(network: Network, scenario: Scenario, field: Field) -> float:
    if field == "link_bps":
        return network.inter.bandwidth_bps if scenario.link_bps is None else scenario.link_bps
    if field == "latency_s":
        base = network.inter.alpha_s if scenario.latency_s is None else scenario.latency_s
        if base == 0:
            raise ScenarioError("latency is 0, so no multiple of it can be a threshold")
        return base
    return float(getattr(scenario, field))

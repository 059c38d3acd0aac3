"""From simulated step times to verdicts."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from wirebound.errors import ScenarioError, WorkloadError
from wirebound.resources import Resource
from wirebound.simulate.curve import Curve
from wirebound.simulate.grid import Chunk
from wirebound.simulate.program import Program
from wirebound.simulate.scenario import LARGEST, NUMERIC, Scenario
from wirebound.simulate.thresholds import (
    Threshold,
    effective_bps,
    enough,
    largest_workers,
    required,
    required_efficiency,
)
from wirebound.units import format_time
from wirebound.verdict.causes import decompose
from wirebound.verdict.evidence import (
    Scene,
    assumptions,
    bound,
    evidence,
    next_measurement,
    warnings,
)
from wirebound.verdict.record import Cause, Verdict, headline

DEFAULT_TARGET = 0.95

NOISE = 1e-12
"""A cause below this share of the step is a rounding error of a subtraction."""


class Measured(msgspec.Struct, frozen=True):
    """What somebody measured for the scenario: a scaling factor, or a step time.

    Attributes:
        scaling_factor: Step time on one worker over step time on all.
        step_s: Step time on all workers [s].
    """

    scaling_factor: float | None = None
    step_s: float | None = None

    def factor(self, alone_s: float) -> float | None:
        """The measured scaling factor.

        Raises:
            ScenarioError: A step that is shorter than one worker's.
        """
        if self.step_s is None:
            return self.scaling_factor
        if self.step_s < alone_s:
            raise ScenarioError(
                f"measured step of {format_time(self.step_s)} is shorter than one worker's "
                f"{format_time(alone_s)}",
                "give the step time on all workers, at the same samples a worker",
            )
        return alone_s / self.step_s


def judge(
    chunk: Chunk, *, target: float | None = None, measured: Measured | None = None
) -> Iterator[Verdict]:
    """A verdict for each scenario of a chunk that was evaluated with its bill.

    Args:
        chunk: From `simulate.grid.sweep`.
        target: Scaling factor to compute thresholds for; None computes none.
        measured: What was measured, to be explained by an effective link.

    Raises:
        ScenarioError: A measured step faster than one worker's.
        WorkloadError: A step that takes no time, of which nothing can be a share.
    """
    program, outcome = chunk.program, chunk.outcome
    shape = outcome.step_s.shape
    causes = decompose(program, chunk.columns, outcome.step_s)
    link_s = program.link_s(chunk.columns)
    latency_s = program.communication_s(chunk.columns, (Resource.LATENCY_INTER,))
    busy_s = program.communication_s(chunk.columns)
    for row in range(shape[0]):
        scenario = _row_scenario(program.scenario, chunk, row)
        step_s, alone_s = float(outcome.step_s[row]), float(outcome.alone_s[row])
        free_s = float(outcome.free_network_s[row])
        seconds = {word: float(values[row]) for word, values in causes.items()}
        if step_s == 0:
            raise WorkloadError(
                f"workload {program.workload.name!r}: a step takes no time at all",
                "give its operations seconds",
            )
        is_settled = _is_settled(program, chunk, row)
        scene = Scene(program, scenario, float(link_s[row]), float(latency_s[row]))
        found = tuple(
            Cause(word, s, evidence(word, scene))
            for word, s in sorted(seconds.items(), key=lambda item: -item[1])
            if s > NOISE * step_s
        )
        share = (step_s - free_s) / step_s
        bill = {r.value: float(v[row]) for r, v in outcome.bill.items() if v[row] != 0}
        factor = None if measured is None else measured.factor(alone_s)
        yield Verdict(
            word=headline(found, step_s, share),
            workload=program.workload.name,
            source=program.workload.source,
            network=program.network.name,
            scenario=fields(program, scenario),
            bound=bound(scenario),
            step_s=step_s,
            step_range_s=(step_s, step_s) if target is None else _range(program, scenario),
            alone_s=alone_s,
            free_network_s=free_s,
            exposed_comm_s=step_s - free_s,
            scaling_factor=alone_s / step_s,
            network_share=share,
            utilization=_share(float(link_s[row]), float(busy_s[row])),
            average_utilization=_share(float(link_s[row]), step_s),
            bill=bill,
            bill_shares={name: seconds / step_s for name, seconds in bill.items()},
            causes=found,
            thresholds={}
            if target is None or scenario.workers == 1 or alone_s == 0
            else thresholds(program, scenario, target, factor),
            target=target,
            measured_scaling_factor=factor,
            is_exact=is_settled,
            assumptions=assumptions(program, scenario),
            warnings=warnings(program, scenario, is_settled=is_settled),
            next_measurement=next_measurement(program),
        )


def thresholds(
    program: Program, scenario: Scenario, target: float, measured: float | None = None
) -> dict[str, Threshold]:
    """Where one scenario's answer changes, by name (see `Verdict.thresholds`)."""
    parts = (program.workload, program.network, scenario)
    link = Curve(*parts, "link_bps")
    explained = {} if measured is None else {"effective_link": effective_bps(*parts, measured)}
    return explained | {
        "link_for_target": required(link, target),
        "compression_for_target": required(Curve(*parts, "compression_ratio"), target),
        "efficiency_for_target": required_efficiency(*parts, target),
        "batch_for_target": required(Curve(*parts, "batch_scale"), target),
        "workers_for_target": largest_workers(*parts, target),
        "link_enough": enough(link),
    }


def fields(program: Program, scenario: Scenario) -> Mapping[str, Any]:
    """A scenario's fields as plain values, what the network supplied filled in."""
    inter = program.network.inter
    plain: dict[str, Any] = msgspec.to_builtins(scenario)
    schedule = plain.pop("schedule")
    bucketing = schedule.pop("bucketing")
    plain["bucketing"] = bucketing.pop("type")
    if plain["link_bps"] is None:
        plain["link_bps"] = inter.bandwidth_bps
    if plain["latency_s"] is None:
        plain["latency_s"] = inter.alpha_s
    if plain["efficiency"] is None:
        plain["efficiency"] = (
            "measured" if isinstance(inter.efficiency, tuple) else inter.efficiency
        )
    return {**plain, **bucketing, **schedule}


def _row_scenario(base: Scenario, chunk: Chunk, row: int) -> Scenario:
    values = {
        name: int(column[row]) if name in ("workers", "gpus_per_node") else float(column[row])
        for name, column in chunk.columns.items()
        if name in NUMERIC
    }
    return msgspec.structs.replace(base, **values)


def _range(program: Program, scenario: Scenario) -> tuple[float, float]:
    """Step time with compute as fast and as slow as the workload's uncertainty allows."""
    doubt = program.workload.source.uncertainty
    ends = []
    for factor in (max(1 / LARGEST, 1 - doubt), 1 + doubt):
        speed = min(max(scenario.compute_speed / factor, 1 / LARGEST), LARGEST)
        bent = msgspec.structs.replace(scenario, compute_speed=speed)
        ends.append(float(Program(program.workload, program.network, bent).evaluate().step_s[0]))
    return (ends[0], ends[1])


def _is_settled(program: Program, chunk: Chunk, row: int) -> bool:
    if not program.scenario.schedule.overlap_next_forward:
        return True
    columns = {name: values[row : row + 1] for name, values in chunk.columns.items()}
    return program.window(columns).is_settled


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0

"""Whose fault a step is: what is saved when one thing after the other becomes free.

The bill says what the chain that ends last is made of; the causes say what a change
would gain. Removing one after the other, in a fixed order, makes them add up:

skew -> volume -> transport -> latency -> inside the node -> link -> compute and input
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.resources import Resource
from wirebound.simulate.program import Columns, Program
from wirebound.verdict.record import Word
from wirebound.workload.record import SPAN_RESOURCE, Kind

Vector = NDArray[np.float64]

FULL = 0.9
"""A transport that reaches this share of the line rate leaves nothing to fix but headers."""


def decompose(program: Program, columns: Columns, step_s: Vector) -> dict[Word, Vector]:
    """Seconds of each cause (S,); they add up to the step time.

    Args:
        program: What was simulated.
        columns: Fields that vary.
        step_s: Its step times (S,).
    """
    free: set[Resource] = {Resource.WAIT}
    now = np.minimum(step_s, program.step_without(free, columns))
    causes = {Word.SKEW: step_s - now}
    deferred = _deferred(program)
    if deferred is not program:
        later = np.minimum(now, deferred.step_without(free, columns))
        causes[Word.VOLUME] = now - later
        now = later
    columns = {**columns, "efficiency": _reachable(program, columns, step_s.shape)}
    for word, resources in (
        (Word.TRANSPORT, ()),
        (Word.LATENCY, (Resource.LATENCY_INTER,)),
        (Word.INTRA_NODE, (Resource.LINK_INTRA, Resource.LATENCY_INTRA)),
        (Word.LINK, (Resource.LINK_INTER,)),
    ):
        free |= set(resources)
        # Where the order depends on durations, cheaper operations can end later.
        later = np.minimum(now, deferred.step_without(free, columns))
        causes[word] = now - later
        now = later
    link_s = causes[Word.LINK]
    causes[Word.LINK] = np.clip(_cannot_hide(deferred, columns), 0.0, link_s)
    causes[Word.OVERLAP] = link_s - causes[Word.LINK]
    causes[Word.INPUT] = np.minimum(_outside_compute(program, columns), now)
    causes[Word.COMPUTE] = now - causes[Word.INPUT]
    return causes


def efficiency_in_use(program: Program, columns: Columns, shape: tuple[int, ...]) -> Vector:
    """The best share of the line rate the transport reaches at any size (S,)."""
    if "efficiency" in columns:
        return columns["efficiency"]
    efficiency = program.scenario.efficiency
    return np.full(
        shape, program.network.inter.best_efficiency if efficiency is None else efficiency
    )


def _reachable(program: Program, columns: Columns, shape: tuple[int, ...]) -> Vector:
    """What the transport could reach: what it does where it fills the link, else all of it."""
    efficiency = efficiency_in_use(program, columns, shape)
    return np.where(efficiency < FULL, 1.0, efficiency)


def _deferred(program: Program) -> Program:
    """The same step with one reduction for all micro-steps."""
    schedule = program.scenario.schedule
    if not (schedule.sync_every_micro_step and schedule.accumulation > 1):
        return program
    schedule = msgspec.structs.replace(schedule, sync_every_micro_step=False)
    scenario = msgspec.structs.replace(program.scenario, schedule=schedule)
    return Program(program.workload, program.network, scenario)


def _cannot_hide(program: Program, columns: Columns) -> Vector:
    """Seconds on the link that do not fit under a backward pass, in whatever order."""
    scenario = program.scenario
    speed = columns.get("compute_speed", scenario.compute_speed)
    scale = columns.get("batch_scale", scenario.batch_scale)
    backward_s = program.workload.span_s(Kind.BACKWARD) * scale / speed
    if scenario.schedule.overlap_next_forward:
        backward_s = backward_s + program.workload.span_s(Kind.FORWARD) * scale / speed
    return program.link_s(columns) / columns["efficiency"] - backward_s


def _outside_compute(program: Program, columns: Columns) -> Vector:
    """Input and host seconds of all micro-steps; input follows the batch."""
    scenario = program.scenario
    scale = columns.get("batch_scale", scenario.batch_scale)
    seconds = {
        kind: program.workload.span_s(kind)
        for kind, resource in SPAN_RESOURCE.items()
        if resource is not Resource.COMPUTE
    }
    once = seconds[Kind.INPUT] * scale + seconds[Kind.HOST]
    return np.asarray(once * scenario.schedule.accumulation)

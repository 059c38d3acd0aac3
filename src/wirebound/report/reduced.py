"""A reduced recording in the terminal: what was measured, and what a step needs."""

from rich.console import Console

from wirebound.report.console import add_row, line, plain_table, put
from wirebound.units import format_ratio, format_size, format_time
from wirebound.workload.bucketing import DDP
from wirebound.workload.recorded import GLOO_STREAMS, Recorded
from wirebound.workload.reduce import Reduced

MOST_COLLECTIVES = 12
"""Shown; the rest is counted."""


def show_reduced(con: Console, reduced: Reduced) -> None:
    """Print a recording's summary."""
    workload, recorded = reduced.workload, reduced.recorded
    line(con, f"{workload.name}: {workload.source.detail}", "bold")
    line(
        con,
        f"A step takes {format_time(recorded.step_s)} on its slowest rank "
        f"(± {format_ratio(workload.source.uncertainty)}), without waiting for collectives "
        f"{format_time(recorded.alone_s)}; it waits {format_time(recorded.exposed_wait_s)} of "
        f"{format_time(recorded.comm_s)} in which collectives are under way.",
    )
    con.print()
    _operations(con, reduced)
    if recorded.collectives:
        con.print()
        _collectives(con, recorded)
    con.print()
    line(con, f"Recorded with {schedule_words(reduced)}")
    for warning in reduced.warnings:
        line(con, f"Warning: {warning}", "yellow")


def schedule_words(reduced: Reduced) -> str:
    """The recorded schedule in the words of `wirebound whatif`."""
    schedule = reduced.schedule
    words = ["--bucketing explicit"]
    if isinstance(schedule.bucketing, DDP):
        policy = schedule.bucketing
        words = [f"--bucketing {'ddp' if policy.rebuilt else 'ddp-unrebuilt'}"]
        words.append(f"--set bucket_cap={format_exactly(policy.cap_bytes)}")
        if policy.first_bytes is not None:
            words.append(f"--set first_bucket={format_exactly(policy.first_bytes)}")
    if schedule.accumulation > 1:
        words.append(f"--set accumulation={schedule.accumulation}")
    if schedule.sync_every_micro_step:
        words.append("--set sync_every_micro_step=true")
    if reduced.recorded.backend == "gloo":
        words.append(f"--set streams={GLOO_STREAMS}")
    return " ".join(words)


def format_exactly(nbytes: float) -> str:
    """A size [bytes] as a flag takes it, without rounding."""
    return f"{nbytes:.0f}B"


def _operations(con: Console, reduced: Reduced) -> None:
    workload = reduced.workload
    table = plain_table(
        ["", "a micro-step" if reduced.schedule.accumulation > 1 else ""], right=(1,)
    )
    for op in workload.operations:
        add_row(table, op.name, format_time(op.seconds))
    size = format_size(workload.gradient_bytes)
    add_row(table, f"{len(workload.gradients)} gradients", size)
    put(con, table)


def _collectives(con: Console, recorded: Recorded) -> None:
    headers = ["collective", "kind", "size", "a step", "enqueued\nto done", "transfer"]
    table = plain_table(headers, right=range(2, 6))
    for one in recorded.collectives[:MOST_COLLECTIVES]:
        add_row(
            table,
            one.name,
            one.kind,
            format_size(one.nbytes),
            f"{one.per_step:.3g}",
            format_time(one.seconds),
            format_time(one.transfer_s),
        )
    put(con, table)
    left_out = len(recorded.collectives) - MOST_COLLECTIVES
    if left_out > 0:
        line(con, f"and {left_out} more")

"""A validation in the terminal: errors beside those of trivial rules, and the worst runs."""

from collections.abc import Mapping, Sequence

from rich.console import Console

from wirebound.report.console import add_row, line, plain_table, put
from wirebound.study.knee import Knee
from wirebound.study.validate import MODEL, Checked, Errors, Validation
from wirebound.units import format_exact_size, format_rate, format_ratio, format_time

WORST = 10
"""Runs shown unless all are asked for."""

MOST_PARTS = 3
"""Resources of a predicted step that are named."""


def show_validation(con: Console, validation: Validation, *, with_all: bool = False) -> None:
    """Print how far predictions are from measurements.

    Args:
        con: Where.
        validation: Of a study.
        with_all: Every run, in the order of the study, rather than the worst.
    """
    line(con, f"{validation.study}: {len(validation.checked)} runs predicted", "bold")
    groups = (
        ("All runs", validation.overall),
        ("Where the network matters", validation.where_it_matters),
        ("Workers that share cores", validation.oversubscribed),
    )
    for title, errors in groups:
        if errors:
            con.print()
            _errors(con, title, errors)
    if validation.replay is not None:
        con.print()
        line(
            con,
            "A run put together again from its own parts: median "
            f"{_percent(validation.replay.median)}, worst {_percent(validation.replay.worst)}",
        )
    if validation.knees:
        con.print()
        _knees(con, validation.knees)
    con.print()
    chosen = validation.checked
    if not with_all:
        chosen = tuple(sorted(chosen, key=lambda one: -abs(one.error))[:WORST])
    _runs(con, "Every run" if with_all else "The worst", chosen)
    for name, reason in validation.skipped.items():
        line(con, f"Left out: {name}: {reason}", "yellow")


def _errors(con: Console, title: str, errors: Mapping[str, Errors]) -> None:
    count = errors[MODEL].runs
    table = plain_table([f"{title} ({count})", "median", "90 %", "worst"], right=(1, 2, 3))
    for name, found in errors.items():
        row = (_percent(found.median), _percent(found.p90), _percent(found.worst))
        add_row(table, name, *row, style="bold" if name == MODEL else "")
    put(con, table)


def _knees(con: Console, found: Sequence[Knee]) -> None:
    headers = ["The network stops mattering at", "measured", "predicted", "error"]
    table = plain_table(headers, right=(1, 2, 3))
    for knee in found:
        config = knee.config
        add_row(
            table,
            f"{config.script}, cap {format_exact_size(config.bucket_cap_bytes)}",
            format_rate(knee.measured_bps),
            format_rate(knee.predicted_bps),
            f"{100 * (knee.predicted_bps / knee.measured_bps - 1):+.1f} %",
        )
    put(con, table)


def _runs(con: Console, title: str, chosen: Sequence[Checked]) -> None:
    table = plain_table([title, "measured", "predicted", "error", "made of"], right=(1, 2, 3))
    for one in chosen:
        add_row(
            table,
            one.id,
            format_time(one.measured_s),
            format_time(one.predicted_s),
            f"{100 * one.error:+.1f} %",
            _parts(one),
        )
    put(con, table)


def _parts(one: Checked) -> str:
    """The largest parts of a predicted step."""
    ordered = sorted(one.bill.items(), key=lambda item: -item[1])[:MOST_PARTS]
    return ", ".join(
        f"{name} {format_ratio(seconds / one.predicted_s)}" for name, seconds in ordered
    )


def _percent(error: float) -> str:
    return f"{100 * error:.1f} %"

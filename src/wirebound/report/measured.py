"""What was measured of a network, in the terminal: the samples, and a fit to them."""

from itertools import groupby

from rich.console import Console
from rich.table import Table

from wirebound.network import Network, Tier
from wirebound.network.fit import FREE_BPS
from wirebound.network.measured import bandwidths
from wirebound.report.console import add_row, line, plain_table, put
from wirebound.samples import Samples
from wirebound.units import GIGA, format_rate, format_ratio, format_size, format_time

HEADERS = ("size\n[B]", "count", "type", "time\n[µs]", "algbw\n[GB/s]", "busbw\n[GB/s]", "spread")


def show_samples(con: Console, samples: Samples) -> None:
    """Print a table for each operation, with the columns of nccl-tests."""
    for kind, group in groupby(samples.samples, key=lambda sample: sample.kind):
        rows = list(group)
        line(con, f"{kind}: {_layout(rows[0].ranks, rows[0].nodes)}, {samples.backend}", "bold")
        table = plain_table(HEADERS, right=(0, 1, 3, 4, 5, 6))
        for sample in rows:
            algbw_Bps, busbw_Bps = bandwidths(sample)
            add_row(
                table,
                str(sample.nbytes),
                str(sample.count),
                sample.dtype,
                f"{sample.seconds * 1e6:.1f}",
                f"{algbw_Bps / GIGA:.3f}",
                f"{busbw_Bps / GIGA:.3f}",
                "" if sample.spread is None else format_ratio(sample.spread),
            )
        put(con, table)
        con.print()
    for note in samples.notes:
        line(con, f"Note: {note}")


def show_fit(con: Console, network: Network) -> None:
    """Print what a fit found, over which range, and how well it gives the samples back."""
    fit = network.fit
    if fit is None:
        return
    line(con, f"{fit.collective} by {fit.algorithm}, {fit.sources}", "bold")
    line(
        con,
        f"Sizes from {format_size(fit.smallest_bytes)} to {format_size(fit.largest_bytes)} on "
        f"{', '.join(str(count) for count in fit.ranks)} ranks, {network.gpus_per_node} a node.",
    )
    line(
        con,
        f"Given back within {format_ratio(fit.median_residual)} (median), "
        f"{format_ratio(fit.worst_residual)} at worst.",
    )
    con.print()
    table = plain_table(["tier", "line rate", "a message", "best efficiency"], right=(1, 2, 3))
    for tier in (network.inter, network.intra):
        if tier is not None and tier.bandwidth_bps < FREE_BPS:
            _tier(table, tier)
    put(con, table)
    con.print()
    for assumption in network.assumptions:
        line(con, f"Assumed: {assumption}")


def _tier(table: Table, tier: Tier) -> None:
    add_row(
        table,
        tier.name,
        format_rate(tier.bandwidth_bps),
        format_time(tier.alpha_s),
        format_ratio(tier.best_efficiency),
    )


def _layout(ranks: int, nodes: int) -> str:
    if ranks == 1:
        return "each rank alone"
    return f"{ranks} ranks on {nodes} {'node' if nodes == 1 else 'nodes'}"

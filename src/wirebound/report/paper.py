"""The original study in the terminal: its curves beside its figures, and where they part."""

from collections.abc import Sequence

from rich.console import Console

from wirebound.report.console import add_row, line, plain_table, put
from wirebound.units import format_rate, format_ratio, format_time
from wirebound.verdict.paper import (
    CLAIMED_RATIOS,
    FIGURE_3,
    FIGURE_4,
    FIGURE_6_MEASURED,
    FIGURE_6_SIMULATED,
    FIGURE_8_10G,
    PaperVerdict,
)

TITLES = {"resnet50": "ResNet-50", "resnet101": "ResNet-101", "vgg16": "VGG-16"}


def show_paper(con: Console, verdict: PaperVerdict) -> None:
    """Print the figures of Zhang et al. (NetAI 2020) and what an exact engine says to them."""
    line(
        con, "Is Network the Bottleneck of Distributed Training? (Zhang et al., NetAI 2020)", "bold"
    )
    if verdict.is_published:
        line(con, f"{verdict.configurations} configurations from the published backward logs.")
    else:
        line(
            con,
            f"{verdict.configurations} configurations from this program's model zoo, scaled to "
            "the paper's three step times: near the paper's figures, not equal to them. "
            "Give the published logs with --data DIR for the original.",
            "yellow",
        )
    _bandwidth(con, verdict)
    _compression(con, verdict)
    _two_servers(con, verdict)
    _utilization(con, verdict)
    _effective(con, verdict)


def _bandwidth(con: Console, verdict: PaperVerdict) -> None:
    _title(con, "Figures 6 and 7: simulated scaling factor [%] over bandwidth [Gbit/s]")
    table = plain_table(["model", "GPUs", *_rates(verdict)], right=range(1, 7))
    for workers, models in verdict.by_rate.items():
        for name, factors in models.items():
            add_row(table, TITLES[name], str(workers), *_percent(factors))
    add_row(table, "  paper, simulated", "64", *_percent(FIGURE_6_SIMULATED))
    add_row(table, "  paper, measured", "64", *_percent(FIGURE_6_MEASURED))
    put(con, table)


def _compression(con: Console, verdict: PaperVerdict) -> None:
    _title(con, "Figure 8: scaling factor [%] over compression ratio, 64 workers")
    headers = ["model", "Gbit/s", *(f"{ratio:g}x" for ratio in verdict.ratios)]
    table = plain_table(headers, right=range(1, 8))
    for name in verdict.by_ratio_10g:
        add_row(table, TITLES[name], "10", *_percent(verdict.by_ratio_10g[name]))
        add_row(table, "  paper", "", *_percent(FIGURE_8_10G[name]), style="dim")
    for name, factors in verdict.by_ratio_100g.items():
        add_row(table, TITLES[name], "100", *_percent(factors))
    put(con, table)
    low, high = CLAIMED_RATIOS
    con.print()
    for name, ratio in verdict.ratio_for_99.items():
        if ratio is None:
            says = "no ratio reaches 99 %"
        else:
            verdict_on_claim = "as the paper says" if ratio <= high else "not as the paper says"
            says = f"99 % at 10 Gbit/s needs {ratio:.2f}x compression, {verdict_on_claim}"
        line(con, f"{TITLES[name]}: {says} ({low:g}x to {high:g}x).")


def _two_servers(con: Console, verdict: PaperVerdict) -> None:
    _title(con, "Two servers, ResNet-50: which of these bounds holds? [%], over Gbit/s")
    table = plain_table(["", *_rates(verdict), "bound"], right=range(1, 6))
    add_row(table, "measured", *_percent(FIGURE_3[2]), "")
    for bound in verdict.two_servers:
        holds = "broken" if any(bound.is_exceeded) else "holds"
        name = "flat ring" if bound.algorithm == "ring" else bound.algorithm
        add_row(table, name, *_percent(bound.scaling_factor), holds)
    put(con, table)
    line(
        con,
        "Measured: figure 3. The rest: a perfect transport. A bound that a measurement beats is "
        "none: the flat ring, which the paper simulates, is not the algorithm that ran.",
    )


def _utilization(con: Console, verdict: PaperVerdict) -> None:
    _title(
        con,
        "Figure 4: link utilization [%] averaged over the step, idle phases included, over Gbit/s",
    )
    table = plain_table(["model", "", *_rates(verdict)], right=range(2, 7))
    for name, ideal in verdict.average_utilization.items():
        add_row(table, TITLES[name], "measured", *_percent(FIGURE_4[name]))
        add_row(table, "", "ideal", *_percent(ideal))
    put(con, table)
    line(
        con,
        "Ideal: a perfectly used network, and it looks idle at 100 Gbit/s too. The measured "
        "average is to be compared with that, not with 100 %.",
    )


def _effective(con: Console, verdict: PaperVerdict) -> None:
    _title(con, "What the transport was worth: measured scaling factors of ResNet-50, 8 servers")
    pairs = zip(verdict.rates_bps, FIGURE_6_MEASURED, verdict.effective_bps, strict=True)
    for nominal, factor, effective in pairs:
        worth = "more than any link" if effective is None else f"a perfect {format_rate(effective)}"
        line(con, f"{format_rate(nominal)} gave {format_ratio(factor)}: worth {worth}.")
    overheads = ", ".join(format_time(s) for s in verdict.overhead_s["resnet50"])
    line(con, f"Simulated overhead at these rates: {overheads}.", "dim")


def _title(con: Console, text: str) -> None:
    con.print()
    line(con, text, "bold")


def _rates(verdict: PaperVerdict) -> list[str]:
    return [f"{rate / 1e9:g}" for rate in verdict.rates_bps]


def _percent(factors: Sequence[float]) -> list[str]:
    return [f"{100 * factor:.1f}" for factor in factors]

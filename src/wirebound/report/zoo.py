"""The model zoo in the terminal."""

from collections.abc import Iterable

from rich.console import Console

from wirebound.report.console import add_row, plain_table, put
from wirebound.workload.zoo import Architecture

FP32_BYTES = 4


def show_zoo(con: Console, architectures: Iterable[Architecture]) -> None:
    """Print a line for each architecture."""
    table = plain_table(
        ["name", "params\n[M]", "tensors", "fp32\n[MB]", "forward\n[GFLOP]", "sample"],
        right=range(1, 5),
    )
    for one in architectures:
        add_row(
            table,
            one.name,
            _three_digits(one.num_parameters / 1e6),
            str(sum(len(layer.parameters) for layer in one.layers)),
            _three_digits(one.gradient_bytes(FP32_BYTES) / 1e6),
            _three_digits(one.flops_forward / 1e9),
            one.sample.removeprefix("one "),
        )
    put(con, table)


def _three_digits(value: float) -> str:
    """Three significant digits without an exponent, thousands apart."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{value:#.3g}"  # noqa: PLR2004 - 3 digits

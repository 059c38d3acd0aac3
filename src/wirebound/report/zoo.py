"""What comes with the program, in the terminal: architectures, devices, networks."""

from collections.abc import Iterable

from rich.console import Console

from wirebound.network import Preset
from wirebound.report.console import add_row, line, plain_table, put
from wirebound.units import format_rate, format_size, format_time
from wirebound.workload.devices import Device
from wirebound.workload.record import Workload
from wirebound.workload.zoo import Architecture

FP32_BYTES = 4

PLACES = {"inter": "between nodes", "intra": "inside a node", "machine": "machine"}


def show_zoo(
    con: Console,
    architectures: Iterable[Architecture],
    recorded: Iterable[Workload],
    devices: Iterable[Device],
    networks: Iterable[Preset],
) -> None:
    """Print a line for each architecture, recorded workload, device and network preset."""
    _architectures(con, architectures)
    con.print()
    _recorded(con, recorded)
    con.print()
    line(con, "Devices, for --device: " + ", ".join(device.name for device in devices))
    con.print()
    table = plain_table(["network", "where", "line rate"], right=(2,))
    for preset in networks:
        add_row(table, preset.name, PLACES[preset.place], format_rate(preset.bandwidth_bps))
    put(con, table)


def _architectures(con: Console, architectures: Iterable[Architecture]) -> None:
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


def _recorded(con: Console, recorded: Iterable[Workload]) -> None:
    table = plain_table(["recorded", "batch", "tensors", "gradients", "step"], right=range(1, 5))
    for one in recorded:
        add_row(
            table,
            one.name,
            str(one.batch or ""),
            str(len(one.gradients)),
            format_size(one.gradient_bytes),
            format_time(one.compute_s),
        )
    put(con, table)


def _three_digits(value: float) -> str:
    """Three significant digits without an exponent, thousands apart."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{value:#.3g}"  # noqa: PLR2004 - 3 digits

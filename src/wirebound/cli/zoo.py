"""`wirebound zoo`: the workloads, devices and networks that come with the program."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirebound.cli.output import deliver, output_options
from wirebound.cli.workload import resolve, timing_options

if TYPE_CHECKING:
    from wirebound.workload.devices import Dtype


@click.command()
@click.argument("name", required=False)
@timing_options
@output_options
def zoo(  # noqa: PLR0913 - one parameter a flag
    *,
    name: str | None,
    step: str | None,
    device: str | None,
    batch: int | None,
    dtype: "Dtype | None",
    as_json: bool,
    output: Path | None,
    force: bool,
) -> None:
    """List architectures, recorded workloads, devices and networks, or write a workload file.

    NAME is a recorded workload, or an architecture with --step or --device. Its workload is
    written as JSON: the gradients in ready order with bytes and times, ready for
    `wirebound whatif FILE`.
    """
    if name is not None:
        workload = resolve(name, step, device, batch, dtype)
        deliver(lambda _: None, lambda: workload, as_json=True, output=output, force=force)
        return

    from wirebound.network import presets
    from wirebound.report.zoo import show_zoo
    from wirebound.workload import bundled, devices
    from wirebound.workload import zoo as catalogue

    architectures = [catalogue.load(one) for one in catalogue.names()]
    known = [devices.device(one) for one in devices.names()]
    networks = presets()
    recorded = [bundled.load(one) for one in bundled.names()]
    deliver(
        lambda con: show_zoo(con, architectures, recorded, known, networks),
        lambda: {
            "schema_version": 1,
            "architectures": architectures,
            "recorded": recorded,
            "devices": known,
            "networks": networks,
        },
        as_json=as_json,
        output=output,
        force=force,
    )

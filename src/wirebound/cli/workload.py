"""The WORKLOAD argument: a file, a bundled recording, or an architecture and a time."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirebound.errors import WorkloadError

if TYPE_CHECKING:
    from wirebound.workload.devices import Dtype
    from wirebound.workload.record import Workload

DEFAULT_BATCH = 32

RECORDED = ".trace.json"
"""How the files of a recording end."""


def timing_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add what turns an architecture into a workload."""
    for option in (
        click.option(
            "--dtype", type=click.Choice(["fp32", "tf32", "bf16"]), help="Of the arithmetic [fp32]."
        ),
        click.option(
            "--batch", type=click.IntRange(min=1), help=f"Samples a worker [{DEFAULT_BATCH}]."
        ),
        click.option("--device", help="Model the step on a device: V100, A100, H100, …"),
        click.option("--step", help="What one worker takes for a step: 128ms."),
    ):
        command = option(command)
    return command


def resolve(
    name: str, step: str | None, device: str | None, batch: int | None, dtype: "Dtype | None"
) -> "Workload":
    """The workload of a command line.

    Args:
        name: Path of a workload file or of a recording; name of a bundled workload or of an
            architecture.
        step: Step time of one worker, for an architecture.
        device: Device to model it on, instead.
        batch: Samples a worker, for an architecture.
        dtype: Of the arithmetic, for an architecture.

    Raises:
        WireboundError: A name that is neither, or an architecture without a time.
    """
    from wirebound.units import parse_time
    from wirebound.workload import bundled, devices, zoo
    from wirebound.workload.files import read_workload
    from wirebound.workload.modelled import modelled, scaled

    path = Path(name)
    is_file = path.exists() or bool(path.suffix) or path.name != name
    if is_file or name in bundled.names():
        if step or device or batch or dtype:
            raise WorkloadError(
                f"{name} is a {'file' if is_file else 'recording'} and brings its own times",
                "--step, --device, --batch and --dtype time an architecture of the zoo",
            )
        if not is_file:
            return bundled.load(name)
        if path.is_dir() or path.name.endswith(RECORDED):
            from wirebound.cli.reduce import reduce_recording

            return reduce_recording(path).workload
        return read_workload(path)
    architecture = zoo.load(name)
    kind: Dtype = dtype or "fp32"
    if step is not None and device is not None:
        raise WorkloadError("--step and --device exclude each other: a measurement needs no model")
    if step is not None:
        step_s = parse_time(step, "--step")
        if step_s == 0:
            raise WorkloadError(f"--step {step!r}: a step takes time, expected such as 128ms")
        return scaled(architecture, step_s, batch or DEFAULT_BATCH, kind)
    if device is not None:
        return modelled(architecture, devices.device(device), batch or DEFAULT_BATCH, kind)
    raise WorkloadError(
        f"{name} is an architecture without a time",
        "give --step, such as 128ms, or --device, one of " + ", ".join(devices.names()),
    )

"""`wirebound bench`: what the network between the ranks of a job really does."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirebound.cli.fit import COLLECTIVES
from wirebound.cli.output import OutputError, deliver, output_options, write_file

if TYPE_CHECKING:
    from wirebound.record.netbench import Backend

KINDS = (*(kind for kind in COLLECTIVES if kind != "broadcast"), "reduction", "copy")
"""What the bench measures: collectives that `fit` takes, and what a rank does alone."""


@click.command()
@click.option("--smallest", default="1KiB", show_default=True, help="First size.")
@click.option("--largest", default="256MiB", show_default=True, help="Last size.")
@click.option("--budget", default="1s", show_default=True, help="Time for the repeats of one size.")
@click.option("--backend", type=click.Choice(["gloo", "nccl"]), help="[nccl where there is a GPU]")
@click.option(
    "--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Only this operation; repeat."
)
@output_options
def bench(  # noqa: PLR0913 - one parameter a flag
    *,
    smallest: str,
    largest: str,
    budget: str,
    backend: "Backend | None",
    kinds: tuple[str, ...],
    as_json: bool,
    output: Path | None,
    force: bool,
) -> None:
    """Measure the network between the ranks of a job: latency, bandwidth, additions.

    Runs in every rank, under torchrun; rank 0 prints what nccl-tests would, and writes
    the samples to the output file as JSON, for `wirebound fit`.

    \b
    torchrun --standalone --nproc-per-node 2 -m wirebound bench
    torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d \\
        --rdzv-endpoint HOST:29400 -m wirebound bench -o samples.json
    """
    from wirebound.errors import QuantityError
    from wirebound.record.netbench import ELEMENT_BYTES, Plan
    from wirebound.record.netbench import bench as measure
    from wirebound.units import parse_size, parse_time

    plan = Plan(
        smallest_bytes=int(parse_size(smallest, "--smallest")),
        largest_bytes=int(parse_size(largest, "--largest")),
        budget_s=parse_time(budget, "--budget"),
        backend=backend,
        kinds=kinds,
    )
    if not ELEMENT_BYTES <= plan.smallest_bytes <= plan.largest_bytes:
        raise QuantityError(
            f"--smallest {smallest} and --largest {largest}: expected at least "
            f"{ELEMENT_BYTES} B, and the smallest first"
        )
    is_first = os.environ.get("RANK", "0") == "0"
    if is_first and output is not None and output.is_file() and not force:
        raise OutputError(
            f"{output}: exists already", "choose another name, or --force to replace it"
        )
    samples = measure(plan)
    if samples is None:
        return

    from wirebound.report.console import console
    from wirebound.report.measured import show_samples
    from wirebound.samples import dumps

    if output is not None and str(output) != "-":
        write_file(output, dumps(samples), force=force)
        click.echo(f"Wrote {output}", err=True)
        if not as_json:
            show_samples(console(sys.stdout), samples)
            return
    is_json = as_json or output is not None
    deliver(
        lambda con: show_samples(con, samples),
        lambda: samples,
        as_json=is_json,
        output=None,
        force=force,
    )

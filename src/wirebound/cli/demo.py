"""`wirebound demo`: the first thing a newcomer runs."""

from pathlib import Path

import click

from wirebound.cli.output import deliver, output_options

MODEL = "resnet50"
STEP_S = 0.128
BATCH = 32
WORKERS, GPUS_PER_NODE, LINK, INTRA = 64, 8, "10Gbps", "nvlink2"


@click.command()
@output_options
def demo(*, as_json: bool, output: Path | None, force: bool) -> None:
    """Answer the question for one bundled workload.

    ResNet-50, 128 ms a step on one V100 with 32 images, on 8 nodes of 8 GPUs that are
    joined by 10 Gbit/s Ethernet.
    """
    from wirebound.api import whatif
    from wirebound.report.terminal import show_all
    from wirebound.workload.modelled import scaled
    from wirebound.workload.zoo import load

    verdicts = whatif(
        scaled(load(MODEL), STEP_S, BATCH),
        intra=INTRA,
        workers=WORKERS,
        gpus_per_node=GPUS_PER_NODE,
        link=LINK,
        algorithm="hierarchical",
    )
    deliver(
        lambda con: show_all(con, verdicts),
        lambda: {"schema_version": verdicts[0].schema_version, "verdicts": verdicts},
        as_json=as_json,
        output=output,
        force=force,
    )

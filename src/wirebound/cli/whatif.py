"""`wirebound whatif`: what a step takes under other circumstances, and why."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirebound.cli.output import deliver, output_options
from wirebound.cli.workload import resolve, timing_options
from wirebound.errors import ScenarioError

if TYPE_CHECKING:
    from wirebound.verdict.record import Verdict
    from wirebound.workload.devices import Dtype

FLAGS = (
    ("workers", "64 or 8,64,512: ranks that train data-parallel."),
    ("gpus-per-node", "Ranks that share a node and its NICs."),
    ("link", "Line rate of one port between nodes: 10Gbps or 10Gbps,25Gbps."),
    ("algorithm", "All-reduce: ring, hierarchical, tree, halving-doubling, …"),
    ("compression", "Uncompressed over compressed bytes: 4 or 1,2,5,10."),
    ("efficiency", "Share of the line rate the transport reaches: 40%, perfect, measured."),
    ("bucketing", "ddp, horovod, one, none, paper."),
)


OWN_FLAGS = ("network", "intra", "scenario", "target")
"""What is no key of a scenario."""


def _axis_options(command: Callable[..., None]) -> Callable[..., None]:
    for name, text in reversed(FLAGS):
        command = click.option(f"--{name}", help=text)(command)
    return command


@click.command()
@click.argument("workload")
@timing_options
@_axis_options
@click.option("--network", help="Preset (100gbe, p4d.24xlarge, …) or network file.")
@click.option("--intra", help="Preset of the link between a node's GPUs: nvlink3, pcie4, …")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE[,VALUE…]",
    help="Any other key, such as latency=20us; an unknown one lists them all.",
)
@click.option("--scenario", type=click.Path(path_type=Path), help="TOML file with the same keys.")
@click.option("--measured", help="Scaling factor or step time measured here: 71.8% or 178ms.")
@click.option(
    "--validated-by",
    type=click.Path(path_type=Path),
    metavar="STUDY",
    help="Study whose predictions say how far off this one may be.",
)
@click.option("--target", help="Scaling factor to find thresholds for: 0.95 or 95%.")
@output_options
def whatif(  # noqa: PLR0913 - one parameter a flag
    *,
    workload: str,
    step: str | None,
    device: str | None,
    batch: int | None,
    dtype: "Dtype | None",
    network: str | None,
    intra: str | None,
    settings: tuple[str, ...],
    scenario: Path | None,
    measured: str | None,
    validated_by: Path | None,
    target: str | None,
    as_json: bool,
    output: Path | None,
    force: bool,
    **flags: str | None,
) -> None:
    """What does a training step take under other circumstances, and why?

    WORKLOAD is a workload file, or an architecture of `wirebound zoo` with --step or
    --device. Every list makes an axis; several lists make a grid.

    \b
    wirebound whatif resnet50 --step 128ms --workers 64 --link 10Gbps
    wirebound whatif job.json --workers 8,64 --link 10Gbps,25Gbps,100Gbps
    """
    from wirebound.api import whatif as answer
    from wirebound.report.terminal import show_all

    keys = {name: _values(value) for name, value in flags.items() if value is not None}
    for text in settings:
        key, values = _setting(text)
        if key in keys:
            raise ScenarioError(f"{key} is given twice", "write a list, such as 8,64, for an axis")
        keys[key] = values
    verdicts = answer(
        resolve(workload, step, device, batch, dtype),
        network=network,
        intra=intra,
        scenario=scenario,
        target=target,
        measured=measured,
        **keys,
    )
    if validated_by is not None:
        verdicts = _with_error_bars(verdicts, validated_by)

    deliver(
        lambda con: show_all(con, verdicts),
        lambda: {"schema_version": verdicts[0].schema_version, "verdicts": verdicts},
        as_json=as_json,
        output=output,
        force=force,
    )


def _with_error_bars(verdicts: "list[Verdict]", folder: Path) -> "list[Verdict]":
    from wirebound.study.archive import read_runs, read_study
    from wirebound.study.validate import validate, with_error_bar

    validation = validate(read_study(folder), read_runs(folder))
    return [with_error_bar(verdict, validation) for verdict in verdicts]


def _values(text: str) -> list[str]:
    return [value.strip() for value in text.split(",")]


def _setting(text: str) -> tuple[str, list[str]]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ScenarioError(f"--set {text!r}, expected KEY=VALUE such as latency=20us")
    if key.strip() in OWN_FLAGS:
        raise ScenarioError(f"--set {text!r}: {key.strip()} has a flag of its own, --{key.strip()}")
    return key.strip().replace("-", "_"), _values(value)

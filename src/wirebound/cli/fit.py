"""`wirebound fit`: from measured samples to a network file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirebound.cli.output import deliver, output_options, write_file

if TYPE_CHECKING:
    from wirebound.samples import Measured, Samples

COLLECTIVES = (
    "all_reduce",
    "reduce_scatter",
    "all_gather",
    "broadcast",
    "all_to_all",
    "send_recv",
    "send_recv_both_ways",
)


@click.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--link", help="Line rate of all ports of a node together [best bus bandwidth].")
@click.option(
    "--collective",
    type=click.Choice(COLLECTIVES),
    help="Which samples to fit; also what a file that does not say it holds [all_reduce].",
)
@click.option("--algorithm", default="ring", show_default=True, help="Assumed of the all-reduce.")
@click.option(
    "--gpus-per-node",
    type=click.IntRange(min=1),
    help="Ranks a node, instead of what the host names say.",
)
@output_options
def fit(  # noqa: PLR0913 - one parameter a flag
    *,
    files: tuple[Path, ...],
    link: str | None,
    collective: "Measured | None",
    algorithm: str,
    gpus_per_node: int | None,
    as_json: bool,
    output: Path | None,
    force: bool,
) -> None:
    """Fit a network to measurements, for `wirebound whatif --network`.

    FILE is what `wirebound bench -o` wrote (.json), or the text output of nccl-tests,
    plain or gzipped. Several files are one network; those that contradict each other
    are refused.

    \b
    wirebound fit samples.json --link 25Gbps -o network.json
    wirebound fit all_reduce_perf.log -o network.json
    """
    from wirebound.network.fit import fit as fit_network
    from wirebound.network.record import dumps
    from wirebound.report.console import console
    from wirebound.report.measured import show_fit
    from wirebound.units import parse_rate

    network = fit_network(
        [_read(path, collective) for path in files],
        link_bps=None if link is None else parse_rate(link, "--link"),
        collective=collective or "all_reduce",
        algorithm=algorithm,
        gpus_per_node=gpus_per_node,
    )
    if output is not None and str(output) != "-":
        write_file(output, dumps(network).encode(), force=force)
        click.echo(f"Wrote {output}", err=True)
        if not as_json:
            show_fit(console(sys.stdout), network)
            return
    deliver(
        lambda con: show_fit(con, network),
        lambda: network,
        as_json=as_json or output is not None,
        output=None,
        force=force,
    )


def _read(path: Path, collective: "Measured | None") -> "Samples":
    """A file of samples, or one of nccl-tests."""
    import msgspec

    from wirebound import samples
    from wirebound.readers import nccl_tests

    if path.suffix != ".json":
        return nccl_tests.read(path, collective)
    return msgspec.structs.replace(samples.read(path), source=str(path))

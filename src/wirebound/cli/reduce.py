"""`wirebound reduce`: from a recording to a workload file."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirebound.cli.output import deliver, output_options, write_file

if TYPE_CHECKING:
    from wirebound.workload.reduce import Reduced


@click.command("reduce")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--name", help="Of the workload [the name of RUN].")
@click.option("--warmup", type=click.IntRange(min=0), help="Complete steps left out first [3].")
@output_options
def reduce_command(  # noqa: PLR0913 - one parameter a flag
    *,
    run: Path,
    name: str | None,
    warmup: int | None,
    as_json: bool,
    output: Path | None,
    force: bool,
) -> None:
    """Find what a step needs in a recording, and write it as a workload file.

    RUN is the folder of a recording, or the file of one of its ranks. Prints what was
    measured; with --json, as one object with the workload in it.

    \b
    wirebound reduce run/ -o job.json
    wirebound whatif job.json --workers 8,64 --link 10Gbps
    """
    from wirebound.report.reduced import show_reduced
    from wirebound.workload.files import dumps

    reduced = reduce_recording(run, name, warmup)
    if output is not None and str(output) != "-":
        write_file(output, dumps(reduced.workload), force=force)
        click.echo(f"Wrote {output}", err=True)
        output = None
    deliver(
        lambda con: show_reduced(con, reduced),
        lambda: {"schema_version": 1, **_fields(reduced)},
        as_json=as_json,
        output=output,
        force=force,
    )


def reduce_recording(run: Path, name: str | None = None, warmup: int | None = None) -> "Reduced":
    """Read a recording and reduce it.

    Args:
        run: Its folder, or the file of one of its ranks.
        name: Of the workload; by default that of the folder or file.
        warmup: Complete steps left out; None for the default.

    Raises:
        WireboundError: It cannot be read, or holds no step that can be reduced.
    """
    from wirebound.readers import read_trace
    from wirebound.workload.reduce import DEFAULT_WARMUP, reduce

    trace = read_trace(run)
    called = name or run.absolute().name.removesuffix(".trace.json") or "recorded"
    return reduce(trace, called, DEFAULT_WARMUP if warmup is None else warmup)


def _fields(reduced: "Reduced") -> dict[str, object]:
    return {name: getattr(reduced, name) for name in reduced.__struct_fields__}

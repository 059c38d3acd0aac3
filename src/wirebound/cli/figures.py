"""`wirebound figures`: the paper's figures from a study."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirebound.cli.output import deliver, output_options, write_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebound.study.figures import Figure


@click.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--figure", "number", type=click.IntRange(1, 6), help="Only this one [all].")
@click.option(
    "--svg", "folder", type=click.Path(path_type=Path), metavar="DIR", help="Draw them there too."
)
@output_options
def figures(  # noqa: PLR0913 - one parameter a flag
    *,
    study: Path,
    number: int | None,
    folder: Path | None,
    as_json: bool,
    output: Path | None,
    force: bool,
) -> None:
    """Show a study as the paper's Figures 1 to 6.

    Scaling factor (1) and computation time (2) over workers; scaling factor (3), network
    utilization (4) and processor utilization (5) over bandwidth; measured beside predicted
    scaling factor (6).

    \b
    wirebound figures my-study
    wirebound figures my-study --figure 3 --svg pictures
    """
    from wirebound.report.figures import show_figures
    from wirebound.study.archive import read_runs, read_study
    from wirebound.study.figures import figures as draw
    from wirebound.study.predict import predict_all

    made_by, runs = read_study(study), read_runs(study)
    made = draw(runs, predict_all(made_by, runs))
    chosen = [one for one in made if number in (None, one.number)]
    if folder is not None:
        _draw(chosen, folder, force=force)
    deliver(
        lambda con: show_figures(con, chosen),
        lambda: {"schema_version": 1, "figures": chosen},
        as_json=as_json,
        output=output,
        force=force,
    )


def _draw(figures: "Sequence[Figure]", folder: Path, *, force: bool) -> None:
    from wirebound.cli.output import OutputError
    from wirebound.report.charts import chart, svg

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror}, expected a folder for pictures") from None
    for one in figures:
        path = folder / f"figure{one.number}.svg"
        write_file(path, svg(chart(one)).encode(), force=force)
        click.echo(f"Wrote {path}", err=True)

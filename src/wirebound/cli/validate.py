"""`wirebound validate`: predictions of a study held against what it measured."""

from pathlib import Path

import click

from wirebound.cli.output import deliver, output_options


@click.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--all", "with_all", is_flag=True, help="Show every run, not only the worst.")
@output_options
def validate(
    *, study: Path, with_all: bool, as_json: bool, output: Path | None, force: bool
) -> None:
    """Predict every run of a study, and show how far off that is.

    STUDY is the folder of a study. Each run is predicted from recordings of workers that
    did not communicate and from the bench of its link, never from the run itself, and
    beside it from trivial rules.

    \b
    wirebound validate my-study
    wirebound validate my-study --json -o validation.json
    """
    from wirebound.report.validation import show_validation
    from wirebound.study.archive import read_runs, read_study
    from wirebound.study.validate import validate as check

    result = check(read_study(study), read_runs(study))
    deliver(
        lambda con: show_validation(con, result, with_all=with_all),
        lambda: result,
        as_json=as_json,
        output=output,
        force=force,
    )

"""`wirebound paper`: the original study, reproduced and held against itself."""

from pathlib import Path

import click

from wirebound.cli.output import deliver, output_options


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder with the paper's published logs (*.bk.log, cuda_vec_add.log).",
)
@output_options
def paper(*, data: Path | None, as_json: bool, output: Path | None, force: bool) -> None:
    """Reproduce "Is Network the Bottleneck of Distributed Training?" (NetAI 2020).

    Prints the simulated curves of its Figures 6 to 8 beside the published figures, and
    the points where the paper contradicts itself. Without --data the model zoo, scaled
    to the paper's step times, stands in for the published logs.
    """
    from wirebound.report.paper import show_paper
    from wirebound.simulate.paper import study
    from wirebound.verdict.paper import judge_paper

    verdict = judge_paper(study(data))
    deliver(
        lambda con: show_paper(con, verdict),
        lambda: verdict,
        as_json=as_json,
        output=output,
        force=force,
    )

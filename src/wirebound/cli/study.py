"""`wirebound study`: a grid of real runs, kept in a folder."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebound.study.archive import Archive
    from wirebound.study.cluster import Open
    from wirebound.study.plan import Group
    from wirebound.study.spec import Spec

INTERRUPTED = 130


@click.command()
@click.argument("file", metavar="STUDY.toml", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Folder of the study [NAME-study]."
)
@click.option("--retry-failed", is_flag=True, help="Make the runs again that failed.")
@click.option("--keep", is_flag=True, help="Keep the recordings of all runs.")
@click.option("--collect", is_flag=True, help="On hosts: read the recordings that are there.")
def study(*, file: Path, output: Path | None, retry_failed: bool, keep: bool, collect: bool) -> int:
    """Run training scripts over a grid of workers, links and settings, and keep what is measured.

    Each run is a line of runs.jsonl in the folder of the study, and the same command goes
    on with a study that was interrupted. With where = "hosts" it prints the commands for
    each host, and --collect reads what they recorded.

    \b
    wirebound study study.toml
    wirebound study study.toml -o folder --retry-failed
    """
    from wirebound.errors import StudyError
    from wirebound.lab.interrupts import as_keyboard_interrupt
    from wirebound.study.in_lab import check_lab
    from wirebound.study.open import opened
    from wirebound.study.plan import plan
    from wirebound.study.spec import read_spec

    spec, text = read_spec(file)
    if collect and spec.where != "hosts":
        raise StudyError(f"--collect is for hosts, and {file} says {spec.where}")
    groups = plan(spec, file.parent)
    folder = Path(f"{spec.name}-study") if output is None else output
    if spec.where == "lab":
        _enter_namespace(file, folder, retry_failed=retry_failed, keep=keep)
        check_lab(groups, spec.cores)
    with as_keyboard_interrupt(), opened(folder, spec, text, groups) as archive:
        if spec.where == "hosts" and not collect:
            _print_commands(spec, archive, groups)
            return 0
        try:
            if collect:
                _collect(spec, archive, groups, retry_failed=retry_failed)
            else:
                _make(spec, archive, groups, retry_failed=retry_failed, keep=keep)
        except KeyboardInterrupt:
            total = sum(len(group.runs) for group in groups)
            click.echo(
                f"Interrupted: {len(archive.runs)} of {total} runs are in {folder}; "
                "the same command goes on",
                err=True,
            )
            return INTERRUPTED
        return _conclude(archive, groups)


def _enter_namespace(file: Path, folder: Path, *, retry_failed: bool, keep: bool) -> None:
    """Go on as root, in a user namespace where need be."""
    from wirebound.lab.privilege import is_privileged, restart_in_user_namespace

    if not is_privileged():
        flags = [*(["--retry-failed"] if retry_failed else []), *(["--keep"] if keep else [])]
        restart_in_user_namespace(["study", *flags, f"--output={folder}", "--", str(file)])


def _make(
    spec: "Spec",
    archive: "Archive",
    groups: "Sequence[Group]",
    *,
    retry_failed: bool,
    keep: bool,
) -> None:
    """Make the runs that are missing."""
    from wirebound.report.progress import shown
    from wirebound.study.runner import Runner

    open_cluster = _opener(spec, groups)
    with shown(sys.stderr) as progress:
        progress.expect(
            sum(
                len(archive.missing(one, retry_failed=retry_failed))
                + archive.lacks_bench(one, retry_failed=retry_failed)
                for one in groups
            )
        )
        runner = Runner(spec, archive, open_cluster, progress, keep=keep, retry_failed=retry_failed)
        for group in groups:
            runner.make(group)


def _opener(spec: "Spec", groups: "Sequence[Group]") -> "Open":
    """What makes the clusters of a study."""
    from wirebound.study import in_lab, in_slurm

    if spec.where == "slurm":
        return in_slurm.opener(max(group.workers for group in groups))
    return in_lab.opener(spec.cores)


def _print_commands(spec: "Spec", archive: "Archive", groups: "Sequence[Group]") -> None:
    from wirebound.study.by_hand import commands

    for line in commands(spec, archive, groups):
        click.echo(line)


def _collect(
    spec: "Spec", archive: "Archive", groups: "Sequence[Group]", *, retry_failed: bool
) -> None:
    """Read what was recorded by hand."""
    from wirebound.report.progress import shown
    from wirebound.study.by_hand import Collector

    with shown(sys.stderr) as progress:
        collector = Collector(spec, archive, progress, retry_failed=retry_failed)
        found = [collector.found(group) for group in groups]
        progress.expect(sum(len(benches) + len(runs) for benches, runs in found))
        for group in groups:
            collector.collect(group)


def _conclude(archive: "Archive", groups: "Sequence[Group]") -> int:
    """Say what there is, and whether all of it went well; the exit status."""
    runs = [run.failure for run in archive.runs]
    benches = [one.failure for one in archive.benches]
    missing = sum(len(archive.missing(group)) for group in groups)
    lost = sum(failure is not None for failure in [*runs, *benches])
    text = f"{archive.folder}: {_counted(len(runs), 'run')}, {_counted(len(benches), 'bench')}"
    if missing:
        text += f"; {missing} missing"
    if lost:
        text += f"; {lost} failed, --retry-failed makes them again"
    click.echo(text, err=True)
    return int(lost > 0)


def _counted(number: int, what: str) -> str:
    plural = f"{what}es" if what.endswith("h") else f"{what}s"
    return f"{number} {what if number == 1 else plural}"

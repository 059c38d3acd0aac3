"""`wirebound lab`: a cluster in a box, for programs that want a network of a known rate."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from wirebound.errors import LabError

if TYPE_CHECKING:
    from wirebound.lab import Lab, RunOutcome

NO_LIMIT = "none"
TAIL_LINES = 30


@click.group()
def lab() -> None:
    """A cluster in a box: hosts as network namespaces, joined by links of a chosen rate."""


@lab.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--workers", type=int, default=2, show_default=True, help="Hosts, one worker each.")
@click.option(
    "--link", required=True, help="Rate of a host's link, each way: 1Gbps; none for no limit."
)
@click.option(
    "--cores", type=int, default=1, show_default=True, help="Cores a worker is pinned to."
)
@click.option("--timeout", help="Stop the program after this time: 10min.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="New or empty folder for the output of all ranks and a record of the run.",
)
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def run(  # noqa: PLR0913 - one parameter a flag
    *,
    workers: int,
    link: str,
    cores: int,
    timeout: str | None,
    output: Path | None,
    program: tuple[str, ...],
) -> int:
    """Run PROGRAM with torchrun, one worker on each of several hosts.

    PROGRAM is a script and its arguments, or -m, a module and its arguments. What rank 0
    prints is shown, and the exit status is the program's. Every link is verified by a
    transfer first. Nothing is left of the hosts afterwards.

    \b
    wirebound lab run --workers 2 --link 1Gbps -- train.py --epochs 1
    wirebound lab run --workers 4 --link none -o run -- -m package.train
    """
    from wirebound.lab import Lab
    from wirebound.lab.interrupts import as_keyboard_interrupt
    from wirebound.lab.launch import check
    from wirebound.lab.privilege import is_privileged, restart_in_user_namespace
    from wirebound.units import parse_rate, parse_time

    link_bps = None if link == NO_LIMIT else parse_rate(link, "--link")
    timeout_s = None if timeout is None else parse_time(timeout, "--timeout")
    cluster = Lab(workers, link_bps, cores_per_worker=cores)
    check(program)
    if not is_privileged():
        restart_in_user_namespace(
            [
                *("lab", "run", f"--workers={workers}", f"--link={link}", f"--cores={cores}"),
                *(() if timeout is None else (f"--timeout={timeout}",)),
                *(() if output is None else (f"--output={output}",)),
                *("--", *program),
            ]
        )
    with as_keyboard_interrupt(), _folder(output, cluster) as folder:
        with cluster:
            click.echo(_built(cluster), err=True)
            outcome = cluster.run(program, output=folder, timeout_s=timeout_s, echo=_show)
        if output is not None:
            _write_record(folder / "lab.json", cluster, outcome, program)
        return _conclude(outcome, kept=output)


@lab.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def clean(*, as_json: bool) -> None:
    """Remove what killed labs left behind, and list it. Running labs are not touched."""
    from wirebound.cli.output import deliver
    from wirebound.lab.leftovers import dead_namespaces, remove_dead
    from wirebound.lab.privilege import is_privileged, require

    if not is_privileged() and dead_namespaces():
        require()
    removed = remove_dead()
    lines = [f"Removed {name}" for name in removed] or ["Nothing was left behind"]
    text = "".join(f"{one}\n" for one in lines)
    content = {"schema_version": 1, "removed": removed}
    deliver(
        lambda con: con.print(text, end="", markup=False, soft_wrap=True),
        lambda: content,
        as_json=as_json,
        output=None,
        force=False,
    )


@contextmanager
def _folder(output: Path | None, cluster: "Lab") -> Iterator[Path]:
    """Where the ranks' output goes: the user's folder, or one that is gone afterwards."""
    import shutil

    from wirebound.lab.leftovers import output_folder

    folder = output_folder(cluster.name) if output is None else output
    try:
        folder.mkdir(mode=0o777 if output else 0o700, exist_ok=output is not None)
        is_empty = not any(folder.iterdir())
    except OSError as error:
        raise LabError(
            f"{folder}: {error.strerror}, expected a folder for the output of the ranks",
            "name a new or an empty one that may be written",
        ) from None
    if not is_empty:
        raise LabError(f"{folder}: not empty", "name a new or an empty folder")
    try:
        yield folder
    finally:
        if output is None:
            shutil.rmtree(folder, ignore_errors=True)


def _built(cluster: "Lab") -> str:
    """What the lab is, in a line or two."""
    from wirebound.units import format_rate

    count = len(cluster.hosts)
    text = f"Lab: {count} host{'s' if count > 1 else ''}"
    if cluster.shaping is not None and cluster.verified_bps is None:
        text += ", and so no link to limit"
    elif cluster.shaping is not None:
        text += f", links of {format_rate(cluster.shaping.rate_bps)}"
    if cluster.verified_bps is not None:
        text += f"; the slowest carried {format_rate(cluster.verified_bps)} in a transfer"
    if cluster.is_oversubscribed:
        text += "\nOversubscribed: workers share cores, which makes their computation slower"
    return text


def _show(stream: Literal["stdout", "stderr"], content: bytes) -> None:
    click.echo(content, nl=False, err=stream == "stderr")


def _conclude(outcome: "RunOutcome", kept: Path | None) -> int:
    """Say what failed, and give the exit status.

    Raises:
        LabError: Not the program failed, but the lab or the time.
    """
    if outcome.failure is not None:
        raise LabError(outcome.failure)
    culprit = outcome.culprit
    if culprit is not None:
        from wirebound.lab.outcome import tail

        if culprit.rank != 0:
            text = tail(culprit.stderr).decode(errors="replace")
            click.echo("\n".join(text.splitlines()[-TAIL_LINES:]), err=True)
        end = f"signal {-culprit.status}" if culprit.status < 0 else f"status {culprit.status}"
        place = "-o DIR keeps the output of all ranks" if kept is None else f"output in {kept}"
        click.echo(f"Rank {culprit.rank} ended with {end}; {place}", err=True)
    sys.stderr.flush()
    return outcome.status


def _write_record(
    path: Path, cluster: "Lab", outcome: "RunOutcome", program: tuple[str, ...]
) -> None:
    import msgspec

    from wirebound import __version__
    from wirebound.cli.output import write_file

    record = {
        "schema_version": 1,
        "wirebound_version": __version__,
        "program": program,
        "hosts": cluster.hosts,
        "is_oversubscribed": cluster.is_oversubscribed,
        "shaping": cluster.shaping,
        "transfers": cluster.transfers,
        "outcome": outcome,
    }
    encoded = msgspec.json.encode(record, enc_hook=str)
    write_file(path, msgspec.json.format(encoded, indent=1) + b"\n", force=False)

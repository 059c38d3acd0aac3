"""The command line: the only place that turns an error into a message and a status.

0 done; 1 a check did not hold; 2 usage, input or environment; 130 interrupted.
"""

import io
import os
import sys
from pathlib import Path

import click

from wirebound import __version__
from wirebound.cli.bench import bench
from wirebound.cli.demo import demo
from wirebound.cli.figures import figures
from wirebound.cli.fit import fit
from wirebound.cli.lab import lab
from wirebound.cli.paper import paper
from wirebound.cli.reduce import reduce_command
from wirebound.cli.study import study
from wirebound.cli.validate import validate
from wirebound.cli.whatif import whatif
from wirebound.cli.zoo import zoo
from wirebound.errors import WireboundError
from wirebound.report.visible import visible

INTERRUPTED = 130
FAILED = 2


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="wirebound")
@click.pass_context
def cli(context: click.Context) -> None:
    """Is the network the bottleneck of your training, to what extent, and what would change it?

    Start with `wirebound demo`.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (
    demo, whatif, paper, zoo, bench, fit, lab, reduce_command, study, validate, figures,
):  # fmt: skip
    cli.add_command(command)


def main() -> None:
    """Run the command line and exit with its status."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command line.

    Returns:
        The exit status.
    """
    if sys.stdout is None:
        return _complain("standard output is closed; give it a place to go, or -o FILE", FAILED)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = cli.main(arguments, prog_name="wirebound", standalone_mode=False)
        sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Whoever read the output has enough. Click and rich exit where the pipe breaks.
        _drop_output()
        return 0
    except (WireboundError, click.ClickException, OSError) as error:
        return _complain(_sentence(error), getattr(error, "exit_code", FAILED))
    return status if isinstance(status, int) else 0


def _sentence(error: WireboundError | click.ClickException | OSError) -> str:
    """What is wrong and where."""
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        command = "wirebound" if context is None else context.command_path
        return f"{error.format_message()} (see {command} --help)"
    if isinstance(error, OSError):
        if error.filename is None:
            _drop_output()
        place = "standard output" if error.filename is None else error.filename
        return f"{place}: {error.strerror or error}"
    return str(error)


def _drop_output() -> None:
    """Forget what could not be written, or the interpreter complains about it at exit."""
    try:
        standard_output = sys.stdout.fileno()
    except OSError:
        return  # not a file, as under a test
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), standard_output)


def _complain(message: str, status: int) -> int:
    """One line on stderr, whatever the message holds; returns the status."""
    click.echo(f"wirebound: {visible(' '.join(message.split()))}", err=True)
    return status

"""Running a script under the recorder as Python itself would run it."""

import argparse
import runpy
import sys
from pathlib import Path

from wirebound.errors import MeasureError
from wirebound.record.monitor import INTERVAL_MS
from wirebound.record.recorder import STEPS, Recorder

FOLDER = "recording"


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options before the script; everything from its name on is the script's."""
    parser = argparse.ArgumentParser(
        prog="python -m wirebound.record",
        description="Record a training script, unchanged, also under torchrun.",
        epilog="torchrun --nproc-per-node 2 -m wirebound.record train.py --epochs 3",
        allow_abbrev=False,
    )
    parser.add_argument("-o", "--output", default=FOLDER, metavar="FOLDER", help="[%(default)s]")
    parser.add_argument("--force", action="store_true", help="replace a recording that is there")
    parser.add_argument(
        "--steps", type=_positive, default=STEPS, help="steps to record [%(default)s]"
    )
    parser.add_argument(
        "--interval-ms", type=_positive, default=INTERVAL_MS,
        help="between samples of the host's counters [%(default)s]",
    )  # fmt: skip
    parser.add_argument("--no-monitor", action="store_true", help="sample no counters")
    parser.add_argument("-m", action="store_true", dest="is_module", help="SCRIPT is a module")
    parser.add_argument("script", metavar="SCRIPT", help="the script, or a module with -m")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="its own")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Record a script.

    Returns:
        2 if the recording cannot start. What the script raises or exits with passes through.
    """
    options = parse(arguments)
    if not options.is_module and not Path(options.script).exists():
        say(f"{options.script}: no such script, expected a file of Python")
        return MeasureError.exit_code
    recorder = Recorder(
        options.output,
        steps=options.steps,
        force=options.force,
        monitor=not options.no_monitor,
        interval_ms=options.interval_ms,
        script=Path(options.script).name,
        say=say,
    )
    try:
        recorder.start()
    except MeasureError as error:
        say(str(error))
        return error.exit_code
    is_failed = True
    try:
        run(options.script, options.arguments, is_module=options.is_module)
        is_failed = False
    except SystemExit as exit_:
        is_failed = exit_.code not in {None, 0}
        raise
    finally:
        recorder.close(is_failed=is_failed)
    return 0


def run(script: str, arguments: list[str], *, is_module: bool) -> None:
    """Run a script or module as `__main__`, with the arguments and path it would have."""
    sys.argv = [script, *arguments]
    if is_module:
        runpy.run_module(script, run_name="__main__", alter_sys=True)
        return
    if not sys.flags.safe_path:
        sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


def say(line: str) -> None:
    """One line on stderr, in one piece so that ranks do not mix theirs."""
    sys.stderr.write(f"wirebound: {' '.join(line.split())}\n")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a whole number from 1")
    return number

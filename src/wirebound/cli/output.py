"""What every command does with its result: text or JSON, to the screen or to a file."""

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wirebound.errors import WireboundError
from wirebound.outputs import replace

if TYPE_CHECKING:
    from wirebound.report.console import Draw

OBEYED = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}
"""Control characters that JSON allows in a string and that a terminal obeys, escaped."""


class OutputError(WireboundError):
    """A result that cannot be written where it should go."""


def output_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--json`, `-o` and `--force`."""
    for option in (
        click.option("--force", is_flag=True, help="Replace the output file if it exists."),
        click.option(
            "-o", "--output", type=click.Path(path_type=Path), help="Write to FILE, - for stdout."
        ),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
    ):
        command = option(command)
    return command


def deliver(
    draw: "Draw",
    record: Callable[[], Any],
    *,
    as_json: bool,
    output: Path | None,
    force: bool,
) -> None:
    """Print or write a result.

    Args:
        draw: Draws it on a console.
        record: Makes what JSON holds.
        as_json: Whether JSON is wanted.
        output: File, or None for the screen.
        force: Whether to replace a file.

    Raises:
        OutputError: A file that exists, without `force`, or that cannot be written.
    """
    if output is not None and str(output) != "-":
        write_file(output, _json(record()) if as_json else _text(draw), force=force)
        click.echo(f"Wrote {output}", err=True)
    elif as_json:
        click.echo(_json(record()), nl=False)
    else:
        from wirebound.report.console import console

        draw(console(sys.stdout))


def write_file(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file whole or not at all; devices and pipes are written to as they are.

    Raises:
        OutputError: The file exists and may not be replaced, or cannot be written.
    """
    try:
        if path.is_dir():
            raise OutputError(f"{path}: a directory, expected a file to write")
        if path.is_file() and not force:
            raise OutputError(
                f"{path}: exists already", "choose another name, or --force to replace it"
            )
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            replace(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written: {error.strerror}",
            "choose a place that exists, has room and may be written",
        ) from None


def _json(record: Any) -> bytes:  # noqa: ANN401 - any record
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(record), indent=1).decode()
    return f"{text.translate(OBEYED)}\n".encode()


def _text(draw: "Draw") -> bytes:
    from wirebound.report.console import console

    text = io.StringIO()
    draw(console(text))
    return text.getvalue().encode()

"""Where reports are drawn: a rich console that knows what the terminal can show."""

import io
import os
from collections.abc import Callable, Sequence
from typing import TextIO

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from wirebound.report.visible import visible

Draw = Callable[[Console], None]
"""Draws a result on a console."""

BLOCKS = " ▏▎▍▌▋▊▉█"

PLAIN_WIDTH, PLAIN_HEIGHT = 100, 25
"""Columns and rows where there is no terminal to ask; rows are never used."""

SPELLED = str.maketrans({"µ": "u", "×": "x", "–": "-", "−": "-", "…": "~"})
"""One ASCII character each, so that columns stay aligned."""


def console(file: TextIO, width: int | None = None) -> Console:
    """A console on a file; styled on terminals only, and not with `NO_COLOR` or in memory."""
    columns = os.environ.get("COLUMNS", "")
    if width is None and not file.isatty():
        width = int(columns) if columns.isdecimal() and int(columns) > 0 else PLAIN_WIDTH
    is_plain = bool(os.environ.get("NO_COLOR")) or isinstance(file, io.StringIO)
    return Console(
        file=file,
        width=width,
        height=None if width is None else PLAIN_HEIGHT,
        highlight=False,
        emoji=False,
        color_system=None if is_plain else "auto",
    )


def is_unicode(con: Console) -> bool:
    """Whether the terminal can show more than ASCII."""
    return con.encoding.lower().startswith("utf")


def bar(con: Console, share: float, width: int) -> str:
    """A bar of `share` (0 to 1) of a width, in eighths of a cell where possible."""
    share = min(1.0, max(0.0, share))
    if not is_unicode(con):
        return "#" * round(share * width)
    eighths = round(share * width * 8)
    return "█" * (eighths // 8) + BLOCKS[eighths % 8].strip()


def cell(text: str, style: str = "") -> Text:
    """Text in which neither markup nor control characters have a meaning."""
    return Text(visible(text), style=style, no_wrap=False, overflow="fold")


def plain_table(headers: Sequence[str], *, right: Sequence[int] = ()) -> Table:
    """A table without a frame.

    Args:
        headers: Of its columns; none shown where all are empty.
        right: Columns that are flushed right. Like the first, they are wrapped only where
            the others have no room left to give.
    """
    table = Table(
        box=None,
        pad_edge=False,
        header_style="bold",
        padding=(0, 2, 0, 0),
        show_header=any(headers),
    )
    for index, header in enumerate(headers):
        is_right = index in right
        table.add_column(
            Text(header, no_wrap=False, overflow="fold"),
            justify="right" if is_right else "left",
            no_wrap=is_right or index == 0,
        )
    return table


def add_row(table: Table, *texts: str | Text, style: str = "") -> None:
    """Add a row; plain strings are taken as they are."""
    cells = (text if isinstance(text, Text) else cell(text) for text in texts)
    table.add_row(*cells, style=style)


def line(con: Console, text: str, style: str = "", *, indent: int = 0) -> None:
    """A paragraph, wrapped at the width."""
    put(con, Padding(cell(text, style), (0, 0, 0, indent), expand=False))


def put(con: Console, what: RenderableType) -> None:
    """Print in what the terminal can show, without the spaces that fill cells to their width."""
    shown: list[Segment] = []
    for segments in con.render_lines(what, pad=False):
        shown += [*_stripped(segments), Segment.line()]
    if not is_unicode(con):
        shown = [Segment(_ascii(segment.text), segment.style) for segment in shown]
    con.print(Segments(shown), end="")


def _stripped(segments: list[Segment]) -> list[Segment]:
    """A line without trailing spaces."""
    kept = list(segments)
    while kept:
        text = kept[-1].text.rstrip(" ")
        if text:
            kept[-1] = Segment(text, kept[-1].style)
            break
        kept.pop()
    return kept


def _ascii(text: str) -> str:
    return text.translate(SPELLED).encode("ascii", "replace").decode()

"""What reaches the terminal: widths, styles, and nothing that it would obey."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebound.report.console import add_row, bar, console, line, plain_table, put
from wirebound.report.visible import LONGEST, visible

HOSTILE = "\x1b[31m[red]x[/]\r\n\x9b2J\u202e\x07"


class Terminal(io.StringIO):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


class Ascii(io.StringIO):
    """A file that holds ASCII only."""

    encoding = "ascii"


def drawn(text: str, width: int = 40, file: io.StringIO | None = None) -> str:
    """A paragraph and a table that hold a text."""
    file = io.StringIO() if file is None else file
    con = console(file, width)
    line(con, text, "bold red")
    table = plain_table(["name", "n"], right=[1])
    add_row(table, text, "1")
    put(con, table)
    return file.getvalue()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain µs × 5", "plain µs × 5"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("two\nlines\r", "two\\nlines\\r"),
        ("\x9b2J", "\\x9b2J"),
        ("\u202eabc", "\\u202eabc"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("名前", "名前"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    """Control characters are shown, the rest is as it was."""
    assert visible(text) == shown


@given(st.text())
def test_visible_is_printable(text: str) -> None:
    """Whatever comes in, a terminal can print it."""
    assert visible(text).isprintable()


def test_visible_is_not_endless() -> None:
    """A text out of hand loses its middle."""
    shown = visible("a" * 10**6 + "z")
    assert len(shown) < LONGEST + 10
    assert shown.startswith("aaa")
    assert shown.endswith(" ... " + "a" * 499 + "z")


def test_hostile_text_is_shown() -> None:
    """Markup means nothing and escape sequences arrive as text."""
    shown = drawn(HOSTILE, width=200)
    assert set(shown) - {"\n"} <= set(map(chr, range(0x20, 0x7F)))
    assert shown.count("\\x1b[31m[red]x[/]\\r\\n\\x9b2J\\u202e\\x07") == 2


@given(st.text(max_size=60), st.integers(5, 90))
def test_any_text_at_any_width(text: str, width: int) -> None:
    """Nothing but printable characters and line ends, and no trailing spaces."""
    shown = drawn(text, width)
    assert all(row.isprintable() for row in shown.split("\n"))
    assert all(row == row.rstrip(" ") for row in shown.split("\n"))


def test_numbers_are_not_cut() -> None:
    """A column without room breaks its text; no digit is lost."""
    file = io.StringIO()
    table = plain_table(["name", "number"], right=[1])
    add_row(table, "a long name in words", "70,553,706,496")
    put(console(file, 20), table)
    assert "…" not in file.getvalue()
    digits = "".join(char for char in file.getvalue() if char.isdigit())
    assert digits == "70553706496"


def test_ascii() -> None:
    """Where only ASCII can be shown, common signs are spelled and others replaced."""
    shown = drawn("5 µs × 2 – ü", 60, Ascii())
    assert shown.isascii()
    assert "5 us x 2 - ?" in shown


def test_bar() -> None:
    """Eighths of a cell where possible, hashes elsewhere, never beyond its width."""
    con = console(io.StringIO(), 80)
    assert [bar(con, share, 2) for share in (0, 1 / 16, 0.5, 1, 7, -1)] == [
        "",
        "▏",
        "█",
        "██",
        "██",
        "",
    ]
    assert bar(console(Ascii(), 80), 0.5, 4) == "##"


def test_no_escape_codes_without_a_terminal() -> None:
    """A file gets text."""
    assert "\x1b" not in drawn("text")


def test_files_are_plain_whatever_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colour forced on the screen does not get into files."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in drawn("text")


def test_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """COLUMNS decides where nothing else does; what is no number is ignored."""
    for columns, width in (("60", 60), ("0", 100), ("²", 100), ("wide", 100), ("", 100)):
        monkeypatch.setenv("COLUMNS", columns)
        assert console(io.StringIO()).width == width

"""Units other than the base units, and their factors, stay where they belong."""

import re
import tokenize
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "wirebound"
EDGE = {"cli", "readers", "record", "report", "trace.py", "units.py"}
MODULES = sorted(
    path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in EDGE
)
FOREIGN = re.compile(
    r"\b\w+_(?:us|ns|ms|[kmg]b|[kmg]ib|[mg]bps|[MG]Bps|pct|percent)\b"
    r"|\b(?:1e9|1\.0e9|10 \*\* 9|1_?000_?000_?000)\b"
    r"|\b(?:2 \*\* [1234]0|1024|1_?048_?576|1 << [1234]0)\b"
    r"|[*/] 8(?:\.0)?\b|\b(?:8|8\.0|0\.125) [*/]"
)
CODE = {tokenize.NAME, tokenize.NUMBER, tokenize.OP}


def code_lines(path: Path) -> dict[int, str]:
    """The tokens of each line, a space between them, without strings and comments."""
    lines: dict[int, str] = {}
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type in CODE:
                lines[token.start[0]] = f"{lines.get(token.start[0], '')} {token.string}"
    return lines


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_base_units_only(path: Path) -> None:
    """Only `units.py` knows 8, 10^9 and 2^20; only edges name other units."""
    found = [f"line {n}:{line}" for n, line in code_lines(path).items() if FOREIGN.search(line)]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "x = rate_gbps",
        "x = cap_mb",
        "t = time_us",
        "x = bits / 8",
        "x = 8 * size",
        "x = 2**20",
        "x = 1e9",
        "x = 25 * 1024",
    ],
)
def test_the_check_can_fail(tmp_path: Path, line: str) -> None:
    """Each kind of stray unit is seen."""
    path = tmp_path / "module.py"
    path.write_text(f"{line}  # 8 * comment\n", encoding="utf-8")
    assert FOREIGN.search(code_lines(path)[1])

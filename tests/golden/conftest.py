"""The option that writes the golden outputs anew."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`; known when this folder is named: `pytest tests/golden`."""
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden outputs anew, then look"
    )

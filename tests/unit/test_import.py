"""Importing the package costs next to nothing, and its public names exist."""

import subprocess
import sys

import pytest

import wirebound

HEAVY = {"click", "jinja2", "msgspec", "numpy", "rich", "torch"}


def modules_after(statement: str) -> set[str]:
    """Names of the top-level modules that a new interpreter holds after a statement."""
    program = f"{statement}; import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_import_loads_the_standard_library_only() -> None:
    """`import wirebound` brings in none of the dependencies."""
    assert modules_after("import wirebound") & HEAVY == set()


@pytest.mark.parametrize("name", wirebound.__all__)
def test_public_name_resolves(name: str) -> None:
    """Each public name leads to something, and is listed for completion."""
    assert getattr(wirebound, name) is not None
    assert name in dir(wirebound)


def test_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name fails as on any module."""
    with pytest.raises(AttributeError, match="'wirebound' has no attribute 'what_if'"):
        _ = wirebound.what_if


@pytest.mark.parametrize("package", ["network", "simulate", "verdict", "workload"])
def test_core_runs_without_terminal_or_torch(package: str) -> None:
    """What import-linter checks in the source holds for what really gets loaded."""
    loaded = modules_after(f"import wirebound.{package}")
    assert loaded & {"click", "jinja2", "rich", "torch"} == set()

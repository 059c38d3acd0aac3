"""Provenance: what changed scripts are noticed by, and what is not told."""

import getpass
import hashlib
import socket
from pathlib import Path

import pytest

from wirebound.errors import StudyError
from wirebound.study.open import opened
from wirebound.study.plan import plan
from wirebound.study.provenance import provenance
from wirebound.study.spec import parse_spec

TEXT = """
name = "small"
[[script]]
name = "net"
program = ["train.py"]
[[grid]]
link = ["1Gbps"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A script, a module that it imports, one that that imports, and one that nobody does."""
    (tmp_path / "train.py").write_text("import os\nfrom loop import train\n")
    (tmp_path / "loop.py").write_text("import data.sets\nimport train\n")
    (tmp_path / "data.py").write_text("syntax error here")
    (tmp_path / "other.py").touch()
    return tmp_path


def test_script_and_the_modules_beside_it(folder: Path) -> None:
    """By the name of the script, and of the file."""
    found = provenance(plan(parse_spec(TEXT), folder), "lab")

    digest = hashlib.sha256((folder / "train.py").read_bytes()).hexdigest()
    assert found["script net"] == digest
    assert [name for name in found if name.startswith("module ")] == [
        "module loop.py", "module data.py",
    ]  # fmt: skip
    assert found["shaping 1Gbps"] == ("tbf rate 1000000000 bit/s, burst 125000 B, limit 6375000 B")


def test_nothing_identifies_the_machine(folder: Path) -> None:
    """No host, no user, no place."""
    values = provenance(plan(parse_spec(TEXT), folder), "lab").values()

    assert not {socket.gethostname(), getpass.getuser(), str(folder)} & set(values)
    assert not any(str(folder) in value for value in values)


def test_another_study_in_the_folder_is_refused(folder: Path) -> None:
    """In a sentence that says what differs; a comment does not."""
    place = folder / "study"
    spec = parse_spec(TEXT)
    with opened(place, spec, TEXT, plan(spec, folder)) as archive:
        assert archive.study is not None
        assert archive.study.spec == TEXT
    with opened(place, spec, f"# again\n{TEXT}", plan(spec, folder)):
        pass

    longer = parse_spec(TEXT.replace("[[script]]", "repeats = 2\n[[script]]"))
    with (
        pytest.raises(StudyError, match="with another repeats: 1 there, 2 here"),
        opened(place, longer, TEXT, plan(longer, folder)),
    ):
        pass
    (folder / "loop.py").write_text("import data.sets\n")
    with (
        pytest.raises(StudyError, match=r"with another module loop\.py: [0-9a-f]+… there"),
        opened(place, spec, TEXT, plan(spec, folder)),
    ):
        pass


def test_another_machine_matters_in_the_lab_only(folder: Path) -> None:
    """Recordings of other hosts can be collected anywhere."""
    for where, differs in (("lab", True), ("hosts", False)):
        text = TEXT.replace("[[script]]", f'where = "{where}"\n[[script]]')
        text = text if differs else text.replace("1Gbps", "none")
        spec = parse_spec(text)
        groups = plan(spec, folder)
        with opened(folder / where, spec, text, groups) as archive:
            assert archive.study is not None
            archive.study.provenance["cpu"] = "another"
            archive.write(archive.study)
        if differs:
            with (
                pytest.raises(StudyError, match="with another cpu: another there"),
                opened(folder / where, spec, text, groups),
            ):
                pass
        else:
            with opened(folder / where, spec, text, groups):
                pass

"""`wirebound validate`, `figures` and `whatif --validated-by` on a study on the disk."""

import json
from pathlib import Path

import msgspec
import pytest

from studies import Made
from wirebound.cli import run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study that was made up: runs take 5 % longer than the model says."""
    place = tmp_path / "made"
    Made(factor=1.05).write(place)
    return place


def test_errors_beside_those_of_trivial_rules(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table has the model first, and names the runs."""
    assert run(["validate", str(folder), "--all"]) == 0
    shown = capsys.readouterr().out
    assert "made: 3 runs predicted" in shown
    assert "Where the network matters (2)" in shown
    for rule in ("wirebound", "nothing changes", "no overlap", "the paper's rule"):
        assert f"\n{rule} " in shown
    assert shown.count("-4.8 %") == 3


def test_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every run with its error; the bill adds up."""
    assert run(["validate", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["overall"]["wirebound"]["median"] == pytest.approx(1 - 1 / 1.05, abs=2e-3)
    for one in found["checked"]:
        assert sum(one["bill"].values()) == pytest.approx(one["predicted_s"])


def test_an_answer_with_an_error_bar(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One verdict in words, several under their table, and both in JSON."""
    question = ["whatif", "recorded-convnet", "--workers", "2", "--validated-by", str(folder)]
    assert run([*question, "--link", "1Gbps"]) == 0
    assert "going by made, where nine of ten of 3 predicted steps" in " ".join(
        capsys.readouterr().out.split()
    )
    assert run([*question, "--link", "1Gbps,2Gbps"]) == 0
    assert "How far off steps may be" in capsys.readouterr().out
    assert run([*question, "--link", "1Gbps", "--json"]) == 0
    [verdict] = json.loads(capsys.readouterr().out)["verdicts"]
    bar = verdict["error_bar"]
    assert bar["low_s"] < verdict["step_s"] < bar["high_s"]


def test_figures(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables on the screen, pictures in a folder, numbers in JSON."""
    assert run(["figures", str(folder), "--figure", "6"]) == 0
    shown = capsys.readouterr().out
    assert "Figure 6. Scaling factor, measured and predicted" in shown
    assert "Figure 3" not in shown
    assert run(["figures", str(folder), "--json"]) == 0
    numbers = [one["number"] for one in json.loads(capsys.readouterr().out)["figures"]]
    assert numbers == [1, 2, 3, 6]
    pytest.importorskip("vl_convert", reason="needs vl-convert-python")
    pictures = tmp_path / "pictures"
    assert run(["figures", str(folder), "--figure", "3", "--svg", str(pictures)]) == 0
    assert [path.name for path in pictures.iterdir()] == ["figure3.svg"]
    assert run(["figures", str(folder), "--figure", "3", "--svg", str(pictures)]) == 2
    assert "figure3.svg" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["validate", "figures"])
def test_no_study(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder without one, and one that was cut: a line each, and status 2."""
    assert run([command, str(tmp_path)]) == 2
    Made().write(tmp_path / "made")
    path = tmp_path / "made" / "study.json"
    path.write_bytes(path.read_bytes()[:50])
    assert run([command, str(tmp_path / "made")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all("study.json: " in line for line in lines)


def test_nothing_to_validate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A study of one worker."""
    runs = folder / "runs.jsonl"
    runs.write_bytes(runs.read_bytes().splitlines(keepends=True)[0])
    assert run(["validate", str(folder)]) == 2
    assert "nothing can be validated" in capsys.readouterr().err
    assert msgspec.json.decode(runs.read_bytes())["id"] == "alone"

"""Every example in the README and in `docs/` shows what the program really prints.

A ```console block is a session: `$ wirebound ...` is run, `$ cat FILE` shows a file that the
page brings along, other commands are for the reader. A ```pycon block is run as Python.
`...` on a line of its own stands for output left out. The examples of a page share one folder.

`python tests/integration/test_docs.py --update` rewrites the shown outputs in place.
"""

import contextlib
import doctest
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

import wirebound
from wirebound.network import Contention, Fit, Network, Reduction, Tier
from wirebound.samples import Sample, Samples
from wirebound.simulate.keys import KEYS
from wirebound.simulate.thresholds import Threshold
from wirebound.study.knee import Knee
from wirebound.study.record import Bench, Config, Processors, Run, Study, Traffic
from wirebound.study.validate import Checked, Errors, Validation
from wirebound.verdict.paper import Bound, PaperVerdict
from wirebound.verdict.record import Cause, ErrorBar, Verdict
from wirebound.workload.record import Gradient, Operation, Source, Workload
from wirebound.workload.recorded import Recorded, RecordedCollective
from wirebound.workload.reduce import Reduced

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT.parent / "shared" / "data" / "training-bottleneck"
STUDIES = ROOT / "studies"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PICTURE = ROOT / "docs" / "img" / "thresholds.svg"

FENCE = re.compile(r"^```(console|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEFT_OUT = "..."


def refreshed(page: str, folder: Path) -> str:
    """The page with the output of its examples as it is now.

    Args:
        page: Its Markdown.
        folder: Where its examples run.
    """

    def rerun(block: re.Match[str]) -> str:
        language, shown = block.groups()
        session = _console if language == "console" else _python
        return f"```{language}\n{session(shown, folder)}```"

    return FENCE.sub(rerun, page)


def needs_logs(page: str) -> bool:
    """Whether an example of the page reads the logs published with the original study."""
    return f"--data {PUBLISHED.name}" in page


def make_picture() -> str:
    """The picture of the README as its script draws it now."""
    path = ROOT / "tools" / "make_readme_picture.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.picture())


def _console(shown: str, folder: Path) -> str:
    """A session; commands keep their place, outputs are new."""
    parts = re.split(r"^(?=\$ )", shown, flags=re.MULTILINE)
    return "".join(_command(part, folder) if part else "" for part in parts)


def _command(shown: str, folder: Path) -> str:
    head, lines = _split_command(shown)
    command = " ".join(line.removesuffix("\\").removeprefix("$ ").strip() for line in head)
    words = shlex.split(command)
    if words[0] == "cat":
        (folder / words[1]).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return shown
    if words[0] != "wirebound" or (needs_logs(command) and not PUBLISHED.exists()):
        return shown
    return _text([*head, *_elided(_run(words[1:], folder), lines)])


def _split_command(shown: str) -> tuple[list[str], list[str]]:
    """The lines of the command, joined by backslashes, and those of its output."""
    lines = shown.splitlines()
    last = next(number for number, line in enumerate(lines) if not line.endswith("\\"))
    return lines[: last + 1], lines[last + 1 :]


def _run(arguments: list[str], folder: Path) -> list[str]:
    environment = {
        name: value for name, value in os.environ.items() if name not in {"COLUMNS", "FORCE_COLOR"}
    } | {
        "PYTHONPATH": str(Path(wirebound.__file__).parents[1]),
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        [sys.executable, "-m", "wirebound", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode in {0, 2}, done.stdout
    return [line.rstrip() for line in done.stdout.splitlines()]


def _python(shown: str, folder: Path) -> str:
    """A session of the interactive interpreter; an error ends it."""
    names: dict[str, object] = {"__name__": "__main__"}
    lines: list[str] = []
    with contextlib.chdir(folder):
        for example in doctest.DocTestParser().get_examples(shown):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(example.source, "<docs>", "single"), names)  # noqa: S102 - our docs
            first, *rest = example.source.splitlines()
            lines += [f">>> {first}", *(f"... {line}" for line in rest)]
            lines += [line.rstrip() for line in printed.getvalue().splitlines()]
    return _text(lines)


def _elided(output: list[str], shown: list[str]) -> list[str]:
    """The output with as much left out as the page leaves out.

    Left out once, as many lines are kept before and after as the page has. Left out at both
    ends, as many are kept from the first line that the page has in between.
    """
    if LEFT_OUT not in shown:
        return output
    if shown.count(LEFT_OUT) > 1:
        assert shown[1] in output, f"no longer printed: {shown[1]!r}"
        start = output.index(shown[1])
        return [LEFT_OUT, *output[start : start + len(shown) - 2], LEFT_OUT]
    before = shown.index(LEFT_OUT)
    after = len(shown) - before - 1
    return [*output[:before], LEFT_OUT, *output[len(output) - after :]]


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _first_column(page: str, heading: str) -> list[str]:
    """Names in the first column of the table under a heading."""
    section = page.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the examples of a page run."""
    _furnish(tmp_path)
    return tmp_path


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_show_what_the_program_prints(path: Path, folder: Path) -> None:
    """Every shown output is the present one."""
    page = path.read_text(encoding="utf-8")

    actual = refreshed(page, folder)

    assert actual == page
    if needs_logs(page) and not PUBLISHED.exists():
        pytest.skip("the published logs are not here")


def test_picture_shows_what_the_program_computes() -> None:
    """The picture of the README is drawn from the present numbers."""
    assert make_picture() == PICTURE.read_text(encoding="utf-8")


def test_scenario_page_lists_every_key() -> None:
    """The table of keys is complete and invents none."""
    page = (ROOT / "docs" / "reference" / "scenario.md").read_text(encoding="utf-8")

    listed = re.findall(r"^\| `([^`]+)` \|", page.split("\n## Keys\n", 1)[1], re.MULTILINE)

    assert listed == list(KEYS)


@pytest.mark.parametrize(
    "record",
    [
        Verdict,
        Cause,
        Threshold,
        ErrorBar,
        PaperVerdict,
        Bound,
        Workload,
        Operation,
        Gradient,
        Source,
        Network,
        Tier,
        Reduction,
        Fit,
        Contention,
        Samples,
        Sample,
        Study,
        Bench,
        Run,
        Config,
        Traffic,
        Processors,
        Reduced,
        Recorded,
        RecordedCollective,
        Validation,
        Checked,
        Errors,
        Knee,
    ],
    ids=lambda record: record.__name__,
)
def test_json_page_lists_every_field(record: type[msgspec.Struct]) -> None:
    """The tables of fields are complete, in the order of the record, and invent none."""
    page = (ROOT / "docs" / "reference" / "json.md").read_text(encoding="utf-8")

    assert _first_column(page, record.__name__) == list(record.__struct_fields__)


def _furnish(folder: Path) -> None:
    """What examples may name without a path."""
    for place in (PUBLISHED, STUDIES):
        if place.exists():
            (folder / place.name).symlink_to(place)


def _update() -> None:
    PICTURE.write_text(make_picture(), encoding="utf-8")
    for path in PAGES:
        with tempfile.TemporaryDirectory() as name:
            _furnish(Path(name))
            page = path.read_text(encoding="utf-8")
            path.write_text(refreshed(page, Path(name)), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit("usage: python tests/integration/test_docs.py --update")
    _update()

"""The command line, in process and as a process of its own."""

import json
import os
import pty
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wirebound import __version__
from wirebound.cli import run
from wirebound.units import format_ratio, format_time
from wirebound.workload.files import dumps, read_workload
from wirebound.workload.record import Gradient, data_parallel

WHATIF = ["whatif", "resnet50", "--step", "128ms"]
HOSTILE = "\x1b[31m[red]x[/]\x9b2J\u202e\n"

Capture = pytest.CaptureFixture[str]


def wirebound(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "wirebound", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A workload whose names a terminal would obey."""
    gradients = [Gradient(f"{HOSTILE}{k}", 10**7, 0.05) for k in range(2)]
    path = tmp_path / "hostile.json"
    path.write_bytes(dumps(data_parallel(HOSTILE, gradients, backward_s=0.1)))
    return path


@pytest.mark.parametrize("command", [[], ["demo"], ["whatif"], ["paper"], ["zoo"]])
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help(capsys: Capture, command: list[str], flag: str) -> None:
    """Every command explains itself and succeeds."""
    assert run([*command, flag]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Usage: wirebound")
    assert err == ""


def test_help_shows_examples(capsys: Capture) -> None:
    """Examples stand on lines of their own."""
    assert run(["whatif", "--help"]) == 0
    rows = [row.strip() for row in capsys.readouterr().out.splitlines()]
    assert "wirebound whatif resnet50 --step 128ms --workers 64 --link 10Gbps" in rows


def test_no_arguments(capsys: Capture) -> None:
    """Alone, the command explains itself."""
    assert run([]) == 0
    assert "wirebound demo" in capsys.readouterr().out


def test_version(capsys: Capture) -> None:
    """The version is the package's."""
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"wirebound, version {__version__}\n"


def test_help_in_ascii() -> None:
    """Help is printed whatever the terminal can show."""
    done = wirebound("whatif", "--help", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo"],
        [*WHATIF, "--link", "10Gbps"],
        [*WHATIF, "--link", "10Gbps,25Gbps", "--workers", "8,64"],
        ["paper"],
        ["zoo"],
        ["zoo", "resnet50", "--device", "V100"],
    ],
)
def test_json(capsys: Capture, arguments: list[str]) -> None:
    """JSON is one object with its version, and nothing else is on stdout or stderr."""
    assert run([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["schema_version"] == 1
    assert out.endswith("}\n")
    assert err == ""


def test_json_equals_the_terminal(capsys: Capture) -> None:
    """The figures shown are those of the JSON."""
    assert run(["demo", "--json"]) == 0
    (verdict,) = json.loads(capsys.readouterr().out)["verdicts"]
    assert run(["demo"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"{verdict['word']}: " in text
    assert f"A step takes {format_time(verdict['step_s'])}" in text
    assert f"costs {format_time(verdict['exposed_comm_s'])}" in text
    assert f"scaling factor {format_ratio(verdict['scaling_factor'])}" in text
    for seconds in verdict["bill"].values():
        assert f"{format_time(seconds)} {format_ratio(seconds / verdict['step_s'])}" in text
    for cause in verdict["causes"]:
        assert f"{cause['word']} {format_time(cause['seconds'])}" in text


def test_flags_are_axes(capsys: Capture) -> None:
    """Every flag with a list makes an axis; discrete ones vary slowest."""
    line = (
        "--workers 8,64 --gpus-per-node 1,2 --link 10Gbps,25Gbps --algorithm ring,tree "
        "--compression 1,2 --efficiency 40%,perfect --bucketing ddp,none --set latency=1us,20us"
    )
    assert run([*WHATIF, *line.split(), "--json"]) == 0
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert len(verdicts) == 2**8
    scenarios = [verdict["scenario"] for verdict in verdicts]
    slow = [(s["algorithm"], s["bucketing"]) for s in scenarios]
    assert list(dict.fromkeys(slow)) == [
        ("ring", "ddp"),
        ("ring", "none"),
        ("tree", "ddp"),
        ("tree", "none"),
    ]
    assert all(slow[64 * k : 64 * (k + 1)] == [slow[64 * k]] * 64 for k in range(4))
    fields = (
        "workers",
        "gpus_per_node",
        "link_bps",
        "compression_ratio",
        "efficiency",
        "latency_s",
    )
    assert all(len({scenario[field] for scenario in scenarios}) == 2 for field in fields)


def test_set_accepts_dashes(capsys: Capture) -> None:
    """A key is written with dashes or underscores."""
    assert run([*WHATIF, "--link", "1Gbps", "--set", "bucket-cap=1MiB", "--json"]) == 0
    (verdict,) = json.loads(capsys.readouterr().out)["verdicts"]
    assert verdict["scenario"]["cap_bytes"] == 2**20


def test_scenario_file_and_flags(tmp_path: Path, capsys: Capture) -> None:
    """Flags win over the scenario file, the rest of the file holds."""
    path = tmp_path / "scenario.toml"
    path.write_text('link = ["1Gbps", "10Gbps"]\nworkers = 8\nalgorithm = "tree"\n')
    assert run([*WHATIF, "--scenario", str(path), "--workers", "2,4", "--json"]) == 0
    scenarios = [v["scenario"] for v in json.loads(capsys.readouterr().out)["verdicts"]]
    assert [(s["link_bps"], s["workers"]) for s in scenarios] == [
        (1e9, 2),
        (1e9, 4),
        (1e10, 2),
        (1e10, 4),
    ]
    assert {s["algorithm"] for s in scenarios} == {"tree"}


def test_output_file(tmp_path: Path, capsys: Capture) -> None:
    """A file holds what the screen would, and is replaced only by force."""
    path = tmp_path / "out.txt"
    assert run(["demo", "-o", str(path)]) == 0
    assert capsys.readouterr() == ("", f"Wrote {path}\n")
    assert run(["demo", "-o", "-"]) == 0
    assert path.read_text() == capsys.readouterr().out
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()
    before = path.read_bytes()
    assert run(["zoo", "-o", str(path)]) == 2
    assert path.read_bytes() == before
    assert run(["zoo", "-o", str(path), "--force"]) == 0
    assert path.read_bytes() != before
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_output_through_a_link(tmp_path: Path) -> None:
    """A link stays a link; what it points at is replaced."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    assert run(["zoo", "-o", str(link), "--force"]) == 0
    assert link.is_symlink()
    assert target.read_text() != "old"


def test_output_to_a_device() -> None:
    """A device is written to, not replaced, and needs no force."""
    assert run(["zoo", "-o", os.devnull]) == 0
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_zoo_workload_is_read_back(tmp_path: Path, capsys: Capture) -> None:
    """What `zoo` writes, `whatif` reads; the answer is that of the architecture."""
    path = tmp_path / "job.json"
    assert run(["zoo", "resnet50", "--step", "128ms", "-o", str(path)]) == 0
    assert read_workload(path).name == "resnet50"
    capsys.readouterr()
    answers = []
    for arguments in (["whatif", str(path)], WHATIF):
        assert run([*arguments, "--link", "1Gbps", "--json"]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]


def test_hostile_names(hostile: Path) -> None:
    """Escape sequences out of a file never reach the terminal, as text, JSON or error."""
    base = ["whatif", str(hostile), "--link", "1Gbps"]
    for extra in ([], ["--workers", "2,4"], ["--json"], ["--set", "buckets=x"]):
        done = wirebound(*base, *extra, FORCE_COLOR="", COLUMNS="200")
        text = (done.stdout + done.stderr).replace("\n", "")
        assert all(char.isprintable() or char == "\u202e" for char in text)
        assert "\x1b" not in text
        assert "\x9b" not in text
    cyclic = json.loads(hostile.read_text())
    cyclic["operations"] += [
        {"name": HOSTILE, "kind": "compute", "after": ["b"]},
        {"name": "b", "kind": "compute", "after": [HOSTILE]},
    ]
    hostile.write_text(json.dumps(cyclic))
    done = wirebound(*base)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.rstrip("\n").isprintable()
    assert "wait for each other" in done.stderr


def test_zoo_of_a_hostile_file(hostile: Path) -> None:
    """A workload passed through is valid JSON without raw control characters."""
    done = wirebound("zoo", str(hostile))
    assert json.loads(done.stdout)["name"] == HOSTILE
    assert "\x1b" not in done.stdout
    assert "\x9b" not in done.stdout


def on_terminal(*arguments: str, **environment: str) -> str:
    """What the command writes to a terminal."""
    leader, follower = pty.openpty()
    try:
        inherited = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}
        process = subprocess.Popen(
            [sys.executable, "-m", "wirebound", *arguments],
            stdout=follower,
            stderr=subprocess.STDOUT,
            env={**inherited, "TERM": "xterm-256color", "COLUMNS": "80", **environment},
        )
        os.close(follower)
        chunks = []
        while True:
            try:
                chunk = os.read(leader, 65536)
            except OSError:
                break
            if not chunk:
                break
            chunks.append(chunk)
        assert process.wait(timeout=60) == 0
    finally:
        os.close(leader)
    return b"".join(chunks).decode()


def test_colour_on_terminals_only() -> None:
    """A terminal gets styles; a pipe, NO_COLOR and a dumb terminal do not."""
    plain = wirebound("demo", COLUMNS="80").stdout
    assert "\x1b" not in plain
    coloured = on_terminal("demo", NO_COLOR="")
    assert "\x1b[1m" in coloured
    for quiet in ({"NO_COLOR": "1"}, {"TERM": "dumb", "NO_COLOR": ""}):
        shown = on_terminal("demo", **quiet)
        assert shown.replace("\r\n", "\n") == plain


def test_interrupt() -> None:
    """Ctrl-C ends a long grid at once, with its own status and without a traceback."""
    values = ",".join(str(n) for n in range(1, 301))
    line = f"--workers {values} --compression {values} --link 1Gbps --json -o {os.devnull}"
    process = subprocess.Popen(
        [sys.executable, "-m", "wirebound", *WHATIF, *line.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(2)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == ""
    assert err.strip() == ""


@pytest.mark.parametrize("extra", [[], ["--json"]])
def test_closed_pipe(extra: list[str]) -> None:
    """Whoever has read enough hears nothing more."""
    values = ",".join(str(n) for n in range(1, 500))
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "wirebound",
            *WHATIF,
            "--link",
            "1Gbps",
            "--workers",
            values,
            *extra,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 0


def test_ascii_terminal() -> None:
    """Where only ASCII can be shown, nothing else is."""
    done = wirebound("demo", PYTHONIOENCODING="ascii", COLUMNS="80")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "27.0 us a message" in done.stdout
    assert "####" in done.stdout
    done = wirebound("demo", "--json", PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout)["schema_version"] == 1

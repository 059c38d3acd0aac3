"""Studies on this machine: real labs, real recordings, and what happens when they are cut off."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wirebound.errors import LabError
from wirebound.lab.privilege import is_privileged
from wirebound.lab.tools import PACKAGES, call, find, network_namespaces
from wirebound.study.archive import read_runs, read_study

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60

TRAIN = """
import os, sys, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
if "fail" in sys.argv:
    raise ValueError("told to")
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(500, 500), bucket_cap_mb=float(sys.argv[1]))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(8):
    model(torch.randn(int(sys.argv[2]), 500)).sum().backward()
    optimizer.step()
dist.destroy_process_group()
time.sleep(60 * ("wait" in sys.argv))
"""

SPEC = """
name = "small"
where = "{where}"
timeout = "40s"
warmup = 2
[[script]]
name = "net"
program = ["train.py", "{{bucket_cap_mb}}", "{{batch}}"]
[[grid]]
bucket_cap = ["1MiB"]
batch = {batch}
workers = [{workers}]
{grid}
[bench]
enabled = false
[baseline]
alone = false
apart = false
"""

GRADIENT_BYTES = 4 * (500 * 500 + 500)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A script, and no study yet."""
    pytest.importorskip("torch", reason="studies train")
    (tmp_path / "train.py").write_text(TRAIN, encoding="utf-8")
    return tmp_path


@pytest.fixture
def lab() -> None:
    """Skip where no lab can be built."""
    if not is_privileged():
        pytest.skip("a lab needs root, and these tests run without")
    try:
        for tool in PACKAGES:
            find(tool)
        call("ip", "netns", "list")
    except LabError as error:
        pytest.skip(f"no lab can be built here: {error}")


def write(folder: Path, *, where: str = "lab", workers: int = 1, batch: str = "[4]", grid: str = "",
          **replaced: str) -> Path:  # fmt: skip
    """The description of a study."""
    text = SPEC.format(where=where, workers=workers, batch=batch, grid=grid)
    for old, new in replaced.items():
        text = text.replace(f"{old} = false", f"{old} = {new}")
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def start(folder: Path, *options: str, **variables: str) -> "subprocess.Popen[str]":
    """The command, in the background."""
    return subprocess.Popen(
        [sys.executable, "-m", "wirebound", "study", "study.toml", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **variables},
    )


def run(folder: Path, *options: str, **variables: str) -> tuple[int, str, str]:
    """The command to its end: status, output and complaints."""
    process = start(folder, *options, **variables)
    out, err = process.communicate(timeout=2 * PATIENCE_S)
    return process.returncode, out, err


def lines(folder: Path) -> list[dict[str, Any]]:
    """Runs as they are on the disk."""
    path = folder / "small-study" / "runs.jsonl"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def until(process: "subprocess.Popen[str]", is_so: Callable[[], bool]) -> None:
    """Wait for something that a process must do."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            pytest.fail(f"it did not happen: {process.communicate()}")
        time.sleep(0.05)


@pytest.mark.usefixtures("lab")
def test_a_study_in_the_lab(folder: Path) -> None:
    """One run on a link of 500 Mbit/s, and two workers apart: times, bytes, cores, bench."""
    write(
        folder, workers=2, grid='link = ["500Mbps"]', apart="true", enabled='true\nlargest = "1KiB"'
    )

    status, out, err = run(folder)

    assert (status, out) == (0, ""), err
    assert err.splitlines()[-1] == "small-study: 2 runs, 1 bench"
    study = read_study(folder / "small-study")
    assert study.provenance["shaping 500Mbps"].startswith("tbf rate 500000000 bit/s")
    [bench] = study.benches
    assert bench.samples is not None, bench.failure
    assert bench.samples.hosts == ("host0",)
    apart, joined = read_runs(folder / "small-study")
    assert (apart.id, joined.id) == (
        "net-w2-500Mbps-apart-cap1MiB-b4-a1-r0",
        "net-w2-500Mbps-cap1MiB-b4-a1-r0",
    )
    for one in (apart, joined):
        assert one.failure is None
        assert [len(own) for own in one.step_s] == [6, 6]
        assert [cores.host for cores in one.processors] == ["host0", "host1"]
    assert joined.verified_bps == pytest.approx(500e6, rel=0.05)
    assert joined.reduced is not None
    assert joined.reduced.recorded.hosts == ("host0", "host1")
    carrying = [one for one in joined.traffic if one.is_carrying]
    assert [(one.host, one.interface, one.rate_bps) for one in carrying] == [
        ("host0", "eth0", 500e6), ("host1", "eth0", 500e6),
    ]  # fmt: skip
    sent_bytes = [one.sent_bytes for one in carrying]
    assert sent_bytes == pytest.approx([GRADIENT_BYTES] * 2, rel=0.5)
    assert sorted(path.name for path in (folder / "small-study").iterdir()) == [
        "runs.jsonl", "study.json",
    ]  # fmt: skip


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_a_study_that_was_ended_goes_on(folder: Path, ending: signal.Signals) -> None:
    """What is done stays; the lab leaves nothing; a line that was cut is made again."""
    write(folder, batch="[2, 4]")
    process = start(folder)
    until(process, lambda: len(lines(folder)) == 1)
    process.send_signal(ending)
    _, err = process.communicate(timeout=PATIENCE_S)

    if ending == signal.SIGINT:
        assert process.returncode == 130
        assert err.splitlines()[-1] == (
            "Interrupted: 1 of 2 runs are in small-study; the same command goes on"
        )
        left = [name for name in network_namespaces() if name.startswith(f"wb-{process.pid}-")]
        assert left == []
    runs = folder / "small-study" / "runs.jsonl"
    first = runs.read_bytes()
    runs.write_bytes(first + b'{"id": "net-w1')

    status, _, err = run(folder)

    assert status == 0, err
    assert "[1/1] net-w1-unlimited-cap1MiB-b4-a1-r0: " in err
    assert runs.read_bytes().startswith(first)
    assert [one["config"]["batch"] for one in lines(folder)] == [2, 4]
    assert not (folder / "small-study" / "recordings").exists()


@pytest.mark.usefixtures("lab")
def test_failed_runs_are_kept_and_the_study_goes_on(folder: Path) -> None:
    """A script that raises, and one that does not end; both can be tried again."""
    path = write(folder)
    more = '[[script]]\nname = "{0}"\nprogram = ["train.py", "1", "4", "{0}"]\n[[grid]]'
    text = path.read_text(encoding="utf-8").replace('"40s"', '"12s"')
    for name in ("fail", "wait"):
        text = text.replace("[[grid]]", more.format(name))
    path.write_text(text, encoding="utf-8")

    status, _, err = run(folder)

    assert status == 1
    assert err.splitlines()[-1] == (
        "small-study: 3 runs, 0 benches; 2 failed, --retry-failed makes them again"
    )
    failures = {one["config"]["script"]: one["failure"] for one in lines(folder)}
    assert failures["net"] is None
    assert failures["wait"] == "the program did not end within 12.0 s"
    assert failures["fail"].startswith("rank 0 ended with status 1\n")
    assert "ValueError: told to" in failures["fail"]
    assert str(folder) not in json.dumps(failures)
    assert run(folder)[2].splitlines()[0].startswith("small-study: 3 runs")


@pytest.mark.usefixtures("lab")
def test_what_forbids_a_study_is_one_line(folder: Path) -> None:
    """A changed script, a changed study, too many cores, an unwritable place, an unknown key."""
    write(folder)
    process = start(folder)
    until(process, (folder / "small-study" / "study.json").exists)
    twice = run(folder)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    (folder / "train.py").write_text(f"{TRAIN}\n", encoding="utf-8")
    changed = run(folder)
    write(folder, batch="[8]")
    another = run(folder)
    nowhere = run(folder, "-o", "/proc/study")
    write(folder, grid="link = []")
    empty = run(folder)
    collecting = run(folder, "--collect")

    for (status, out, err), message in (
        (twice, "small-study: another study is writing there"),
        (changed, "small-study: holds a study with another script net: "),
        (another, "small-study: holds a study with another grid: "),
        (nowhere, "/proc/study: cannot be written: "),
        (empty, "study.toml: grid 1: link is an empty list"),
        (collecting, "study.toml: grid 1: link is an empty list"),
    ):
        assert (status, out) == (2, "")
        assert err.startswith(f"wirebound: {message}")
        assert err.count("\n") == 1


def test_only_a_lab_can_set_links(folder: Path) -> None:
    """A study in Slurm that wants a rate, or that is in no allocation."""
    write(folder, where="slurm", grid='link = ["1Gbps"]')
    limited = run(folder)
    write(folder, where="slurm")
    outside = run(folder)

    assert limited[0] == outside[0] == 2
    assert "grid 1: link 1Gbps: cannot be set on slurm, expected none" in limited[2]
    assert "SLURM_JOB_ID is not set" in outside[2]


SRUN = """#!{python}
import os, subprocess, sys
words, options = sys.argv[1:], dict()
while words[0].startswith("--"):
    name, _, value = words.pop(0).partition("=")
    options[name] = value or words.pop(0)
ranks = []
for rank in range(int(options["--ntasks"])):
    out, err = (
        open(options[name].replace("%t", str(rank)), "wb") for name in ("--output", "--error")
    )
    own = dict(os.environ, SLURM_PROCID=str(rank), SLURM_NODEID=str(rank))
    ranks.append(subprocess.Popen(words, stdout=out, stderr=err, env=own))
sys.exit(max(rank.wait() for rank in ranks))
"""


def test_a_study_in_slurm(folder: Path) -> None:
    """Job steps of torchrun: joined, apart, and one that fails."""
    (folder / "bin").mkdir()
    srun = folder / "bin" / "srun"
    srun.write_text(SRUN.format(python=sys.executable), encoding="utf-8")
    srun.chmod(0o755)
    path = write(folder, where="slurm", workers=2, apart="true")
    more = '[[script]]\nname = "fail"\nprogram = ["train.py", "fail"]\n[[grid]]\nscripts = ["net"]'
    text = path.read_text(encoding="utf-8").replace("[[grid]]", more)
    path.write_text(text + '[[grid]]\nworkers = [1]\nscripts = ["fail"]\n', encoding="utf-8")

    status, _, err = run(
        folder,
        PATH=f"{folder / 'bin'}:{os.environ['PATH']}",
        SLURM_JOB_ID="7",
        SLURM_JOB_NUM_NODES="2",
        SLURM_JOB_NODELIST="localhost",
        OMP_NUM_THREADS="1",
        GLOO_SOCKET_IFNAME="lo",
    )

    assert status == 1, err
    apart, joined, failed = read_runs(folder / "small-study")
    assert (apart.config.mode, apart.failure, len(apart.step_s)) == ("apart", None, 2)
    assert (joined.config.mode, joined.failure, len(joined.step_s)) == ("joined", None, 2)
    assert failed.failure is not None
    assert "ValueError: told to" in failed.failure

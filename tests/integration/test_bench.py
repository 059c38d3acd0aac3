"""The bench between real ranks on one host, and from its samples to a network and a verdict."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import wirebound
from wirebound.samples import MEASURED, Samples, read

RANKS = 2

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed"
)


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run this interpreter with the package on its path, outside any torchrun."""
    kept = {name: value for name, value in os.environ.items() if name not in {"RANK", "COLUMNS"}}
    source = str(Path(wirebound.__file__).parents[1])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=kept | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def bench(folder: Path, ranks: int, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the bench under torchrun on loopback, two small sizes."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    sizes = ["--smallest", "4KiB", "--largest", "8KiB", "--budget", "20ms", "--backend", "gloo"]
    return run([*torchrun, "-m", "wirebound", "bench", *sizes, *options], folder)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A file of samples, and what rank 0 printed."""
    folder = tmp_path_factory.mktemp("bench")
    done = bench(folder, RANKS, "-o", "samples.json")
    assert done.returncode == 0, done.stderr
    return folder / "samples.json", done.stdout


@needs_torch
def test_every_operation_is_measured(measured: tuple[Path, str]) -> None:
    """Two sizes of each, on two ranks of one node, or a reason why not."""
    path, _ = measured
    samples = read(path)

    left_out = {note.partition(":")[0] for note in samples.notes}
    found = {(one.kind, one.nbytes, one.ranks, one.nodes) for one in samples.samples}

    assert found == {
        (kind, size, 1 if kind in {"reduction", "copy"} else RANKS, 1)
        for kind in MEASURED
        if kind != "broadcast" and kind not in left_out
        for size in (4096, 8192)
    }
    assert ("all_reduce", 4096, RANKS, 1) in found
    assert samples.backend == "gloo"
    assert len(samples.hosts) == 1


@needs_torch
def test_rank_0_prints_a_table_once(measured: tuple[Path, str]) -> None:
    """The columns are those of nccl-tests."""
    _, printed = measured

    assert printed.count("all_reduce: 2 ranks on 1 node, gloo") == 1
    assert "algbw" in printed
    assert "busbw" in printed


@needs_torch
def test_samples_become_a_network_and_a_verdict(measured: tuple[Path, str]) -> None:
    """Fit, then ask; buckets beyond the range of the fit are a warning."""
    path, _ = measured
    wirebound_ = ["-m", "wirebound"]
    fit = ["fit", path.name, "--gpus-per-node", "1", "-o", "network.json"]

    fitted = run([*wirebound_, *fit], path.parent)
    job = ["resnet50", "--step", "128ms", "--workers", "2", "--network", "network.json"]
    asked = run([*wirebound_, "whatif", *job, "--json"], path.parent)

    assert fitted.returncode == 0, fitted.stderr
    assert "all_reduce by ring, samples.json" in fitted.stdout
    [verdict] = json.loads(asked.stdout)["verdicts"]
    assert "the network was fitted to 4.10 kB to 8.19 kB" in verdict["warnings"][0]


@needs_torch
def test_one_rank_measures_additions_and_copies(tmp_path: Path) -> None:
    """Nobody to talk to is no failure."""
    done = bench(tmp_path, 1, "--json")

    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert {one["kind"] for one in printed["samples"]} == {"reduction", "copy"}
    assert printed["notes"] == ["collectives: one rank has nobody to talk to"]
    assert set(printed) == set(Samples.__struct_fields__)


@needs_torch
def test_existing_output_is_refused_before_measuring(tmp_path: Path) -> None:
    """No minutes are spent on what cannot be written."""
    (tmp_path / "samples.json").write_text("mine")

    done = bench(tmp_path, 1, "-o", "samples.json")

    assert done.returncode != 0
    assert "samples.json: exists already" in done.stderr
    assert (tmp_path / "samples.json").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "start it as `torchrun"),
        (["--smallest", "1MiB", "--largest", "1KiB"], "the smallest first"),
        (["--smallest", "1B"], "at least 4 B"),
        (["--largest", "256"], "a bare number has no unit"),
    ],
)
def test_what_the_user_got_wrong_is_one_line(
    tmp_path: Path, options: list[str], message: str
) -> None:
    """Status 2, and a sentence that says what to do."""
    done = run(["-m", "wirebound", "bench", *options], tmp_path)

    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1

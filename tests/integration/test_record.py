"""Recording real trainings: two ranks of torchrun over gloo, and single processes."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch")

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
RECORD = ("-m", "wirebound.record")

Lines = list[dict[str, Any]]

FULL_STEPS = 10
"""Of behaviour.py, when nothing happens."""


def start(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Python with the package at hand, one thread a process."""
    path = os.pathsep.join(one for one in (str(ROOT / "src"), os.environ.get("PYTHONPATH")) if one)
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "NCCL_SECRET_KEY": "hush"},
    )


def read(path: Path) -> Lines:
    """The events of a recording, up to its last whole line."""
    text = path.read_text()
    whole = text[: text.rindex("\n")].splitlines()
    return [json.loads(line.rstrip(",")) for line in whole if line.startswith("{")]


def of(lines: Lines, category: str, step: int | None = None) -> Lines:
    """The events of one kind, of one step or all."""
    return [
        line
        for line in lines
        if line.get("cat") == category and step in {None, line["args"]["step"]}
    ]


def steps(lines: Lines) -> list[int]:
    """The complete steps."""
    return [line["args"]["step"] for line in of(lines, "step")]


def buckets(lines: Lines, step: int) -> dict[tuple[int, int], int]:
    """Bytes of each bucket of a step by model and number, from the collectives."""
    return {
        (line["args"]["model"], line["args"]["bucket"]): line["args"]["nbytes"]
        for line in of(lines, "all_reduce", step)
        if line["args"]["bucket"] is not None
    }


def carried(lines: Lines, step: int) -> dict[tuple[int, int], int]:
    """The same from the gradients."""
    total: Counter[tuple[int, int]] = Counter()
    for line in of(lines, "gradient", step):
        args = line["args"]
        if args["bucket"] is not None:
            total[args["model"], args["bucket"]] += args["nbytes"]
    return dict(total)


def parameters(lines: Lines) -> dict[tuple[int, str], int]:
    """Bytes of every parameter by model and name."""
    return {
        (line["args"]["model"], name): nbytes
        for line in lines
        if line["name"] == "wirebound_model"
        for name, nbytes, _ in line["args"]["parameters"]
    }


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a recording of every way to train; fails if a result was changed."""
    folder = tmp_path_factory.mktemp("variants")
    run = start(*TORCHRUN, HERE / "training" / "variants.py", folder)
    assert (run.returncode, run.stderr[-2000:]) == (0, run.stderr[-2000:])
    return folder


@pytest.mark.parametrize("rank", [0, 1])
def test_every_gradient_and_bucket_is_recorded_once_a_step(variants: Path, rank: int) -> None:
    """Names and bytes are the model's, and buckets hold the gradients they say."""
    lines = read(variants / "plain" / f"rank{rank}.trace.json")
    expected = parameters(lines)
    assert list(range(4)) == steps(lines)
    for step in steps(lines):
        gradients = of(lines, "gradient", step)
        found = {(one["args"]["model"], one["name"]): one["args"]["nbytes"] for one in gradients}
        assert expected == found
        assert len(expected) == len(gradients)
        assert carried(lines, step) == buckets(lines, step)
        assert sum(expected.values()) == sum(buckets(lines, step).values())
    assert len(buckets(lines, 3)) > 1


def test_order_within_a_step(variants: Path) -> None:
    """A bucket is enqueued after its gradients, and phases follow each other without overlap."""
    lines = read(variants / "plain" / "rank0.trace.json")
    for collective in of(lines, "all_reduce", 3):
        ready = [
            one["ts"]
            for one in of(lines, "gradient", 3)
            if one["args"]["bucket"] == collective["args"]["bucket"]
        ]
        assert max(ready) <= collective["ts"]
    [step] = of(lines, "step", 3)
    spans = sorted(
        (one for one in lines if one["ph"] == "X" and one["tid"] == "compute"),
        key=lambda one: one["ts"],
    )
    spans = [one for one in spans if one["args"]["step"] == 3]
    kinds = [one["cat"] for one in spans if one["cat"] != "host"]
    assert kinds == ["forward", "backward", "exposed_wait", "optimizer"]
    assert sum(one["dur"] for one in spans) == pytest.approx(step["dur"], abs=0.1)


def test_micro_steps_without_synchronisation_have_no_bucket(variants: Path) -> None:
    """`no_sync`: gradients of the first micro-step stay on the rank."""
    lines = read(variants / "accumulation" / "rank0.trace.json")
    assert steps(lines) == [0, 1, 2]
    for step in steps(lines):
        gradients = of(lines, "gradient", step)
        micros = Counter(one["args"]["micro"] for one in gradients)
        assert micros == {0: 6, 1: 6}
        assert {(0, True), (1, False)} == {
            (one["args"]["micro"], one["args"]["bucket"] is None) for one in gradients
        }
        assert {1} == {one["args"]["micro"] for one in of(lines, "all_reduce", step)}
        assert len(of(lines, "backward", step)) == 2


def test_two_models_keep_their_buckets_apart(variants: Path) -> None:
    """Models of the same shape in one backward pass, and two optimizers in one step."""
    lines = read(variants / "two_models" / "rank0.trace.json")
    assert steps(lines) == [0, 1, 2]
    for step in steps(lines):
        assert {0, 1} == {model for model, _ in buckets(lines, step)}
        assert carried(lines, step) == buckets(lines, step)
        assert len(of(lines, "optimizer", step)) == 2


def test_frozen_and_unused_parameters(variants: Path) -> None:
    """Frozen ones are not there, unused ones are in a bucket and have no gradient."""
    lines = read(variants / "unused" / "rank0.trace.json")
    names = {name for _, name in parameters(lines)}
    ready = {one["name"] for one in of(lines, "gradient", 3)}
    assert {"used.0.weight", "used.0.bias"}.isdisjoint(names)
    assert {"unused.weight", "unused.bias"} == names - ready
    assert sum(parameters(lines).values()) == sum(buckets(lines, 3).values())
    [model] = [one["args"] for one in lines if one["name"] == "wirebound_model"]
    assert model["find_unused_parameters"] is True


def test_hook_of_the_user_is_used_and_named(variants: Path) -> None:
    """Half precision on the wire: half the bytes, the buckets as before."""
    lines = read(variants / "hooked" / "rank0.trace.json")
    for step in steps(lines):
        assert {"float16"} == {one["args"]["dtype"] for one in of(lines, "all_reduce", step)}
        halved = {key: nbytes // 2 for key, nbytes in carried(lines, step).items()}
        assert halved == buckets(lines, step)


@pytest.mark.parametrize("name", ["views", "mixed", "wrapped_before"])
def test_other_ways_to_train_record_whole_steps(variants: Path, name: str) -> None:
    """Gradients as views; autocast with a scaler; DDP from before the recording."""
    lines = read(variants / name / "rank1.trace.json")
    assert len(steps(lines)) >= 3
    for step in steps(lines):
        assert sum(parameters(lines).values()) == sum(buckets(lines, step).values())


def test_sharded_models_record_their_collectives(variants: Path) -> None:
    """FSDP2: all-gathers and reduce-scatters of the whole model's size."""
    lines = read(variants / "sharded" / "rank0.trace.json")
    total = sum(parameters(lines).values())
    for step in steps(lines):
        scattered = [one["args"]["nbytes"] for one in of(lines, "reduce_scatter", step)]
        gathered = [one["args"]["nbytes"] for one in of(lines, "all_gather", step)]
        assert total == sum(scattered)
        assert sum(gathered) >= total


@pytest.mark.parametrize("example", ["huge_layer.py", "convnet.py"])
def test_unchanged_script_under_torchrun(tmp_path: Path, example: str) -> None:
    """Header, clock, monitor and overhead are there, and no variable that looks secret."""
    script = ROOT / "examples" / example
    run = start(*TORCHRUN, *RECORD, "-o", tmp_path / "run", script, "--steps", "3")
    assert (run.returncode, run.stderr[-2000:]) == (0, run.stderr[-2000:])
    for rank in (0, 1):
        path = tmp_path / "run" / f"rank{rank}.trace.json"
        assert "hush" not in path.read_text()
        whole = json.loads(path.read_text())
        facts = {one["name"]: one["args"] for one in whole if one["ph"] == "M"}
        assert (rank, 2, "gloo", "cpu", example) == tuple(
            facts["wirebound"][key] for key in ("rank", "world_size", "backend", "device", "script")
        )
        assert facts["wirebound_clock"]["error_us"] == 0  # one machine, one clock
        assert facts["wirebound_overhead"]["bytes"] > 0
        assert steps(whole) == [0, 1, 2]
        assert of(whole, "input", 1)
    [monitor] = (tmp_path / "run").glob("host-*.monitor.json")
    samples = json.loads(monitor.read_text())
    assert {"step 0", "step 1"} <= {one["name"] for one in samples if one["ph"] == "i"}
    assert any(one["name"].startswith("cpu ") for one in samples if one["ph"] == "C")


BEHAVIOUR = {
    "raise": (1, 5),
    "exit": (7, 5),
    "status": (3, 5),
    "kill": (-signal.SIGKILL, 5),
    "workers": (0, FULL_STEPS),
    "never": (0, 0),
}
"""Exit status, and complete steps of the file."""


@pytest.mark.parametrize("how", BEHAVIOUR)
def test_script_that_misbehaves(tmp_path: Path, how: str) -> None:
    """Its status is its own, and its file holds every step that was complete."""
    status, complete = BEHAVIOUR[how]
    run = start(*RECORD, "-o", tmp_path, HERE / "training" / "behaviour.py", how)
    assert (status, run.stderr[-2000:]) == (run.returncode, run.stderr[-2000:])
    lines = read(tmp_path / "rank0.trace.json")
    assert list(range(complete)) == steps(lines)
    assert ("ValueError: as told" in run.stderr) == (how == "raise")
    assert ("no step was recorded" in run.stderr) == (how == "never")
    if how == "workers":
        assert f"done __main__ ['{how}']" in run.stdout


def test_a_killed_rank_takes_nothing_from_the_others(tmp_path: Path) -> None:
    """Both files hold every step that was complete, the one of the dead rank too."""
    script = HERE / "training" / "behaviour.py"
    run = start(*TORCHRUN, *RECORD, "-o", tmp_path, script, "lose")
    assert run.returncode == 1
    for rank in (0, 1):
        complete = steps(read(tmp_path / f"rank{rank}.trace.json"))
        assert complete == list(range(6 - rank))


def test_a_killed_monitor_ends_nothing(tmp_path: Path) -> None:
    """The training and the recording of the rank go on; what was sampled stays readable."""
    run = start(*RECORD, "-o", tmp_path, HERE / "training" / "behaviour.py", "monitor")
    assert (run.returncode, run.stderr) == (0, "")
    assert len(steps(read(tmp_path / "rank0.trace.json"))) == FULL_STEPS
    [monitor] = tmp_path.glob("host-*.monitor.json")
    assert read(monitor)[0]["name"] == "wirebound_monitor"


THIRD_PARTY = "accelerate.test_utils.scripts.test_script"
"""A program of the package `accelerate` that trains a model on all ranks, among other things."""


def test_a_program_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training of an installed package is recorded as it is, and ends as it does without."""
    pytest.importorskip("accelerate", reason="needs accelerate")
    # What its own launcher says where there is no GPU.
    monkeypatch.setenv("ACCELERATE_USE_CPU", "1")
    run = start(*TORCHRUN, *RECORD, "-o", tmp_path, "-m", THIRD_PARTY)
    assert (run.returncode, run.stderr[-2000:]) == (0, run.stderr[-2000:])
    for rank in (0, 1):
        lines = read(tmp_path / f"rank{rank}.trace.json")
        assert len(steps(lines)) > 10
        assert of(lines, "gradient")
        assert any(line["args"]["bucket"] == 0 for line in of(lines, "all_reduce"))


def test_full_disk_ends_the_recording_and_not_the_training(tmp_path: Path) -> None:
    """A limit on file size stands for the disk: one line, whole steps, and the script goes on."""
    run = start(*RECORD, "--no-monitor", "-o", tmp_path, HERE / "training" / "behaviour.py", "full")
    [complaint] = run.stderr.splitlines()
    assert (run.returncode, "training goes on" in complaint) == (0, True)
    assert "done" in run.stdout
    lines = read(tmp_path / "rank0.trace.json")
    assert 0 < len(steps(lines)) < FULL_STEPS
    assert lines[-1]["cat"] == "step"


def test_place_that_cannot_be_written_stops_before_the_script(tmp_path: Path) -> None:
    """Nothing is trained for nothing; and a recording is not replaced by accident."""
    script = HERE / "training" / "behaviour.py"
    run = start(*RECORD, "-o", "/proc/no-recording", script, "plain")
    assert (run.returncode, len(run.stderr.splitlines()), run.stdout) == (2, 1, "")
    (tmp_path / "rank0.trace.json").write_text("precious")
    run = start(*RECORD, "-o", tmp_path, script, "plain")
    assert (run.returncode, "--force" in run.stderr) == (2, True)
    assert (tmp_path / "rank0.trace.json").read_text() == "precious"

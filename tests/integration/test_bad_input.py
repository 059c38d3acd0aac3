"""Input that cannot be: one line that says where and what to do, status 2, nothing written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from wirebound.cli import run
from wirebound.network import network
from wirebound.network.record import dumps as network_dumps
from wirebound.workload.files import dumps
from wirebound.workload.record import Gradient, data_parallel

JOB = data_parallel("job", [Gradient("g", 10**6, 0.5)], backward_s=1.0)
ZOO = ("whatif", "resnet50", "--step", "128ms")
LINKED = (*ZOO, "--link", "10Gbps")
THOUSAND = ",".join(str(n) for n in range(1, 1001))

Capture = pytest.CaptureFixture[str]


def complaint(capsys: Capture, *arguments: str) -> str:
    """The one line that a failing command writes to stderr."""
    status = run(list(arguments))
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.startswith("wirebound: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert err.rstrip("\n").isprintable()
    return err


@pytest.mark.parametrize(
    ("arguments", "place", "advice"),
    [
        ((*ZOO, "--link", "10"), "link '10'", "10Gbit/s"),
        ((*ZOO, "--link", "10gbps"), "link '10gbps'", "write Gbit/s for bits"),
        ((*ZOO, "--link", "-1Gbps"), "link '-1Gbps'", "negative"),
        ((*ZOO, "--link", "nan"), "link 'nan'", "expected for example"),
        ((*ZOO, "--link", "NaNGbps"), "link 'NaNGbps'", "expected for example"),
        ((*ZOO, "--link", "inf"), "link 'inf'", "expected for example"),
        ((*ZOO, "--link", "0Gbps"), "link '0Gbps'", "moves nothing"),
        ((*ZOO, "--link", "1e999Gbps"), "link '1e999Gbps'", "too large"),
        ((*ZOO, "--link", ""), "link ''", "expected for example"),
        ((*ZOO, "--link", "10Gbps,"), "link ''", "expected for example"),
        ((*LINKED, "--set", "bucket_cap=-5MB"), "bucket_cap '-5MB'", "negative"),
        ((*LINKED, "--set", "bucket_cap=5KB"), "bucket_cap '5KB'", "unknown unit"),
        ((*LINKED, "--set", "latency=5"), "latency '5'", "128ms"),
        ((*LINKED, "--set", "compute_speed=nan"), "compute_speed is 'nan'", "such as 4"),
        ((*LINKED, "--set", "batch_scale=inf"), "batch_scale is 'inf'", "such as 4"),
        ((*LINKED, "--set", "jitter=normal"), "jitter is 'normal'", "normal:5%"),
        ((*LINKED, "--set", "accumulation=1000000000"), "accumulation is", "expected 1 to"),
        ((*LINKED, "--set", "zzz=red"), "unknown key 'zzz'", "one of workers"),
        ((*LINKED, "--set", "latncy=1us"), "unknown key 'latncy'", "'latency'?"),
        ((*LINKED, "--set", "latency"), "--set 'latency'", "KEY=VALUE"),
        ((*LINKED, "--set", "=1"), "unknown key ''", "one of workers"),
        ((*LINKED, "--set", "network=25gbe"), "--set 'network=25gbe'", "--network"),
        ((*LINKED, "--set", "intra=nvlink3"), "--set 'intra=nvlink3'", "--intra"),
        ((*LINKED, "--set", "workload=x"), "unknown key 'workload'", "expected"),
        ((*LINKED, "--set", "link=1Gbps"), "link is given twice", "write a list"),
        ((*LINKED, "--set", "buckets=a,b"), "buckets expects lists", '[["fc.bias"'),
        ((*LINKED, "--workers", "0"), "workers is '0'", "such as 64"),
        ((*LINKED, "--workers", "8.5"), "workers is '8.5'", "such as 64"),
        ((*LINKED, "--workers", "-8"), "workers is '-8'", "such as 64"),
        ((*LINKED, "--workers", "9" * 5000), "workers is '999", "such as 64"),
        ((*LINKED, "--workers", "10000000"), "workers is 10000000", "1 to 1e+06"),
        ((*LINKED, "--compression", "0.5"), "compression is '0.5'", "1 or more"),
        ((*LINKED, "--efficiency", "140%"), "efficiency '140%'", "more than the whole"),
        ((*LINKED, "--algorithm", "rings"), "algorithm is 'rings'", "'ring'?"),
        ((*LINKED, "--bucketing", "dpp"), "bucketing is 'dpp'", "'ddp'?"),
        ((*LINKED, "--target", "120%"), "target '120%'", "more than the whole"),
        ((*LINKED, "--target", "0"), "target is 0", "above 0"),
        ((*ZOO, "--network", "100gbee"), "'100gbee'", "the nearest is '100gbe'"),
        ((*LINKED, "--intra", "nvlink33"), "'nvlink33'", "the nearest is"),
        (ZOO, "no network given", "10Gbps"),
        (
            (
                *LINKED,
                "--workers",
                THOUSAND,
                "--compression",
                THOUSAND,
                "--set",
                f"servers={THOUSAND}",
            ),
            "the grid has 1,000,000,000 scenarios",
            "shorten an axis",
        ),
        (("whatif", "resnet50", "--link", "1Gbps"), "an architecture without a time", "--step"),
        (("whatif", "resnet5", "--step", "1s"), "resnet5", "resnet50"),
        (("whatif", "resnet50", "--step", "128"), "--step '128'", "128ms"),
        (("whatif", "resnet50", "--step", "0s"), "--step '0s'", "128ms"),
        (("whatif", "resnet50", "--step", "-1s"), "--step '-1s'", "negative"),
        (("whatif", "resnet50", "--device", "V10"), "V10", "V100"),
        (("whatif", "resnet50", "--device", "V100", "--step", "1s"), "exclude each other", ""),
        (
            ("whatif", "resnet50", "--step", "1s", "--batch", "0"),
            "--batch",
            "wirebound whatif --help",
        ),
        (("whatif", "resnet50", "--step", "1s", "--dtype", "int4"), "--dtype", "bf16"),
        (("whatif",), "WORKLOAD", "wirebound whatif --help"),
        (("whatif", "a.json", "b.json"), "b.json", "wirebound whatif --help"),
        (("whatif", "resnet50", "--lnik", "1Gbps"), "--lnik", "--link"),
        (("whatfi",), "whatfi", "wirebound --help"),
        (("demo", "extra"), "extra", "wirebound demo --help"),
        (("zoo", "resnet5", "--step", "1s"), "resnet5", "resnet50"),
        (("paper", "--data", "/nowhere/at/all"), "/nowhere/at/all", "no such folder"),
    ],
)
def test_arguments(capsys: Capture, arguments: tuple[str, ...], place: str, advice: str) -> None:
    """A value that makes no sense is named with what was expected."""
    line = complaint(capsys, *arguments)
    assert place in line
    assert advice in line


CYCLE = {
    "name": "cycle",
    "operations": [
        {"name": "a", "kind": "forward", "after": ["b"]},
        {"name": "b", "kind": "backward", "after": ["a"]},
    ],
}
LOG = "#\n1\n4\n1.0,4\n1.0,4\n"

WORKLOADS: dict[str, tuple[str | bytes, str]] = {
    "cycle.json": (json.dumps(CYCLE), "wait for each other: "),
    "cut.json": (dumps(JOB)[:100], "not complete JSON"),
    "cut.bk.log": (LOG, "announces 4 gradients, 2 follow: the log is cut short"),
    "unknown.json": ('{"name": "x", "operations": [], "speed": 1}', "unknown field `speed`"),
    "wrong.json": ('{"name": "x", "operations": 5}', "Expected `array`, got `int`"),
    "nan.json": ('{"name": "x", "operations": [{"name": "a", "seconds": NaN}]}', "JSON"),
    "negative.json": (dumps(JOB).replace(b"1000000", b"-1000000"), "nbytes is -1000000"),
    "huge-number.json": (dumps(JOB).replace(b"1000000", b"1" + b"0" * 400), "nbytes"),
    "empty.json": ("", "neither a workload in JSON nor a backward log"),
    "garbage.json": (bytes(range(256)) * 40, "not text"),
    "zeros.json": (bytes(1000), "neither a workload"),
    "deep.json": ('{"name": "x", "operations": ' + "[" * 200_000, "operations"),
    "deeper.json": ("[" * 200_000, "neither a workload"),
    "no-time.json": (
        '{"name": "x", "operations": [{"name": "a", "kind": "forward"}]}',
        "takes no time at all",
    ),
    "future.json": (dumps(JOB).replace(b'version": 1', b'version": 2'), "schema_version 2"),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_workload_files(tmp_path: Path, capsys: Capture, name: str) -> None:
    """A file that is no workload is named with the place inside it."""
    content, says = WORKLOADS[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    target = tmp_path / "out.json"
    line = complaint(capsys, "whatif", str(path), "--link", "1Gbps", "--json", "-o", str(target))
    assert says in line
    if name not in ("cycle.json", "no-time.json"):  # read well, refused when simulated
        assert str(path) in line
    assert not target.exists()


def test_workload_paths(tmp_path: Path, capsys: Capture) -> None:
    """A missing file, a folder and a file too large are named as such."""
    linked = ("--link", "1Gbps")
    missing = complaint(capsys, "whatif", str(tmp_path / "none.json"), *linked)
    assert "none.json: No such file or directory, expected a workload in JSON" in missing
    folder = complaint(capsys, "whatif", str(tmp_path), *linked)
    assert f"{tmp_path}: holds no recording, expected files such as rank0.trace.json" in folder
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(65 * 10**6)
    assert "larger than 64 MB" in complaint(capsys, "whatif", str(large), *linked)
    job = tmp_path / "job.json"
    job.write_bytes(dumps(JOB))
    both = complaint(capsys, "whatif", str(job), "--step", "1s", *linked)
    assert "brings its own times" in both


NETWORK = json.loads(network_dumps(network("25gbe")))

NETWORKS: dict[str, tuple[str | bytes, str]] = {
    "type.json": (json.dumps({**NETWORK, "gpus_per_node": "eight"}), "gpus_per_node"),
    "tier.json": (json.dumps({**NETWORK, "inter": 5}), "inter"),
    "unknown.json": (json.dumps({**NETWORK, "speed": 5}), "speed"),
    "negative.json": (
        json.dumps({**NETWORK, "inter": {**NETWORK["inter"], "bandwidth_bps": -1}}),
        "bandwidth_bps is -1",
    ),
    "cut.json": (json.dumps(NETWORK)[:50], "JSON"),
    "garbage.json": (bytes(range(256)), "JSON"),
    "empty.json": ("", "JSON"),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_network_files(tmp_path: Path, capsys: Capture, name: str) -> None:
    """A file that is no network is named with the place inside it."""
    content, says = NETWORKS[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    line = complaint(capsys, *ZOO, "--network", str(path))
    assert str(path) in line
    assert says in line


def test_network_paths(tmp_path: Path, capsys: Capture) -> None:
    """A missing network and a folder are named."""
    for path in (tmp_path / "none.json", tmp_path):
        assert str(path) in complaint(capsys, *ZOO, "--network", str(path))


SCENARIOS: dict[str, tuple[str | bytes, str]] = {
    "no-toml.toml": ("workers 8", "no-toml.toml"),
    "unknown.toml": ("speed = 1", "unknown key 'speed'"),
    "near.toml": ('lnik = "1Gbps"', "'link'?"),
    "bare.toml": ("link = 10", "a bare number has no unit"),
    "nan.toml": ("compute_speed = nan", "compute_speed is NaN"),
    "table.toml": ("[link]\nrate = 1", "link"),
    "empty-list.toml": ("workers = []", "workers is an empty list"),
    "boolean.toml": ("workers = true", "workers is True"),
    "date.toml": ("latency = 2020-01-01", "latency '2020-01-01'"),
    "garbage.toml": (bytes(range(128, 256)), "not text"),
    "twice.toml": ("workers = 1\nworkers = 2", "twice.toml"),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario_files(tmp_path: Path, capsys: Capture, name: str) -> None:
    """A file that is no scenario is named with the key or line."""
    content, says = SCENARIOS[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    line = complaint(capsys, *LINKED, "--scenario", str(path))
    assert str(path) in line
    assert says in line


def test_scenario_paths(tmp_path: Path, capsys: Capture) -> None:
    """A missing scenario and a folder are named."""
    for path in (tmp_path / "none.toml", tmp_path):
        line = complaint(capsys, *LINKED, "--scenario", str(path))
        assert f"{path}: " in line
        assert "expected a scenario file in TOML" in line


def test_paper_data(tmp_path: Path, capsys: Capture) -> None:
    """A folder without the logs, or with a broken one, is named."""
    assert "no file cuda_vec_add.log" in complaint(capsys, "paper", "--data", str(tmp_path))
    (tmp_path / "cuda_vec_add.log").write_text("40,1e-5\n")
    assert "no file resnet50.bk.log" in complaint(capsys, "paper", "--data", str(tmp_path))
    (tmp_path / "resnet50.bk.log").write_text(LOG)
    assert "the log is cut short" in complaint(capsys, "paper", "--data", str(tmp_path))


@pytest.mark.parametrize("command", [("demo",), ("zoo",), ("zoo", "vgg16", "--step", "1s")])
def test_output_places(tmp_path: Path, capsys: Capture, command: tuple[str, ...]) -> None:
    """An output that exists, is a folder, has no folder or no room is named and left alone."""
    there = tmp_path / "there.txt"
    there.write_text("kept")
    assert "there.txt: exists already (choose another name, or --force" in complaint(
        capsys, *command, "-o", str(there)
    )
    assert there.read_text() == "kept"
    assert f"{tmp_path}: a directory" in complaint(capsys, *command, "-o", str(tmp_path))
    nowhere = tmp_path / "missing" / "out.txt"
    assert f"{nowhere}: cannot be written: No such" in complaint(
        capsys, *command, "-o", str(nowhere)
    )
    long = tmp_path / ("n" * 300)
    assert "cannot be written: File name too long" in complaint(capsys, *command, "-o", str(long))
    assert "No space left" in complaint(capsys, *command, "-o", "/dev/full")
    assert [path.name for path in tmp_path.iterdir()] == ["there.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_folder_without_permission(tmp_path: Path, capsys: Capture) -> None:
    """A folder that may not be written is named."""
    tmp_path.chmod(0o500)
    line = complaint(capsys, "demo", "-o", str(tmp_path / "out.txt"))
    assert "out.txt: cannot be written: Permission denied" in line


@pytest.mark.parametrize("arguments", [["demo"], ["demo", "--json"], ["--help"], ["zoo"]])
def test_full_disk(arguments: list[str]) -> None:
    """A screen that is a full disk is one line and status 2, at exit too."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "wirebound", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.stderr == "wirebound: standard output: No space left on device\n"
    assert done.returncode == 2


def test_closed_output() -> None:
    """A closed standard output is one line and status 2."""
    done = subprocess.run(
        ["/bin/sh", "-c", '"$0" -m wirebound zoo >&-', sys.executable],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "standard output is closed" in done.stderr


def test_endless_message(tmp_path: Path, capsys: Capture) -> None:
    """A name out of hand does not fill the screen."""
    path = tmp_path / "long.json"
    path.write_text(json.dumps({"name": "n" * 10**6, "operations": []}))
    assert len(complaint(capsys, "whatif", str(path), "--link", "1Gbps")) < 1200

"""The question in one call."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import wirebound
from wirebound.api import MAX_VERDICTS, whatif
from wirebound.cli import run
from wirebound.errors import NetworkError, QuantityError, ReadError, ScenarioError, WireboundError
from wirebound.network import network, tier
from wirebound.network import record as network_record
from wirebound.workload.files import dumps
from wirebound.workload.record import Gradient, Workload, data_parallel

JOB = data_parallel(
    "job",
    [Gradient(f"g{k}", 10**7, 0.01 * (k + 1), 0.001 * k) for k in range(6)],
    backward_s=0.06,
    forward_s=0.03,
)

AXES: dict[str, list[Any]] = {
    "workers": [2, 64],
    "gpus_per_node": [1, 2],
    "link": ["1Gbps", "25Gbps"],
    "latency": ["1us", "1ms"],
    "efficiency": ["40%", "perfect"],
    "algorithm": ["ring", "in-network"],
    "compression": [1, 10],
    "encode": ["1GB/s", "100GB/s"],
    "decode": ["1GB/s", "100GB/s"],
    "bucketing": ["one", "none"],
    "bucket_cap": ["1MB", "100MB"],
    "first_bucket": ["1MB", "100MB"],
    "accumulation": [1, 4],
    "order": ["ready", "priority"],
    "partition": ["1MB", "100MB"],
    "streams": [1, 4],
    "compute_speed": [1, 4],
    "compute_inflation": ["0%", "30%"],
    "batch_scale": [1, 4],
    "jitter": ["none", "normal:10%"],
    "overlap_next_forward": [False, True],
}


def steps(**keys: Any) -> list[float]:  # noqa: ANN401 - as the API
    """Step times of some scenarios, on 8 workers at 2 Gbit/s unless told otherwise."""
    return [v.step_s for v in whatif(JOB, **{"workers": 8, "link": "2Gbps", **keys})]


def test_public_name() -> None:
    """`wirebound.whatif` is the function."""
    assert wirebound.whatif is whatif


@pytest.mark.parametrize("key", AXES)
def test_every_list_is_an_axis(key: str) -> None:
    """A list gives one verdict a value, in order, each as if asked alone."""
    values = AXES[key]
    base: dict[str, Any] = {}
    if key in ("order", "streams"):
        base = {"partition": "1MB", "bucketing": "none"}
    if key == "compute_inflation":
        base = {"link": "50Gbps"}
    together = steps(**base, **{key: values})
    assert together == pytest.approx([steps(**base, **{key: value})[0] for value in values])
    if key not in ("order", "decode", "encode", "first_bucket", "jitter", "gpus_per_node"):
        assert together[0] != together[1]


def test_discrete_keys_vary_slowest() -> None:
    """Whatever the order they are given in."""
    verdicts = whatif(JOB, link=["1Gbps", "2Gbps"], algorithm=["ring", "tree"], workers=[2, 4, 8])
    found = [
        (v.scenario["algorithm"], v.scenario["link_bps"], v.scenario["workers"]) for v in verdicts
    ]
    assert found == [
        (algorithm, rate, workers)
        for algorithm in ("ring", "tree")
        for rate in (1e9, 2e9)
        for workers in (2, 4, 8)
    ]


def test_workload_as_path_and_record(tmp_path: Path) -> None:
    """A file and the record it holds give the same answer."""
    path = tmp_path / "job.json"
    path.write_bytes(dumps(JOB))
    keys: dict[str, Any] = {"workers": 8, "link": "2Gbps"}
    assert whatif(path, **keys) == whatif(str(path), **keys) == whatif(JOB, **keys)


def test_network_as_path_and_record(tmp_path: Path) -> None:
    """A network is a record, a preset or a file."""
    path = tmp_path / "net.json"
    path.write_text(network_record.dumps(network("p4d.24xlarge")))
    by_name = whatif(JOB, network="p4d.24xlarge", workers=16)
    assert by_name == whatif(JOB, network=path, workers=16)
    assert by_name == whatif(JOB, network=network("p4d.24xlarge"), workers=16)
    assert by_name[0].scenario["gpus_per_node"] == 8


def test_intra() -> None:
    """The way inside the node can be given beside the link."""
    (verdict,) = whatif(JOB, link="1Gbps", gpus_per_node=8, workers=16, intra="nvlink3")
    assert tier("nvlink3").name in " ".join(cause.evidence for cause in verdict.causes)


def test_scenario_file(tmp_path: Path) -> None:
    """A file's keys count as if they were given; keys that are given win."""
    path = tmp_path / "scenario.toml"
    path.write_text('network = "25gbe"\nworkers = [2, 8]\nalgorithm = "tree"\nlatency = "1ms"\n')
    verdicts = whatif(JOB, scenario=path)
    assert [v.scenario["workers"] for v in verdicts] == [2, 8]
    assert {(v.network, v.scenario["algorithm"], v.scenario["latency_s"]) for v in verdicts} == {
        ("25gbe", "tree", 1e-3)
    }
    (verdict,) = whatif(JOB, scenario=path, workers=64, latency="0s", network="100gbe")
    assert (verdict.scenario["workers"], verdict.scenario["latency_s"]) == (64, 0)
    assert (verdict.network, verdict.scenario["algorithm"]) == ("100gbe", "tree")


def test_policy_with_its_own_fields() -> None:
    """Fields of a bucketing policy follow it, wherever the policy comes from."""
    caps = steps(bucketing="ddp", bucket_cap=["1MB", "60MB"])
    assert caps == steps(bucket_cap=["1MB", "60MB"])
    horovod = whatif(JOB, workers=8, link="2Gbps", bucketing="horovod", cycle_time="2ms")
    assert horovod[0].scenario["cycle_time_s"] == 2e-3


def test_explicit_buckets() -> None:
    """Lists of names are one value, not an axis."""
    groups = [["g0", "g1", "g2"], ["g3", "g4", "g5"]]
    (verdict,) = whatif(JOB, workers=8, link="2Gbps", buckets=groups)
    assert verdict.scenario["bucketing"] == "explicit"


@pytest.mark.parametrize(
    ("keys", "error", "says"),
    [
        ({}, ScenarioError, "no network given"),
        ({"link": 10}, QuantityError, "link '10': a bare number has no unit"),
        ({"link": "-1Gbps"}, QuantityError, "negative"),
        ({"link": float("nan")}, WireboundError, "link is NaN"),
        ({"link": []}, QuantityError, "link is an empty list"),
        ({"network": "p4d"}, NetworkError, "no preset network is called 'p4d'"),
        ({"network": Path("none.json")}, ReadError, "none.json"),
        ({"link": "1Gbps", "intra": "copper"}, NetworkError, "'copper'"),
        ({"link": "1Gbps", "latncy": 8}, ScenarioError, "unknown key 'latncy', expected 'latency'"),
        ({"link": "1Gbps", "workers": 0}, ScenarioError, "workers is 0"),
        ({"link": "1Gbps", "workers": [8, 2.5]}, ScenarioError, "workers is 2.5"),
        ({"link": "1Gbps", "compression": 0.5}, ScenarioError, "compression is 0.5"),
        ({"link": "1Gbps", "compute_speed": 0}, ScenarioError, "compute_speed is 0"),
        ({"link": "1Gbps", "algorithm": "rink"}, ScenarioError, "expected 'ring'"),
        ({"link": "1Gbps", "target": 1.5}, QuantityError, "target '1.5'"),
        (
            {"link": "1Gbps", "bucketing": "one", "bucket_cap": "1MB"},
            ScenarioError,
            "bucket_cap belongs to bucketing ddp",
        ),
        ({"link": "1Gbps", "scenario": "none.toml"}, ReadError, "none.toml"),
    ],
)
def test_refusals(keys: dict[str, Any], error: type[WireboundError], says: str) -> None:
    """What cannot be understood is an error of its own kind that says what to do."""
    with pytest.raises(error, match=says):
        whatif(JOB, **keys)


def test_grid_too_large() -> None:
    """A grid that fits no memory is refused before it is made."""
    thousand = list(range(1, 1001))
    with pytest.raises(ScenarioError, match="1,000,000,000 scenarios, at most 100,000"):
        whatif(JOB, link="1Gbps", workers=thousand, compression=thousand, batch_scale=thousand)
    assert MAX_VERDICTS == 100_000


def test_same_as_the_command_line(tmp_path: Path) -> None:
    """The command line's JSON holds the records that Python gets."""
    path, target = tmp_path / "job.json", tmp_path / "out.json"
    path.write_bytes(dumps(JOB))
    line = "--workers 2,64 --link 1Gbps,25Gbps --set latency=5us --target 90% --json"
    assert run(["whatif", str(path), *line.split(), "-o", str(target)]) == 0
    verdicts = whatif(path, workers=[2, 64], link=["1Gbps", "25Gbps"], latency="5us", target="90%")
    printed = json.loads(target.read_text())
    assert printed == {"schema_version": 1, "verdicts": json.loads(msgspec.json.encode(verdicts))}


def test_deterministic() -> None:
    """The same question has the same answer, jitter included."""
    keys: dict[str, Any] = {
        "workers": [2, 64],
        "link": "1Gbps",
        "jitter": "lognormal:10%",
        "target": 0.9,
    }
    assert msgspec.json.encode(whatif(JOB, **keys)) == msgspec.json.encode(whatif(JOB, **keys))


def test_workload_of_any_kind_of_lanes() -> None:
    """A replay without gradients is answered too."""
    replay = Workload("replay", JOB.operations)
    (verdict,) = whatif(replay, workers=8, link="1Gbps")
    assert verdict.step_s == pytest.approx(0.09)


@pytest.mark.parametrize("measured", ["70%", 0.7])
def test_measured_scaling_factor(measured: float | str) -> None:
    """What was measured is explained by the link whose perfect use gives it."""
    verdict = whatif(JOB, workers=8, link="10Gbps", measured=measured)[0]
    assert verdict.measured_scaling_factor == 0.7
    effective = verdict.thresholds["effective_link"].value
    assert effective is not None
    perfect = whatif(JOB, workers=8, link=f"{effective!r}bps", efficiency="perfect")[0]
    assert perfect.scaling_factor == pytest.approx(0.7, rel=1e-9)


def test_measured_step_is_a_scaling_factor() -> None:
    """A step time says the same as the scaling factor that it makes."""
    alone_s = whatif(JOB, workers=8, link="10Gbps")[0].alone_s
    by_step = whatif(JOB, workers=8, link="10Gbps", measured=f"{alone_s / 0.7!r}s")[0]
    by_factor = whatif(JOB, workers=8, link="10Gbps", measured=0.7)[0]
    assert by_step.measured_scaling_factor == pytest.approx(0.7, rel=1e-12)
    assert by_step.thresholds["effective_link"].value == pytest.approx(
        by_factor.thresholds["effective_link"].value, rel=1e-9
    )


@pytest.mark.parametrize(
    ("measured", "error", "says"),
    [
        ("0%", QuantityError, "above 0"),
        ("300%", QuantityError, "more than the whole"),
        ("fast", QuantityError, "0.95"),
        ("1us", ScenarioError, "shorter than one worker"),
    ],
)
def test_measured_refusals(measured: str, error: type[WireboundError], says: str) -> None:
    """No measurement is above one, zero, or faster than one worker alone."""
    with pytest.raises(error, match=says):
        whatif(JOB, workers=8, link="10Gbps", measured=measured)


def test_bill_shares_are_what_a_percent_saves() -> None:
    """One percent off the price of a resource saves its share of one percent of the step."""
    base = whatif(JOB, workers=8, link="10Gbps")[0]
    cheaper = whatif(JOB, workers=8, link=f"{1e10 / 0.9999!r}bps")[0]
    saved = (base.step_s - cheaper.step_s) / base.step_s
    assert sum(base.bill_shares.values()) == pytest.approx(1, rel=1e-12)
    assert saved == pytest.approx(1e-4 * base.bill_shares["link_inter"], rel=1e-6)

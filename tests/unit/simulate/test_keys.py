"""Scenarios as people write them: what is understood, and how it is refused."""

from pathlib import Path

import pytest

from wirebound.errors import QuantityError, ReadError, ScenarioError, WireboundError
from wirebound.simulate.keys import BUCKETINGS, KEYS, apply, parse_value, read_scenario
from wirebound.simulate.scenario import Jitter, Scenario
from wirebound.workload.bucketing import DDP, Explicit
from wirebound.workload.horovod import Horovod
from wirebound.workload.schedule import Schedule

EXAMPLES: dict[str, tuple[object, object]] = {
    "workers": (64, 64),
    "gpus_per_node": ("8", 8),
    "link": ("10Gbps", 1e10),
    "latency": ("20us", 2e-5),
    "efficiency": ("40%", 0.4),
    "algorithm": ("tree", "tree"),
    "servers": (4, 4),
    "colocated": ("no", False),
    "compression": (4, 4.0),
    "encode": ("20GB/s", 1 / 20e9),
    "decode": ("10GB/s", 1 / 10e9),
    "stays_compressed": (False, False),
    "compressed_collective": ("all_gather", "all_gather"),
    "codec_lane": ("comm", "comm"),
    "bucketing": ("horovod", Horovod()),
    "buckets": ([["a", "b"], ["c"]], Explicit(groups=(("a", "b"), ("c",)))),
    "bucket_cap": ("10MiB", 10 * 2.0**20),
    "first_bucket": ("2MB", 2e6),
    "cycle_time": ("5ms", 0.005),
    "fusion_threshold": ("64MiB", 64 * 2.0**20),
    "response_cache": ("off", False),
    "accumulation": (4, 4),
    "sync_every_micro_step": ("yes", True),
    "order": ("priority", "priority"),
    "overlap_next_forward": (True, True),
    "partition": ("4MiB", 4 * 2.0**20),
    "streams": (2, 2),
    "compute_speed": ("2.5", 2.5),
    "compute_inflation": ("10%", 0.1),
    "batch_scale": (2, 2.0),
    "jitter": ("normal:5%", Jitter(distribution="normal", spread=0.05)),
}
"""One value of every key, as written and as understood."""


def test_every_key_has_an_example() -> None:
    """A new key needs a line above."""
    assert set(EXAMPLES) == set(KEYS)


@pytest.mark.parametrize("key", EXAMPLES)
def test_examples_are_understood_and_applied(key: str) -> None:
    """By the field that the key names."""
    written, expected = EXAMPLES[key]
    value = parse_value(key, written)
    assert expected == pytest.approx(value) if isinstance(expected, float) else expected == value
    policy = Horovod() if KEYS[key].applies_to is Horovod else DDP()
    changed: object = apply(Scenario(schedule=Schedule(bucketing=policy)), {key: value})
    for name in KEYS[key].field.split("."):
        changed = getattr(changed, name)
    assert value == changed


@pytest.mark.parametrize(
    ("key", "nearest"),
    [("worker", "'workers'"), ("bucketcap", "'bucket_cap'"), ("Link", "'link'")],
)
def test_an_unknown_key_names_the_nearest(key: str, nearest: str) -> None:
    """Or all, where none is near."""
    with pytest.raises(ScenarioError, match=rf"unknown key '{key}', expected {nearest}"):
        parse_value(key, 1)
    with pytest.raises(ScenarioError, match=r"unknown key 'xyz', expected one of workers, gpus"):
        parse_value("xyz", 1)


@pytest.mark.parametrize("key", ["link", "latency", "bucket_cap", "partition", "encode"])
@pytest.mark.parametrize("value", [10, 10.5, "10"])
def test_a_bare_number_is_no_quantity(key: str, value: object) -> None:
    """The key is named, and what was expected."""
    with pytest.raises(QuantityError, match=rf"^{key} .*bare number has no unit, expected"):
        parse_value(key, value)


@pytest.mark.parametrize("key", sorted(set(KEYS) - {"jitter"}))
@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        -1,
        -1.0,
        "-1",
        "",
        "nan",
        "inf",
        "abc",
        10**400,
        None,
        [1],
        {"a": 1},
    ],
    ids=repr,
)
def test_nonsense_is_refused_by_every_key(key: str, value: object) -> None:
    """With one of our errors that names the key, whatever was written."""
    with pytest.raises(WireboundError, match=key):
        parse_value(key, value)


@pytest.mark.parametrize("value", ["normal", "normal:", "uniform:5%", "normal:5", "", 5, True])
def test_impossible_jitter_is_refused(value: object) -> None:
    """With an example of a possible one, or with what is wrong about its spread."""
    with pytest.raises(WireboundError, match=r"jitter"):
        parse_value("jitter", value)


@pytest.mark.parametrize("key", ["workers", "compute_speed", "compression"])
def test_a_switch_is_no_number(key: str) -> None:
    """`true` is 1 in many languages, not here."""
    with pytest.raises(ScenarioError, match=rf"{key} is True"):
        parse_value(key, value=True)


def test_words_in_place_of_numbers() -> None:
    """`measured` keeps the network's efficiency, `none` shakes nothing."""
    assert parse_value("efficiency", "measured") is None
    assert parse_value("efficiency", "perfect") == 1.0
    assert parse_value("jitter", "none") is None


@pytest.mark.parametrize("value", [0.5, "0.99"])
def test_compression_below_one_is_refused(value: object) -> None:
    """It would make messages larger."""
    with pytest.raises(ScenarioError, match=r"expected uncompressed over compressed bytes"):
        parse_value("compression", value)


@pytest.mark.parametrize(("key", "value"), [("algorithm", "rings"), ("order", "priorities")])
def test_an_unknown_choice_names_the_nearest(key: str, value: str) -> None:
    """As for keys."""
    with pytest.raises(ScenarioError, match=rf"{key} is '{value}', expected '(ring|priority)'"):
        parse_value(key, value)


def test_an_unknown_bucketing_names_the_nearest() -> None:
    """Policies are choices too."""
    with pytest.raises(ScenarioError, match=r"bucketing is 'hovorod', expected 'horovod'"):
        parse_value("bucketing", "hovorod")
    assert {"ddp", "ddp-unrebuilt", "horovod", "paper", "one", "none"} == set(BUCKETINGS)


def test_policies_come_before_their_fields() -> None:
    """In whichever order they are written."""
    scenario = apply(Scenario(), {"cycle_time": 0.005, "bucketing": Horovod()})
    assert Horovod(cycle_time_s=0.005) == scenario.schedule.bucketing


def test_a_field_of_a_policy_that_is_not_in_use_is_refused() -> None:
    """Rather than ignored."""
    with pytest.raises(ScenarioError, match=r"cycle_time belongs to bucketing horovod, not to"):
        apply(Scenario(), {"cycle_time": 0.005})


def test_impossible_values_are_refused_when_applied() -> None:
    """What text cannot say, the record checks."""
    with pytest.raises(ScenarioError, match=r"efficiency is 0.0"):
        apply(Scenario(), {"efficiency": parse_value("efficiency", "0%")})
    with pytest.raises(ScenarioError, match=r"workers is 1000000000"):
        apply(Scenario(), {"workers": parse_value("workers", 10**9)})


def written(folder: Path, text: str) -> Path:
    """A scenario file."""
    path = folder / "scenario.toml"
    path.write_text(text)
    return path


def test_files_give_values_and_axes(tmp_path: Path) -> None:
    """A list is an axis; `buckets` is a list of its own, `network` a name."""
    text = """
        workers = [8, 16]
        link = "10Gbps"
        buckets = [["a"], ["b", "c"]]
        network = "10gbe"
    """
    assert read_scenario(written(tmp_path, text)) == {
        "workers": [8, 16],
        "link": [1e10],
        "buckets": [Explicit(groups=(("a",), ("b", "c")))],
        "network": ["10gbe"],
    }


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("workers = ", ReadError, 'expected TOML such as link = "10Gbps"'),
        ("workers = 8\nworkers = 16", ReadError, "expected TOML"),
        ("worker = 8", ScenarioError, "unknown key 'worker', expected 'workers'?"),
        ("[workers]\nx = 1", ScenarioError, "workers is {'x': 1}"),
        ("link = 10", QuantityError, "bare number has no unit"),
        ("workers = []", ScenarioError, "workers is an empty list"),
        ("workers = [8, 0]", ScenarioError, "workers is 0, expected a whole number"),
        ("workers = 8.5", ScenarioError, "workers is 8.5"),
        ("compute_speed = nan", ScenarioError, "compute_speed is NaN"),
        ("compute_speed = inf", ScenarioError, "compute_speed is inf"),
        ("link = 2020-01-01", QuantityError, "link"),
        ("overlap_next_forward = 1", ScenarioError, "expected true or false"),
        ('buckets = ["a"]', ScenarioError, "expects lists of parameter names"),
    ],
)
def test_errors_in_files_name_the_file(
    text: str, error: type[WireboundError], message: str, tmp_path: Path
) -> None:
    """And the key, and what was expected."""
    path = written(tmp_path, text)
    with pytest.raises(error) as caught:
        read_scenario(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A directory, nothing, or bytes that are no text."""
    with pytest.raises(ReadError, match=r"directory, expected a scenario file in TOML"):
        read_scenario(tmp_path)
    with pytest.raises(ReadError, match=r"No such file or directory"):
        read_scenario(tmp_path / "none.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReadError, match=r"not text"):
        read_scenario(binary)

"""Scenarios as people write them: one table of keys for TOML files, flags and callers."""

import difflib
import math
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import msgspec

from wirebound.errors import QuantityError, ReadError, ScenarioError
from wirebound.inputs import read_text
from wirebound.network.collectives import ALL_REDUCE
from wirebound.simulate.scenario import Jitter, Scenario
from wirebound.units import parse_rate, parse_ratio, parse_size, parse_time, seconds_per_byte
from wirebound.workload.bucketing import DDP, Explicit, OneBucket, PaperFusion, PerTensor
from wirebound.workload.horovod import Horovod
from wirebound.workload.schedule import Bucketing

Raw = Any
"""A value as TOML, a flag or a caller gives it."""

Parsed = Any
"""A value of the field that a key names."""

Parser = Callable[[Raw, str], Parsed]
"""From a value as TOML, a flag or a caller gives it, and the key's name, to a field's value."""

Record = TypeVar("Record", bound=msgspec.Struct)

BUCKETINGS: dict[str, Bucketing] = {
    "ddp": DDP(),
    "ddp-unrebuilt": DDP(rebuilt=False),
    "horovod": Horovod(),
    "paper": PaperFusion(),
    "one": OneBucket(),
    "none": PerTensor(),
}


class Key(msgspec.Struct, frozen=True):
    """One key of a scenario.

    Attributes:
        parse: Text or number -> value of the field.
        field: Dotted path of the field in a `Scenario`.
        help: One line for people.
        applies_to: For a field of a bucketing policy, the policy that has it.
    """

    parse: Parser
    field: str
    help: str
    applies_to: type | None = None


def _float(value: Raw) -> float:
    """A plain finite number; NaN for whatever else."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (ValueError, TypeError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def _count(value: Raw, key: str) -> int:
    number = _float(value)
    if not (number >= 1 and number.is_integer()):
        raise ScenarioError(f"{key} is {value!r}, expected a whole number such as 64")
    return int(number)


def _number(value: Raw, key: str) -> float:
    number = _float(value)
    if not number > 0:
        raise ScenarioError(f"{key} is {value!r}, expected a positive number such as 4")
    return number


def _compression(value: Raw, key: str) -> float:
    number = _number(value, key)
    if number < 1:
        raise ScenarioError(
            f"{key} is {value!r}, expected uncompressed over compressed bytes, 1 or more, such as 4"
        )
    return number


def _switch(value: Raw, key: str) -> bool:
    known = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() not in known:
        raise ScenarioError(f"{key} is {value!r}, expected true or false")
    return known[str(value).lower()]


def _efficiency(value: Raw, key: str) -> float | None:
    if value == "measured":
        return None
    return 1.0 if value == "perfect" else parse_ratio(value, key)


def _codec_rate(value: Raw, key: str) -> float:
    """A codec's throughput, such as 20GB/s of uncompressed gradients, as seconds a byte."""
    return seconds_per_byte(parse_rate(value, key))


def _jitter(value: Raw, key: str) -> Jitter | None:
    if value == "none":
        return None
    kind, _, spread = str(value).partition(":")
    if kind not in ("normal", "lognormal", "exponential") or not spread:
        raise ScenarioError(f"{key} is {value!r}, expected for example normal:5% or none")
    distribution = cast('Literal["normal", "lognormal", "exponential"]', kind)
    return Jitter(distribution=distribution, spread=parse_ratio(spread, key))


def _one_of(*choices: str) -> Parser:
    def parse(value: Raw, key: str) -> str:
        if value not in choices:
            raise ScenarioError(f"{key} is {value!r}, expected {_nearest(str(value), choices)}")
        return str(value)

    return parse


def _bucketing(value: Raw, key: str) -> Bucketing:
    if isinstance(value, str) and value in BUCKETINGS:
        return BUCKETINGS[value]
    raise ScenarioError(f"{key} is {value!r}, expected {_nearest(str(value), BUCKETINGS)}")


def _groups(value: Raw, key: str) -> Explicit:
    try:
        return Explicit(groups=msgspec.convert(value, tuple[tuple[str, ...], ...]))
    except msgspec.ValidationError:
        raise ScenarioError(
            f'{key} expects lists of parameter names, such as [["fc.bias", "fc.weight"], ["conv1"]]'
        ) from None


KEYS: dict[str, Key] = {
    "workers": Key(_count, "workers", "ranks that train data-parallel"),
    "gpus_per_node": Key(_count, "gpus_per_node", "ranks that share a node and its NICs"),
    "link": Key(parse_rate, "link_bps", "line rate of one port between nodes: 10Gbps"),
    "latency": Key(parse_time, "latency_s", "time of one message between nodes: 20us"),
    "efficiency": Key(
        _efficiency, "efficiency", "share of the line rate reached: 40%, perfect, or measured"
    ),
    "algorithm": Key(_one_of(*ALL_REDUCE), "algorithm", "all-reduce: " + ", ".join(ALL_REDUCE)),
    "servers": Key(_count, "servers", "parameter servers"),
    "colocated": Key(_switch, "colocated", "whether servers share the workers' nodes"),
    "compression": Key(_compression, "compression_ratio", "uncompressed over compressed bytes: 4"),
    "encode": Key(_codec_rate, "encode_s_per_byte", "throughput of the encoder: 20GB/s"),
    "decode": Key(_codec_rate, "decode_s_per_byte", "throughput of the decoder: 20GB/s"),
    "stays_compressed": Key(
        _switch, "stays_compressed", "whether compressed gradients can be added as they are"
    ),
    "compressed_collective": Key(
        _one_of("all_reduce", "all_gather"), "compressed_collective", "what carries them"
    ),
    "codec_lane": Key(
        _one_of("compute", "comm"), "schedule.codec_lane", "where the codec runs: compute or comm"
    ),
    "bucketing": Key(_bucketing, "schedule.bucketing", "policy: " + ", ".join(BUCKETINGS)),
    "buckets": Key(_groups, "schedule.bucketing", "explicit lists of parameter names"),
    "bucket_cap": Key(parse_size, "schedule.bucketing.cap_bytes", "DDP's bucket cap: 25MiB", DDP),
    "first_bucket": Key(
        parse_size, "schedule.bucketing.first_bytes", "DDP's first bucket cap: 1MiB", DDP
    ),
    "cycle_time": Key(
        parse_time, "schedule.bucketing.cycle_time_s", "Horovod's cycle: 1ms", Horovod
    ),
    "fusion_threshold": Key(
        parse_size, "schedule.bucketing.threshold_bytes", "Horovod's threshold: 128MiB", Horovod
    ),
    "response_cache": Key(
        _switch, "schedule.bucketing.response_cache", "Horovod's response cache", Horovod
    ),
    "accumulation": Key(_count, "schedule.accumulation", "micro-steps an optimizer step"),
    "sync_every_micro_step": Key(
        _switch, "schedule.sync_every_micro_step", "reduce after each micro-step"
    ),
    "order": Key(_one_of("ready", "priority"), "schedule.order", "of waiting buckets"),
    "overlap_next_forward": Key(
        _switch, "schedule.overlap_next_forward", "start the next forward layer by layer"
    ),
    "partition": Key(parse_size, "schedule.partition_bytes", "cut buckets into pieces: 4MiB"),
    "streams": Key(_count, "streams", "collectives in flight at once"),
    "compute_speed": Key(_number, "compute_speed", "relative to the measured device: 2"),
    "compute_inflation": Key(
        parse_ratio, "compute_inflation", "how much longer compute takes beside a collective: 10%"
    ),
    "batch_scale": Key(_number, "batch_scale", "samples a worker over those measured: 2"),
    "jitter": Key(_jitter, "jitter", "compute time over ranks: normal:5%"),
}


def parse_value(key: str, value: Raw) -> Parsed:
    """One value of one key.

    Raises:
        ScenarioError: An unknown key, named with the nearest known one; an impossible value.
        QuantityError: A quantity that cannot be understood.
    """
    if key not in KEYS:
        raise ScenarioError(f"unknown key {key!r}, expected {_nearest(key, KEYS)}")
    if isinstance(value, float) and value != value:  # noqa: PLR0124 - NaN is not itself
        raise ScenarioError(f"{key} is NaN, expected a number")
    return KEYS[key].parse(value, key)


def apply(scenario: Scenario, values: Mapping[str, Any]) -> Scenario:
    """A scenario with parsed values in place; policies before their own fields.

    Raises:
        ScenarioError: A field of a bucketing policy that is not in use.
    """
    for key in sorted(values, key=lambda key: KEYS[key].field.count(".")):
        entry = KEYS[key]
        policy = scenario.schedule.bucketing
        if entry.applies_to is not None and not isinstance(policy, entry.applies_to):
            name = entry.applies_to.__name__.lower()
            raise ScenarioError(f"{key} belongs to bucketing {name}, not to the one in use")
        scenario = _replace(scenario, entry.field.split("."), values[key])
    return scenario


def read_scenario(path: Path) -> dict[str, list[Parsed]]:
    """Keys of a TOML file, each with its list of values; a list makes an axis.

    Raises:
        ReadError: A file that cannot be read, or that is not TOML.
        ScenarioError: An unknown key or an impossible value.
    """
    text = read_text(path, "a scenario file in TOML")
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # tomllib's own error is a ValueError, and so is a number with too many digits.
        raise ReadError(f'{path}: {error}, expected TOML such as link = "10Gbps"') from None
    try:
        return {key: _listed(key, value) for key, value in table.items()}
    except (ScenarioError, QuantityError) as error:
        raise type(error)(f"{path}: {error.message}", error.hint) from None


def _listed(key: str, value: Raw) -> list[Parsed]:
    if key in ("network", "intra"):
        return [str(value)]
    if key == "buckets" or not isinstance(value, list):
        return [parse_value(key, value)]
    if not value:
        raise ScenarioError(f"{key} is an empty list, expected at least one value")
    return [parse_value(key, item) for item in value]


def _replace(record: Record, path: list[str], value: Parsed) -> Record:
    if len(path) > 1:
        value = _replace(getattr(record, path[0]), path[1:], value)
    return msgspec.structs.replace(record, **{path[0]: value})


def _nearest(text: str, choices: Mapping[str, Any] | tuple[str, ...]) -> str:
    close = difflib.get_close_matches(text, list(choices), n=1, cutoff=0.5)
    return f"{close[0]!r}?" if close else "one of " + ", ".join(choices)

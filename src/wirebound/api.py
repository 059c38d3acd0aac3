"""The question in one call: `wirebound.whatif`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from wirebound.errors import QuantityError, ScenarioError
from wirebound.network import Network, load, network_for_link, tier
from wirebound.simulate.grid import Grid, sweep
from wirebound.simulate.keys import apply, parse_value, read_scenario
from wirebound.simulate.scenario import Scenario
from wirebound.units import parse_ratio, parse_time
from wirebound.verdict.judge import DEFAULT_TARGET, Measured, judge
from wirebound.verdict.record import Verdict
from wirebound.workload.files import read_workload
from wirebound.workload.record import Workload

MAX_VERDICTS = 100_000
"""Verdicts kept in memory at once, about 10 kB each; `simulate.grid.sweep` streams any number."""

PLACES = ("network", "intra")
"""Keys that choose the network rather than change the scenario."""


def whatif(  # noqa: PLR0913 - the places of a question, each by its name
    workload: Workload | str | Path,
    /,
    *,
    network: Network | str | Path | None = None,
    intra: str | None = None,
    scenario: Path | str | None = None,
    target: float | str | None = None,
    measured: float | str | None = None,
    **keys: Any,
) -> list[Verdict]:
    """What a training step takes under each of some scenarios, and why.

    Args:
        workload: A record, or the path of a workload file.
        network: A record, a preset's name, or the path of a network file. Without one,
            `link` describes an Ethernet network.
        intra: Preset of the link between the GPUs of a node.
        scenario: TOML file with the same keys; keys given here win.
        target: Scaling factor the thresholds are for. Given, every verdict has thresholds;
            otherwise a single scenario has them, for 95 %.
        measured: Scaling factor or step time that was measured for the scenario; the
            verdict then says which line rate, used perfectly, explains it.
        **keys: Any key of `simulate.keys.KEYS`, one value or a list that makes an axis:
            `workers=[8, 64]`, `link="10Gbps"`.

    Returns:
        One verdict a scenario; keys that decide which operations exist vary slowest.

    Raises:
        WireboundError: Input that cannot be understood or describes nothing possible.

    Example:
        >>> whatif("job.json", workers=[8, 64], link="10Gbps")  # doctest: +SKIP
    """
    if not isinstance(workload, Workload):
        workload = read_workload(Path(workload))
    values = {} if scenario is None else read_scenario(Path(scenario))
    for key, value in keys.items():
        values[key] = _axis(key, value)
    chosen = {key: values.pop(key)[0] for key in PLACES if key in values}
    net = resolve_network(
        chosen.get("network") if network is None else network,
        chosen.get("intra") if intra is None else intra,
        values,
    )
    grid = scenario_grid(net, values)
    goal = None if target is None else parse_ratio(target, "target")
    if goal is None and (grid.size == 1 or measured is not None):
        goal = DEFAULT_TARGET
    return [
        verdict
        for chunk in sweep(workload, net, grid, with_bill=True)
        for verdict in judge(chunk, target=goal, measured=parse_measured(measured))
    ]


def parse_measured(value: float | str | None) -> Measured | None:
    """A measurement as people write it: `71.8%`, `0.718`, or a step time such as `178ms`.

    Raises:
        QuantityError: Neither a ratio nor a time.
    """
    if value is None:
        return None
    if isinstance(value, str) and value.strip().endswith(("s", "min", "h")):
        return Measured(step_s=parse_time(value, "measured"))
    factor = parse_ratio(value, "measured")
    if factor == 0:
        raise QuantityError("measured is 0, expected a scaling factor above 0 such as 71.8%")
    return Measured(scaling_factor=factor)


def scenario_grid(network: Network, values: Mapping[str, Sequence[Any]]) -> Grid:
    """Parsed values as a grid: single values go into the base, lists become axes.

    Raises:
        ScenarioError: More scenarios than verdicts can be kept.
    """
    base = Scenario(gpus_per_node=network.gpus_per_node)
    single = {key: listed[0] for key, listed in values.items() if len(listed) == 1}
    axes = {key: listed for key, listed in values.items() if len(listed) > 1}
    policies = {key for key in axes if key in ("bucketing", "buckets")}
    late = {key: single.pop(key) for key in list(single) if policies and _is_of_policy(key)}
    grid = Grid(apply(base, single), {**axes, **{key: [value] for key, value in late.items()}})
    if grid.size > MAX_VERDICTS:
        raise ScenarioError(
            f"the grid has {grid.size:,} scenarios, at most {MAX_VERDICTS:,} fit one answer",
            "shorten an axis, or stream them with wirebound.simulate.grid.sweep",
        )
    return grid


def resolve_network(
    network: Network | str | Path | None, intra: str | None, values: Mapping[str, Sequence[Any]]
) -> Network:
    """The network a question is about.

    Raises:
        ScenarioError: Neither a network nor a link rate is known.
    """
    if network is None:
        if "link" not in values:
            raise ScenarioError(
                "no network given", "give link, such as 10Gbps, or network, such as p4d.24xlarge"
            )
        resolved = network_for_link(values["link"][0])
    else:
        resolved = network if isinstance(network, Network) else load(network)
    if intra is not None:
        resolved = msgspec.structs.replace(resolved, intra=tier(intra))
    return resolved


def _axis(key: str, value: Any) -> list[Any]:
    if key in PLACES:
        return [value]
    if key == "buckets" or not isinstance(value, list | tuple):
        return [parse_value(key, value)]
    if not value:
        raise QuantityError(f"{key} is an empty list, expected at least one value")
    return [parse_value(key, item) for item in value]


def _is_of_policy(key: str) -> bool:
    from wirebound.simulate.keys import KEYS

    return KEYS[key].applies_to is not None

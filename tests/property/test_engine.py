"""What must hold for any step on any network, whichever engine answers."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import (
    jitters,
    networks,
    one_tier_networks,
    overlapping_schedules,
    replays,
    scenarios,
    schedules,
    trainings,
    unordered_scenarios,
    workloads,
)
from wirebound.network.record import Network
from wirebound.simulate import events, maxplus
from wirebound.simulate.graph import compile_graph
from wirebound.simulate.pricing import price, prices
from wirebound.simulate.program import Program
from wirebound.simulate.run import leg_s, longest_leg
from wirebound.simulate.scenario import Scenario
from wirebound.workload.bucketing import DDP
from wirebound.workload.expand import expand
from wirebound.workload.record import COLLECTIVES, Kind, Workload
from wirebound.workload.schedule import Schedule, Timing

replace = msgspec.structs.replace


@given(workloads, networks(), scenarios(jitter=st.none() | jitters))
def test_more_bandwidth_is_never_slower(
    workload: Workload, network: Network, scenario: Scenario
) -> None:
    """With a fixed order, a faster link delays nothing."""
    steps = Program(workload, network, scenario).step_s({"link_bps": np.geomspace(1e7, 1e13, 13)})
    assert np.all(np.diff(steps) <= 1e-12 * steps[1:])


@given(workloads, networks(), scenarios(jitter=st.none() | jitters))
def test_less_latency_is_never_slower(
    workload: Workload, network: Network, scenario: Scenario
) -> None:
    """With a fixed order that does not depend on it, a shorter message delays nothing."""
    steps = Program(workload, network, scenario).step_s({"latency_s": np.geomspace(1e-3, 1e-9, 7)})
    assert np.all(np.diff(steps) <= 1e-12 * steps[1:])


@given(workloads, networks(), scenarios())
def test_more_compression_is_never_slower_when_it_is_free(
    workload: Workload, network: Network, scenario: Scenario
) -> None:
    """Fewer bytes take less time, whatever the efficiency makes of small messages."""
    free = replace(
        scenario,
        encode_s_per_byte=0.0,
        decode_s_per_byte=0.0,
        compressed_collective="all_reduce",
    )
    ratios = np.array([1.0, 1.5, 2.0, 10.0, 1000.0])
    steps = Program(workload, network, free).step_s({"compression_ratio": ratios})
    assert np.all(np.diff(steps) <= 1e-12 * steps[1:])


@given(workloads, networks(), scenarios() | unordered_scenarios())
def test_compression_by_one_at_no_cost_is_no_compression(
    workload: Workload, network: Network, scenario: Scenario
) -> None:
    """Whether or not it stays compressed, and wherever a free codec would run."""
    plain = replace(
        scenario,
        compression_ratio=1.0,
        encode_s_per_byte=0.0,
        decode_s_per_byte=0.0,
        compressed_collective="all_reduce",
        stays_compressed=True,
    )
    schedule = replace(plain.schedule, codec_lane="comm")
    other = replace(plain, stays_compressed=False, schedule=schedule)
    expected = Program(workload, network, plain).evaluate()
    actual = Program(workload, network, other).evaluate()
    assert expected.step_s[0] == actual.step_s[0]


@given(workloads, networks(), scenarios() | unordered_scenarios())
def test_one_worker_scales_by_exactly_one(
    workload: Workload, network: Network, scenario: Scenario
) -> None:
    """Not nearly: the same float, so that the scaling factor is 1.0 by definition."""
    outcome = Program(workload, network, replace(scenario, workers=1)).evaluate()
    assert outcome.alone_s[0] == outcome.step_s[0]
    assert outcome.alone_s[0] == outcome.free_network_s[0]


@given(workloads, networks(), scenarios() | unordered_scenarios())
def test_one_worker_is_simulated_as_alone(
    workload: Workload, network: Network, scenario: Scenario
) -> None:
    """The step that the engines find for one worker is the one-worker step too."""
    program = Program(workload, network, replace(scenario, workers=1))
    assert program.alone_s()[0] == pytest.approx(program.window().step_s, rel=1e-12)


@given(workloads, networks(), scenarios())
def test_both_engines_agree_where_both_apply(
    workload: Workload, network: Network, scenario: Scenario
) -> None:
    """Same graph and costs, same start and end of every operation."""
    program = Program(workload, network, scenario)
    costs = program.costs()
    fixed = maxplus.run(program.graph, costs)
    by_events = events.run(program.graph, costs)
    assert fixed.starts == pytest.approx(by_events.starts, rel=1e-12)
    assert fixed.ends == pytest.approx(by_events.ends, rel=1e-12)


@given(trainings(), networks(), scenarios(schedules(in_ready_order=True)))
def test_a_free_lane_with_one_slot_keeps_the_order_of_readiness(
    workload: Workload, network: Network, scenario: Scenario
) -> None:
    """Buckets become ready in order, so choosing while running chooses the same."""
    program = Program(workload, network, scenario)
    free = compile_graph(program.graph.operations, {"comm"})
    at = prices(network, scenario)
    one_slot = {"comm": events.Lane(slots=1)}
    ends = events.run(free, price(free, network, scenario, at), one_slot).ends
    fixed = maxplus.run(program.graph, program.costs()).ends
    names = [op.name for op in program.graph.operations]
    by_name = {op.name: end for op, end in zip(free.operations, ends, strict=True)}
    assert fixed == pytest.approx([by_name[name] for name in names], rel=1e-12)


@given(
    workloads,
    networks(),
    scenarios(jitter=st.none() | jitters),
    st.lists(
        st.tuples(
            st.floats(1e8, 1e12),
            st.floats(0, 1e-3),
            st.floats(1, 100),
            st.sampled_from([1, 2, 8, 24]),
        ),
        min_size=1,
        max_size=5,
    ),
)
def test_vector_and_scalar_path_agree(
    workload: Workload,
    network: Network,
    scenario: Scenario,
    rows: list[tuple[float, float, float, int]],
) -> None:
    """Many scenarios at once, or each as a window of its own."""
    base = replace(scenario, schedule=replace(scenario.schedule, bucketing=DDP()))
    program = Program(workload, network, base)
    names = ("link_bps", "latency_s", "compression_ratio", "workers")
    columns = {
        name: np.array(values, dtype=np.float64)
        for name, values in zip(names, zip(*rows, strict=True), strict=True)
    }
    steps = program.evaluate(columns).step_s
    draws = 1 if base.jitter is None else base.jitter.draws
    for index in range(len(rows)):
        row = {name: values[index : index + 1] for name, values in columns.items()}
        windows = [program.window(row, draw=draw).step_s for draw in range(draws)]
        assert steps[index] == pytest.approx(np.mean(windows), rel=1e-12)
        record = replace(base, **{n: rows[index][place] for place, n in enumerate(names)})
        alone = Program(workload, network, record)
        assert steps[index] == pytest.approx(alone.evaluate().step_s[0], rel=1e-12)


@given(trainings(), networks(), scenarios(schedules(in_ready_order=True)))
def test_step_lies_between_the_longest_part_and_the_sum(
    workload: Workload, network: Network, scenario: Scenario
) -> None:
    """Overlap hides at most the shorter of compute and communication."""
    plain = replace(
        scenario,
        encode_s_per_byte=0.0,
        decode_s_per_byte=0.0,
        schedule=replace(scenario.schedule, bucketing=DDP()),
    )
    program = Program(workload, network, plain)
    outcome = program.evaluate()
    communication_s = sum(
        leg_s(longest_leg(legs))
        for op, legs in zip(program.graph.operations, program.costs(), strict=True)
        if op.kind in COLLECTIVES
    )
    slack = 1 + 1e-12
    assert max(outcome.alone_s[0], communication_s) <= outcome.step_s[0] * slack
    assert outcome.step_s[0] <= (outcome.alone_s[0] + communication_s) * slack


@given(trainings(), networks(), scenarios(overlapping_schedules))
def test_overlap_with_the_next_forward_only_helps(
    workload: Workload, network: Network, scenario: Scenario
) -> None:
    """A period is no shorter than either resource needs and no longer than a step in line.

    Without a codec on the device, which could then decode while others still travel.
    """
    ordered = replace(
        scenario,
        encode_s_per_byte=0.0,
        decode_s_per_byte=0.0,
        schedule=replace(scenario.schedule, order="ready"),
    )
    window = Program(workload, network, ordered).window()
    synchronous = replace(ordered, schedule=replace(ordered.schedule, overlap_next_forward=False))
    program = Program(workload, network, synchronous)
    busy_s: dict[str, float] = {}
    for op, legs in zip(program.graph.operations, program.costs(), strict=True):
        busy_s[op.lane] = busy_s.get(op.lane, 0.0) + float(leg_s(longest_leg(legs)))
    assert window.is_settled
    assert window.step_s >= max(busy_s.values()) * (1 - 1e-9)
    assert window.step_s <= program.window().step_s * (1 + 1e-9)


@given(workloads, networks(), scenarios(jitter=jitters) | unordered_scenarios())
def test_twice_the_same(workload: Workload, network: Network, scenario: Scenario) -> None:
    """Seeded draws and broken ties: not a bit differs."""
    first = Program(workload, network, scenario).evaluate(with_bill=True)
    second = Program(workload, network, scenario).evaluate(with_bill=True)
    assert first.step_s.tolist() == second.step_s.tolist()
    assert {r: s.tolist() for r, s in first.bill.items()} == {
        r: s.tolist() for r, s in second.bill.items()
    }


@given(replays(), networks(), scenarios(), st.randoms(use_true_random=False))
def test_order_of_independent_listing_does_not_matter(
    workload: Workload, network: Network, scenario: Scenario, random: "st.random.Random"
) -> None:
    """Lanes may be listed one after the other or interleaved, as long as each keeps its order."""
    rest = {
        lane: [op for op in workload.operations if op.lane == lane]
        for lane in sorted({op.lane for op in workload.operations})
    }
    shuffled = []
    while rest:
        lane = random.choice(sorted(rest))
        shuffled.append(rest[lane].pop(0))
        rest = {name: ops for name, ops in rest.items() if ops}
    other = replace(workload, operations=tuple(shuffled))
    expected = Program(workload, network, scenario).evaluate().step_s[0]
    actual = Program(other, network, scenario).evaluate().step_s[0]
    assert expected == pytest.approx(actual, rel=1e-12)


@given(trainings(), one_tier_networks(), scenarios(overlapping_schedules))
def test_all_gradients_travel_once_a_step(
    workload: Workload, network: Network, scenario: Scenario
) -> None:
    """However buckets are cut, every byte is reduced once."""
    del network
    operations = expand(workload, scenario.schedule, Timing(), steps=2)
    sent = sum(op.nbytes for op in operations if op.kind is Kind.ALL_REDUCE)
    assert 2 * workload.gradient_bytes == pytest.approx(sent, rel=1e-12)


def test_default_schedule_is_pytorch() -> None:
    """What nobody chooses is DDP with its defaults."""
    assert DDP() == Schedule().bucketing

"""A workload under one schedule: step times, baselines and windows."""

import msgspec
import numpy as np
import pytest

from wirebound.network.record import Network, Tier
from wirebound.resources import NETWORK, Resource
from wirebound.simulate.program import Program, structural_fields
from wirebound.simulate.scenario import Jitter, Scenario
from wirebound.workload.bucketing import OneBucket, PaperFusion
from wirebound.workload.horovod import Horovod
from wirebound.workload.record import Gradient, Kind, Operation, Workload, data_parallel
from wirebound.workload.schedule import Schedule

ONE_GB_A_SECOND = Network("n", Tier("t", bandwidth_bps=8e9, alpha_s=1e-3))
"""Among two workers a ring moves each byte once, in two messages."""

WORKLOAD = data_parallel(
    "w",
    [Gradient("back", 100_000_000, 0.1), Gradient("front", 50_000_000, 0.2)],
    input_s=0.01,
    forward_s=0.1,
    backward_s=0.2,
    optimizer_s=0.03,
)


def program(workload: Workload = WORKLOAD, **fields: object) -> Program:
    """Two workers, everything in one bucket."""
    base = Scenario(workers=2, schedule=Schedule(bucketing=OneBucket()))
    return Program(workload, ONE_GB_A_SECOND, msgspec.structs.replace(base, **fields))


def test_outcome_by_hand() -> None:
    """0.34 s of its own, then 0.15 s of link and two messages."""
    outcome = program().evaluate(with_bill=True)
    assert pytest.approx([0.34]) == outcome.alone_s
    assert pytest.approx([0.34 + 0.15 + 0.002]) == outcome.step_s
    assert pytest.approx([0.34]) == outcome.free_network_s
    assert {resource: float(seconds[0]) for resource, seconds in outcome.bill.items()} == (
        pytest.approx(
            {
                Resource.INPUT: 0.01,
                Resource.COMPUTE: 0.33,
                Resource.LINK_INTER: 0.15,
                Resource.LATENCY_INTER: 0.002,
            }
        )
    )


def test_accumulation_syncs_once_and_every_micro_step_syncs_each_time() -> None:
    """Compute is three times as long in both; the reduction is not."""
    compute_s = 3 * 0.31 + 0.03
    once = program(schedule=Schedule(bucketing=OneBucket(), accumulation=3))
    each = program(
        schedule=Schedule(bucketing=OneBucket(), accumulation=3, sync_every_micro_step=True)
    )
    assert pytest.approx([compute_s]) == once.evaluate().alone_s
    assert pytest.approx([compute_s + 0.152]) == once.evaluate().step_s
    assert pytest.approx([compute_s + 3 * 0.152]) == each.evaluate().step_s


def test_columns_and_records_say_the_same() -> None:
    """A column replaces the scenario's own field."""
    rates = np.array([1e9, 1e10, 1e11])
    expected = [program(link_bps=float(rate)).evaluate().step_s[0] for rate in rates]
    assert expected == pytest.approx(program().evaluate({"link_bps": rates}).step_s)


def test_one_worker_of_a_column_is_alone() -> None:
    """Exactly, beside others that are not."""
    outcome = program().evaluate({"workers": np.array([1.0, 2.0])})
    assert outcome.step_s[0] == outcome.alone_s[0]
    assert outcome.step_s[1] > outcome.alone_s[1]


def test_horovod_alone_waits_for_no_cycle() -> None:
    """There is nobody to agree with."""
    scenario = Schedule(bucketing=Horovod(cycle_time_s=0.05))
    outcome = program(workers=1, schedule=scenario).evaluate(with_bill=True)
    assert outcome.step_s[0] == outcome.alone_s[0]
    assert pytest.approx(0.34) == sum(float(s[0]) for s in outcome.bill.values())


def test_horovod_waits_for_its_cycle_and_its_agreement() -> None:
    """Ready at 0.31 s; the thread that woke at 0.11 s and every 0.15 s wakes at 0.41 s."""
    schedule = Schedule(bucketing=Horovod(cycle_time_s=0.15))
    outcome = program(schedule=schedule).evaluate(with_bill=True)
    # `back` goes with the turn at 0.26 s, agreed on by one message of 1 ms.
    end_of_back = 0.11 + 0.15 + 0.001 + 0.102
    end_of_front = max(0.11 + 0.3 + 0.001, end_of_back) + 0.052
    assert pytest.approx([end_of_front + 0.03]) == outcome.step_s
    assert outcome.bill[Resource.HOST][0] > 0.29


def test_link_time_is_what_the_bytes_need_at_line_rate() -> None:
    """Compressed or not, whatever the efficiency."""
    assert pytest.approx([0.15]) == program(efficiency=0.5).link_s()
    assert pytest.approx([0.15 / 4]) == program(compression_ratio=4.0).link_s()
    assert program(workers=1).link_s().tolist() == [0.0]


def test_step_without_a_resource() -> None:
    """What a what-if of one free resource asks for."""
    assert pytest.approx(0.34) == program().step_without(NETWORK)
    assert pytest.approx(0.49) == program().step_without([Resource.LATENCY_INTER])
    jitter = Jitter(distribution="exponential", spread=0.1, draws=4)
    shaken = program(jitter=jitter)
    assert pytest.approx(0.492) == shaken.step_without([Resource.WAIT])
    events = program(jitter=jitter, streams=2)
    assert pytest.approx(shaken.step_without([])) == events.step_without([])


def test_jitter_lengthens_the_step_and_is_billed_as_waiting() -> None:
    """By the mean of its draws."""
    jitter = Jitter(distribution="exponential", spread=0.1, draws=4)
    outcome = program(jitter=jitter).evaluate(with_bill=True)
    wait_s = 0.33 * float(jitter.slowdown(np.array([2.0])).mean())
    assert pytest.approx([0.492 + wait_s]) == outcome.step_s
    assert pytest.approx([wait_s]) == outcome.bill[Resource.WAIT]
    assert pytest.approx([0.34]) == outcome.alone_s


def test_a_recorded_step_is_replayed() -> None:
    """Collectives of other strategies: an all-gather before forward, a scatter after backward."""
    workload = Workload(
        "sharded",
        (
            Operation("gather", Kind.ALL_GATHER, lane="comm", nbytes=2e8),
            Operation("forward", Kind.FORWARD, seconds=0.1, after=("gather",)),
            Operation("prefetch", Kind.ALL_GATHER, lane="comm", nbytes=2e8, after=("gather",)),
            Operation("backward", Kind.BACKWARD, seconds=0.2, after=("prefetch",)),
            Operation("scatter", Kind.REDUCE_SCATTER, lane="comm", nbytes=2e8, after=("backward",)),
        ),
    )
    outcome = program(workload).evaluate(with_bill=True)
    # Half of the bytes travel, in one message: 0.101 s each; forward hides all but 1 ms.
    assert pytest.approx([0.101 + 0.101 + 0.2 + 0.101]) == outcome.step_s
    assert pytest.approx([0.3]) == outcome.alone_s
    assert pytest.approx(0.503) == sum(float(s[0]) for s in outcome.bill.values())


def test_windows_hold_every_operation() -> None:
    """With the same end as the step."""
    window = program().window()
    assert pytest.approx(0.492) == window.step_s
    assert [op.name for op in window.graph.operations] == [
        "input",
        "forward",
        "backward",
        "all_reduce[0]",
        "optimizer",
    ]
    free = program().window(free=NETWORK)
    assert pytest.approx(0.34) == free.step_s


@pytest.mark.parametrize(
    ("schedule", "fields"),
    [
        (Schedule(), frozenset()),
        (Schedule(bucketing=PaperFusion()), {"compute_speed", "batch_scale"}),
        (
            Schedule(bucketing=Horovod()),
            {"compute_speed", "batch_scale", "workers", "latency_s"},
        ),
    ],
)
def test_fields_that_decide_what_exists(schedule: Schedule, fields: frozenset[str]) -> None:
    """These cannot vary inside one program."""
    assert fields == structural_fields(Scenario(schedule=schedule))

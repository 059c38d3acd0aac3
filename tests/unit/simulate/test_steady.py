"""Steps that overlap: one period of a run that repeats."""

import pytest

from wirebound.network.record import Network, Tier
from wirebound.resources import Resource
from wirebound.simulate.graph import Graph, compile_graph
from wirebound.simulate.program import Program
from wirebound.simulate.run import Run
from wirebound.simulate.scenario import Scenario
from wirebound.simulate.steady import UNROLLED, settle, whole
from wirebound.workload.bucketing import OneBucket, PerTensor
from wirebound.workload.record import Gradient, Kind, Operation, data_parallel
from wirebound.workload.schedule import Schedule

NETWORK = Network("n", Tier("t", bandwidth_bps=8e9, alpha_s=0.0))
"""A gigabyte a second; among two workers a ring moves each byte once."""

WORKLOAD = data_parallel(
    "w",
    [Gradient("back", 200_000_000, 0.1), Gradient("front", 100_000_000, 0.2)],
    forward_s=0.1,
    backward_s=0.2,
    optimizer_s=0.06,
)


def program(schedule: Schedule, **fields: object) -> Program:
    """Two workers."""
    return Program(WORKLOAD, NETWORK, Scenario(workers=2, schedule=schedule, **fields))


def test_a_period_by_hand() -> None:
    """Everything waits for `front`, which waits for `back` on the link.

    Of a period: update front 0.02, forward half 0.05, update back 0.04, forward half 0.05,
    backward 0.2 with `back` ready halfway; back 0.2 s and front 0.1 s of link after that.
    """
    window = program(Schedule(bucketing=PerTensor(), overlap_next_forward=True)).window()
    assert window.is_settled
    assert pytest.approx(0.02 + 0.05 + 0.04 + 0.05 + 0.1 + 0.2 + 0.1) == window.step_s
    bill = window.bill()
    assert pytest.approx(0.3) == bill[Resource.LINK_INTER]
    assert pytest.approx(0.26) == bill[Resource.COMPUTE]


def test_a_slow_link_sets_the_period() -> None:
    """With one bucket there is nothing to overlap: the same as in line."""
    overlapped = program(Schedule(bucketing=OneBucket(), overlap_next_forward=True))
    in_line = program(Schedule(bucketing=OneBucket()))
    assert pytest.approx(in_line.evaluate().step_s[0]) == overlapped.window().step_s


def test_a_free_network_leaves_compute() -> None:
    """The period is the one-worker step, decoding and updates included."""
    overlapped = program(Schedule(bucketing=PerTensor(), overlap_next_forward=True), link_bps=1e18)
    assert pytest.approx(0.36) == overlapped.window().step_s
    assert pytest.approx(0.36) == overlapped.alone_s()[0]


def test_a_codec_settles_too() -> None:
    """Decoding belongs to the step that waits for it."""
    overlapped = program(
        Schedule(bucketing=PerTensor(), overlap_next_forward=True),
        encode_s_per_byte=1e-10,
        decode_s_per_byte=1e-10,
    )
    window = overlapped.window()
    assert window.is_settled
    # Encoding `front` hides behind the collective of `back`.
    assert pytest.approx(0.05) == window.bill()[Resource.CODEC]


def alternating(steps: int) -> tuple[Graph, Run]:
    """Steps that take one and two seconds in turn."""
    operations = [Operation(f"o@{k}", Kind.COMPUTE, seconds=1.0 + k % 2) for k in range(steps)]
    graph = compile_graph(operations)
    ends: list[float] = []
    for op in operations:
        ends.append((ends[-1] if ends else 0.0) + op.seconds)
    starts = [0.0, *ends[:-1]]
    causes = [None, *range(steps - 1)]
    spent = tuple({Resource.COMPUTE: op.seconds} for op in operations)
    return graph, Run(tuple(starts), tuple(ends), tuple(causes), spent)


def test_what_never_settles_is_averaged_and_says_so() -> None:
    """The second half of the longest run, an even number of steps."""
    window = settle(alternating)
    assert not window.is_settled
    assert UNROLLED[-1] // 2 == window.steps
    assert pytest.approx(1.5) == window.step_s
    assert pytest.approx(1.5) == sum(window.bill().values())


def test_a_whole_run_ends_with_its_last_operation() -> None:
    """And of several that end together with the first listed."""
    graph, run = alternating(3)
    window = whole(graph, run)
    assert window.last == 2
    assert window.step_s == 4.0
    assert window.bill() == {Resource.COMPUTE: 4.0}

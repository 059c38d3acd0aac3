"""From a workload and a schedule to operations: what exists, in which order, waiting for what."""

import msgspec
import pytest

from wirebound.errors import ScenarioError
from wirebound.workload.backward import bucket_backward, needed_s
from wirebound.workload.bucketing import DDP, OneBucket, PerTensor
from wirebound.workload.expand import alone, expand
from wirebound.workload.horovod import Horovod
from wirebound.workload.record import Gradient, Kind, Operation, Workload, data_parallel
from wirebound.workload.schedule import Schedule, Timing

WORKLOAD = data_parallel(
    "w",
    [Gradient("late", 30, 0.1), Gradient("middle", 20, 0.15), Gradient("early", 10, 0.2)],
    forward_s=0.1,
    backward_s=0.2,
    optimizer_s=0.06,
)
"""`late` is the last layer, so that its gradient is ready first and needed last."""

EACH = Schedule(bucketing=PerTensor())


def named(operations: tuple[Operation, ...]) -> dict[str, Operation]:
    """Operations by name."""
    return {op.name: op for op in operations}


def names(operations: tuple[Operation, ...]) -> list[str]:
    """Names in order of listing."""
    return [op.name for op in operations]


def with_schedule(base: Schedule, **fields: object) -> Schedule:
    """A schedule with some fields replaced."""
    return msgspec.structs.replace(base, **fields)


def test_the_backward_pass_is_cut_where_buckets_are_ready() -> None:
    """The last segment keeps the name of the pass."""
    operations = named(expand(WORKLOAD, EACH))
    assert list(operations) == [
        "forward",
        "backward[0]",
        "all_reduce[0]",
        "backward[1]",
        "all_reduce[1]",
        "backward",
        "all_reduce[2]",
        "optimizer",
    ]
    assert pytest.approx(0.1) == operations["backward[0]"].seconds
    assert pytest.approx(0.05) == operations["backward[1]"].seconds
    assert operations["all_reduce[1]"].after == ("backward[1]",)
    assert operations["all_reduce[1]"].nbytes == 20
    assert operations["optimizer"].after == ("all_reduce[0]", "all_reduce[1]", "all_reduce[2]")


def test_what_follows_the_last_bucket_is_the_rest_of_the_pass() -> None:
    """A pass may go on after its last gradient."""
    workload = data_parallel("w", [Gradient("g", 8, 0.1)], backward_s=0.3)
    operations = expand(workload, EACH)
    assert names(operations) == ["backward[0]", "all_reduce[0]", "backward"]
    assert pytest.approx(0.2) == operations[-1].seconds


def test_gradients_ready_together_share_a_segment() -> None:
    """No operation without duration is made for the second."""
    workload = data_parallel("w", [Gradient("a", 8, 0.2), Gradient("b", 8, 0.2)], backward_s=0.2)
    assert names(expand(workload, EACH)) == ["backward", "all_reduce[0]", "all_reduce[1]"]


def test_what_waits_for_the_pass_waits_for_its_end() -> None:
    """Operations of other lanes may name any operation of the workload."""
    extra = (
        Operation("copy", Kind.HOST, lane="host", seconds=0.01, after=("backward",)),
        Operation("log", Kind.HOST, lane="host", seconds=0.01, after=("forward", "optimizer")),
    )
    workload = msgspec.structs.replace(WORKLOAD, operations=(*WORKLOAD.operations, *extra))
    for schedule in (EACH, Schedule(bucketing=OneBucket()), Schedule(accumulation=2)):
        operations = expand(workload, schedule)
        assert {name for op in operations for name in op.after} <= set(names(operations))
    overlapped = named(expand(workload, with_schedule(EACH, overlap_next_forward=True), steps=2))
    assert overlapped["copy@1"].after == ("backward@1",)
    # The optimizer has moved into the next forward pass.
    assert overlapped["log@1"].after == ("forward@1",)


def test_alone_keeps_what_collectives_hold_back() -> None:
    """Among one rank they cost nothing, and their order remains."""
    workload = Workload(
        "w",
        (
            Operation("compute", Kind.COMPUTE, seconds=1.0),
            Operation("gather", Kind.ALL_GATHER, lane="comm", nbytes=8, after=("compute",)),
            Operation("host", Kind.HOST, lane="host", seconds=1.0, after=("gather",)),
        ),
    )
    assert workload.operations == alone(workload, Schedule())


def test_accumulation_syncs_once() -> None:
    """After the last micro-step, which also has the only optimizer."""
    operations = expand(WORKLOAD, with_schedule(EACH, accumulation=3))
    reduced = [op.name for op in operations if op.kind is Kind.ALL_REDUCE]
    assert reduced == ["all_reduce[0]#2", "all_reduce[1]#2", "all_reduce[2]#2"]
    assert [op.name for op in operations if op.kind is Kind.OPTIMIZER] == ["optimizer#2"]
    assert [op.name for op in operations if op.kind is Kind.FORWARD] == [
        "forward#0",
        "forward#1",
        "forward#2",
    ]


def test_sync_every_micro_step_syncs_each_time() -> None:
    """And the next forward waits for it, as it does in DDP without `no_sync`."""
    schedule = with_schedule(EACH, accumulation=3, sync_every_micro_step=True)
    operations = named(expand(WORKLOAD, schedule))
    assert sum(op.kind is Kind.ALL_REDUCE for op in operations.values()) == 9
    waits = ("all_reduce[0]#0", "all_reduce[1]#0", "all_reduce[2]#0")
    assert waits == operations["forward#1"].after


def test_sync_every_micro_step_of_a_pass_alone() -> None:
    """Where the next operation is a backward pass, its first segment waits."""
    workload = data_parallel("w", [Gradient("g", 8, 0.1)], backward_s=0.3)
    schedule = with_schedule(EACH, accumulation=2, sync_every_micro_step=True)
    assert named(expand(workload, schedule))["backward[0]#1"].after == ("all_reduce[0]#0",)


def test_partition_cuts_a_bucket_into_equal_pieces() -> None:
    """As few as fit the size."""
    operations = named(expand(WORKLOAD, Schedule(bucketing=OneBucket(), partition_bytes=25)))
    pieces = [op for op in operations.values() if op.kind is Kind.ALL_REDUCE]
    assert [op.name for op in pieces] == ["all_reduce[0.0]", "all_reduce[0.1]", "all_reduce[0.2]"]
    assert [op.nbytes for op in pieces] == [20.0, 20.0, 20.0]
    assert operations["optimizer"].after == tuple(op.name for op in pieces)


def test_a_partition_of_a_few_bytes_is_refused() -> None:
    """4B instead of 4MiB would make millions of operations."""
    workload = data_parallel("w", [Gradient("g", 10**8, 0.1)], backward_s=0.1)
    with pytest.raises(ScenarioError, match=r"partition of 4 bytes .* 25000000 pieces"):
        expand(workload, Schedule(partition_bytes=4))


def test_a_codec_on_the_device_stands_in_line_with_compute() -> None:
    """Encoding right after the segment, decoding right after the pass."""
    operations = expand(WORKLOAD, Schedule(bucketing=OneBucket()), Timing(has_codec=True))
    assert names(operations) == [
        "forward",
        "backward",
        "encode[0]",
        "all_reduce[0]",
        "decode[0]",
        "optimizer",
    ]
    assert named(operations)["all_reduce[0]"].after == ("encode[0]",)
    assert named(operations)["decode[0]"].after == ("all_reduce[0]",)


def test_a_codec_beside_the_collective_makes_no_operations() -> None:
    """It is part of the collective's cost there."""
    schedule = Schedule(bucketing=OneBucket(), codec_lane="comm")
    assert expand(WORKLOAD, schedule) == expand(WORKLOAD, schedule, Timing(has_codec=True))


def test_horovod_negotiates_each_cycle() -> None:
    """The thread sleeps from the start of the pass; one agreement launches all of a turn."""
    schedule = Schedule(bucketing=Horovod(cycle_time_s=0.12, threshold_bytes=25))
    operations = named(expand(WORKLOAD, schedule))
    assert operations["cycle[0]"].after == ("forward",)
    assert pytest.approx(0.12) == operations["cycle[0]"].seconds
    assert operations["negotiate[0]"].after == ("backward[0]",)
    assert operations["negotiate[1]"].after == ("backward",)
    assert operations["all_reduce[0]"].after == ("negotiate[0]",)
    # Two responses of one turn: 20 and 10 bytes exceed 25 together.
    assert operations["all_reduce[1]"].after == ("negotiate[1]",)
    assert operations["all_reduce[2]"].after == ("negotiate[1]",)


def test_horovod_encodes_before_it_negotiates() -> None:
    """A compressed tensor is what is offered, so the device never waits for an agreement."""
    schedule = Schedule(bucketing=Horovod(cycle_time_s=0.3, threshold_bytes=25))
    operations = named(expand(WORKLOAD, schedule, Timing(has_codec=True)))
    encodes = [op for op in operations.values() if op.kind is Kind.ENCODE]
    assert len(encodes) == 3
    assert {("backward",)} == {op.after for op in encodes}
    assert operations["negotiate[0]"].after == ("encode[2]",)


def test_priority_is_the_order_of_the_next_forward() -> None:
    """The first layer's gradient is ready last and needed first."""
    operations = named(expand(WORKLOAD, with_schedule(EACH, order="priority")))
    assert [operations[f"all_reduce[{i}]"].priority for i in range(3)] == [2, 1, 0]
    in_order = named(expand(WORKLOAD, EACH))
    assert [in_order[f"all_reduce[{i}]"].priority for i in range(3)] == [0, 0, 0]


def test_need_mirrors_the_backward_pass_unless_measured() -> None:
    """In the seconds of the forward pass, of which it is at most the end."""
    buckets = bucket_backward(WORKLOAD, PerTensor(), Timing())
    assert pytest.approx([0.05, 0.025, 0.0]) == [needed_s(WORKLOAD, bucket) for bucket in buckets]
    measured = msgspec.structs.replace(
        WORKLOAD,
        gradients=tuple(
            msgspec.structs.replace(gradient, needed_s=at)
            for gradient, at in zip(WORKLOAD.gradients, (0.09, 0.04, 7.0), strict=True)
        ),
    )
    assert pytest.approx([0.09, 0.04, 0.1]) == [needed_s(measured, bucket) for bucket in buckets]
    together = bucket_backward(measured, OneBucket(), Timing())
    assert pytest.approx(0.04) == needed_s(measured, together[0])


def test_overlap_stops_the_next_forward_at_each_layer() -> None:
    """Each layer waits for its bucket and updates it just in time."""
    operations = expand(WORKLOAD, with_schedule(EACH, overlap_next_forward=True), steps=2)
    second = [op for op in operations if op.name.endswith("@1") and op.lane == "compute"]
    assert [op.name for op in second] == [
        "optimizer[2]@1",
        "forward[1]@1",
        "optimizer[1]@1",
        "forward[0]@1",
        "optimizer[0]@1",
        "forward@1",
        "backward[0]@1",
        "backward[1]@1",
        "backward@1",
    ]
    assert named(operations)["optimizer[1]@1"].after == ("all_reduce[1]@0",)
    assert pytest.approx(0.02) == named(operations)["optimizer[1]@1"].seconds


def test_overlap_decodes_in_the_step_that_needs_it() -> None:
    """Right before the update."""
    schedule = Schedule(bucketing=OneBucket(), overlap_next_forward=True)
    operations = expand(WORKLOAD, schedule, Timing(has_codec=True), steps=2)
    assert named(operations)["decode[0]@1"].after == ("all_reduce[0]@0",)
    assert "decode[0]@0" not in named(operations)


def test_overlap_needs_one_forward_pass() -> None:
    """Without it there is nothing to overlap with."""
    workload = data_parallel("w", [Gradient("g", 8, 0.1)], backward_s=0.3)
    with pytest.raises(ScenarioError, match="'w' has no single forward operation"):
        expand(workload, Schedule(overlap_next_forward=True))


def test_a_workload_without_gradients_is_replayed() -> None:
    """As recorded, whatever the bucketing; collectives keep their lane and order."""
    workload = Workload(
        "w",
        (
            Operation("forward", Kind.FORWARD, seconds=1.0),
            Operation("gather", Kind.ALL_GATHER, lane="comm", nbytes=8, after=("forward",)),
            Operation("optimizer", Kind.OPTIMIZER, seconds=1.0, after=("gather",)),
        ),
    )
    assert workload.operations == expand(workload, Schedule(bucketing=DDP()))
    twice = expand(workload, Schedule(accumulation=2))
    assert names(twice) == ["forward#0", "gather#0", "forward#1", "gather#1", "optimizer#1"]
    assert named(twice)["gather#1"].after == ("forward#1",)


@pytest.mark.parametrize("accumulation", [0, -1, 10_001])
def test_impossible_accumulation_is_refused(accumulation: int) -> None:
    """Each micro-step is simulated."""
    with pytest.raises(ScenarioError, match=f"accumulation is {accumulation}, expected 1 to"):
        Schedule(accumulation=accumulation)


@pytest.mark.parametrize("partition", [0.0, -1.0, float("nan")])
def test_impossible_partition_is_refused(partition: float) -> None:
    """With an example of what is possible."""
    with pytest.raises(ScenarioError, match="expected a size such as 4MiB"):
        Schedule(partition_bytes=partition)


@pytest.mark.parametrize(
    "fields", [{"bucketing": Horovod()}, {"accumulation": 2}], ids=["horovod", "accumulation"]
)
def test_overlap_has_limits(fields: dict[str, object]) -> None:
    """What is not modelled is refused rather than guessed."""
    with pytest.raises(ScenarioError, match="is modelled without Horovod's cycle and without"):
        with_schedule(Schedule(overlap_next_forward=True), **fields)

"""Whatever the schedule: every gradient is reduced exactly once, in a graph that can run."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import (
    bucketings,
    overlapping_schedules,
    schedules,
    timed_bucketings,
    trainings,
    workloads,
)
from wirebound.simulate.graph import compile_graph
from wirebound.workload.backward import bucket_backward
from wirebound.workload.bucketing import DDP
from wirebound.workload.expand import alone, expand
from wirebound.workload.horovod import Horovod
from wirebound.workload.record import Kind, Workload
from wirebound.workload.schedule import Bucketing, Schedule, Timing

timings = st.builds(
    Timing,
    stretch=st.sampled_from([0.1, 1.0, 4.0]),
    negotiation_s=st.sampled_from([0.0, 1e-4, 7e-3]),
    has_codec=st.booleans(),
)
plans = schedules() | overlapping_schedules


@given(trainings(), bucketings, timings)
def test_each_gradient_is_in_exactly_one_bucket(
    workload: Workload, bucketing: Bucketing, timing: Timing
) -> None:
    """Nothing is lost and nothing sent twice."""
    buckets = bucket_backward(workload, bucketing, timing)
    members = [index for bucket in buckets for index in bucket.members]
    assert list(range(len(workload.gradients))) == sorted(members)
    assert workload.gradient_bytes == pytest.approx(sum(bucket.nbytes for bucket in buckets))


@given(trainings(), bucketings, timings)
def test_no_bucket_is_ready_before_its_gradients(
    workload: Workload, bucketing: Bucketing, timing: Timing
) -> None:
    """And none before the one launched ahead of it."""
    ready_s = 0.0
    for bucket in bucket_backward(workload, bucketing, timing):
        assert bucket.ready_s >= ready_s
        assert bucket.ready_s >= max(workload.gradients[i].ready_s for i in bucket.members)
        ready_s = bucket.ready_s


@given(trainings(), st.builds(Horovod, threshold_bytes=st.floats(0, 1e8)))
def test_horovod_exceeds_its_threshold_with_a_lone_tensor_only(
    workload: Workload, horovod: Horovod
) -> None:
    """Packing is greedy, and a larger tensor travels alone."""
    for bucket in horovod.buckets(workload.gradients):
        assert bucket.nbytes <= horovod.threshold_bytes or len(bucket.members) == 1


@given(trainings(), st.floats(1e5, 1e8), st.floats(1e5, 1e8))
def test_ddp_closes_a_bucket_with_the_gradient_that_fills_it(
    workload: Workload, cap_bytes: float, first_bytes: float
) -> None:
    """Without its last gradient each bucket is below its cap; all but the last reach it."""
    buckets = DDP(cap_bytes=cap_bytes, first_bytes=first_bytes).buckets(workload.gradients)
    for index, bucket in enumerate(buckets):
        cap = first_bytes if index == 0 else cap_bytes
        assert bucket.nbytes - workload.gradients[bucket.members[-1]].nbytes < cap
        assert bucket.nbytes >= cap or index == len(buckets) - 1


@given(workloads, plans, timings)
def test_every_schedule_can_run(workload: Workload, schedule: Schedule, timing: Timing) -> None:
    """Names are unique, references exist, and there is no cycle."""
    operations = expand(workload, schedule, timing)
    names = {op.name for op in operations}
    assert len(names) == len(operations)
    assert all(name in names for op in operations for name in op.after)
    compile_graph(operations)
    compile_graph(operations, {"comm"})


@given(trainings(), plans, timings)
def test_bytes_and_compute_are_kept(workload: Workload, schedule: Schedule, timing: Timing) -> None:
    """Cutting a pass into segments and buckets into pieces loses nothing."""
    operations = expand(workload, schedule, timing)
    syncs = schedule.accumulation if schedule.sync_every_micro_step else 1
    reduced = sum(op.nbytes for op in operations if op.kind is Kind.ALL_REDUCE)
    assert syncs * workload.gradient_bytes == pytest.approx(reduced, rel=1e-12)
    for kind in (Kind.INPUT, Kind.FORWARD, Kind.BACKWARD, Kind.OPTIMIZER):
        expected = sum(op.seconds for op in alone(workload, schedule) if op.kind is kind)
        actual = sum(op.seconds for op in operations if op.kind is kind)
        assert expected == pytest.approx(actual, rel=1e-12)


@given(trainings(), plans)
def test_partition_cuts_to_size(workload: Workload, schedule: Schedule) -> None:
    """No piece is larger than the partition."""
    cut = msgspec.structs.replace(schedule, partition_bytes=4e6)
    pieces = [op.nbytes for op in expand(workload, cut) if op.kind is Kind.ALL_REDUCE]
    assert max(pieces) <= 4e6


@given(trainings(), timed_bucketings, st.floats(0.05, 20))
def test_timed_buckets_look_at_the_stretched_pass(
    workload: Workload, bucketing: Bucketing, stretch: float
) -> None:
    """A pass stretched by speed is bucketed as a pass recorded that long."""
    longer = msgspec.structs.replace(
        workload,
        operations=tuple(
            msgspec.structs.replace(op, seconds=op.seconds * stretch) for op in workload.operations
        ),
        gradients=tuple(
            msgspec.structs.replace(gradient, ready_s=gradient.ready_s * stretch)
            for gradient in workload.gradients
        ),
    )
    expected = [b.members for b in bucket_backward(longer, bucketing, Timing())]
    actual = [b.members for b in bucket_backward(workload, bucketing, Timing(stretch=stretch))]
    assert expected == actual

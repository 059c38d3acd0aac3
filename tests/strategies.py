"""Shared Hypothesis strategies: small steps, networks and scenarios of realistic sizes."""

from hypothesis import strategies as st

from wirebound.network.record import Network, Points, Reduction, Tier
from wirebound.simulate.scenario import Jitter, Scenario
from wirebound.workload.bucketing import DDP, OneBucket, PaperFusion, PerTensor
from wirebound.workload.horovod import Horovod
from wirebound.workload.record import Gradient, Kind, Operation, Workload, data_parallel
from wirebound.workload.schedule import Bucketing, Schedule

MODEL_NUMBER = st.floats(1e-3, 0.2)
"""Seconds of a span."""


def optional(seconds: st.SearchStrategy[float]) -> st.SearchStrategy[float]:
    """A span that may be missing."""
    return st.just(0.0) | seconds


@st.composite
def gradients(draw: st.DrawFn, backward_s: float, most: int = 8) -> tuple[Gradient, ...]:
    """Gradients in ready order, several of which may be ready together."""
    shares = sorted(draw(st.lists(st.sampled_from([i / 8 for i in range(9)]), max_size=most)))
    sizes = st.integers(1, 60_000_000)
    return tuple(
        Gradient(f"g{index}", draw(sizes), share * backward_s)
        for index, share in enumerate([*shares, 1.0])
    )


@st.composite
def trainings(draw: st.DrawFn) -> Workload:
    """Data-parallel steps: spans on the compute lane, gradients made by the backward pass."""
    backward_s = draw(MODEL_NUMBER)
    return data_parallel(
        "drawn",
        draw(gradients(backward_s)),
        backward_s=backward_s,
        forward_s=draw(MODEL_NUMBER),
        optimizer_s=draw(optional(MODEL_NUMBER)),
        input_s=draw(optional(MODEL_NUMBER)),
        host_s=draw(optional(MODEL_NUMBER)),
    )


@st.composite
def replays(draw: st.DrawFn) -> Workload:
    """Recorded steps without gradients: timed work and collectives on several lanes."""
    operations: list[Operation] = []
    for index in range(draw(st.integers(1, 8))):
        names = [op.name for op in operations]
        after = draw(st.lists(st.sampled_from(names), max_size=2, unique=True)) if names else []
        if draw(st.booleans()):
            kind = draw(st.sampled_from([Kind.INPUT, Kind.FORWARD, Kind.COMPUTE, Kind.OPTIMIZER]))
            op = Operation(
                f"op{index}",
                kind,
                lane=draw(st.sampled_from(["compute", "loader"])),
                seconds=draw(MODEL_NUMBER),
                after=tuple(after),
            )
        else:
            kinds = [Kind.ALL_REDUCE, Kind.REDUCE_SCATTER, Kind.ALL_GATHER, Kind.ALL_TO_ALL]
            op = Operation(
                f"op{index}",
                draw(st.sampled_from(kinds)),
                lane="comm",
                nbytes=draw(st.floats(1.0, 1e8)),
                after=tuple(after),
                priority=draw(st.integers(0, 2)),
                is_gradient=draw(st.booleans()),
            )
        operations.append(op)
    return Workload("replayed", tuple(operations))


workloads = trainings() | replays()


@st.composite
def efficiency_curves(draw: st.DrawFn) -> Points:
    """Efficiencies by message size; a tenfold size always takes longer."""
    sizes = [10.0**power for power in sorted(draw(st.sets(st.integers(3, 8), min_size=1)))]
    return tuple((size, draw(st.floats(0.11, 1.0))) for size in sizes)


@st.composite
def tiers(draw: st.DrawFn, name: str, *, with_curve: bool) -> Tier:
    """One level of a network, from slow Ethernet to a fast one."""
    constant = st.floats(0.2, 1.0)
    return Tier(
        name=name,
        bandwidth_bps=draw(st.floats(1e9, 4e11)),
        alpha_s=draw(st.sampled_from([1e-6, 2e-5, 1e-4])),
        efficiency=draw(efficiency_curves() if with_curve else constant),
        nics=draw(st.integers(1, 2)),
        oversubscription=draw(st.sampled_from([1.0, 2.0])),
    )


@st.composite
def networks(draw: st.DrawFn, *, with_curve: bool | None = None) -> Network:
    """One or two tiers; additions free, at a rate, or from a table."""
    curve = draw(st.booleans()) if with_curve is None else with_curve
    table = ((40.0, 1e-5), (1e6, 1.1e-5), (6e8, 2.4e-3))
    return Network(
        name="drawn",
        inter=draw(tiers("inter", with_curve=curve)),
        intra=draw(tiers("intra", with_curve=curve)),
        gpus_per_node=8,
        reduction=draw(st.sampled_from([Reduction(), Reduction(1e-11), Reduction(table=table)])),
    )


@st.composite
def one_tier_networks(draw: st.DrawFn, *, with_curve: bool = False) -> Network:
    """Nodes of one GPU each."""
    return Network(name="drawn", inter=draw(tiers("inter", with_curve=with_curve)))


untimed_bucketings: st.SearchStrategy[Bucketing] = st.one_of(
    st.builds(DDP, cap_bytes=st.sampled_from([1e6, 25 * 2.0**20])),
    st.just(OneBucket()),
    st.just(PerTensor()),
)
timed_bucketings: st.SearchStrategy[Bucketing] = st.one_of(
    st.just(PaperFusion()),
    st.builds(
        Horovod,
        cycle_time_s=st.sampled_from([1e-3, 5e-3]),
        threshold_bytes=st.sampled_from([0.0, 1e6, 64 * 2.0**20]),
        response_cache=st.booleans(),
    ),
)
bucketings = untimed_bucketings | timed_bucketings


@st.composite
def schedules(
    draw: st.DrawFn,
    buckets: st.SearchStrategy[Bucketing] = bucketings,
    *,
    in_ready_order: bool = False,
) -> Schedule:
    """Synchronous schedules, with or without accumulation."""
    return Schedule(
        bucketing=draw(buckets),
        accumulation=draw(st.integers(1, 3)),
        sync_every_micro_step=draw(st.booleans()),
        order="ready" if in_ready_order else draw(st.sampled_from(["ready", "priority"])),
        partition_bytes=draw(st.sampled_from([None, 4e6])),
        codec_lane=draw(st.sampled_from(["compute", "comm"])),
    )


overlapping_schedules = st.builds(
    Schedule,
    bucketing=untimed_bucketings,
    order=st.sampled_from(["ready", "priority"]),
    overlap_next_forward=st.sampled_from([True]),
    partition_bytes=st.sampled_from([None, 4e6]),
    codec_lane=st.sampled_from(["compute", "comm"]),
)

jitters = st.builds(
    Jitter,
    distribution=st.sampled_from(["normal", "lognormal", "exponential"]),
    spread=st.sampled_from([0.01, 0.1]),
    seed=st.integers(0, 3),
    draws=st.integers(1, 5),
)


@st.composite
def scenarios(
    draw: st.DrawFn,
    plans: st.SearchStrategy[Schedule] | None = None,
    jitter: st.SearchStrategy[Jitter | None] = st.none(),  # noqa: B008 - strategies are values
) -> Scenario:
    """Scenarios with a fixed order unless the schedule says otherwise."""
    encodes = draw(st.booleans())
    return Scenario(
        workers=draw(st.sampled_from([1, 2, 3, 8, 16, 24, 64])),
        gpus_per_node=draw(st.sampled_from([1, 4, 8])),
        link_bps=draw(st.none() | st.floats(1e8, 4e11)),
        latency_s=draw(st.none() | st.floats(1e-7, 1e-4)),
        efficiency=draw(st.none() | st.floats(0.1, 1.0)),
        algorithm=draw(
            st.sampled_from(["ring", "tree", "hierarchical", "halving-doubling", "in-network"])
        ),
        schedule=draw(schedules(in_ready_order=True) if plans is None else plans),
        compression_ratio=draw(st.sampled_from([1.0, 2.0, 7.5])),
        encode_s_per_byte=1e-10 if encodes else 0.0,
        decode_s_per_byte=2e-10 if encodes else 0.0,
        stays_compressed=draw(st.booleans()),
        compressed_collective=draw(st.sampled_from(["all_reduce", "all_gather"])),
        compute_speed=draw(st.sampled_from([0.5, 1.0, 3.0])),
        batch_scale=draw(st.sampled_from([0.5, 1.0, 2.0])),
        jitter=draw(jitter),
    )


@st.composite
def unordered_scenarios(draw: st.DrawFn) -> Scenario:
    """Scenarios that only the event engine can answer."""
    plan = draw(schedules() | overlapping_schedules)
    base = draw(scenarios(st.just(plan), st.none() | jitters))
    streams = draw(st.integers(1, 3))
    inflation = draw(st.sampled_from([0.0, 0.2]))
    fields = {name: getattr(base, name) for name in base.__struct_fields__}
    return Scenario(**(fields | {"streams": streams, "compute_inflation": inflation}))

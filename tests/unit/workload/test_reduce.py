"""From a recording to a workload: medians of work, without waiting, and what was recorded."""

from pathlib import Path

import pytest

from recordings import Run
from wirebound.errors import WorkloadError
from wirebound.readers import read_trace
from wirebound.trace import Trace
from wirebound.workload.bucketing import DDP, Explicit
from wirebound.workload.record import Kind
from wirebound.workload.reduce import Reduced, reduce

READY_S = {"1.weight": 0.005, "0.weight": 0.02, "0.bias": 0.03}
SPANS_S = {"input": 0.005, "host": 0.015, "forward": 0.02, "backward": 0.03, "optimizer": 0.01}


def trace_of(folder: Path, *runs: Run) -> Trace:
    """The trace of some ranks."""
    for run in runs:
        run.write(folder / "run")
    return read_trace(folder / "run")


def spans_s(reduced: Reduced) -> dict[str, float]:
    """Seconds by operation."""
    return {op.name: op.seconds for op in reduced.workload.operations}


@pytest.mark.parametrize("is_ddp", [True, False])
def test_waiting_is_not_work(tmp_path: Path, is_ddp: bool) -> None:  # noqa: FBT001 - parametrised
    """With DDP and alone, a step needs the same: the wait in the backward span is taken out."""
    reduced = reduce(trace_of(tmp_path, Run(is_ddp=is_ddp)))
    if is_ddp:
        assert spans_s(reduced) == pytest.approx(SPANS_S)
    else:
        assert spans_s(reduced) == pytest.approx(SPANS_S | {"host": 0.035})
    assert {g.name: g.ready_s for g in reduced.workload.gradients} == pytest.approx(READY_S)
    assert [g.nbytes for g in reduced.workload.gradients] == [8000, 4000, 40]
    assert reduced.warnings == ()


def test_spans_add_up_to_the_step_without_its_waiting(tmp_path: Path) -> None:
    """What nobody named is the host's, so that nothing of the step is lost."""
    reduced = reduce(trace_of(tmp_path, Run()))
    assert reduced.workload.compute_s == pytest.approx(reduced.recorded.alone_s)


def test_wait_before_a_gradient(tmp_path: Path) -> None:
    """A gradient is not late because its rank waited before it."""
    run = Run(is_ddp=False, steps=4, micro_steps=1)
    run.span("exposed_wait", 300_000.0 + 25_000.0 + 6_000.0, 10_000.0, step=3, micro=0)
    reduced = reduce(trace_of(tmp_path, run))
    assert reduced.workload.span_s(Kind.BACKWARD) == pytest.approx(0.02)
    ready = {gradient.name: gradient.ready_s for gradient in reduced.workload.gradients}
    assert ready == pytest.approx({"1.weight": 0.005, "0.weight": 0.01, "0.bias": 0.02})


def test_overlapping_spans_count_once(tmp_path: Path) -> None:
    """Forward work that is repeated inside the backward pass belongs to the backward pass."""
    run = Run(steps=4)
    run.span("forward", 330_000.0, 5_000.0, step=3, micro=0)
    assert spans_s(reduce(trace_of(tmp_path, run))) == pytest.approx(SPANS_S)


def test_schedule_is_ddps_rule(tmp_path: Path) -> None:
    """Caps and order of registration are those of the recording."""
    schedule = reduce(trace_of(tmp_path, Run())).schedule
    registration = ("0.weight", "0.bias", "1.weight")
    assert schedule.bucketing == DDP(8000.0, 8000.0, registration=registration)
    assert (schedule.accumulation, schedule.sync_every_micro_step) == (1, False)


def test_buckets_that_no_rule_makes_are_listed(tmp_path: Path) -> None:
    """Where DDP's rule gives other buckets, those recorded are taken."""
    reduced = reduce(trace_of(tmp_path, Run(cap_bytes=1e6)))
    assert reduced.schedule.bucketing == Explicit((("1.weight",), ("0.weight", "0.bias")))
    assert "DDP's rule does not make the buckets" in reduced.warnings[0]


def test_accumulation(tmp_path: Path) -> None:
    """Micro-steps are counted; a workload is one of them, and the gaps are shared out."""
    reduced = reduce(trace_of(tmp_path, Run(micro_steps=3)))
    assert reduced.schedule.accumulation == 3
    assert not reduced.schedule.sync_every_micro_step
    step = SPANS_S | {"host": (0.015 + 2 * 0.02) / 3}
    assert spans_s(reduced) == pytest.approx(step)
    assert {g.name: g.ready_s for g in reduced.workload.gradients} == pytest.approx(READY_S)


def test_steps_of_another_shape_are_left_out(tmp_path: Path) -> None:
    """A last step with fewer micro-steps does not count."""
    run = Run(micro_steps=2, steps=5)
    start_us = max(line["ts"] + line["dur"] for line in run.lines if line.get("cat") == "step")
    run.step(5, start_us, 1, 1.0)
    reduced = reduce(trace_of(tmp_path, run))
    assert reduced.recorded.steps == 2
    assert reduced.warnings == ("1 steps that do not have 2 micro-steps are left out",)


def test_warmup_is_left_out(tmp_path: Path) -> None:
    """Slow first steps change nothing, unless they are asked for."""
    trace = trace_of(tmp_path, Run(steps=7, stretch=dict.fromkeys(range(3), 9.0)))
    assert reduce(trace).recorded.step_s == pytest.approx(0.1)
    assert reduce(trace).workload.source.uncertainty == pytest.approx(0.0)
    assert reduce(trace, warmup=0).workload.source.uncertainty > 1


def test_recorded(tmp_path: Path) -> None:
    """What was measured: the step on the slowest rank, its waiting, its collectives."""
    slow = dict.fromkeys(range(8), 1.2)
    trace = trace_of(tmp_path, Run(0, 2, steps=8), Run(1, 2, steps=8, stretch=slow, host="beta"))
    recorded = reduce(trace).recorded
    assert recorded.step_s == pytest.approx(0.115)
    assert recorded.exposed_wait_s == pytest.approx(0.022)
    assert recorded.comm_s == pytest.approx(0.044)
    assert (recorded.ranks, recorded.world_size, recorded.steps) == (2, 2, 5)
    assert (recorded.hosts, recorded.backend) == (("alpha", "beta"), "gloo")
    first, second = recorded.collectives
    assert (first.name, first.kind, first.nbytes, first.dtype) == (
        "bucket 0", "all_reduce", 8000, "float32",
    )  # fmt: skip
    assert first.per_step == 1
    assert second.seconds == pytest.approx(0.022)
    assert second.transfer_s == pytest.approx(0.02)


def test_source_says_where_from(tmp_path: Path) -> None:
    """Ranks, host, device and steps, in one sentence."""
    source = reduce(trace_of(tmp_path, Run(0, 2))).workload.source
    assert source.kind == "recorded"
    assert source.detail == "1 of 2 ranks on alpha (cpu), medians of 3 steps after 3 of warm-up"


def test_trace_warnings_are_kept(tmp_path: Path) -> None:
    """What the reader doubted is still doubtful."""
    assert reduce(trace_of(tmp_path, Run(0, 2))).warnings == ("1 of 2 ranks are missing: 1",)


def test_several_models(tmp_path: Path) -> None:
    """Gradients of all models, each behind the name of its model; their buckets are listed."""
    reduced = reduce(trace_of(tmp_path, Run(models=(0, 1))))
    names = [gradient.name for gradient in reduced.workload.gradients]
    assert sorted(names) == sorted(f"{model}:{name}" for model in (0, 1) for name in READY_S)
    assert isinstance(reduced.schedule.bucketing, Explicit)
    assert len(reduced.schedule.bucketing.groups) == 4


def test_unused_parameters_travel(tmp_path: Path) -> None:
    """DDP reduces what it found to be unused, from the start of the backward pass."""
    reduced = reduce(trace_of(tmp_path, Run(unused=(("2.weight", 16, "float32"),))))
    first = reduced.workload.gradients[0]
    assert (first.name, first.nbytes, first.ready_s) == ("2.weight", 16, 0.0)
    assert "1 parameters have no gradient" in reduced.warnings[0]


def test_collectives_beside_the_buckets(tmp_path: Path) -> None:
    """What carries no gradients is summarised, left out of the workload, and named."""
    run = Run(steps=4)
    run.span("barrier", 310_000.0, 5.0, "comm", name="barrier", nbytes=0, step=3, micro=0)
    reduced = reduce(trace_of(tmp_path, run))
    assert [one.kind for one in reduced.recorded.collectives].count("barrier") == 1
    assert reduced.warnings == (
        "collectives that carry no bucket are not in the workload: barrier",
    )


def without(run: Run, kind: str) -> Run:
    """The recording without one kind of operation."""
    run.lines = [line for line in run.lines if line.get("cat") != kind]
    return run


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (Run(steps=3), "job: 3 steps are complete .* the first 3 are warm-up"),
        (without(Run(), "step"), "job: 0 steps are complete"),
        (without(Run(), "backward"), "job: no backward pass in 3 complete steps"),
        (without(Run(), "gradient"), "job: no gradient in 3 complete steps"),
    ],
)
def test_cannot_be_reduced(tmp_path: Path, run: Run, says: str) -> None:
    """What holds no step says what is missing and what to do."""
    with pytest.raises(WorkloadError, match=says) as caught:
        reduce(trace_of(tmp_path, run), "job")
    assert caught.value.hint is not None


def with_copies(copy_us: float) -> Run:
    """A rank whose last bucket is filled for a time before it goes, and emptied as long."""
    made = Run(world_size=2)
    for line in made.lines:
        if line.get("cat") == "all_reduce" and line["args"]["bucket"] == 1:
            line["ts"] += copy_us
            line["dur"] -= 2 * copy_us
            line["args"]["started_us"] += copy_us
    return made


def test_copies_to_and_from_buckets_are_work(tmp_path: Path) -> None:
    """By hand: 30 ms of gradients, 2 of filling, 16 of waiting, 2 of emptying, 10 of update."""
    reduced = reduce(trace_of(tmp_path, with_copies(2_000.0)))
    spans = spans_s(reduced)
    assert spans["backward"] == pytest.approx(0.032)
    assert spans["unpack"] == pytest.approx(0.002)
    assert spans["optimizer"] == pytest.approx(0.010)
    assert reduced.recorded.exposed_wait_s == pytest.approx(0.016)
    last = reduced.workload.gradients[-1]
    assert (last.name, last.ready_s) == ("0.bias", pytest.approx(0.032))


def test_broadcast_buffers_are_waited_for(tmp_path: Path) -> None:
    """By hand: 3 ms of a forward pass of 20 go by with buffers on their way."""
    made = Run(world_size=2)
    for step in range(6):
        at = {"step": step, "micro": 0, "model": None, "bucket": None, "group": "0"}
        made.span("broadcast", step * 100_000.0 + 6_000.0, 3_000.0, "comm", nbytes=64, **at)
    reduced = reduce(trace_of(tmp_path, made))
    by_name = {op.name: op for op in reduced.workload.operations}
    assert by_name["broadcast[0]"].nbytes == 64
    assert by_name["forward"].after == ("broadcast[0]",)
    assert by_name["forward"].seconds == pytest.approx(0.017)
    assert not reduced.warnings or "broadcast" not in " ".join(reduced.warnings)

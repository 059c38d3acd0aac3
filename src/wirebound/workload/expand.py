"""From a workload and a schedule to the operations of a step."""

from collections.abc import Iterator, Sequence

import msgspec

from wirebound.errors import ScenarioError
from wirebound.workload.backward import Backward, bucket_backward, needed_s
from wirebound.workload.bucketing import Bucket
from wirebound.workload.record import Kind, Operation, Workload
from wirebound.workload.schedule import Schedule, Timing


def expand(
    workload: Workload, schedule: Schedule, timing: Timing = Timing(), *, steps: int = 1
) -> tuple[Operation, ...]:
    """The operations of `steps` consecutive steps on several workers.

    Args:
        workload: What a step needs.
        schedule: How it is organised.
        timing: What timed bucketing policies look at.
        steps: Consecutive steps; more than one only with `overlap_next_forward`.

    Raises:
        ScenarioError: A schedule this workload cannot follow.
    """
    if not workload.gradients:
        return _replay(workload, schedule)
    if schedule.overlap_next_forward:
        return tuple(_pipelined(workload, schedule, timing, steps))
    return tuple(_synchronous(workload, schedule, timing))


def alone(workload: Workload, schedule: Schedule) -> tuple[Operation, ...]:
    """The same step on one worker: no gradients to synchronise.

    Recorded collectives stay, for what waits for them; among one rank they cost nothing.
    """
    return _replay(workload, schedule)


def _replay(workload: Workload, schedule: Schedule) -> tuple[Operation, ...]:
    """The operations as recorded, once a micro-step."""
    return tuple(
        op
        for micro in range(schedule.accumulation)
        for op in _micro_step(workload.operations, schedule.accumulation, micro)
    )


def _micro_step(operations: Sequence[Operation], of: int, number: int) -> Iterator[Operation]:
    """One micro-step's copies; the optimizer runs in the last one only."""
    micro = number if of > 1 else None
    is_last = number == of - 1
    skipped = {op.name for op in operations if op.kind is Kind.OPTIMIZER and not is_last}
    for op in operations:
        if op.name in skipped:
            continue
        after = tuple(tagged(name, micro) for name in op.after if name not in skipped)
        yield msgspec.structs.replace(op, name=tagged(op.name, micro), after=after)


def tagged(name: str, micro: int | None) -> str:
    """Name of an operation in one of several micro-steps or steps."""
    return name if micro is None else f"{name}#{micro}"


def _synchronous(workload: Workload, schedule: Schedule, timing: Timing) -> Iterator[Operation]:
    """Everything is reduced before whatever follows the backward pass may run."""
    buckets = bucket_backward(workload, schedule.bucketing, timing)
    micro_steps = schedule.accumulation
    pending: tuple[str, ...] = ()
    previous: str | None = None
    for micro in range(micro_steps):
        syncs = schedule.sync_every_micro_step or micro == micro_steps - 1
        suffix = f"#{micro}" if micro_steps > 1 else ""
        for recorded in _micro_step(workload.operations, micro_steps, micro):
            if recorded.lane != "compute":
                yield recorded
                continue
            op = msgspec.structs.replace(recorded, after=(*recorded.after, *pending))
            pending = ()
            if op.kind is Kind.BACKWARD and syncs:
                cut = Backward(op, previous, schedule, timing, suffix)
                yield from cut.operations(workload, buckets)
                yield from cut.decodes(buckets)
                pending = cut.reductions(buckets)
            else:
                yield op
            previous = op.name


def _pipelined(
    workload: Workload, schedule: Schedule, timing: Timing, steps: int
) -> Iterator[Operation]:
    """Each layer of the next forward waits for its own bucket and updates it just in time."""
    if sum(op.kind is Kind.FORWARD for op in workload.operations) != 1:
        raise ScenarioError(
            f"workload {workload.name!r} has no single forward operation to overlap with"
        )
    buckets = bucket_backward(workload, schedule.bucketing, timing)
    moved = {op.name for op in workload.operations if op.kind is Kind.OPTIMIZER}
    before: Backward | None = None
    for step in range(steps):
        previous: str | None = None
        current = before
        for op in workload.operations:
            after = tuple(f"{name}@{step}" for name in op.after if name not in moved)
            named = msgspec.structs.replace(op, name=f"{op.name}@{step}", after=after)
            if op.kind is Kind.BACKWARD:
                current = Backward(named, previous, schedule, timing, f"@{step}")
                yield from current.operations(workload, buckets)
            elif op.kind is Kind.FORWARD:
                yield from _forward(workload, named, buckets, before)
            elif op.kind is not Kind.OPTIMIZER:
                yield named
            previous = named.name if op.lane == "compute" else previous
        before = current


def _forward(
    workload: Workload, op: Operation, buckets: Sequence[Bucket], before: "Backward | None"
) -> Iterator[Operation]:
    """A forward pass that stops at each layer whose bucket is not yet reduced and applied.

    The last stretch has the name of the pass, for the operations that wait for it.
    """
    suffix = op.name.removeprefix(Kind.FORWARD.value)
    optimizer_s = workload.span_s(Kind.OPTIMIZER)
    share = 1 / workload.gradient_bytes
    done_s = 0.0
    after = op.after
    needs = sorted((needed_s(workload, bucket), index) for index, bucket in enumerate(buckets))
    for needed, index in needs:
        if needed > done_s:
            name = op.name if needed == op.seconds else f"forward[{index}]{suffix}"
            yield Operation(name, Kind.FORWARD, seconds=needed - done_s, after=after)
            done_s, after = needed, ()
        yield from before.decode(index, buckets[index], suffix) if before else ()
        yield Operation(
            f"optimizer[{index}]{suffix}",
            Kind.OPTIMIZER,
            seconds=optimizer_s * buckets[index].nbytes * share,
            after=before.pieces(index, buckets[index]) if before else (),
        )
    if op.seconds > done_s or op.seconds == 0:
        yield Operation(op.name, Kind.FORWARD, seconds=op.seconds - done_s, after=after)

"""A step's notes as events of a recording."""

from collections.abc import Iterator

from wirebound.record.buckets import BucketOf
from wirebound.record.clock import Clock, Mark
from wirebound.record.events import COMM, COMPUTE, NS_PER_US, STEPS, Event
from wirebound.record.steps import Collective, Span, Step

PASS_KINDS = ("backward", "exposed_wait")
"""The spans of a backward pass, in their order."""


def is_settled(step: Step, clock: Clock) -> bool:
    """Whether the times of a complete step are known."""
    return clock.passed(step.end) and all(
        collective.done is not None and clock.passed(collective.done)
        for collective in step.collectives
    )


def render(step: Step, bucket_of: BucketOf, clock: Clock, base_ns: int, rank: int) -> list[Event]:
    """The events of a step, the step itself last.

    Args:
        step: Complete.
        bucket_of: As `assign` found it.
        clock: That took its marks.
        base_ns: Where the times of the rank begin [ns].
        rank: Who records.
    """
    spans = [*step.spans, *_passes(step)]
    collectives = [
        one for one in step.collectives if one.done is not None and clock.passed(one.done)
    ]
    marks: list[Mark] = [step.start]
    for span in spans:
        marks += (span.start, span.end)
    marks += [mark for _, mark in step.gradients]
    for collective in collectives:
        marks += (collective.enqueued, collective.done)
    marks.append(step.end)
    times = iter([(time_ns - base_ns) / NS_PER_US for time_ns in clock.times_ns(marks)])

    start = next(times)
    timed = [(span, next(times), next(times)) for span in spans]
    last = max(0, len(step.backwards) - 1)
    events = [
        _span(rank, step.index, span.kind, min(span.micro, last), (begun, ended))
        for span, begun, ended in timed
    ]
    events += _gradients(step, bucket_of, times, rank)
    passed = {span.micro: ended for span, _, ended in timed if span.kind in PASS_KINDS}
    for one in collectives:
        enqueued, done = next(times), next(times)
        if one.bucket is not None:
            # DDP waits for its buckets; a note behind that waited for the interpreter.
            done = min(done, passed.get(one.micro, done))
        events.append(_collective(rank, step.index, last, one, (enqueued, done)))
    end = next(times)
    events += _gaps(rank, step.index, timed, start, end)
    events.append(
        Event(
            "X",
            f"step {step.index}",
            rank,
            STEPS,
            {"step": step.index},
            cat="step",
            ts=start,
            dur=_duration(start, end),
        )
    )
    return events


def _passes(step: Step) -> Iterator[Span]:
    """Backward passes, each divided where nothing but communication was left."""
    for micro, one in enumerate(step.backwards):
        if one.communicated and one.gradients:
            last = step.gradients[one.gradients[-1]][1]
            yield Span("backward", one.start, last, micro)
            yield Span("exposed_wait", last, one.end, micro)
        else:
            yield Span("backward", one.start, one.end, micro)


def _span(rank: int, step: int, kind: str, micro: int, at: tuple[float, float]) -> Event:
    start, end = at
    return Event(
        "X", kind, rank, COMPUTE, {"step": step, "micro": micro},
        cat=kind, ts=start, dur=_duration(start, end),
    )  # fmt: skip


def _duration(start: float, end: float) -> float:
    """Whole nanoseconds again, which a difference of floats is not."""
    return max(0.0, round(end - start, 3))


def _gradients(
    step: Step, bucket_of: BucketOf, times: Iterator[float], rank: int
) -> Iterator[Event]:
    micros = {number: micro for micro, one in enumerate(step.backwards) for number in one.gradients}
    last = len(step.backwards) - 1
    for number, (slot, _) in enumerate(step.gradients):
        micro = micros.get(number, last)
        args = {
            "step": step.index,
            "micro": micro,
            "nbytes": slot.nbytes,
            "bucket": bucket_of.get((micro, slot.model, slot.position)),
            "model": slot.model,
        }
        yield Event("i", slot.name, rank, COMPUTE, args, cat="gradient", ts=next(times), s="t")


def _collective(rank: int, step: int, last: int, one: Collective, at: tuple[float, float]) -> Event:
    enqueued, done = at
    args = {
        "step": step,
        "micro": min(one.micro, last),
        "nbytes": one.nbytes,
        "dtype": one.dtype,
        "group": one.group,
        "bucket": one.bucket,
        "model": one.model,
    }
    name = one.kind if one.bucket is None else f"bucket {one.bucket}"
    return Event(
        "X", name, rank, COMM, args, cat=one.kind, ts=enqueued, dur=_duration(enqueued, done)
    )


def _gaps(
    rank: int, step: int, timed: list[tuple[Span, float, float]], start: float, end: float
) -> Iterator[Event]:
    """What no span covers: the host did something else, or nothing."""
    reached, micro = start, 0
    for span, begun, ended in sorted(timed, key=lambda one: one[1:]):
        if begun > reached:
            yield _span(rank, step, "host", span.micro, (reached, begun))
        reached, micro = max(reached, ended), span.micro
    if end > reached:
        yield _span(rank, step, "host", micro, (reached, end))

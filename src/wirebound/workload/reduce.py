"""From a trace to what a step needs: medians over complete steps, without the waiting.

Time that a rank spends waiting for collectives is the network's, not the step's, so it is
taken out of every span and out of the time until a gradient is ready. How each number is
derived is described in `docs/record/reading.md`.
"""

from collections import Counter

import msgspec
import numpy as np

from wirebound.errors import WorkloadError
from wirebound.trace import GRADIENT, NONE, Trace
from wirebound.workload.exposed import BROADCAST
from wirebound.workload.record import Gradient, Source, Workload, data_parallel
from wirebound.workload.recorded import Recorded, summarise
from wirebound.workload.schedule import Schedule
from wirebound.workload.spans import Spans, measure
from wirebound.workload.suggest import has_several_models, parameter_names, suggest

DEFAULT_WARMUP = 3
"""Steps left out: DDP builds its buckets anew after the first, allocators settle in."""

CENTRAL = (10.0, 90.0)
"""Percentiles of step times between which the uncertainty counts."""


class Reduced(msgspec.Struct, frozen=True):
    """A recording, reduced.

    Attributes:
        workload: What one micro-step of one rank needs.
        schedule: How the step was organised, for a what-if that replays it.
        recorded: What was measured, for comparison.
        warnings: What makes the workload less than it seems.
    """

    workload: Workload
    schedule: Schedule
    recorded: Recorded
    warnings: tuple[str, ...] = ()


def reduce(trace: Trace, name: str = "recorded", warmup: int = DEFAULT_WARMUP) -> Reduced:
    """Find what a step needs in what happened.

    Args:
        trace: Of some ranks of a training, or of its only one.
        name: Of the workload.
        warmup: Complete steps that are left out, from the first.

    Raises:
        WorkloadError: The trace has no complete step after these, or steps without a
            backward pass or gradients.
    """
    complete = trace.complete_steps
    if len(complete) <= warmup:
        raise WorkloadError(
            f"{name}: {len(complete)} steps are complete on all ranks seen and the first "
            f"{warmup} are warm-up, expected at least one more",
            f"record {warmup + 1} steps or more, or set --warmup lower",
        )
    steps = complete[warmup:]
    micro_steps, steps, uneven = _same_shape(trace, steps, name)
    kept = trace.select(steps=steps)
    spans = measure(kept, steps, micro_steps)
    medians = spans.medians()
    gradients = _gradients(kept, spans, medians["backward"], micro_steps, name)
    gradients, idle = _with_unused(kept, gradients)
    schedule, said = suggest(kept, gradients, micro_steps)
    recorded = summarise(kept, spans, steps)
    workload = data_parallel(
        name,
        gradients,
        backward_s=medians["backward"],
        forward_s=medians["forward"],
        optimizer_s=medians["optimizer"],
        unpack_s=medians["unpack"],
        input_s=medians["input"],
        host_s=spans.host_s(medians),
        buffers=_buffers(kept),
        source=_source(trace, spans, steps, warmup),
    )
    return Reduced(
        workload, schedule, recorded, (*trace.warnings, *uneven, *idle, *said, *_beside(kept))
    )


def _same_shape(
    trace: Trace, steps: tuple[int, ...], name: str
) -> tuple[int, tuple[int, ...], tuple[str, ...]]:
    """The number of micro-steps that most steps have, and these steps."""
    backward = trace.select(steps=steps, kinds=["backward"]).operations
    if not len(backward):
        raise WorkloadError(
            f"{name}: no backward pass in {len(steps)} complete steps",
            "record a training that calls backward() between two optimizer steps",
        )
    passes: dict[int, int] = {}
    for step, micro in np.unique(np.stack((backward.step, backward.micro)), axis=1).T.tolist():
        passes[step] = max(passes.get(step, 0), micro + 1)
    micro_steps = Counter(passes.values()).most_common(1)[0][0]
    kept = tuple(step for step in steps if passes.get(step) == micro_steps)
    left_out = len(steps) - len(kept)
    said = f"{left_out} steps that do not have {micro_steps} micro-steps are left out"
    return micro_steps, kept, (said,) if left_out else ()


def _gradients(
    trace: Trace, spans: Spans, backward_s: float, micro_steps: int, name: str
) -> list[Gradient]:
    """Each gradient at its median place in the backward pass that synchronises."""
    ops = trace.operations
    chosen = trace.is_kind(GRADIENT) & (ops.micro == micro_steps - 1)
    if not np.any(chosen):
        raise WorkloadError(
            f"{name}: no gradient in {len(spans.steps)} complete steps",
            "record a model whose parameters need gradients",
        )
    names = parameter_names(trace, chosen)
    place = spans.gradient_place[chosen]
    labels, which = np.unique(names, return_inverse=True)
    nbytes = ops.nbytes[chosen]
    gradients = []
    for number, label in enumerate(labels.tolist()):
        mine = which == number
        size = int(np.max(nbytes[mine]))
        if size:
            gradients.append(Gradient(label, size, float(np.median(place[mine])) * backward_s))
    return sorted(gradients, key=lambda gradient: gradient.ready_s)


def _with_unused(trace: Trace, gradients: list[Gradient]) -> tuple[list[Gradient], tuple[str, ...]]:
    """Also the parameters that DDP reduces without a gradient, ready as backward begins."""
    known = {gradient.name for gradient in gradients}
    models = trace.ranks[0].models
    is_several = has_several_models(trace)
    unused = [
        Gradient(f"{model.model}:{one.name}" if is_several else one.name, one.nbytes, 0.0)
        for model in models
        if model.find_unused_parameters
        for one in model.parameters
        if one.nbytes
    ]
    unused = [gradient for gradient in unused if gradient.name not in known]
    said = f"{len(unused)} parameters have no gradient and are reduced nevertheless"
    return unused + gradients, (said,) if unused else ()


def _buffers(trace: Trace) -> tuple[int, ...]:
    """Sizes of the broadcasts before a forward pass, in the last step of the lowest rank."""
    ops = trace.operations
    flags = trace.is_kind(BROADCAST) & (ops.bucket == NONE) & (ops.rank == trace.ranks[0].rank)
    if not np.any(flags):
        return ()
    last = flags & (ops.step == np.max(ops.step[flags]))
    first = last & (ops.micro == np.min(ops.micro[last]))
    return tuple(int(nbytes) for nbytes in ops.nbytes[first] if nbytes > 0)


def _beside(trace: Trace) -> tuple[str, ...]:
    """A warning about collectives that carry no bucket of gradients, where there are any."""
    flags = trace.is_collective & (trace.operations.bucket == NONE) & ~trace.is_kind(BROADCAST)
    kinds = sorted({trace.texts[kind] for kind in trace.operations.kind[flags].tolist()})
    if not kinds:
        return ()
    return (f"collectives that carry no bucket are not in the workload: {', '.join(kinds)}",)


def _source(trace: Trace, spans: Spans, steps: tuple[int, ...], warmup: int) -> Source:
    """Where it was recorded, and how much step times differ."""
    hosts = sorted({rank.host for rank in trace.ranks})
    shown = ", ".join(hosts[:2]) + (f" and {len(hosts) - 2} more" if len(hosts) > 2 else "")  # noqa: PLR2004 - two fit a line
    low_s, middle_s, high_s = np.percentile(
        spans.slowest_s, [CENTRAL[0], 50.0, CENTRAL[1]]
    ).tolist()
    return Source(
        "recorded",
        f"{len(trace.ranks)} of {trace.world_size} ranks on {shown or 'an unnamed host'} "
        f"({trace.ranks[0].device}), medians of {len(steps)} steps after {warmup} of warm-up",
        (high_s - low_s) / 2 / middle_s if middle_s > 0 else 0.0,
    )

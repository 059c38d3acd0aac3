"""The schedule that a trace was recorded under, as far as it can be told."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wirebound.trace import GRADIENT, NONE, Model, Trace
from wirebound.workload.bucketing import DDP, DEFAULT_CAP_BYTES, Explicit
from wirebound.workload.record import Gradient
from wirebound.workload.schedule import Bucketing, Schedule


def parameter_names(trace: Trace, flags: NDArray[np.bool_]) -> NDArray[np.str_]:
    """Names of gradients; with several models, each behind the name of its model.

    Args:
        trace: Whose texts are looked up.
        flags: Which operations.
    """
    ops = trace.operations
    texts = np.array(trace.texts)
    names: NDArray[np.str_] = texts[ops.name[flags]]
    if not has_several_models(trace):
        return names
    models = ops.model[flags]
    prefixes = np.where(models == NONE, "", np.char.add(texts[models], ":"))
    return np.char.add(prefixes, names)


def has_several_models(trace: Trace) -> bool:
    """Whether parameters of more than one model got gradients."""
    return np.unique(trace.operations.model[trace.is_kind(GRADIENT)]).size > 1


def suggest(
    trace: Trace, gradients: Sequence[Gradient], micro_steps: int
) -> tuple[Schedule, tuple[str, ...]]:
    """The schedule that replays a trace, and what is doubtful about it.

    DDP's rule is suggested where it makes the buckets that were recorded, and the recorded
    buckets themselves where it does not.

    Args:
        trace: Of the steps that are reduced.
        gradients: In ready order.
        micro_steps: Of each step.
    """
    ops = trace.operations
    is_bucketed = trace.is_kind(GRADIENT) & (ops.bucket != NONE)
    synced = np.unique(ops.micro[is_bucketed]).size
    groups = _recorded_groups(trace, is_bucketed)
    rule = _rule(trace)
    bucketing: Bucketing = rule
    said: tuple[str, ...] = ()
    if groups and _sets(_names(rule, gradients)) != _sets(groups):
        if _is_partition(groups, gradients):
            bucketing = Explicit(groups)
            said = ("DDP's rule does not make the buckets that were recorded: they are listed",)
        else:
            said = ("the recorded buckets do not hold each gradient once: DDP's rule is taken",)
    return (
        Schedule(
            bucketing=bucketing,
            accumulation=micro_steps,
            sync_every_micro_step=micro_steps > 1 and synced == micro_steps,
        ),
        said,
    )


def _rule(trace: Trace) -> DDP:
    """DDP as it was told to fill buckets."""
    models = trace.ranks[0].models
    if len(models) != 1:
        return DDP()
    model: Model = models[0]
    return DDP(
        cap_bytes=model.bucket_cap_bytes or DEFAULT_CAP_BYTES,
        first_bytes=model.first_bucket_bytes,
        rebuilt=model.static_graph or not model.find_unused_parameters,
        registration=tuple(parameter.name for parameter in model.parameters),
    )


def _recorded_groups(trace: Trace, is_bucketed: NDArray[np.bool_]) -> tuple[tuple[str, ...], ...]:
    """Names by bucket in the last step of the lowest rank, in the order buckets were full."""
    ops = trace.operations
    flags = is_bucketed & (ops.rank == trace.ranks[0].rank)
    if not np.any(flags):
        return ()
    flags &= ops.step == np.max(ops.step[flags])
    flags &= ops.micro == np.max(ops.micro[flags])
    members: dict[tuple[int, int], dict[str, None]] = {}
    ready: dict[tuple[int, int], int] = {}
    order = np.argsort(trace.start_s[flags], kind="stable")
    for name, model, bucket, place in zip(
        parameter_names(trace, flags)[order].tolist(),
        ops.model[flags][order].tolist(),
        ops.bucket[flags][order].tolist(),
        range(order.size),
        strict=True,
    ):
        members.setdefault((model, bucket), {})[name] = None
        ready[model, bucket] = place
    return tuple(tuple(members[key]) for key in sorted(members, key=lambda key: ready[key]))


def _names(rule: DDP, gradients: Sequence[Gradient]) -> tuple[tuple[str, ...], ...]:
    """The buckets that a rule makes, by name; none where it lacks a name."""
    if not rule.rebuilt and not {gradient.name for gradient in gradients} <= set(rule.registration):
        return ()
    return tuple(
        tuple(gradients[index].name for index in bucket.members)
        for bucket in rule.buckets(gradients)
    )


def _sets(groups: tuple[tuple[str, ...], ...]) -> set[frozenset[str]]:
    return {frozenset(group) for group in groups}


def _is_partition(groups: tuple[tuple[str, ...], ...], gradients: Sequence[Gradient]) -> bool:
    listed = [name for group in groups for name in group]
    return sorted(listed) == sorted(gradient.name for gradient in gradients)

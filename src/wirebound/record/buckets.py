"""Which bucket a collective carried, and which bucket a gradient lay in.

DDP says neither while it runs. But it launches the buckets of a model in their order,
inside the backward pass and right behind the gradient that filled them, and each has as
many elements as its parameters; so the collectives of a pass are matched with the
buckets afterwards. What does not match whole gets no bucket.
"""

from collections.abc import Sequence

from wirebound.record.models import Buckets, Model
from wirebound.record.steps import Collective, Step

BucketOf = dict[tuple[int, int, int], int]
"""Bucket by micro-step, model and position of the parameter."""


def assign(step: Step, models: Sequence[Model]) -> BucketOf:
    """Give the collectives of a step their buckets.

    Args:
        step: Complete; its collectives are changed.
        models: All there are, by number.

    Returns:
        The bucket of each gradient that was synchronised.
    """
    bucket_of: BucketOf = {}
    for micro in range(len(step.backwards)):
        for model in models:
            if not model.candidates():
                continue
            buckets = _hooked(step, model, micro)
            if buckets is None:
                buckets = _matched(step, model, micro)
            for bucket, positions in enumerate(buckets or ()):
                for position in positions:
                    bucket_of[micro, model.index, position] = bucket
    return bucket_of


def _hooked(step: Step, model: Model, micro: int) -> Buckets | None:
    """What a user's communication hook was given."""
    launched = [
        launch.numel
        for launch in step.launches
        if launch.model == model.index and launch.micro == micro
    ]
    if not launched:
        return None
    for buckets in model.candidates():
        if model.numels(buckets) == launched:
            return buckets
    return None


def _matched(step: Step, model: Model, micro: int) -> Buckets | None:
    """What DDP's own all-reduces carried."""
    launched = [
        collective
        for collective in step.collectives
        if collective.micro == micro
        and collective.hint == model.index
        and collective.bucket is None
        and collective.kind == "all_reduce"
    ]
    for buckets in model.candidates():
        found = _in_order(launched, model.numels(buckets))
        if found:
            for bucket, collective in enumerate(found):
                collective.model, collective.bucket = model.index, bucket
            return buckets
    return None


def _in_order(launched: Sequence[Collective], numels: Sequence[int]) -> list[Collective]:
    """Collectives with these numbers of elements in this order; empty if one is missing."""
    rest = iter(launched)
    found = [
        collective
        for numel in numels
        if (collective := next((one for one in rest if one.numel == numel), None)) is not None
    ]
    return found if len(found) == len(numels) else []

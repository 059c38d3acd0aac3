"""What a rank did while its computation stood still: wait, or copy to and from buckets.

DDP copies each gradient into its bucket, and when all buckets are reduced copies them back
before `backward` returns. Neither is the network's doing.
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.intervals import Points, both, difference, intersection, union
from wirebound.trace import EXPOSED_WAIT, GRADIENT, NONE, Trace

Seconds = NDArray[np.float64]

BROADCAST = "broadcast"
"""What DDP sends buffers with, such as running means, before a forward pass."""


class Exposed(msgspec.Struct, frozen=True, eq=False):
    """Sets of time of one rank.

    Attributes:
        waiting: A collective was under way and the computation stood still for it.
        packing: The last bucket was filled, at the end of a backward pass.
        unpacking: All were reduced and copied back.
    """

    waiting: Points
    packing: Points
    unpacking: Points


def exposed(own: Trace) -> Exposed:
    """Take apart what lies between the last gradient and the return of `backward`.

    Args:
        own: Trace of one rank.
    """
    is_wait, is_comm = own.is_kind(EXPOSED_WAIT), own.is_collective
    begun_s, done_s = own.start_s[is_wait], own.end_s[is_wait]
    stood_still = union(begun_s, done_s)
    under_way = union(own.start_s[is_comm], own.end_s[is_comm])
    copying = difference(stood_still, under_way)
    filling = union(begun_s, _last_start_s(own.start_s[is_comm], begun_s, done_s))
    is_buffers = own.is_kind(BROADCAST) & (own.operations.bucket == NONE)
    is_forward = own.is_kind("forward")
    for_buffers = intersection(
        union(own.start_s[is_buffers], own.end_s[is_buffers]),
        union(own.start_s[is_forward], own.end_s[is_forward]),
    )
    return Exposed(
        waiting=both(intersection(stood_still, under_way), for_buffers),
        packing=intersection(copying, filling),
        unpacking=difference(copying, filling),
    )


def handed_over_s(own: Trace) -> Seconds:
    """When each operation of one rank started; the last gradient of a bucket, its bucket's.

    The last gradient of a bucket counts as ready when DDP has copied it into the bucket and
    enqueued the collective.
    """
    ops = own.operations
    ready_s: Seconds = own.start_s.copy()
    known = np.flatnonzero((ops.bucket != NONE) & (own.is_kind(GRADIENT) | own.is_collective))
    if not np.any(own.is_kind(GRADIENT)[known]):
        return ready_s
    keys = np.stack([column[known] for column in (ops.step, ops.micro, ops.model, ops.bucket)])
    _, which = np.unique(keys, axis=1, return_inverse=True)
    which = which.ravel()
    is_gradient = own.is_kind(GRADIENT)[known]
    enqueued_s = np.full(which.max() + 1, -np.inf)
    np.maximum.at(enqueued_s, which[~is_gradient], own.start_s[known[~is_gradient]])
    gradients, bucket = known[is_gradient], which[is_gradient]
    order = np.lexsort((own.start_s[gradients], bucket))
    is_last = np.append(np.diff(bucket[order]) > 0, values=True)
    last = gradients[order[is_last]]
    ready_s[last] = np.maximum(ready_s[last], enqueued_s[bucket[order[is_last]]])
    return ready_s


def _last_start_s(starts_s: Seconds, begun_s: Seconds, done_s: Seconds) -> Seconds:
    """The last of some instants in each of some intervals; the interval's begin without any."""
    ordered = np.concatenate(([-np.inf], np.sort(starts_s)))
    last: Seconds = ordered[np.searchsorted(ordered, done_s, side="left") - 1]
    return np.maximum(last, begun_s)

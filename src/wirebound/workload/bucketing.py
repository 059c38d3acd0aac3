"""Which gradients travel together: bucketing policies, one record each.

A policy is a pure function of the gradients in ready order. `is_timed` marks the
policies whose buckets depend on when gradients are ready, and so on compute speed.
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec

from wirebound.errors import ScenarioError, WorkloadError
from wirebound.units import MIB
from wirebound.workload.record import Gradient

DEFAULT_CAP_BYTES = 25.0 * MIB
DEFAULT_FIRST_BYTES = 1.0 * MIB


class Bucket(msgspec.Struct, frozen=True):
    """Gradients that are reduced as one message.

    Attributes:
        nbytes: Payload [bytes].
        ready_s: When the last of its gradients is ready [s after backward began].
        members: Positions of its gradients in ready order.
    """

    nbytes: float
    ready_s: float
    members: tuple[int, ...]


class DDP(msgspec.Struct, frozen=True, tag="ddp"):
    """PyTorch DistributedDataParallel: close a bucket once it has reached its cap.

    A bucket is closed *after* the gradient that reaches the cap, so it may exceed it.
    The first bucket has its own, smaller cap as long as nobody sets another. Step 0 fills
    buckets in order of registration, the small one first, and launches them in reverse;
    afterwards DDP rebuilds them in the order the gradients arrived in.
    Source: `compute_bucket_assignment_by_size` and `rebuild_buckets` of PyTorch's reducer,
    and `_ddp_init_helper` of `DistributedDataParallel`.

    Attributes:
        cap_bytes: `bucket_cap_mb`, which counts MiB.
        first_bytes: Cap of the first bucket; None for DDP's own choice: 1 MiB beside the
            default cap, and the cap itself where `bucket_cap_mb` is set.
        rebuilt: False for the layout before the rebuild, which models with
            `find_unused_parameters` keep.
        registration: Parameter names in order of registration; the reverse of the ready
            order if not given.
    """

    is_timed: ClassVar[bool] = False
    cap_bytes: float = DEFAULT_CAP_BYTES
    first_bytes: float | None = None
    rebuilt: bool = True
    registration: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse caps that no bucket can have."""
        _check_positive("bucket cap", self.cap_bytes)
        if self.first_bytes is not None:
            _check_positive("first bucket cap", self.first_bytes)

    def buckets(self, gradients: Sequence[Gradient]) -> tuple[Bucket, ...]:
        """Fill buckets in ready order, or in registration order before the rebuild."""
        first_bytes = self.first_bytes
        if first_bytes is None:
            is_default = self.cap_bytes == DEFAULT_CAP_BYTES
            first_bytes = DEFAULT_FIRST_BYTES if is_default else self.cap_bytes
        groups: list[list[int]] = [[]]
        filled = 0.0
        for index in self._order(gradients):
            groups[-1].append(index)
            filled += gradients[index].nbytes
            if filled >= (first_bytes if len(groups) == 1 else self.cap_bytes):
                groups.append([])
                filled = 0.0
        return _in_launch_order(gradients, groups if self.rebuilt else reversed(groups))

    def _order(self, gradients: Sequence[Gradient]) -> Iterable[int]:
        if self.rebuilt:
            return range(len(gradients))
        if not self.registration:
            return reversed(range(len(gradients)))
        position = {name: index for index, name in enumerate(self.registration)}
        missing = [gradient.name for gradient in gradients if gradient.name not in position]
        if missing:
            raise WorkloadError(f"registration order lacks gradient {missing[0]!r}")
        return sorted(range(len(gradients)), key=lambda i: position[gradients[i].name])


class PaperFusion(msgspec.Struct, frozen=True, tag="paper"):
    """The fusion rule of Zhang et al. (NetAI 2020), exactly as published.

    Backward time and bytes accumulate from the last hand-over; when a gradient arrives
    and either has reached its limit, everything accumulated is handed over.
    """

    is_timed: ClassVar[bool] = True
    interval_s: float = 0.005
    threshold_bytes: float = 64 * MIB

    def __post_init__(self) -> None:
        """Refuse limits that nothing can reach."""
        _check_positive("fusion interval", self.interval_s)
        _check_positive("fusion threshold", self.threshold_bytes)

    def buckets(self, gradients: Sequence[Gradient]) -> tuple[Bucket, ...]:
        """Hand over at the first gradient after 5 ms or 64 MiB; the rest at the end."""
        groups: list[list[int]] = [[]]
        elapsed = filled = previous = 0.0
        for index, gradient in enumerate(gradients):
            groups[-1].append(index)
            elapsed += gradient.ready_s - previous
            previous = gradient.ready_s
            filled += gradient.nbytes
            if elapsed >= self.interval_s or filled >= self.threshold_bytes:
                groups.append([])
                elapsed = filled = 0.0
        return _in_launch_order(gradients, groups)


class OneBucket(msgspec.Struct, frozen=True, tag="one"):
    """Everything in one message after the whole backward pass."""

    is_timed: ClassVar[bool] = False

    def buckets(self, gradients: Sequence[Gradient]) -> tuple[Bucket, ...]:
        """All gradients together."""
        return _in_launch_order(gradients, [list(range(len(gradients)))])


class PerTensor(msgspec.Struct, frozen=True, tag="none"):
    """No bucketing: each gradient travels alone."""

    is_timed: ClassVar[bool] = False

    def buckets(self, gradients: Sequence[Gradient]) -> tuple[Bucket, ...]:
        """One bucket a gradient."""
        return _in_launch_order(gradients, [[index] for index in range(len(gradients))])


class Explicit(msgspec.Struct, frozen=True, tag="explicit"):
    """The buckets somebody lists, as parameter names; each gradient in exactly one."""

    is_timed: ClassVar[bool] = False
    groups: tuple[tuple[str, ...], ...]

    def buckets(self, gradients: Sequence[Gradient]) -> tuple[Bucket, ...]:
        """The listed groups, launched in the listed order.

        Raises:
            WorkloadError: A name that is unknown, listed twice, or left out.
        """
        position = {gradient.name: index for index, gradient in enumerate(gradients)}
        listed = [name for group in self.groups for name in group]
        for name in listed:
            if name not in position:
                raise WorkloadError(f"bucket list names {name!r}, which is no gradient")
        if len(set(listed)) != len(listed) or len(listed) != len(gradients):
            left_out = sorted(set(position) - set(listed))
            what = f"leaves out {left_out[0]!r}" if left_out else "names a gradient twice"
            raise WorkloadError(f"bucket list {what}; each gradient belongs in exactly one bucket")
        return _in_launch_order(
            gradients, [[position[name] for name in group] for group in self.groups]
        )


def _in_launch_order(
    gradients: Sequence[Gradient], groups: Iterable[Sequence[int]]
) -> tuple[Bucket, ...]:
    """Buckets of the given groups; one is launched no earlier than the one before it."""
    buckets: list[Bucket] = []
    launched = 0.0
    for group in groups:
        if group:
            launched = max(launched, *(gradients[index].ready_s for index in group))
            nbytes = float(sum(gradients[index].nbytes for index in group))
            buckets.append(Bucket(nbytes, launched, tuple(group)))
    return tuple(buckets)


def _check_positive(what: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise ScenarioError(f"{what} is {value}, expected a positive size such as 25MiB")

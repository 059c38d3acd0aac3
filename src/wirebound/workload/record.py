"""What a training step needs: operations on lanes, and gradients to synchronise.

A `Workload` is a few kilobytes of JSON that carry the whole what-if. Nothing in
it depends on the network: collectives are sizes, not seconds.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Literal

import msgspec

from wirebound.errors import WorkloadError
from wirebound.resources import Resource

SCHEMA_VERSION = 1

LARGEST = 1e18
"""Seconds or bytes beyond any machine; below it no sum of a step overflows."""


class Kind(StrEnum):
    """What an operation does. The first group takes seconds, the rest moves bytes."""

    INPUT = "input"
    HOST = "host"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    COMPUTE = "compute"
    ENCODE = "encode"
    DECODE = "decode"
    NEGOTIATE = "negotiate"
    ALL_REDUCE = "all_reduce"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_GATHER = "all_gather"
    BROADCAST = "broadcast"
    ALL_TO_ALL = "all_to_all"
    SEND_RECV = "send_recv"


SPAN_RESOURCE = {
    Kind.INPUT: Resource.INPUT,
    Kind.HOST: Resource.HOST,
    Kind.FORWARD: Resource.COMPUTE,
    Kind.BACKWARD: Resource.COMPUTE,
    Kind.OPTIMIZER: Resource.COMPUTE,
    Kind.COMPUTE: Resource.COMPUTE,
}
"""The resource a timed operation is billed to."""

CODECS = frozenset({Kind.ENCODE, Kind.DECODE})
COLLECTIVES = frozenset(Kind) - frozenset(SPAN_RESOURCE) - CODECS
"""Kinds that use the network. `negotiate` is agreement on what comes next: messages, no bytes."""


def _check_amount(value: float, what: str) -> None:
    if not 0 <= value <= LARGEST:
        raise WorkloadError(f"{what} is {value}, expected a number from 0 to {LARGEST:g}")


class Operation(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One piece of work on one lane.

    Operations of a lane run one at a time in the order they are listed; an
    operation starts when the one before it on its lane and all of `after` are done.

    Attributes:
        name: Unique in its workload.
        kind: What it does.
        lane: Where it runs: `compute`, `comm`, or any other name.
        seconds: Duration on the measured device [s], for timed kinds.
        nbytes: Payload [bytes], uncompressed, as nccl-tests counts the size of
            that collective; for encode and decode the bytes they work on.
        after: Names of the operations it waits for, besides its lane.
        priority: Smaller goes first where the lane orders by priority.
        is_gradient: Whether a gradient compressor would apply to it.
    """

    name: str
    kind: Kind
    lane: str = "compute"
    seconds: float = 0.0
    nbytes: float = 0.0
    after: tuple[str, ...] = ()
    priority: int = 0
    is_gradient: bool = False

    def __post_init__(self) -> None:
        """Refuse what no step can contain."""
        _check_amount(self.seconds, f"operation {self.name!r}: seconds")
        _check_amount(self.nbytes, f"operation {self.name!r}: nbytes")


class Gradient(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One parameter's gradient.

    Attributes:
        name: The parameter's name.
        nbytes: Size as stored, before compression [bytes].
        ready_s: When it is ready, seconds after the backward pass began.
        needed_s: When the next forward pass needs the updated parameter, seconds
            after that forward began; None where nobody measured it.
    """

    name: str
    nbytes: int
    ready_s: float
    needed_s: float | None = None

    def __post_init__(self) -> None:
        """Refuse what no gradient can be."""
        if not 0 < self.nbytes <= LARGEST:
            raise WorkloadError(
                f"gradient {self.name!r}: nbytes is {self.nbytes}, expected a positive size"
            )
        _check_amount(self.ready_s, f"gradient {self.name!r}: ready_s")
        if self.needed_s is not None:
            _check_amount(self.needed_s, f"gradient {self.name!r}: needed_s")


class Source(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where a workload's seconds come from, and how far to trust them.

    Attributes:
        kind: `recorded` from a run; `log`, a published log; `scaled`, a model scaled
            to one measured step time; `modelled` from operation counts alone; `given`.
        detail: One sentence for people.
        uncertainty: Relative half-width of the step time, 0.1 for +-10 %.
    """

    kind: Literal["recorded", "log", "scaled", "modelled", "given"] = "given"
    detail: str = ""
    uncertainty: float = 0.0

    def __post_init__(self) -> None:
        """Refuse an uncertainty that is none."""
        _check_amount(self.uncertainty, "source: uncertainty")


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A training step: its operations, and the gradients its backward pass makes.

    Gradients are timed against the one operation of kind `backward`. A workload
    without gradients replays its operations as they are.

    Attributes:
        name: What people call it.
        operations: In issue order per lane.
        gradients: In the order they become ready.
        source: Where the seconds come from.
        batch: Samples a worker and step, where known.
        schema_version: Of the JSON form.
    """

    name: str
    operations: tuple[Operation, ...]
    gradients: tuple[Gradient, ...] = ()
    source: Source = Source()
    batch: int | None = None
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        """Check what types cannot say: names, references, one backward, ready times."""
        if self.schema_version != SCHEMA_VERSION:
            raise WorkloadError(
                f"workload {self.name!r}: schema_version {self.schema_version}, "
                f"this program reads {SCHEMA_VERSION}"
            )
        if self.batch is not None and self.batch < 1:
            raise WorkloadError(
                f"workload {self.name!r}: batch is {self.batch}, expected at least one sample"
            )
        if not self.operations:
            raise WorkloadError(f"workload {self.name!r} has no operations")
        _check_references(self.name, self.operations)
        if self.gradients:
            _check_gradients(self)

    @property
    def compute_s(self) -> float:
        """Step time of one worker alone when nothing overlaps [s]."""
        return sum(op.seconds for op in self.operations)

    @property
    def gradient_bytes(self) -> int:
        """All gradients together [bytes]."""
        return sum(gradient.nbytes for gradient in self.gradients)

    def span_s(self, kind: Kind) -> float:
        """Seconds of all operations of one kind [s]."""
        return sum(op.seconds for op in self.operations if op.kind is kind)


def data_parallel(  # noqa: PLR0913 - the spans of a step, each by its name
    name: str,
    gradients: Iterable[Gradient],
    *,
    backward_s: float,
    forward_s: float = 0.0,
    optimizer_s: float = 0.0,
    unpack_s: float = 0.0,
    input_s: float = 0.0,
    host_s: float = 0.0,
    buffers: Sequence[int] = (),
    source: Source = Source(),
    batch: int | None = None,
) -> Workload:
    """The usual step: input, host gap, forward, backward, optimizer; gradients in between.

    Args:
        name: What people call it.
        gradients: In any order; sorted by `ready_s`, equal times stay in order.
        backward_s: Backward pass [s].
        forward_s: Forward pass with loss [s].
        optimizer_s: Optimizer update [s].
        unpack_s: Copying reduced gradients out of their buckets, before the update [s].
        input_s: Waiting for data [s].
        host_s: Other gaps of the host [s].
        buffers: Broadcasts that the forward pass waits for, each by its size [bytes].
        source: Where the seconds come from.
        batch: Samples a worker and step.

    Raises:
        WorkloadError: A time or size that no step can have.
    """
    broadcasts = tuple(
        Operation(f"broadcast[{number}]", Kind.BROADCAST, lane="comm", nbytes=nbytes)
        for number, nbytes in enumerate(buffers)
    )
    sent = tuple(op.name for op in broadcasts)
    before: tuple[Operation, ...] = ()
    if input_s:
        before = (Operation("input", Kind.INPUT, seconds=input_s),)
    if host_s:
        before += (Operation("host", Kind.HOST, seconds=host_s),)
    if before:
        broadcasts = tuple(
            msgspec.structs.replace(op, after=(before[-1].name,)) for op in broadcasts
        )
    spans = (
        Operation("forward", Kind.FORWARD, seconds=forward_s, after=sent),
        Operation("backward", Kind.BACKWARD, seconds=backward_s),
        Operation("unpack", Kind.OPTIMIZER, seconds=unpack_s),
        Operation("optimizer", Kind.OPTIMIZER, seconds=optimizer_s),
    )
    return Workload(
        name=name,
        operations=before
        + broadcasts
        + tuple(op for op in spans if op.seconds or op.after or op.kind is Kind.BACKWARD),
        gradients=tuple(sorted(gradients, key=lambda gradient: gradient.ready_s)),
        source=source,
        batch=batch,
    )


def _check_references(workload: str, operations: tuple[Operation, ...]) -> None:
    names = _check_unique(f"workload {workload!r}: two operations", (op.name for op in operations))
    for op in operations:
        for name in op.after:
            if name not in names:
                raise WorkloadError(
                    f"workload {workload!r}: operation {op.name!r} comes after "
                    f"{name!r}, which does not exist"
                )


def _check_unique(what: str, names: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise WorkloadError(f"{what} are named {name!r}")
        seen.add(name)
    return seen


def _check_gradients(workload: Workload) -> None:
    _check_unique(
        f"workload {workload.name!r}: two gradients", (g.name for g in workload.gradients)
    )
    for earlier, later in pairwise(workload.gradients):
        if later.ready_s < earlier.ready_s:
            raise WorkloadError(
                f"workload {workload.name!r}: gradient {later.name!r} is listed after "
                f"{earlier.name!r} and ready before it, expected gradients in ready order"
            )
    backward = [op for op in workload.operations if op.kind is Kind.BACKWARD]
    if len(backward) != 1:
        raise WorkloadError(
            f"workload {workload.name!r} has gradients and {len(backward)} operations "
            "of kind 'backward', expected exactly one"
        )
    if backward[0].lane != "compute":
        raise WorkloadError(
            f"workload {workload.name!r}: operation {backward[0].name!r} is on lane "
            f"{backward[0].lane!r}, expected the backward pass on lane 'compute'"
        )
    latest = workload.gradients[-1]
    if latest.ready_s > backward[0].seconds * (1 + 1e-9):
        raise WorkloadError(
            f"workload {workload.name!r}: gradient {latest.name!r} is ready at "
            f"{latest.ready_s} s, after the backward pass of {backward[0].seconds} s"
        )

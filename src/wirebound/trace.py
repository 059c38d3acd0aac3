"""What happened: operations by rank, step and lane, in immutable columns.

Times are integer nanoseconds since 1970 on the clock of the rank that noted them. Reading
files is the business of `readers`; what a step needs is found by `workload.reduce`.
"""

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.align import estimate_offsets

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Seconds = NDArray[np.float64]

NONE = -1
"""What a column holds where nothing was recorded."""

GRADIENT, STEP, EXPOSED_WAIT = "gradient", "step", "exposed_wait"
SPANS = ("input", "forward", "backward", "optimizer", "host")
"""Kinds of time on the compute lane, besides waiting at its end."""

LEFT_TOGETHER = ("all_reduce", "barrier")
"""Collectives that no rank leaves before all have joined and the result is there."""

NANOSECOND_S = 1e-9
LATEST = np.iinfo(np.int64).max


class Operations(msgspec.Struct, frozen=True, eq=False):
    """Columns of one length: an operation is the same place in each.

    Attributes:
        rank: Who did it.
        step: In which step, `NONE` outside of steps.
        micro: In which micro-step of it, from 0.
        kind: What it was: a position in the trace's `texts`.
        lane: Where it ran, likewise.
        name: Its name, likewise.
        start_ns: When it started; of a collective, when it was enqueued [ns].
        duration_ns: Until it was done; 0 for an instant [ns].
        started_ns: When a collective left the queue, where known [ns].
        nbytes: Payload [bytes].
        bucket: Number of the bucket that it belongs to.
        group: Process group, a position in `texts`.
        dtype: Of the payload, likewise.
        model: Which of several models it belongs to, likewise.
    """

    rank: Integers
    step: Integers
    micro: Integers
    kind: Integers
    lane: Integers
    name: Integers
    start_ns: Integers
    duration_ns: Integers
    started_ns: Integers
    nbytes: Integers
    bucket: Integers
    group: Integers
    dtype: Integers
    model: Integers

    def __post_init__(self) -> None:
        """Make the columns immutable, and see that they have one length."""
        for name in self.__struct_fields__:
            column: Integers = getattr(self, name)
            column.flags.writeable = False
            assert column.shape == self.rank.shape, f"column {name} differs in length"  # noqa: S101 - invariant

    @classmethod
    def from_rows(cls, rows: Integers) -> "Operations":
        """Columns of rows.

        Args:
            rows: Shape [N, 14], the columns in the order of the attributes.
        """
        return cls(*(column.copy() for column in rows.T))

    def __len__(self) -> int:
        return self.rank.size

    def where(self, flags: Flags) -> "Operations":
        """The operations that a column of flags marks."""
        return Operations(*(getattr(self, name)[flags] for name in self.__struct_fields__))


class Clock(msgspec.Struct, frozen=True):
    """How a rank's clock was found to differ from that of the lowest rank.

    Attributes:
        offset_s: How far it is ahead [s]; subtracted from the times of the trace.
        error_s: How far the offset may be wrong [s].
    """

    offset_s: float
    error_s: float


class Interface(msgspec.Struct, frozen=True):
    """A network interface of a host.

    Attributes:
        name: As the host has it.
        speed_bps: Line rate [bit/s], where the host knows it.
    """

    name: str
    speed_bps: float | None = None


class Parameter(msgspec.Struct, frozen=True, array_like=True):
    """A parameter that needs a gradient.

    Attributes:
        name: In its model.
        nbytes: Size of its gradient [bytes].
        dtype: Of its elements.
    """

    name: str
    nbytes: int
    dtype: str | None = None


class Model(msgspec.Struct, frozen=True):
    """A model as it was wrapped for data-parallel training.

    Attributes:
        model: Which of several it is; None where there is one.
        parameters: In order of registration.
        bucket_cap_bytes: Cap of its buckets [bytes]; None without DDP.
        first_bucket_bytes: Cap of the first bucket [bytes].
        find_unused_parameters: Whether DDP looks for parameters without a gradient.
        static_graph: Whether DDP was told that no step differs from the first.
    """

    parameters: tuple[Parameter, ...]
    model: str | None = None
    bucket_cap_bytes: float | None = None
    first_bucket_bytes: float | None = None
    find_unused_parameters: bool = False
    static_graph: bool = False


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """One process of the job, and where it ran.

    Attributes:
        rank: Its number.
        world_size: Processes of the whole job.
        local_rank: Its number on its node.
        local_world_size: Processes on its node.
        node: Number of its node.
        host: Name of its host.
        device: `cpu` or `cuda`.
        backend: What carried its collectives, None without any.
        versions: Of the software.
        environment: Variables that change how collectives run.
        interfaces: Of its host.
        script: What was recorded.
        models: That it trained.
        clock: How its clock differs from the lowest rank's, None where nobody looked.
        hook_us_per_gradient: What the recorder's hook on a gradient cost, where known [µs].
    """

    rank: int
    world_size: int
    local_rank: int | None = None
    local_world_size: int | None = None
    node: int | None = None
    host: str = ""
    device: str = "cpu"
    backend: str | None = None
    versions: Mapping[str, str | None] = {}
    environment: Mapping[str, str | None] = {}
    interfaces: tuple[Interface, ...] = ()
    script: str = ""
    models: tuple[Model, ...] = ()
    clock: Clock | None = None
    hook_us_per_gradient: float | None = None


class Trace(msgspec.Struct, frozen=True, eq=False):
    """What happened on the ranks that were seen.

    Attributes:
        operations: By rank, each rank's in the order it noted them.
        texts: Every name, kind, lane, group, dtype and model once.
        ranks: That were seen, ascending.
        warnings: What makes the trace less than it seems.
    """

    operations: Operations
    texts: tuple[str, ...]
    ranks: tuple[Rank, ...]
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"Trace({len(self.operations)} operations, {len(self.complete_steps)} complete steps, "
            f"ranks {len(self.ranks)} of {self.world_size}, {len(self.warnings)} warnings)"
        )

    @property
    def world_size(self) -> int:
        """Processes of the job, seen or not."""
        return self.ranks[0].world_size

    @property
    def missing_ranks(self) -> tuple[int, ...]:
        """Ranks of the job that were not seen."""
        seen = {rank.rank for rank in self.ranks}
        return tuple(number for number in range(self.world_size) if number not in seen)

    @property
    def complete_steps(self) -> tuple[int, ...]:
        """Steps that every rank seen has finished, ascending."""
        finished = self.operations.where(self.is_kind(STEP))
        pairs = np.unique(np.stack((finished.step, finished.rank)), axis=1)
        steps, seen = np.unique(pairs[0], return_counts=True)
        return tuple(int(step) for step in steps[seen == len(self.ranks)])

    @property
    def began_s(self) -> float:
        """When the first operation started, since 1970 [s]; 0 without any."""
        starts = self.operations.start_ns
        return float(starts.min()) * NANOSECOND_S if starts.size else 0.0

    @property
    def start_s(self) -> Seconds:
        """When each operation started, since the first of them [s]."""
        starts = self.operations.start_ns
        since_s: Seconds = (starts - starts.min(initial=LATEST)) * NANOSECOND_S
        return since_s

    @property
    def duration_s(self) -> Seconds:
        """How long each operation took [s]."""
        duration_s: Seconds = self.operations.duration_ns * np.float64(NANOSECOND_S)
        return duration_s

    @property
    def end_s(self) -> Seconds:
        """When each operation was done, since the first of them started [s]."""
        return self.start_s + self.duration_s

    def text(self, position: int) -> str | None:
        """What a column that holds positions in `texts` means at one place."""
        return None if position == NONE else self.texts[position]

    def is_kind(self, *kinds: str) -> Flags:
        """Which operations are of one of these kinds."""
        wanted = [position for position, text in enumerate(self.texts) if text in kinds]
        return np.isin(self.operations.kind, wanted)

    @property
    def is_collective(self) -> Flags:
        """Which operations are collectives: all that are nothing else."""
        return ~self.is_kind(*SPANS, EXPOSED_WAIT, STEP, GRADIENT)

    def select(
        self,
        *,
        rank: int | None = None,
        steps: Iterable[int] | None = None,
        kinds: Iterable[str] | None = None,
    ) -> "Trace":
        """A part of the trace.

        Args:
            rank: The only rank wanted.
            steps: The only steps wanted.
            kinds: The only kinds wanted.
        """
        flags = np.ones(len(self.operations), dtype=np.bool_)
        ranks = self.ranks
        if rank is not None:
            flags &= self.operations.rank == rank
            ranks = tuple(one for one in ranks if one.rank == rank)
        if steps is not None:
            flags &= np.isin(self.operations.step, list(steps))
        if kinds is not None:
            flags &= self.is_kind(*kinds)
        return Trace(self.operations.where(flags), self.texts, ranks, self.warnings)

    def aligned(self) -> "Trace":
        """The same trace on the clock of the lowest rank.

        The clocks of ranks that share no collective with the others stay as they are, with
        a warning.
        """
        if len(self.ranks) == 1:
            return self
        done_KR = _completions(self)
        if not len(done_KR):
            warning = "no collective was seen on all ranks: their clocks could not be aligned"
            return msgspec.structs.replace(self, warnings=(*self.warnings, warning))
        base = done_KR.min()
        offsets = estimate_offsets((done_KR - base) * NANOSECOND_S)
        ops = self.operations
        place = np.searchsorted([rank.rank for rank in self.ranks], ops.rank)
        ahead = np.rint(offsets.offset_s / NANOSECOND_S).astype(np.int64)[place]
        started = np.where(ops.started_ns == NONE, NONE, ops.started_ns - ahead)
        moved = msgspec.structs.replace(ops, start_ns=ops.start_ns - ahead, started_ns=started)
        ranks = tuple(
            msgspec.structs.replace(rank, clock=_clock(rank, offset_s, error_s))
            for rank, offset_s, error_s in zip(
                self.ranks, offsets.offset_s.tolist(), offsets.error_s.tolist(), strict=True
            )
        )
        return Trace(moved, self.texts, ranks, self.warnings)


def _clock(rank: Rank, offset_s: float, error_s: float) -> Clock:
    """What was subtracted altogether."""
    before_s = 0.0 if rank.clock is None else rank.clock.offset_s
    return Clock(before_s + offset_s, error_s)


def instances(operations: Operations) -> Integers:
    """Numbers that are equal for one collective on several ranks.

    Collectives of one kind, name, group and size are told apart by their order within a
    micro-step.

    Returns:
        From 0 without gaps, shape [N].
    """
    ops = operations
    what = np.stack((ops.kind, ops.name, ops.group, ops.nbytes, ops.step, ops.micro))
    _, same = np.unique(what, axis=1, return_inverse=True)
    same = same.ravel()
    order = np.lexsort((ops.start_ns, ops.rank, same))
    before = np.stack((same[order], ops.rank[order]))
    begins = np.ones(order.size, dtype=np.bool_)
    begins[1:] = np.any(before[:, 1:] != before[:, :-1], axis=0)
    firsts = np.maximum.accumulate(np.where(begins, np.arange(order.size), 0))
    occurrence = np.empty(order.size, dtype=np.int64)
    occurrence[order] = np.arange(order.size) - firsts
    _, number = np.unique(np.stack((same, occurrence)), axis=1, return_inverse=True)
    return number.ravel().astype(np.int64)


def _completions(trace: Trace) -> Integers:
    """When each collective that all ranks took part in was done [ns], shape [K, R]."""
    ops = trace.operations.where(trace.is_kind(*LEFT_TOGETHER) & (trace.operations.step != NONE))
    number = instances(ops)
    ranks = np.array([rank.rank for rank in trace.ranks])
    done = np.full((number.max(initial=-1) + 1, ranks.size), NONE)
    done[number, np.searchsorted(ranks, ops.rank)] = ops.start_ns + ops.duration_ns
    return done[np.all(done != NONE, axis=1)]

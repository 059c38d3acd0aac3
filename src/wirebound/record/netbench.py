"""What the network and the memory of a job's hosts really do: a bench on torch.distributed.

Runs in every rank of a torchrun job. torch is imported when it starts, and GPU events are
the only thing that needs a GPU.
"""

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from statistics import median, quantiles
from typing import Any, Literal

import msgspec

from wirebound.errors import MeasureError
from wirebound.record.beside import after_and_beside
from wirebound.record.stopwatch import CpuClock, CudaClock
from wirebound.samples import Measured, Sample, Samples

Backend = Literal["gloo", "nccl"]
Operation = Callable[[], object]

ELEMENT_BYTES = 4
"""Of float32, in which gradients are reduced unless told otherwise."""

HOST_BYTES = 256
"""Room for a host name when ranks tell each other theirs."""

FEWEST, MOST = 3, 100
"""Repeats of one size."""

LOCAL = ("reduction", "copy")
"""What a rank does alone."""

TORCHRUN = "torchrun --nnodes N --nproc-per-node GPUS … -m wirebound bench -o samples.json"


class Plan(msgspec.Struct, frozen=True):
    """What to measure.

    Attributes:
        smallest_bytes: First size [bytes].
        largest_bytes: Last size; those between are powers of two times the first [bytes].
        budget_s: Time for the repeats of one size; an operation whose next size would take
            longer for a single repeat ends before it [s].
        backend: `gloo` or `nccl`; None takes `nccl` where there is a GPU.
        kinds: Operations to measure; all where none is named.
    """

    smallest_bytes: int
    largest_bytes: int
    budget_s: float = 1.0
    backend: Backend | None = None
    kinds: tuple[str, ...] = ()

    def sizes(self) -> Iterator[int]:
        """Sizes in ascending order [bytes]."""
        size = self.smallest_bytes
        while size <= self.largest_bytes:
            yield size
            size *= 2


def bench(plan: Plan, environment: Mapping[str, str] = os.environ) -> Samples | None:
    """Measure collectives between all ranks, and additions and copies in each.

    Args:
        plan: What to measure.
        environment: With the variables that torchrun sets.

    Returns:
        The samples in rank 0, None in the others.

    Raises:
        MeasureError: No torchrun, no torch, or ranks that cannot reach each other.
    """
    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= environment.keys():
        raise MeasureError("the bench needs all ranks of a job", f"start it as `{TORCHRUN}`")
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        raise MeasureError(
            "the bench needs torch, which is not installed", "install 'wirebound[record]'"
        ) from None
    has_gpu = torch.cuda.is_available()
    backend = plan.backend or ("nccl" if has_gpu else "gloo")
    if backend == "nccl" and not has_gpu:
        raise MeasureError("backend nccl needs a GPU in each rank and there is none", "use gloo")
    device = torch.device("cpu")
    if backend == "nccl":
        device = torch.device("cuda", int(environment.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    try:
        dist.init_process_group(backend)
        ranks = _Bench(torch, dist, device, plan, environment.get("GROUP_RANK", "0"))
        return ranks.run()
    except RuntimeError as error:
        raise MeasureError(f"the bench broke off: {_first_line(error)}") from None
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


class _Bench:
    """One run in one rank; every decision is taken by all ranks together."""

    def __init__(self, torch: Any, dist: Any, device: Any, plan: Plan, agent: str) -> None:  # noqa: ANN401 - torch is untyped here
        self.torch, self.dist, self.device = torch, dist, device
        self.backend, self.plan = str(dist.get_backend()), plan
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.clock = (
            CpuClock()
            if device.type == "cpu"
            else CudaClock(lambda: torch.cuda.Event(enable_timing=True), torch.cuda.synchronize)
        )
        # Two agents of one host, as in network namespaces, are two nodes.
        told = self._told(f"{agent} {socket.gethostname()}")
        self.hosts = [name.partition(" ")[2] for name in told]
        self.nodes = len(set(told))
        self.peer = next((r for r, name in enumerate(told) if name != told[0]), self.ranks - 1)
        self.pair_nodes = 2 if told[self.peer] != told[0] else 1
        self.samples: list[Sample] = []
        self.notes: list[str] = []

    def run(self) -> Samples | None:
        makers: dict[Measured, Callable[[int], tuple[int, Operation]]] = {
            "all_reduce": self._all_reduce,
            "reduce_scatter": self._reduce_scatter,
            "all_gather": self._all_gather,
            "all_to_all": self._all_to_all,
            "send_recv": self._ping_pong,
            "send_recv_both_ways": self._exchange,
            "reduction": self._reduction,
            "copy": self._copy,
        }
        if self.plan.kinds:
            makers = {kind: make for kind, make in makers.items() if kind in self.plan.kinds}
        if self.ranks == 1:
            makers = {kind: make for kind, make in makers.items() if kind in LOCAL}
            self.notes.append("collectives: one rank has nobody to talk to")
        for kind, make in makers.items():
            self._measure(kind, make)
        if self.rank:
            return None
        return Samples(
            samples=tuple(self.samples),
            source="wirebound bench",
            backend=self.backend,
            hosts=tuple(dict.fromkeys(self.hosts)),
            versions={"torch": str(self.torch.__version__)},
            notes=tuple(self.notes),
        )

    def _measure(self, kind: Measured, make: Callable[[int], tuple[int, Operation]]) -> None:
        """All sizes of one operation."""
        for number, size in enumerate(self.plan.sizes()):
            nbytes, operation = make(size)
            if number == 0 and (reason := self._refusal(operation)):
                self.notes.append(f"{kind}: {self.backend} cannot: {reason}")
                return
            sample = self._sample(kind, nbytes, operation)
            if kind == "all_reduce" and self.device.type == "cpu":
                buffer = self._zeros(self._whole(size))
                sample = after_and_beside(self.torch, self.dist, buffer, sample)
            self.samples.append(sample)
            if 2 * sample.seconds > self.plan.budget_s:
                if 2 * size <= self.plan.largest_bytes:
                    self.notes.append(
                        f"{kind}: ends at {nbytes} bytes, the next size would take more than "
                        f"{self.plan.budget_s:g} s"
                    )
                return

    def _refusal(self, operation: Operation) -> str | None:
        """Why the backend cannot do it, where it says so; in all ranks or in none."""
        reason = None
        try:
            operation()
        except (RuntimeError, NotImplementedError) as error:
            reason = _first_line(error)
        if self._agreed(0.0 if reason is None else 1.0, "MAX"):
            return reason or "another rank refused"
        return None

    def _sample(self, kind: Measured, nbytes: int, operation: Operation) -> Sample:
        """Warm up once, then as many repeats as the budget allows."""
        self.dist.barrier()
        [once_s] = self._repeat(operation, 1)
        once_s = self._agreed(once_s, "MAX")
        repeats = int(min(MOST, max(FEWEST, self.plan.budget_s / max(once_s, 1e-9))))
        self.dist.barrier()
        taken_s = self._repeat(operation, repeats)
        lower, middle, upper = quantiles(taken_s, n=4)
        ranks = 1 if kind in LOCAL else self.ranks
        nodes = 1 if ranks == 1 else self.nodes
        seconds = median(taken_s)
        if kind in ("send_recv", "send_recv_both_ways"):
            ranks, nodes = 2, self.pair_nodes
            seconds = self._agreed(seconds if self.rank == 0 else 0.0, "SUM")
            # A round trip of the payload; both ways at once is one already.
            seconds /= 2 if kind == "send_recv" else 1
        else:
            seconds = self._agreed(seconds, "SUM") / self.ranks
        return Sample(
            kind=kind,
            nbytes=nbytes,
            seconds=seconds,
            ranks=ranks,
            nodes=nodes,
            spread=(upper - lower) / middle if middle else None,
            repeats=repeats,
            count=nbytes // ELEMENT_BYTES,
        )

    def _repeat(self, operation: Operation, repeats: int) -> list[float]:
        marks = [self.clock.mark()]
        for _ in range(repeats):
            operation()
            marks.append(self.clock.mark())
        return self.clock.intervals_s(marks)

    def _agreed(self, value: float, how: str) -> float:
        """The same number in all ranks: `MAX` or `SUM` of theirs."""
        number = self.torch.tensor([value], dtype=self.torch.float64, device=self.device)
        self.dist.all_reduce(number, op=getattr(self.dist.ReduceOp, how))
        return float(number.item())

    def _told(self, name: str) -> list[str]:
        """What each rank says its name is; as plain bytes, since nothing is unpickled."""
        own = name.encode()[:HOST_BYTES].ljust(HOST_BYTES, b"\0")
        mine = self.torch.tensor(list(own), dtype=self.torch.uint8, device=self.device)
        theirs = [self.torch.empty_like(mine) for _ in range(self.ranks)]
        self.dist.all_gather(theirs, mine)
        return [bytes(one.tolist()).rstrip(b"\0").decode(errors="replace") for one in theirs]

    def _zeros(self, elements: int) -> Any:  # noqa: ANN401
        return self.torch.zeros(elements, dtype=self.torch.float32, device=self.device)

    def _split(self, size: int) -> tuple[int, int]:
        """Elements of one rank, and bytes of all, of a size that all ranks share evenly."""
        elements = max(1, size // ELEMENT_BYTES // self.ranks)
        return elements, elements * self.ranks * ELEMENT_BYTES

    def _whole(self, size: int) -> int:
        return max(1, size // ELEMENT_BYTES)

    def _single(self, name: str, before: str) -> Callable[..., object]:
        """A collective of one buffer, by its name in this torch or in older ones."""
        found: Callable[..., object] = getattr(self.dist, name, None) or getattr(self.dist, before)
        return found

    def _all_reduce(self, size: int) -> tuple[int, Operation]:
        buffer = self._zeros(self._whole(size))
        return buffer.nbytes, lambda: self.dist.all_reduce(buffer)

    def _reduce_scatter(self, size: int) -> tuple[int, Operation]:
        elements, nbytes = self._split(size)
        output, given = self._zeros(elements), self._zeros(elements * self.ranks)
        reduce_scatter = self._single("reduce_scatter_single", "reduce_scatter_tensor")
        return nbytes, lambda: reduce_scatter(output, given)

    def _all_gather(self, size: int) -> tuple[int, Operation]:
        elements, nbytes = self._split(size)
        output, given = self._zeros(elements * self.ranks), self._zeros(elements)
        all_gather = self._single("all_gather_single", "all_gather_into_tensor")
        return nbytes, lambda: all_gather(output, given)

    def _all_to_all(self, size: int) -> tuple[int, Operation]:
        elements, nbytes = self._split(size)
        output, given = (self._zeros(elements * self.ranks) for _ in range(2))
        return nbytes, lambda: self.dist.all_to_all_single(output, given)

    def _ping_pong(self, size: int) -> tuple[int, Operation]:
        """There and back, so that the clock of one rank sees both."""
        buffer = self._zeros(self._whole(size))

        def first() -> None:
            self.dist.send(buffer, self.peer)
            self.dist.recv(buffer, self.peer)

        def second() -> None:
            self.dist.recv(buffer, 0)
            self.dist.send(buffer, 0)

        return buffer.nbytes, self._of_the_pair(first, second)

    def _exchange(self, size: int) -> tuple[int, Operation]:
        given, taken = self._zeros(self._whole(size)), self._zeros(self._whole(size))

        def exchange(peer: int) -> None:
            moves = [
                self.dist.P2POp(self.dist.isend, given, peer),
                self.dist.P2POp(self.dist.irecv, taken, peer),
            ]
            for work in self.dist.batch_isend_irecv(moves):
                work.wait()

        return given.nbytes, self._of_the_pair(lambda: exchange(self.peer), lambda: exchange(0))

    def _of_the_pair(self, first: Operation, second: Operation) -> Operation:
        """The part of this rank: rank 0, the nearest rank on another node, or a bystander."""
        if self.rank == 0:
            return first
        return second if self.rank == self.peer else lambda: None

    def _reduction(self, size: int) -> tuple[int, Operation]:
        total, addend = (self._zeros(self._whole(size)) for _ in range(2))
        return total.nbytes, lambda: total.add_(addend)

    def _copy(self, size: int) -> tuple[int, Operation]:
        target, source = (self._zeros(self._whole(size)) for _ in range(2))
        return target.nbytes, lambda: target.copy_(source)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]

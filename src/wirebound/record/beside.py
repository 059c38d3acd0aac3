"""An all-reduce as a training does it: after computation, and beside it on the same cores."""

import time
from itertools import cycle
from statistics import mean, median
from typing import Any

import msgspec

from wirebound.samples import Sample

MOST = 25
"""Repeats of one size."""

LEAST_SHARE = 0.01
"""Of its pace that computation is taken to keep; none at all would stop it for good."""

SIDE, MATRICES = 128, 160
"""Matrices that a rank multiplies in turn: 10 MB together, so that they are no more at home in
the caches than those of a training."""

FEWEST = 3
PACE_S = 0.02
"""For finding the pace of these multiplications, each time [s]."""


class Computation:
    """Multiplications that can stop after each, in one rank.

    Args:
        torch: The module.
    """

    def __init__(self, torch: Any) -> None:  # noqa: ANN401 - torch is untyped here
        self._torch = torch
        self._matrices = cycle(torch.ones(MATRICES, SIDE, SIDE))
        self._product = torch.empty(SIDE, SIDE)

    def run(self, times: int = 1) -> None:
        """Multiply so many times."""
        for _ in range(times):
            self._torch.mm(next(self._matrices), next(self._matrices), out=self._product)

    def pace_s(self) -> float:
        """What one multiplication takes with nothing beside it [s]."""
        paces = []
        for _ in range(FEWEST):
            start, computed = time.perf_counter(), 0
            while time.perf_counter() - start < PACE_S:
                self.run()
                computed += 1
            paces.append((time.perf_counter() - start) / computed)
        return min(paces)


def after_and_beside(torch: Any, dist: Any, buffer: Any, sample: Sample) -> Sample:  # noqa: ANN401
    """A sample of an all-reduce with its times after and beside computation, in all ranks.

    Ranks arrive when they are done computing. The shortest time of all ranks is that of the
    last one to join, which waits for nobody.

    Args:
        torch: The module.
        dist: Its `distributed`, with a process group of CPUs.
        buffer: To reduce, of the sample's size.
        sample: With its repeats.
    """
    computation = Computation(torch)
    dist.barrier()
    alone_s = computation.pace_s()
    rows = [
        (_after_s(dist, buffer, computation), *_beside(dist, buffer, computation, alone_s))
        for _ in range(min(sample.repeats, MOST))
    ]
    shortest = torch.tensor([row[:2] for row in rows], dtype=torch.float64)
    dist.all_reduce(shortest, op=dist.ReduceOp.MIN)
    after_s, beside_s = shortest.median(dim=0).values.tolist()
    kept = torch.tensor([median(share for *_, share in rows)], dtype=torch.float64)
    shares = [torch.empty_like(kept) for _ in range(sample.ranks)]
    dist.all_gather(shares, kept)
    share = mean(one.item() for one in shares)
    return msgspec.structs.replace(
        sample,
        after_s=after_s,
        beside_s=beside_s,
        compute_share=min(1.0, max(LEAST_SHARE, share)),
    )


def _after_s(dist: Any, buffer: Any, computation: Computation) -> float:  # noqa: ANN401
    """An all-reduce that this rank waits for, after it has computed [s]."""
    computation.run(MATRICES)
    start = time.perf_counter()
    dist.all_reduce(buffer)
    return time.perf_counter() - start


def _beside(
    dist: Any,  # noqa: ANN401
    buffer: Any,  # noqa: ANN401
    computation: Computation,
    alone_s: float,
) -> tuple[float, float]:
    """An all-reduce while this rank goes on computing [s], and the share of its pace it keeps."""
    computation.run(MATRICES)
    start, computed = time.perf_counter(), 0
    work = dist.all_reduce(buffer, async_op=True)
    while not work.is_completed():
        computation.run()
        computed += 1
    beside_s = time.perf_counter() - start
    work.wait()
    return beside_s, computed * alone_s / beside_s

"""How far the clocks of ranks lie apart: timestamps over the store that ranks met at.

The store is there with every backend, never runs a collective, and has a timeout of its
own for each wait: a rank that is gone, or that does not record, delays the others a few
seconds at most and never changes what they train. A rank asks, rank 0 answers with its
time; of several rounds the one with the shortest way there and back counts, and half of
that way bounds the error. Ranks of one boot of one machine share a clock and need no
rounds.
"""

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

ROUNDS = 8

PATIENCE = timedelta(seconds=5)

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Offset(msgspec.Struct, frozen=True):
    """Where a rank's times lie.

    Attributes:
        ahead_ns: How far they are ahead of rank 0's [ns].
        error_ns: How far off that can be [ns].
    """

    ahead_ns: int
    error_ns: int

    def with_later(self, later: "Offset") -> "Offset":
        """One offset for a whole run, from its two ends; drift between them is error."""
        return Offset(
            (self.ahead_ns + later.ahead_ns) // 2,
            max(self.error_ns, later.error_ns) + abs(self.ahead_ns - later.ahead_ns) // 2,
        )


class Clockwork:
    """Exchanges timestamps with the other ranks.

    Args:
        base_ns: Where the times of this rank begin, on its monotonic clock [ns].
    """

    def __init__(self, base_ns: int) -> None:
        self._base_ns = base_ns
        self._exchanges = 0

    def exchange(self) -> Offset | None:
        """Compare with rank 0; every rank of the default group calls it equally often.

        Returns:
            The offset, or None where there is no group or another rank did not answer.
        """
        import torch.distributed as dist

        if not (dist.is_available() and dist.is_initialized()):
            return None
        rank, size = dist.get_rank(), dist.get_world_size()
        self._exchanges += 1
        prefix = f"wirebound/clock/{self._exchanges}"
        try:
            store = dist.distributed_c10d._get_default_store()  # noqa: SLF001 - no public way
            if rank == 0:
                self._serve(store, prefix, size)
                return Offset(0, 0)
            return self._ask(store, f"{prefix}/{rank}")
        except (RuntimeError, ValueError, OSError):
            return None  # a timeout or a store that is gone: no offset, and no harm

    def _serve(self, store: Any, prefix: str, size: int) -> None:  # noqa: ANN401 - a c10d store
        store.set(f"{prefix}/boot", f"{_boot()} {self._base_ns}")
        for rank in range(1, size):
            store.wait([f"{prefix}/{rank}/rounds"], PATIENCE)
            for number in range(int(store.get(f"{prefix}/{rank}/rounds"))):
                store.wait([f"{prefix}/{rank}/ask{number}"], PATIENCE)
                store.set(f"{prefix}/{rank}/answer{number}", str(self._now_ns()))

    def _ask(self, store: Any, prefix: str) -> Offset:  # noqa: ANN401
        boot_key = f"{prefix.rpartition('/')[0]}/boot"
        store.wait([boot_key], PATIENCE)
        boot, base = store.get(boot_key).decode().split()
        if boot == _boot():
            store.set(f"{prefix}/rounds", "0")
            return Offset(int(base) - self._base_ns, 0)
        # Rank 0 serves one rank after the other, so the first round can wait for long.
        store.set(f"{prefix}/rounds", str(ROUNDS))
        rounds = [self._round(store, prefix, number) for number in range(ROUNDS)]
        return min(rounds, key=lambda one: one.error_ns)

    def _round(self, store: Any, prefix: str, number: int) -> Offset:  # noqa: ANN401
        asked = self._now_ns()
        store.set(f"{prefix}/ask{number}", "")
        store.wait([f"{prefix}/answer{number}"], PATIENCE)
        answered = self._now_ns()
        theirs = int(store.get(f"{prefix}/answer{number}"))
        return Offset((asked + answered) // 2 - theirs, (answered - asked + 1) // 2)

    def _now_ns(self) -> int:
        return time.perf_counter_ns() - self._base_ns


def _boot() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return f"unknown-{time.time_ns()}"

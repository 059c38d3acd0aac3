"""Comparing clocks over a store, with ranks that are threads."""

import threading
import time
from datetime import timedelta

import pytest

from wirebound.record import exchange
from wirebound.record.exchange import Clockwork, Offset


class Store:
    """The part of torch's store that an exchange uses."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._changed = threading.Condition()

    def set(self, key: str, value: str) -> None:
        """As a store does it."""
        with self._changed:
            self._values[key] = value.encode()
            self._changed.notify_all()

    def get(self, key: str) -> bytes:
        """As a store does it, for a key that is there."""
        return self._values[key]

    def wait(self, keys: list[str], patience: timedelta) -> None:
        """Until a key is there, or an error as torch raises it."""
        with self._changed:
            found = self._changed.wait_for(
                lambda: all(key in self._values for key in keys), patience.total_seconds()
            )
        if not found:
            raise RuntimeError("timeout")


def offset(base_ns: int, other_base_ns: int, store: Store) -> Offset:
    """What the second of two ranks finds."""
    server = threading.Thread(
        target=Clockwork(base_ns)._serve,  # noqa: SLF001 - what torch's group would start
        args=(store, "clock", 2),
    )
    server.start()
    found = Clockwork(other_base_ns)._ask(store, "clock/1")  # noqa: SLF001
    server.join(timeout=10)
    return found


def test_one_machine_has_one_clock() -> None:
    """Only the bases differ, and that is exact."""
    now_ns = time.perf_counter_ns()
    assert offset(now_ns, now_ns + 5000, Store()) == Offset(-5000, 0)


def test_two_machines_exchange_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """The offset is right within the bound that comes with it."""
    boots = iter(range(100))
    monkeypatch.setattr(exchange, "_boot", lambda: f"boot-{next(boots)}")
    now_ns = time.perf_counter_ns()
    found = offset(now_ns, now_ns - 7_000_000, Store())
    assert abs(found.ahead_ns - 7_000_000) <= found.error_ns
    assert found.error_ns > 0


def test_drift_between_two_exchanges_is_error() -> None:
    """The middle, and as far off as either end."""
    assert Offset(100, 5).with_later(Offset(140, 8)) == Offset(120, 28)


def test_without_a_group_there_is_no_offset() -> None:
    """One process alone has nobody to compare with."""
    pytest.importorskip("torch", reason="needs torch")
    assert Clockwork(0).exchange() is None

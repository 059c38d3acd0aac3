"""Use of links and cores: sums over exactly the times that count."""

from pathlib import Path

import numpy as np
import pytest

from recordings import Run
from wirebound.readers import read_trace
from wirebound.readers.monitor import Monitor, Series
from wirebound.study.utilization import Windows, mean, processors, traffic, windows


def series(*points: tuple[float, float], end_s: float) -> Series:
    """A value from points (since, value)."""
    return Series(
        np.array([*(since for since, _ in points), end_s]),
        np.array([value for _, value in points]),
    )


def times(*pairs: tuple[float, float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """A set of time."""
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


DURING = Windows(
    steps=times((0.0, 1.0), (1.5, 2.5)),
    closed=times((0.0, 2.5)),
    busy=times((0.5, 1.0), (2.0, 2.5)),
    per_rank=2,
)


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (times((0.0, 2.0)), 15.0),
        (times((0.5, 1.5)), 15.0),
        (times((0.75, 1.0), (1.0, 1.25), (1.75, 2.0)), (10 * 0.25 + 20 * 0.5) / 0.75),
        (times((-5.0, 0.5)), 10.0),
        (times((1.5, 9.0)), 20.0),
        (times(), 0.0),
    ],
)
def test_mean_of_what_is_known(
    time: np.ndarray[tuple[int, ...], np.dtype[np.float64]], expected: float
) -> None:
    """10 for a second, then 20 for a second; before and after nobody knows."""
    assert mean(series((0, 10), (1, 20), end_s=2), time) == pytest.approx(expected)


def test_traffic_of_each_interface() -> None:
    """Whole steps have all bytes, a silent interface none, and the loopback is not the link."""
    monitor = Monitor(
        rank=0,
        host="alpha",
        interfaces=(),
        series={
            ("net lo", "tx_Bps"): series((0, 9000), end_s=2.5),
            ("net lo", "rx_Bps"): series((0, 9000), end_s=2.5),
            ("net eth0", "tx_Bps"): series((0, 0), (0.5, 100), (1, 0), (2, 300), end_s=2.5),
            ("net eth0", "rx_Bps"): series((0, 40), end_s=2.5),
            ("net eth1", "tx_Bps"): series((0, 0), end_s=2.5),
            ("net eth1", "rx_Bps"): series((0, 0), end_s=2.5),
            ("cpu 0", "busy"): series((0, 1), end_s=2.5),
        },
        marks_s={},
    )

    lo, eth0 = traffic("host0", monitor, DURING, {"eth0": 1e3})

    assert (lo.interface, lo.is_carrying, lo.rate_bps) == ("lo", False, None)
    assert (eth0.interface, eth0.is_carrying, eth0.rate_bps) == ("eth0", True, 1e3)
    assert eth0.sent_bytes == pytest.approx((50 + 150) / 2)
    assert eth0.mean_sent_bps == pytest.approx(8 * (50 + 150) / 2)
    assert eth0.busy_sent_bps == pytest.approx(8 * 200)
    assert eth0.received_bytes == pytest.approx(40 * 2.5 / 2)
    assert eth0.busy_received_bps == pytest.approx(8 * 40)


def test_cores_that_workers_may_use() -> None:
    """Others do not count, unless nobody knows which those are."""
    monitor = Monitor(
        rank=0,
        host="alpha",
        interfaces=(),
        series={
            ("cpu 0", "busy"): series((0, 1), (1, 0), (2, 0.5), end_s=2.5),
            ("cpu 1", "busy"): series((0, 0), end_s=2.5),
        },
        marks_s={},
    )

    own = processors("host0", monitor, DURING, (0,))
    every = processors("host0", monitor, DURING, None)

    assert own is not None
    assert own.cores == (0,)
    assert own.mean == pytest.approx(0.625)
    assert own.communicating == pytest.approx(0.75)
    assert every is not None
    assert every.cores == (0, 1)
    assert every.mean == pytest.approx(0.3125)
    assert processors("host0", monitor, DURING, (7,)) is None


def test_windows_are_on_the_clock_of_the_monitor(tmp_path: Path) -> None:
    """Its markers stand where the steps of its rank ended, whatever their zero is."""
    for rank in (0, 1):
        Run(rank, 2, steps=5).write(tmp_path)
    trace = read_trace(tmp_path)
    monitor = Monitor(0, "alpha", (), {}, {step: 7.1 + 0.1 * step for step in range(5)})

    during = windows(trace, (0, 1), (3, 4), monitor)

    assert during is not None
    assert during.steps.tolist() == [pytest.approx([7.3, 7.5])]
    assert during.closed.tolist() == [pytest.approx([7.3, 7.5])]
    assert during.busy.tolist() == [
        pytest.approx(one) for one in ([7.33, 7.35], [7.355, 7.375], [7.43, 7.45], [7.455, 7.475])
    ]
    assert windows(trace, (0, 1), (3, 4), Monitor(0, "alpha", (), {}, {})) is None

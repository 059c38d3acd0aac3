"""How busy the links and cores of one host were, over whole steps and while it communicated.

A monitor's value holds until the next one; what it amounts to inside a set of time is summed
exactly, so that no sample has to lie inside of a step.
"""

from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.intervals import coverage, length, union
from wirebound.readers.monitor import Monitor, Series
from wirebound.study.record import Processors, Traffic
from wirebound.trace import STEP, Trace
from wirebound.units import bits_per_second

LOOPBACK = "lo"
INTERFACES = "net ", "ib "
CORE = "cpu "

Seconds = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Windows(msgspec.Struct, frozen=True, eq=False):
    """Sets of time of one host, on the clock of its monitor.

    Attributes:
        steps: The measured steps.
        closed: The same, and what lies between two that follow each other.
        busy: When a collective was under way in a measured step.
        per_rank: Number of measured steps.
    """

    steps: Seconds
    closed: Seconds
    busy: Seconds
    per_rank: int


def windows(
    trace: Trace, ranks: tuple[int, ...], steps: tuple[int, ...], monitor: Monitor
) -> Windows | None:
    """The times that count for one host, or None where its monitor saw no step.

    Args:
        trace: Of the whole job.
        ranks: Of the host.
        steps: That are measured.
        monitor: Of the host.
    """
    ahead_s = _ahead_s(trace, monitor)
    if ahead_s is None:
        return None
    ops = trace.operations
    is_own = np.isin(ops.rank, ranks) & np.isin(ops.step, steps)
    is_step, is_busy = is_own & trace.is_kind(STEP), is_own & trace.is_collective
    start_s, end_s = trace.start_s + ahead_s, trace.end_s + ahead_s
    return Windows(
        steps=union(start_s[is_step], end_s[is_step]),
        closed=union(start_s[is_step], _closed_s(trace, is_step, start_s, end_s)),
        busy=union(start_s[is_busy], end_s[is_busy]),
        per_rank=len(steps),
    )


def _ahead_s(trace: Trace, monitor: Monitor) -> float | None:
    """How far the monitor's clock is ahead of the trace's: its markers are ends of steps."""
    is_step = trace.is_kind(STEP) & (trace.operations.rank == monitor.rank)
    numbers = trace.operations.step[is_step].tolist()
    ends_s = trace.end_s[is_step].tolist()
    ahead_s = [
        monitor.marks_s[number] - end_s
        for number, end_s in zip(numbers, ends_s, strict=True)
        if number in monitor.marks_s
    ]
    return float(np.median(ahead_s)) if ahead_s else None


def _closed_s(trace: Trace, is_step: Flags, start_s: Seconds, end_s: Seconds) -> Seconds:
    """Ends of steps, moved to the start of the step that follows on the same rank."""
    ops = trace.operations
    starts = {
        (rank, step): start
        for rank, step, start in zip(
            ops.rank[is_step].tolist(), ops.step[is_step].tolist(), start_s[is_step], strict=True
        )
    }
    own = zip(ops.rank[is_step].tolist(), ops.step[is_step].tolist(), end_s[is_step], strict=True)
    return np.array([starts.get((rank, step + 1), end) for rank, step, end in own])


def traffic(
    host: str, monitor: Monitor, during: Windows, rates_bps: Mapping[str, float | None]
) -> tuple[Traffic, ...]:
    """What each interface of a host carried; those that carried nothing are left out.

    Args:
        host: What it is called.
        monitor: Its counters.
        during: The times that count.
        rates_bps: Of its links, by interface, where known [bit/s].
    """
    found = []
    for track in dict.fromkeys(track for track, _ in monitor.series):
        kind = next((kind for kind in INTERFACES if track.startswith(kind)), None)
        if kind is None:
            continue
        sent = monitor.series.get((track, "tx_Bps"))
        received = monitor.series.get((track, "rx_Bps"))
        if sent is not None and received is not None:
            name = track.removeprefix(kind)
            found.append(_traffic(host, name, rates_bps.get(name), (sent, received), during))
    carried = [one for one in found if one.sent_bytes or one.received_bytes]
    chosen = max(
        carried,
        key=lambda one: (one.interface != LOOPBACK, one.sent_bytes + one.received_bytes),
        default=None,
    )
    return tuple(msgspec.structs.replace(one, is_carrying=one is chosen) for one in carried)


def _traffic(
    host: str,
    interface: str,
    rate_bps: float | None,
    both_ways: tuple[Series, Series],
    during: Windows,
) -> Traffic:
    sent, received = both_ways
    per_step = length(during.closed) / during.per_rank
    # Whole steps have the bytes that a sample smeared into the pauses between them.
    stretch = length(during.closed) / length(during.steps)
    return Traffic(
        host=host,
        interface=interface,
        is_carrying=False,
        rate_bps=rate_bps,
        sent_bytes=mean(sent, during.closed) * per_step,
        received_bytes=mean(received, during.closed) * per_step,
        mean_sent_bps=bits_per_second(mean(sent, during.closed) * stretch),
        mean_received_bps=bits_per_second(mean(received, during.closed) * stretch),
        busy_sent_bps=bits_per_second(mean(sent, during.busy)),
        busy_received_bps=bits_per_second(mean(received, during.busy)),
    )


def processors(
    host: str, monitor: Monitor, during: Windows, cores: tuple[int, ...] | None
) -> Processors | None:
    """How busy the cores of a host were, or None where nobody counted.

    Args:
        host: What it is called.
        monitor: Its counters.
        during: The times that count.
        cores: That its workers may use; None for all.
    """
    busy = {
        int(track.removeprefix(CORE)): series
        for (track, _), series in monitor.series.items()
        if track.startswith(CORE) and track.removeprefix(CORE).isdecimal()
    }
    counted = [core for core in sorted(busy) if cores is None or core in cores]
    if not counted:
        return None
    return Processors(
        host=host,
        cores=tuple(counted) if cores is None else cores,
        mean=_busy(busy, counted, during.steps),
        communicating=_busy(busy, counted, during.busy) if during.busy.size else None,
    )


def _busy(busy: Mapping[int, Series], cores: list[int], time: Seconds) -> float:
    share = sum(mean(busy[core], time) for core in cores) / len(cores)
    return min(1.0, share)


def mean(series: Series, time: Seconds) -> float:
    """The mean of a value over the part of a set of time in which it is known; 0 without any."""
    covered_s = np.diff(coverage(time, series.since_s))
    known_s = float(np.sum(covered_s))
    return float(np.sum(covered_s * series.value)) / known_s if known_s > 0 else 0.0

"""The monitor of a host: a process beside the training that samples counters.

It is a process of its own because a thread would take the interpreter from the training.
The rank that starts it sends a line for each step, and its end of the pipe closing, for
whatever reason, ends the monitor.
"""

import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from wirebound.record import counters
from wirebound.record.environment import interfaces
from wirebound.record.events import NS_PER_US, Event, metadata
from wirebound.record.writer import TraceFile

INTERVAL_MS = 10

NICENESS = 19
"""The training goes first, where both want the same core."""

SLOW_EVERY = 10
"""Samples for one of cores, retransmits and GPUs: the kernel counts a core in ticks of 10 ms."""

MS_PER_S, NS_PER_S = 1000, 10**9


class Monitor:
    """Starts the monitor of this host, tells it about steps, and ends it.

    Args:
        folder: Of the recording.
        rank: Who starts it; its times are used.
        base_ns: Where they begin on the monotonic clock [ns].
        interval_ms: Between two samples [ms].
    """

    def __init__(self, folder: Path, rank: int, base_ns: int, interval_ms: int) -> None:
        name = f"host-{socket.gethostname()}"
        path = folder / f"{name}.monitor.json"
        try:
            path.open("xb").close()
        except FileExistsError:
            path = folder / f"{name}-rank{rank}.monitor.json"
            path.open("wb").close()
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, this module
            [sys.executable, "-m", __name__, str(path), str(rank), str(base_ns), str(interval_ms)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if self._process.stdin is None:
            raise OSError("no pipe to the monitor")
        self._pipe = self._process.stdin.fileno()
        os.set_blocking(self._pipe, False)

    def step(self, index: int, end_us: float) -> None:
        """A step ended; nothing waits if the monitor does not listen."""
        try:
            os.write(self._pipe, b"%d %.3f\n" % (index, end_us))
        except OSError:
            return

    def leave(self) -> None:
        """In a forked process: the monitor is the parent's."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def stop(self) -> None:
        """End it and wait until its file is whole."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Sampler:
    """Turns readings into counter events; unchanged rates are not repeated.

    Args:
        rank: Whose times are used.
    """

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._before: dict[str, counters.Reading] = {}
        self._at_us: dict[str, float] = {}
        self._shown: dict[str, Mapping[str, float]] = {}

    def grow(self, source: str, reading: counters.Reading, now_us: float) -> list[Event]:
        """Events for the time since the last reading of a source.

        Args:
            source: Which one.
            reading: What it counts now.
            now_us: When it was read [µs].
        """
        events = []
        before, since_us = self._before.get(source), self._at_us.get(source, now_us)
        if before is not None and now_us > since_us:
            grown = counters.rates(before, reading, (now_us - since_us) / 1e6)
            gone = {
                track: dict.fromkeys(series, 0.0)
                for track, series in before.items()
                if track not in reading
            }
            events = self.show({**grown, **gone}, since_us)
        self._before[source], self._at_us[source] = reading, now_us
        return events

    def show(self, values: Mapping[str, Mapping[str, float]], at_us: float) -> list[Event]:
        """Events for values that hold from a time on."""
        changed = {
            track: series for track, series in values.items() if self._shown.get(track) != series
        }
        self._shown |= changed
        return [
            Event("C", track, self._rank, 0, dict(series), ts=at_us)
            for track, series in changed.items()
        ]

    def end(self, now_us: float) -> list[Event]:
        """Everything falls to zero, so that the last rates end somewhere."""
        zero = {track: dict.fromkeys(series, 0.0) for track, series in self._shown.items()}
        return self.show(zero, now_us)


def watch(path: Path, rank: int, base_ns: int, interval_ms: int) -> None:
    """Sample until the other end of standard input closes or the parent is gone."""
    file = TraceFile(path)
    facts = {
        "schema_version": 1,
        "rank": rank,
        "host": socket.gethostname(),
        "interval_ms": interval_ms,
        "interfaces": interfaces(),
    }
    file.write([metadata("wirebound_monitor", rank, facts)])
    sampler, gpus = Sampler(rank), counters.gpus()
    ticks_per_s, parent = float(os.sysconf("SC_CLK_TCK")), os.getppid()
    has_ports = bool(counters.ports())
    number, open_line, due_ns = 0, b"", time.perf_counter_ns()
    # Read often, understood seldom: on a core that trains, each line of Python costs caches.
    read: list[tuple[float, bytes]] = []
    while os.getppid() == parent:
        now_us = (time.perf_counter_ns() - base_ns) / NS_PER_US
        read.append((now_us, counters.content(counters.NET_DEV)))
        events: list[Event] = []
        if has_ports:
            events += sampler.grow("ib", counters.ports(), now_us)
        if number % SLOW_EVERY == 0:
            events += _parsed(sampler, read)
            events += sampler.grow("cpu", counters.cores(ticks_per_s), now_us)
            events += sampler.grow("tcp", counters.retransmits(), now_us)
            events += [] if gpus is None else sampler.show(gpus(), now_us)
        if events:
            file.write(events)
        number += 1
        # Whoever comes late samples late; the time that passed is measured, not assumed.
        due_ns = max(due_ns + interval_ms * NS_PER_S // MS_PER_S, time.perf_counter_ns())
        while (left_s := (due_ns - time.perf_counter_ns()) / NS_PER_S) > 0:
            if not select.select([0], [], [], left_s)[0]:
                break
            heard = os.read(0, 4096)
            if not heard:
                now_us = (time.perf_counter_ns() - base_ns) / NS_PER_US
                file.finish([*_parsed(sampler, read), *sampler.end(now_us)])
                return
            *complete, open_line = (open_line + heard).split(b"\n")
            file.write(_marker(rank, line) for line in complete)


def _parsed(sampler: Sampler, read: list[tuple[float, bytes]]) -> list[Event]:
    """Events of what was read of the interfaces, which is then forgotten."""
    events = [
        event
        for now_us, content in read
        for event in sampler.grow("net", counters.interfaces(content), now_us)
    ]
    read.clear()
    return events


def _marker(rank: int, line: bytes) -> Event:
    index, end_us = line.split()
    return Event("i", f"step {int(index)}", rank, 0, {}, ts=float(end_us), s="p")


def main(arguments: list[str]) -> int:
    """Run as a process: file, rank, base [ns], interval [ms]."""
    path, rank, base_ns, interval_ms = arguments
    os.nice(NICENESS)
    try:
        watch(Path(path), int(rank), int(base_ns), int(interval_ms))
    except OSError:
        return 2  # a full disk: what is written stays, the training does not notice
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Counters of a host that a monitor samples: bytes, busy cores, retransmits, GPUs.

A source is read into numbers that only grow; two readings and the time between them
make rates. A GPU's utilization is the exception: the driver averages it itself.
"""

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

NET_DEV = Path("/proc/self/net/dev")
SNMP = Path("/proc/self/net/snmp")
STAT = Path("/proc/stat")
INFINIBAND = Path("/sys/class/infiniband")

WORD_BYTES = 4
"""An InfiniBand port counts data in words of four bytes."""

IDLE_FIELDS = (3, 4)
"""Of a line in /proc/stat, behind its name: idle, and idle while waiting for a disk."""

MOST_BYTES = 2**16
"""Of a file of counters."""

Reading = Mapping[str, Mapping[str, float]]
"""Value by track and series."""


def interfaces(content: bytes) -> Reading:
    """Bytes of every interface of this network namespace.

    The file of the process is right in a namespace too, where /sys can be another's, and
    an interface that vanishes is simply not in it.

    Args:
        content: Of `NET_DEV`.
    """
    reading = {}
    for line in content.decode().splitlines()[2:]:
        name, _, fields = line.partition(":")
        values = fields.split()
        reading[f"net {name.strip()}"] = {
            "rx_Bps": float(values[0]),
            "tx_Bps": float(values[8]),
        }
    return reading


def ports(root: Path = INFINIBAND) -> Reading:
    """Bytes of every InfiniBand or RoCE port."""
    reading = {}
    for counters in sorted(root.glob("*/ports/*/counters")):
        device, port = counters.parts[-4], counters.parts[-2]
        received, sent = _text(counters / "port_rcv_data"), _text(counters / "port_xmit_data")
        if received and sent:
            reading[f"ib {device}/{port}"] = {
                "rx_Bps": float(received) * WORD_BYTES,
                "tx_Bps": float(sent) * WORD_BYTES,
            }
    return reading


def cores(ticks_per_s: float, path: Path = STAT) -> Reading:
    """Seconds that each core was busy.

    Args:
        ticks_per_s: In which the kernel counts.
        path: Of the kernel's file.
    """
    reading = {}
    for line in _text(path).splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            # The fields behind the eighth are parts of the first ones.
            ticks = [int(field) for field in fields[:8]]
            busy = sum(ticks) - sum(ticks[at] for at in IDLE_FIELDS)
            reading[f"cpu {name.removeprefix('cpu')}"] = {"busy": busy / ticks_per_s}
    return reading


def retransmits(path: Path = SNMP) -> Reading:
    """TCP segments that were sent again."""
    rows = [line.split() for line in _text(path).splitlines() if line.startswith("Tcp:")]
    if len(rows) != 2 or "RetransSegs" not in rows[0]:  # noqa: PLR2004 - names and values
        return {}
    return {"tcp": {"retransmits_per_s": float(rows[1][rows[0].index("RetransSegs")])}}


def gpus() -> Callable[[], Reading] | None:
    """A reader of the share of time that each GPU was busy, or None without NVML."""
    try:
        import pynvml  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return None
    nvml: Any = pynvml
    try:
        nvml.nvmlInit()
        handles = [
            nvml.nvmlDeviceGetHandleByIndex(number) for number in range(nvml.nvmlDeviceGetCount())
        ]
    except nvml.NVMLError:
        return None

    def read() -> Reading:
        try:
            return {
                f"gpu {number}": {"busy": nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100}
                for number, handle in enumerate(handles)
            }
        except nvml.NVMLError:
            return {}

    return read


def rates(before: Reading, after: Reading, elapsed_s: float) -> dict[str, dict[str, float]]:
    """What grew between two readings, per second; a counter that went back has no rate."""
    found = {}
    for track, series in after.items():
        grown = {
            name: (value - before[track][name]) / elapsed_s
            for name, value in series.items()
            if track in before and name in before[track]
        }
        if grown and min(grown.values()) >= 0:
            found[track] = grown
    return found


def content(path: Path) -> bytes:
    """All of a small file, read from its beginning again each time; nothing if that fails."""
    try:
        return os.pread(_opened(path), MOST_BYTES, 0)
    except OSError:
        return b""


def _text(path: Path) -> str:
    return content(path).decode()


@functools.cache
def _opened(path: Path) -> int:
    """A file that stays open: the kernel makes a counter anew for each reading of it."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

"""Whether a link carries what was asked for, found out by a transfer."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from wirebound.errors import LabError
from wirebound.lab.launch import enclosed
from wirebound.lab.shaping import FRAME_BYTES, PAYLOAD_BYTES, Shaping
from wirebound.lab.tools import said
from wirebound.lab.wiring import Host
from wirebound.units import bits_per_second, bytes_per_second, format_rate, format_ratio

TOLERANCE = 0.05
"""Share of the rate asked for by which a transfer may miss it."""

ATTEMPTS = 3
"""Transfers before a link is given up: another program may have had the processors."""

WARM_S = 0.1
WINDOW_S = 0.5
WINDOW_FRAMES = 500
"""Counted at least, so that a slow link is not judged by a handful of frames."""

PROBE = Path(__file__).with_name("probe.py")


class Transfer(msgspec.Struct, frozen=True):
    """What a link carried.

    Attributes:
        sender: Rank of the host that sent.
        receiver: Rank of the host that received.
        rate_bps: Frames as the shaper counts them, full ones assumed [bits/s].
    """

    sender: int
    receiver: int
    rate_bps: float


def verify(cluster: Sequence[Host], shape: Shaping | None) -> tuple[Transfer, ...]:
    """Transfer from each host to the next, the last to the first, one after the other.

    Args:
        cluster: Hosts that are joined.
        shape: The limit that was set, or None: then the rate is measured and not judged.

    Raises:
        LabError: A link that does not carry what it should, or carries more.
    """
    if len(cluster) == 1:
        return ()
    pairs = zip(cluster, [*cluster[1:], cluster[0]], strict=True)
    return tuple(_believed(sender, receiver, shape) for sender, receiver in pairs)


def _believed(sender: Host, receiver: Host, shape: Shaping | None) -> Transfer:
    problem = None
    for _ in range(ATTEMPTS):
        found = Transfer(sender.rank, receiver.rank, _transfer(sender, receiver, shape))
        problem = None if shape is None else doubt(found, shape.rate_bps)
        if problem is None:
            return found
    raise LabError(str(problem), "choose a rate that this machine can carry, or none")


def doubt(found: Transfer, asked_bps: float) -> str | None:
    """What is wrong with a transfer, in a sentence, or None where it is as asked.

    Args:
        found: The transfer.
        asked_bps: The rate it should have [bits/s].
    """
    miss = found.rate_bps / asked_bps - 1
    if abs(miss) <= TOLERANCE:
        return None
    return (
        f"the link from host {found.sender} to host {found.receiver} carries "
        f"{format_rate(found.rate_bps)}, {'more' if miss > 0 else 'less'} than the "
        f"{format_rate(asked_bps)} asked for by over {format_ratio(TOLERANCE)}"
    )


def durations(shape: Shaping | None) -> tuple[float, float]:
    """How long a transfer is left alone, and how long it is counted [s]."""
    if shape is None:
        return WARM_S, WINDOW_S
    rate_Bps = bytes_per_second(shape.rate_bps)
    return (
        WARM_S + 2 * shape.burst_bytes / rate_Bps,
        max(WINDOW_S, WINDOW_FRAMES * FRAME_BYTES / rate_Bps),
    )


def _transfer(sender: Host, receiver: Host, shape: Shaping | None) -> float:
    """The rate of one transfer [bits/s]."""
    words = ["receive", receiver.address, *map(str, durations(shape))]
    with _start(receiver, words) as taking, _start(sender, ["send", receiver.address]) as giving:
        try:
            printed, complaint = taking.communicate()
            _, other_complaint = giving.communicate()
        finally:
            taking.kill()
            giving.kill()
    if taking.returncode != 0:
        raise LabError(
            f"no transfer from host {sender.rank} to host {receiver.rank}: "
            + said(complaint + other_complaint, taking.returncode)
        )
    nbytes, seconds = map(float, printed.split())
    return bits_per_second(nbytes / seconds) * FRAME_BYTES / PAYLOAD_BYTES


def _start(host: Host, words: Sequence[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(  # noqa: S603 - an argument list
        enclosed(host, [sys.executable, "-I", "-S", str(PROBE), *words]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )

"""How a link is held to its rate: a token bucket on every device that sends into it.

`docs/lab.md` has the rules and the measurements behind them.
"""

import math

import msgspec

from wirebound.errors import LabError
from wirebound.lab.tools import call, parse_objects
from wirebound.units import bytes_per_second, format_rate

PAYLOAD_BYTES = 1448
"""Of TCP in a full Ethernet frame: an MTU of 1500, less IP (20), TCP (20) and timestamps (12)."""

FRAME_BYTES = 1514
"""What the shaper counts for it: the MTU and the Ethernet header, without preamble and checksum."""

SLOWEST_BPS = 1e6
"""Below, a bucket of ten frames is more than a tenth of a second, and no limit at all."""

BURST_S = 1e-3
BURST_FRAMES = 10
QUEUE_S = 50e-3
PIECE_SHARE = 0.9
"""Of the bucket that the payload of a piece may fill; the filter counts the headers too."""

MOST_PIECE_BYTES = 2**16
MOST_BYTES = 2**32 - 1
"""The kernel counts a queue in 32 bits."""


class Shaping(msgspec.Struct, frozen=True):
    """Parameters of a token bucket filter.

    Attributes:
        rate_bps: Of frames as the device counts them [bits/s].
        burst_bytes: What may leave at once after a pause [bytes].
        limit_bytes: What may wait for tokens [bytes]; beyond, frames are dropped.
    """

    rate_bps: int
    burst_bytes: int
    limit_bytes: int


def shaping(link_bps: float) -> Shaping:
    """The token bucket for a link.

    The burst is what the link carries in a millisecond, and at least ten frames. Timers of a
    busy machine are late by about as much, and with a smaller bucket the rate is not reached.
    The queue is 50 ms of the link on top: a congested port of a switch, not an endless one.

    Args:
        link_bps: Rate of the link [bits/s].

    Raises:
        LabError: A rate that is no rate, or so low that the burst would hide it.
    """
    if not SLOWEST_BPS <= link_bps < math.inf:
        raise LabError(
            f"a link of {link_bps:g} bit/s cannot be made, "
            f"expected a rate of {format_rate(SLOWEST_BPS)} or more",
            "or none, for no limit",
        )
    rate_Bps = bytes_per_second(link_bps)
    burst_bytes = max(math.ceil(rate_Bps * BURST_S), BURST_FRAMES * FRAME_BYTES)
    return Shaping(
        rate_bps=round(link_bps),
        burst_bytes=burst_bytes,
        limit_bytes=min(burst_bytes + math.ceil(rate_Bps * QUEUE_S), MOST_BYTES),
    )


def limit(namespace: str, device: str, shape: Shaping) -> None:
    """Hold what leaves a device to a rate.

    TCP hands over many frames in one piece, and the filter would cut a piece larger than its
    bucket into frames again, at a cost to the processor far above a network card's.
    """
    piece_bytes = min(MOST_PIECE_BYTES, int(shape.burst_bytes * PIECE_SHARE))
    call("ip", "-netns", namespace, "link", "set", "dev", device, "gso_max_size", str(piece_bytes))
    call("tc", "-netns", namespace, "qdisc", "add", "dev", device, "root", *tbf(shape))


def tbf(shape: Shaping) -> list[str]:
    """The filter in tc's words, where `bit` is bits a second, and `b` of a size is bytes."""
    return [
        "tbf",
        *("rate", f"{shape.rate_bps}bit"),
        *("burst", f"{shape.burst_bytes}b"),
        *("limit", f"{shape.limit_bytes}b"),
    ]


def is_held(namespace: str, device: str, shape: Shaping) -> bool:
    """Whether a device still has its shaper."""
    text = call("tc", "-json", "-netns", namespace, "qdisc", "show", "dev", device)
    return shaped_Bps(text) == int(bytes_per_second(shape.rate_bps))


def shaped_Bps(text: str) -> int | None:
    """The rate that tc reports for a device [bytes/s], or None where nothing limits it."""
    for qdisc in parse_objects(text):
        if qdisc.get("kind") == "tbf" and qdisc.get("root"):
            return int(qdisc["options"]["rate"])
    return None

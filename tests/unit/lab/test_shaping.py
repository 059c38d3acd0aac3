"""How links are limited, in the words of tc."""

import math

import pytest

from wirebound.errors import LabError
from wirebound.lab.shaping import FRAME_BYTES, shaped_Bps, shaping, tbf
from wirebound.lab.verify import Transfer, doubt, durations
from wirebound.lab.wiring import hosts

SHOWN = (
    '[{"kind":"tbf","handle":"8001:","root":true,"refcnt":3,"options":'
    '{"rate":25000000,"burst":65525,"lat":37379}}]'
)


def test_burst_is_a_millisecond_of_the_link() -> None:
    """1 Gbit/s is 125 bytes a microsecond, and 50 ms of it may wait."""
    shape = shaping(1e9)
    assert (shape.burst_bytes, shape.limit_bytes) == (125_000, 6_375_000)


def test_burst_of_a_slow_link_is_ten_frames() -> None:
    """Less would hold back single frames."""
    assert shaping(1e6).burst_bytes == 10 * FRAME_BYTES


def test_words_of_tc() -> None:
    """Rates are bits a second, sizes bytes; `bps` would mean bytes a second."""
    assert tbf(shaping(200e6)) == [
        *("tbf", "rate", "200000000bit", "burst", "25000b", "limit", "1275000b")
    ]


@pytest.mark.parametrize("link_bps", [0.0, -1.0, 999_999.0, math.inf, math.nan])
def test_impossible_rates(link_bps: float) -> None:
    """What is no rate, or hidden by the burst, is refused."""
    with pytest.raises(LabError, match=r"cannot be made, expected a rate of 1\.00 Mbit/s or more"):
        shaping(link_bps)


def test_what_tc_reports() -> None:
    """Its JSON has bytes a second, and may lack a shaper or be empty."""
    assert shaped_Bps(SHOWN) == 25_000_000
    assert shaped_Bps('[{"kind":"noqueue","root":true,"options":{}}]') is None
    assert shaped_Bps("") is None


@pytest.mark.parametrize("text", ["qdisc tbf 8001: root", "7", "[1]"])
def test_what_is_not_json(text: str) -> None:
    """An iproute2 without JSON is named."""
    with pytest.raises(LabError, match=r"expected JSON \(install iproute2 5.0 or newer\)"):
        shaped_Bps(text)


@pytest.mark.parametrize("rate_bps", [0.951e9, 1e9, 1.049e9])
def test_a_link_is_believed_within_the_tolerance(rate_bps: float) -> None:
    """5 % either way."""
    assert doubt(Transfer(0, 1, rate_bps), 1e9) is None


@pytest.mark.parametrize(
    ("rate_bps", "sentence"),
    [
        (0.94e9, "the link from host 0 to host 1 carries 940 Mbit/s, less than the 1.00 Gbit/s"),
        (1.06e9, "the link from host 0 to host 1 carries 1.06 Gbit/s, more than the 1.00 Gbit/s"),
    ],
)
def test_a_link_that_is_not_as_asked(rate_bps: float, sentence: str) -> None:
    """Too slow and too fast are both told."""
    assert doubt(Transfer(0, 1, rate_bps), 1e9) == f"{sentence} asked for by over 5.00 %"


def test_slow_links_are_watched_longer() -> None:
    """500 frames take 6 s at 1 Mbit/s, and the burst is looked away from."""
    warm_s, window_s = durations(shaping(1e6))
    assert window_s == pytest.approx(6.056)
    assert warm_s > 2 * 10 * FRAME_BYTES / 125_000
    assert durations(None) == (0.1, 0.5)


def test_hosts() -> None:
    """Each has a namespace, an address and its processors; a single one needs no link."""
    first, second = hosts("wb-1-2-0", [(0,), (1,)])
    assert (first.namespace, first.address, first.interface) == ("wb-1-2-0-h0", "10.77.0.1", "eth0")
    assert (second.rank, second.address, second.cores) == (1, "10.77.0.2", (1,))
    [single] = hosts("wb-1-2-0", [(0,)])
    assert (single.address, single.interface) == ("127.0.0.1", "lo")

"""Quantities as people write them, and the only home of 8, 10^9 and 2^20.

Inside the program a quantity is a plain number: seconds, bytes, bits per second
for links (`_bps`), bytes per second for algorithm and bus bandwidth (`_Bps`),
ratios from 0 to 1. Text becomes such a number here, and becomes text again here.

What is accepted:

* sizes `25MB` (decimal), `25MiB` (binary); `KB` is neither and is refused
* rates `10Gbit/s`, `10Gbps`, `10Gb/s` (bits), `1.25GB/s`, `1.25GBps`, `1GiB/s` (bytes)
* times `5ns`, `5us`, `5µs`, `128ms`, `0.3s`, `2min`, `1h`
* ratios `0.95`, `95%`

Case matters: `b` is a bit and `B` a byte, `m` is not `M`. Prefixes of bits and of
times are decimal. `tc` means bytes by `bps` and ignores case: lower-case `gbps`,
its usual spelling, is refused here; `Gbps` is bits, as on every data sheet.
"""

import math
import re
from collections.abc import Mapping
from decimal import Context, Decimal
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from wirebound.errors import QuantityError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BITS_PER_BYTE = 8
MEGA = 10**6
GIGA = 10**9
MIB = 2**20

Number = TypeVar("Number", float, "NDArray[np.float64]", "float | NDArray[np.float64]")
"""A number, or one number for each scenario."""

_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": GIGA, "T": 10**12}
_BINARY = {"Ki": 2**10, "Mi": MIB, "Gi": 2**30, "Ti": 2**40}
_PREFIXES = _DECIMAL | _BINARY

# Wide enough that only the last step, to float, rounds; no traps, so that an
# absurd exponent becomes infinity or zero and is refused as a value.
_EXACT = Context(prec=60, traps=[])

_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(.*)", re.DOTALL
)


class _Dimension(NamedTuple):
    """A physical dimension as text.

    Attributes:
        units: Accepted spellings and their scale.
        printed: The spellings used for output, smallest first.
        hinted: The spellings that an error message proposes.
        example: What the error message shows.
    """

    units: Mapping[str, int | Decimal]
    printed: tuple[str, ...]
    hinted: tuple[str, ...]
    example: str


_SIZE = _Dimension(
    units={f"{prefix}B": scale for prefix, scale in _PREFIXES.items()},
    printed=tuple(f"{prefix}B" for prefix in _DECIMAL),
    hinted=tuple(f"{prefix}B" for prefix in _PREFIXES),
    example="25MB (decimal) or 25MiB (binary)",
)
_RATE = _Dimension(
    units={
        f"{prefix}{bit}": scale
        for prefix, scale in _DECIMAL.items()
        for bit in ("bit/s", "bps", "b/s")
    }
    | {
        f"{prefix}{byte}": scale * BITS_PER_BYTE
        for prefix, scale in _PREFIXES.items()
        for byte in ("B/s", "Bps")
    },
    printed=tuple(f"{prefix}bit/s" for prefix in _DECIMAL),
    hinted=tuple(f"{prefix}{unit}" for unit in ("bit/s", "B/s") for prefix in _DECIMAL),
    example="10Gbit/s (bits) or 1.25GB/s (bytes)",
)
_TIME = _Dimension(
    units={
        "ns": Decimal("1e-9"),
        "us": Decimal("1e-6"),
        "\N{MICRO SIGN}s": Decimal("1e-6"),
        "\N{GREEK SMALL LETTER MU}s": Decimal("1e-6"),
        "ms": Decimal("1e-3"),
        "s": 1,
        "min": 60,
        "h": 3600,
    },
    printed=("ns", "\N{MICRO SIGN}s", "ms", "s"),
    hinted=("ns", "us", "ms", "s", "min", "h"),
    example="128ms or 0.3s",
)
_RATIO = _Dimension(
    units={"": 1, "%": Decimal("0.01")},
    printed=("%",),
    hinted=(),
    example="0.95 or 95%",
)


def parse_size(text: str | float, what: str = "size") -> float:
    """Read an amount of data.

    Args:
        text: As a person or a scenario file gives it; a bare number is refused.
        what: What the quantity is, for the error message.

    Returns:
        The size [bytes].

    Raises:
        QuantityError: No size, or an ambiguous one.
    """
    return _parse(text, what, _SIZE)


def parse_rate(text: str | float, what: str = "rate") -> float:
    """Read the rate of a link, given in bits or in bytes.

    Args:
        text: As a person or a scenario file gives it; a bare number is refused.
        what: What the quantity is, for the error message.

    Returns:
        The rate [bits/s], never 0.

    Raises:
        QuantityError: No rate, an ambiguous one, or one that moves nothing.
    """
    rate_bps = _parse(text, what, _RATE)
    if rate_bps == 0:
        raise _refusal(text, what, _RATE, "a rate of 0 moves nothing")
    return rate_bps


def parse_time(text: str | float, what: str = "time") -> float:
    """Read a duration.

    Args:
        text: As a person or a scenario file gives it; a bare number is refused.
        what: What the quantity is, for the error message.

    Returns:
        The duration [s].

    Raises:
        QuantityError: No duration, or an ambiguous one.
    """
    return _parse(text, what, _TIME)


def parse_ratio(text: str | float, what: str = "ratio") -> float:
    """Read a share of a whole.

    Args:
        text: A number from 0 to 1, or a percentage.
        what: What the quantity is, for the error message.

    Returns:
        The ratio, 0 to 1.

    Raises:
        QuantityError: No ratio, or one outside 0 to 1.
    """
    ratio = _parse(text, what, _RATIO)
    if ratio > 1:
        raise _refusal(text, what, _RATIO, "more than the whole")
    return ratio


def format_size(nbytes: float, unit: str | None = None) -> str:
    """Write an amount of data with three significant digits.

    Args:
        nbytes: The size [bytes].
        unit: A unit that `parse_size` knows, to keep one scale in a column;
            the fitting decimal one by default.
    """
    return _format(nbytes, unit, _SIZE)


def format_rate(rate_bps: float, unit: str | None = None) -> str:
    """Write the rate of a link with three significant digits, in bits by default.

    Args:
        rate_bps: The rate [bits/s].
        unit: A unit that `parse_rate` knows, to keep one scale in a column.
    """
    return _format(rate_bps, unit, _RATE)


def format_time(seconds: float, unit: str | None = None) -> str:
    """Write a duration with three significant digits, in seconds or less by default.

    Args:
        seconds: The duration [s].
        unit: A unit that `parse_time` knows, to keep one scale in a column.
    """
    return _format(seconds, unit, _TIME)


def format_ratio(ratio: float) -> str:
    """Write a ratio as a percentage with three significant digits.

    Args:
        ratio: 0 to 1; what lies outside is written as it is.
    """
    return _format(ratio, "%", _RATIO)


def format_exact_rate(rate_bps: float) -> str:
    """Write the rate of a link for a name: without a space, in bits, all its digits."""
    prefix, scale = max(
        ((prefix, scale) for prefix, scale in _DECIMAL.items() if scale <= rate_bps),
        key=lambda one: one[1],
        default=("", 1),
    )
    return f"{rate_bps / scale:.15g}{prefix}bps"


def format_exact_size(nbytes: int) -> str:
    """Write an amount of data for a name: without a space, all its digits, as short as may be."""
    whole = [
        f"{nbytes // scale}{prefix}B" for prefix, scale in _PREFIXES.items() if nbytes % scale == 0
    ]
    return min(whole, key=len)


def bits_per_second(rate_Bps: Number) -> Number:
    """Turn an algorithm or bus bandwidth [bytes/s] into the rate of a link [bits/s]."""
    return rate_Bps * BITS_PER_BYTE


def bytes_per_second(rate_bps: Number) -> Number:
    """Turn the rate of a link [bits/s] into bytes per second [bytes/s]."""
    return rate_bps / BITS_PER_BYTE


def seconds_per_byte(rate_bps: Number) -> Number:
    """Price of a byte on a link [s/byte]; an infinite rate [bits/s] costs nothing."""
    return BITS_PER_BYTE / rate_bps


def _parse(text: str | float, what: str, dimension: _Dimension) -> float:
    match = _QUANTITY.fullmatch(str(text).strip())
    if match is None:
        raise _refusal(text, what, dimension, "not a finite number with a unit")
    number, unit = match.groups()
    scale = dimension.units.get(unit)
    if scale is None:
        problem = f"unknown unit {unit!r}" if unit else "a bare number has no unit"
        raise _refusal(text, what, dimension, problem, _suggestion(unit, dimension))
    if number.startswith("-"):
        raise _refusal(text, what, dimension, "negative")
    value = float(_EXACT.multiply(_EXACT.create_decimal(number), Decimal(scale)))
    if math.isinf(value):
        raise _refusal(text, what, dimension, "too large for a number")
    return value


def _refusal(
    text: str | float, what: str, dimension: _Dimension, problem: str, hint: str | None = None
) -> QuantityError:
    return QuantityError(
        f"{what} {str(text)!r}: {problem}, expected for example {dimension.example}", hint
    )


def _suggestion(unit: str, dimension: _Dimension) -> str | None:
    if dimension is _RATE and re.fullmatch("[mgt]bps", unit):
        bits, nbytes = f"{unit[0].upper()}bit/s", f"{unit[0].upper()}B/s"
        return f"tc means bytes by {unit}: write {bits} for bits or {nbytes} for bytes"
    near = [known for known in dimension.hinted if known[0].casefold() == unit[:1].casefold()]
    return f"did you mean {' or '.join(near)}?" if near else None


def _format(value: float, unit: str | None, dimension: _Dimension) -> str:
    unit = _fitting_unit(value, dimension) if unit is None else unit
    return f"{_three_digits(value / float(dimension.units[unit]))} {unit}"


def _fitting_unit(value: float, dimension: _Dimension) -> str:
    """The largest printed unit that the value, as rounded, fills."""
    rounded = abs(float(f"{value:.2e}"))
    filled = [unit for unit in dimension.printed if float(dimension.units[unit]) <= rounded]
    return filled[-1] if filled else dimension.printed[0]


def _three_digits(value: float) -> str:
    if value == 0:
        return "0"
    text = f"{value:#.3g}"
    if 1e3 <= abs(float(text)) < 1e6:  # noqa: PLR2004 - beyond, an exponent reads better
        return f"{float(text):.0f}"
    return text.rstrip(".")

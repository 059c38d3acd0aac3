"""Writing a quantity and reading it back gives the quantity."""

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wirebound.errors import QuantityError
from wirebound.units import (
    format_rate,
    format_ratio,
    format_size,
    format_time,
    parse_rate,
    parse_ratio,
    parse_size,
    parse_time,
)

Read = Callable[[str], float]
Write = Callable[[float], str]

# Half a unit in the third digit of 1.00, and a little for the float arithmetic.
PRINTED = 0.005 * (1 + 1e-12)

amounts = st.floats(min_value=1e-12, max_value=1e24)
ratios = st.floats(min_value=1e-12, max_value=1)

PAIRS = [
    pytest.param(format_size, parse_size, id="size"),
    pytest.param(format_rate, parse_rate, id="rate"),
    pytest.param(format_time, parse_time, id="time"),
]


@pytest.mark.parametrize(("write", "read"), PAIRS)
@given(value=amounts)
@example(value=999.5)
@example(value=999_500.0)
def test_three_digits_survive(write: Write, read: Read, value: float) -> None:
    """parse(format(x)) is x within the printed digits."""
    assert read(write(value)) == pytest.approx(value, rel=PRINTED, abs=0)


@given(value=ratios)
def test_three_digits_of_a_ratio_survive(value: float) -> None:
    """The same for percentages."""
    assert parse_ratio(format_ratio(value)) == pytest.approx(value, rel=PRINTED, abs=0)


@pytest.mark.parametrize(
    ("read", "unit"), [(parse_size, "B"), (parse_rate, "bit/s"), (parse_time, "s")]
)
@given(value=amounts)
def test_full_precision_is_exact(read: Read, unit: str, value: float) -> None:
    """A number written with all its digits comes back to the last bit."""
    assert read(f"{value!r}{unit}") == value


@pytest.mark.parametrize(
    ("read", "unit", "scale"),
    [
        (parse_size, "MiB", Fraction(2**20)),
        (parse_rate, "GB/s", Fraction(8 * 10**9)),
        (parse_time, "us", Fraction(1, 10**6)),
        (parse_time, "h", Fraction(3600)),
    ],
)
@given(value=amounts)
def test_scaling_rounds_once(read: Read, unit: str, scale: Fraction, value: float) -> None:
    """The result is the float nearest to the exact product of the digits and the scale."""
    assert read(f"{value!r}{unit}") == float(Fraction(repr(value)) * scale)


@given(text=st.text())
def test_any_text_is_a_quantity_or_a_quantity_error(text: str) -> None:
    """Nothing else can come out, whatever is typed."""
    for read in (parse_size, parse_rate, parse_time, parse_ratio):
        try:
            assert read(text) >= 0
        except QuantityError as error:
            assert "expected for example" in error.message  # noqa: PT017 - both are fine

"""Quantities: what is read, what is refused with which words, how they are written."""

from collections.abc import Callable

import numpy as np
import pytest

from wirebound import units
from wirebound.errors import QuantityError
from wirebound.units import (
    bits_per_second,
    bytes_per_second,
    format_rate,
    format_ratio,
    format_size,
    format_time,
    parse_rate,
    parse_ratio,
    parse_size,
    parse_time,
    seconds_per_byte,
)

Parse = Callable[[str | float], float]


class TestAccepted:
    """Every documented spelling, and what it is in base units."""

    @pytest.mark.parametrize(
        ("text", "nbytes"),
        [
            ("0B", 0),
            ("8B", 8),
            ("1kB", 1_000),
            ("25MB", 25_000_000),
            ("25MiB", 26_214_400),
            ("1.5 GB", 1.5e9),
            ("1GiB", 1_073_741_824),
            ("2TB", 2e12),
            ("1TiB", 1_099_511_627_776),
            (" 64 KiB ", 65_536),
            ("1e3B", 1_000),
            (".5kB", 500),
            ("+2.B", 2),
        ],
    )
    def test_size(self, text: str, nbytes: float) -> None:
        """Decimal and binary prefixes of the byte."""
        assert parse_size(text) == nbytes

    @pytest.mark.parametrize(
        ("text", "rate_bps"),
        [
            ("10Gbit/s", 10e9),
            ("10 Gbps", 10e9),
            ("10Gb/s", 10e9),
            ("100Mbps", 100e6),
            ("9600bps", 9600),
            ("1bit/s", 1),
            ("1.2GB/s", 9.6e9),
            ("1.2GBps", 9.6e9),
            ("1GiB/s", 8_589_934_592),
            ("1TB/s", 8e12),
        ],
    )
    def test_rate(self, text: str, rate_bps: float) -> None:
        """Bits stay bits, bytes become bits."""
        assert parse_rate(text) == rate_bps

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("5ns", 5e-9),
            ("5us", 5e-6),
            ("5\N{MICRO SIGN}s", 5e-6),
            ("5\N{GREEK SMALL LETTER MU}s", 5e-6),
            ("128ms", 0.128),
            ("0.1ms", 1e-4),
            ("0s", 0),
            ("2min", 120),
            ("1.5 h", 5400),
        ],
    )
    def test_time(self, text: str, seconds: float) -> None:
        """From nanoseconds to hours, rounded once."""
        assert parse_time(text) == seconds

    @pytest.mark.parametrize(
        ("text", "ratio"),
        [("0.95", 0.95), ("95%", 0.95), ("95 %", 0.95), ("0", 0), ("1", 1), ("100%", 1)],
    )
    def test_ratio(self, text: str, ratio: float) -> None:
        """A ratio is the one quantity that needs no unit."""
        assert parse_ratio(text) == ratio

    def test_ratio_of_a_scenario_file(self) -> None:
        """TOML and JSON give a number, not a text."""
        assert parse_ratio(0.3) == 0.3


class TestRefused:
    """Ambiguous or impossible quantities, with the words a user sees."""

    @pytest.mark.parametrize("parse", [parse_size, parse_rate, parse_time])
    @pytest.mark.parametrize("bare", ["10", "0", "1e9", 25, 0.5])
    def test_bare_number(self, parse: Parse, bare: str | float) -> None:
        """A number without a unit is an error, from a flag as from a file."""
        with pytest.raises(QuantityError, match="a bare number has no unit, expected for example"):
            parse(bare)

    @pytest.mark.parametrize("parse", [parse_size, parse_rate, parse_time, parse_ratio])
    @pytest.mark.parametrize(
        "text",
        [
            "",
            "  ",
            "nan",
            "NaNGbps",
            "inf",
            "-infs",
            "Gbps",
            "1,000MB",
            "--5ms",
            "\N{ARABIC-INDIC DIGIT ONE}B",
        ],
    )
    def test_no_number(self, parse: Parse, text: str) -> None:
        """No text without a finite number is a quantity."""
        with pytest.raises(QuantityError, match="expected for example"):
            parse(text)

    @pytest.mark.parametrize(
        ("parse", "text"),
        [(parse_size, "-1B"), (parse_rate, "-1Gbps"), (parse_time, "-0s"), (parse_ratio, "-5%")],
    )
    def test_negative(self, parse: Parse, text: str) -> None:
        """Nothing here can be less than nothing."""
        with pytest.raises(QuantityError, match="negative"):
            parse(text)

    @pytest.mark.parametrize("text", ["1e400B", "1e999999999999B", "1e308TB"])
    def test_too_large(self, text: str) -> None:
        """What a float cannot hold is refused, and quickly."""
        with pytest.raises(QuantityError, match="too large for a number"):
            parse_size(text)

    @pytest.mark.parametrize("text", ["0Gbps", "0B/s", "1e-999999999999Gbps"])
    def test_rate_of_zero(self, text: str) -> None:
        """A link that moves nothing has no price per byte."""
        with pytest.raises(QuantityError, match="a rate of 0 moves nothing"):
            parse_rate(text)

    @pytest.mark.parametrize("text", ["95", "1.01", "120%", "100.1 %"])
    def test_ratio_above_one(self, text: str) -> None:
        """`95` without its percent sign is a likely slip."""
        with pytest.raises(QuantityError, match="more than the whole"):
            parse_ratio(text)

    @pytest.mark.parametrize(
        ("parse", "text", "hint"),
        [
            (parse_rate, "10G", "did you mean Gbit/s or GB/s?"),
            (parse_rate, "10GBPS", "did you mean Gbit/s or GB/s?"),
            (parse_rate, "10Gb", "did you mean Gbit/s or GB/s?"),
            (parse_rate, "10gbit", "did you mean Gbit/s or GB/s?"),
            (parse_rate, "10GB", "did you mean Gbit/s or GB/s?"),
            (parse_rate, "10Kbps", "did you mean kbit/s or kB/s?"),
            (parse_size, "64KB", "did you mean kB or KiB?"),
            (parse_size, "25M", "did you mean MB or MiB?"),
            (parse_size, "25Mb", "did you mean MB or MiB?"),
            (parse_time, "5m", "did you mean ms or min?"),
            (parse_time, "5MS", "did you mean ms or min?"),
            (parse_time, "5 sec", "did you mean s?"),
            (parse_size, "3 furlongs", None),
        ],
    )
    def test_ambiguous_or_unknown_unit(self, parse: Parse, text: str, hint: str | None) -> None:
        """The hint names what the unit could have been."""
        with pytest.raises(QuantityError, match="unknown unit") as caught:
            parse(text)
        assert caught.value.hint == hint

    def test_message_names_the_quantity(self) -> None:
        """The sentence says which value of which file or flag is wrong."""
        with pytest.raises(QuantityError) as caught:
            parse_size("25M", "bucket_cap")
        assert str(caught.value) == (
            "bucket_cap '25M': unknown unit 'M', expected for example 25MB (decimal) or "
            "25MiB (binary) (did you mean MB or MiB?)"
        )


class TestTraps:
    """Figures that mean something else where they come from."""

    def test_nccl_tests_bandwidth_is_decimal_bytes(self) -> None:
        """`algbw` and `busbw` of nccl-tests are 10^9 bytes per second."""
        assert parse_rate("12.5GB/s") == bits_per_second(12.5e9) == 100e9

    def test_nccl_tests_time_column_is_microseconds(self) -> None:
        """nccl-tests prints 1211.2 under `time (us)`."""
        assert parse_time("1211.2us") == 1.2112e-3

    def test_nccl_tests_sizes_are_binary(self) -> None:
        """`-e 128M` means 134217728 bytes there, so `128M` is refused here."""
        assert parse_size("128MiB") == 134_217_728
        with pytest.raises(QuantityError, match="MB or MiB"):
            parse_size("128M")

    def test_ddp_bucket_cap_mb_is_mebibytes(self) -> None:
        """PyTorch computes `bucket_cap_mb * 1024 * 1024`; `mb` alone is refused."""
        assert parse_size("25MiB") == 25 * 1024 * 1024
        with pytest.raises(QuantityError, match="MB or MiB"):
            parse_size("25mb")

    def test_horovod_fusion_threshold_is_bytes(self) -> None:
        """`HOROVOD_FUSION_THRESHOLD=67108864` has no unit; with `B` it is 64 MiB."""
        assert parse_size("67108864B") == parse_size("64MiB")
        with pytest.raises(QuantityError, match="bare number"):
            parse_size("67108864")

    def test_horovod_cycle_time_is_milliseconds(self) -> None:
        """`HOROVOD_CYCLE_TIME=3.5` has no unit; it means milliseconds."""
        assert parse_time("3.5ms") == 0.0035
        with pytest.raises(QuantityError, match="bare number"):
            parse_time("3.5")

    @pytest.mark.parametrize("prefix", ["m", "g", "t"])
    def test_tc_bps_is_bytes(self, prefix: str) -> None:
        """`tc … rate 10gbps` is 80 Gbit/s: the spelling is refused and the reason given."""
        with pytest.raises(QuantityError) as caught:
            parse_rate(f"10{prefix}bps")
        assert caught.value.hint == (
            f"tc means bytes by {prefix}bps: write {prefix.upper()}bit/s for bits "
            f"or {prefix.upper()}B/s for bytes"
        )

    def test_nic_line_rate_is_bits_before_headers(self) -> None:
        """A 10 Gb/s port is 10^10 bit/s here; what headers cost is the network's efficiency."""
        assert parse_rate("10Gb/s") == 10e9
        assert bytes_per_second(parse_rate("10Gb/s")) == 1.25e9

    def test_kineto_timestamps_are_microseconds(self) -> None:
        """`dur: 1500.25` in a Kineto or Horovod trace."""
        assert parse_time("1500.25us") == 1.50025e-3

    def test_calculon_bandwidth_is_decimal_bytes(self) -> None:
        """`bandwidth: 300` in a Calculon system file is 300 GB/s."""
        assert parse_rate("300GB/s") == 2.4e12


class TestWritten:
    """Three significant digits, one scale, and a space before the unit."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (format_size(0), "0 B"),
            (format_size(8), "8.00 B"),
            (format_size(26_214_400), "26.2 MB"),
            (format_size(26_214_400, "MiB"), "25.0 MiB"),
            (format_size(999.4), "999 B"),
            (format_size(999.6), "1.00 kB"),
            (format_size(1e15), "1000 TB"),
            (format_size(12_345e12), "12300 TB"),
            (format_size(1e21), "1.00e+09 TB"),
            (format_rate(27.13e9), "27.1 Gbit/s"),
            (format_rate(10e9), "10.0 Gbit/s"),
            (format_rate(100e9, "GB/s"), "12.5 GB/s"),
            (format_rate(5e6, "Gbit/s"), "0.00500 Gbit/s"),
            (format_rate(float("inf")), "inf Tbit/s"),
            (format_time(0.1284), "128 ms"),
            (format_time(1e-3), "1.00 ms"),
            (format_time(5e-6), "5.00 \N{MICRO SIGN}s"),
            (format_time(3e-9), "3.00 ns"),
            (format_time(4321), "4320 s"),
            (format_time(-0.012), "-12.0 ms"),
            (format_time(float("nan")), "nan ns"),
            (format_ratio(0.953), "95.3 %"),
            (format_ratio(1), "100 %"),
            (format_ratio(0.01234), "1.23 %"),
            (format_ratio(0), "0 %"),
        ],
    )
    def test_text(self, text: str, expected: str) -> None:
        """The scale is the largest that the rounded value fills, unless it is given."""
        assert text == expected


class TestConversions:
    """The only place where bits and bytes meet."""

    def test_bits_and_bytes(self) -> None:
        """Eight bits a byte, both ways."""
        assert bits_per_second(1.25e9) == 10e9
        assert bytes_per_second(10e9) == 1.25e9

    def test_price_of_a_byte(self) -> None:
        """10 Gbit/s cost 0.8 ns a byte; a free network costs nothing."""
        assert seconds_per_byte(10e9) == 0.8e-9
        assert seconds_per_byte(float("inf")) == 0

    def test_one_rate_for_each_scenario(self) -> None:
        """An array of rates gives an array of prices."""
        prices_S = seconds_per_byte(np.array([1e9, 10e9]))
        assert prices_S.tolist() == [8e-9, 0.8e-9]

    def test_constants(self) -> None:
        """The factors that other modules may use by name."""
        assert (units.BITS_PER_BYTE, units.GIGA, units.MIB) == (8, 1_000_000_000, 1_048_576)


@pytest.mark.parametrize(
    ("rate_bps", "expected"),
    [(1e9, "1Gbps"), (5e8, "500Mbps"), (2.5e9, "2.5Gbps"), (1234567891, "1.234567891Gbps")],
)
def test_exact_rate_can_be_read_back(rate_bps: float, expected: str) -> None:
    """For names: no space, no digit lost."""
    text = units.format_exact_rate(rate_bps)
    assert text == expected
    assert units.parse_rate(text) == rate_bps


@pytest.mark.parametrize(
    ("nbytes", "expected"),
    [
        (25 * 2**20, "25MiB"),
        (25_000_000, "25MB"),
        (512 * 2**10, "512KiB"),
        (1, "1B"),
        (1025, "1025B"),
    ],
)
def test_exact_size_can_be_read_back(nbytes: int, expected: str) -> None:
    """For names: no space, no digit lost."""
    text = units.format_exact_size(nbytes)
    assert text == expected
    assert units.parse_size(text) == nbytes

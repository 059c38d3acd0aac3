"""Tiers, reductions and networks: what they price, what they refuse, how they are stored."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebound.errors import NetworkError, ReadError, WireboundError
from wirebound.network import Network, Reduction, Tier, dumps, read

TIER = Tier("10gbe", bandwidth_bps=1e10, alpha_s=27e-6, efficiency=0.94)
CURVE = Tier("curve", 1e10, 0.0, efficiency=((1e3, 0.1), (1e5, 0.5), (1e6, 0.9)))

positive = st.floats(1e-3, 1e12)
share = st.floats(1e-3, 1.0)


@st.composite
def tiers(draw: st.DrawFn) -> Tier:
    """Any tier that exists, with a curve whose times do not fall."""
    efficiency: float | tuple[tuple[float, float], ...] = draw(share)
    if draw(st.booleans()):
        sizes = sorted(draw(st.lists(positive, min_size=1, max_size=6, unique=True)))
        best = draw(share)
        # Fixed cost and rate: times grow with size, whatever the numbers.
        latency = draw(positive)
        efficiency = tuple((size, best * size / (size + latency)) for size in sizes)
    return Tier(
        "any",
        bandwidth_bps=draw(positive),
        alpha_s=draw(st.floats(0, 1)),
        efficiency=efficiency,
        nics=draw(st.integers(1, 64)),
        oversubscription=draw(st.floats(1, 100)),
    )


def test_node_rate_is_all_ports_behind_the_fabric() -> None:
    """Four ports at 2:1 are worth two."""
    assert Tier("t", 1e11, 0.0, nics=4, oversubscription=2.0).node_bps == 2e11


def test_constant_efficiency_stretches_bytes() -> None:
    """A payload of 94 occupies 100, in messages of any size."""
    assert TIER.occupancy_bytes(94.0, 1.0) == pytest.approx(100.0)
    assert np.asarray(TIER.occupancy_bytes(np.array([0.0, 47.0]), 9.0)).tolist() == [0.0, 50.0]


def test_efficiency_curve_is_exact_at_its_points_and_constant_outside() -> None:
    """The nearest point speaks for sizes nobody measured."""
    sizes = np.array([0.0, 1.0, 1e3, 1e5, 1e6, 1e9])
    expected = [0.1, 0.1, 0.1, 0.5, 0.9, 0.9]
    assert np.asarray(CURVE.efficiency_at(sizes)).tolist() == pytest.approx(expected)


def test_between_two_points_the_time_is_linear_in_the_size() -> None:
    """Half way from 1e5 (2e5 occupied) to 1e6 (1.11e6 occupied) is half way in time."""
    middle = (1e5 + 1e6) / 2
    assert CURVE.occupancy_bytes(middle, middle) == pytest.approx((2e5 + 1e6 / 0.9) / 2)


@given(tier=tiers(), sizes=st.tuples(st.floats(0, 1e13), st.floats(0, 1e13)))
def test_larger_messages_never_take_less_time(tier: Tier, sizes: tuple[float, float]) -> None:
    """Time is monotone, and payload never exceeds the line rate."""
    small, large = sorted(sizes)
    occupied = tier.occupancy_bytes(small, small)
    assert occupied >= small
    assert occupied <= tier.occupancy_bytes(large, large) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bandwidth_bps", 0.0),
        ("bandwidth_bps", float("inf")),
        ("alpha_s", -1e-6),
        ("alpha_s", float("nan")),
        ("efficiency", 0.0),
        ("efficiency", 1.1),
        ("efficiency", ()),
        ("efficiency", ((1e3, 0.5), (1e3, 0.6))),
        ("efficiency", ((1e4, 0.5), (1e3, 0.6))),
        ("efficiency", ((0.0, 0.5),)),
        ("efficiency", ((1e3, 1.5),)),
        ("efficiency", ((1e3, 0.1), (2e3, 0.9))),
        ("nics", 0),
        ("oversubscription", 0.5),
    ],
)
def test_impossible_tiers_are_refused(field: str, value: object) -> None:
    """The message names the tier and the field."""
    with pytest.raises(NetworkError, match=rf"tier '10gbe': {field}"):
        msgspec.structs.replace(TIER, **{field: value})


def test_reduction_is_free_unless_given() -> None:
    """Nothing said, nothing billed."""
    assert Reduction().seconds(1e9) == 0.0
    assert Reduction(seconds_per_byte=1e-11).seconds(1e9) == pytest.approx(0.01)


def test_reduction_table_is_linear_between_points_and_clamped() -> None:
    """As measured: a floor for small additions."""
    table = Reduction(table=((1e3, 1e-5), (1e6, 2e-5)))
    times = np.asarray(table.seconds(np.array([0.0, 1e3, 500_500.0, 1e6, 1e9])))
    assert times.tolist() == pytest.approx([1e-5, 1e-5, 1.5e-5, 2e-5, 2e-5])


@pytest.mark.parametrize(
    ("per_byte", "table"),
    [
        (-1.0, ()),
        (float("nan"), ()),
        (1e-9, ((1.0, 1.0),)),
        (0.0, ((2.0, 1.0), (1.0, 2.0))),
        (0.0, ((1.0, -1.0),)),
        (0.0, ((-1.0, 1.0),)),
    ],
)
def test_impossible_reductions_are_refused(
    per_byte: float, table: tuple[tuple[float, float], ...]
) -> None:
    """Negative, unordered, or said twice."""
    with pytest.raises(NetworkError, match="reduction"):
        Reduction(per_byte, table)


def test_nodes_with_several_gpus_need_something_that_connects_them() -> None:
    """And a node has at least one GPU."""
    with pytest.raises(NetworkError, match="no intra tier"):
        Network("n", TIER, gpus_per_node=8)
    with pytest.raises(NetworkError, match="gpus_per_node is 0"):
        Network("n", TIER, gpus_per_node=0)
    with pytest.raises(NetworkError, match="schema_version 2"):
        Network("n", TIER, schema_version=2)


@given(tiers(), tiers(), st.integers(1, 16), st.floats(0, 1))
def test_json_holds_all_of_a_network(inter: Tier, intra: Tier, gpus: int, per_byte: float) -> None:
    """What is written is what is read."""
    network = Network("n", inter, intra, gpus, Reduction(per_byte), "test", ("a", "b"))
    assert msgspec.json.decode(dumps(network), type=Network) == network


def test_a_file_is_read_back(tmp_path: Path) -> None:
    """Indented, with a final newline and the version of the form; tiers without defaults."""
    path = tmp_path / "net.json"
    path.write_text(dumps(Network("n", Tier("t", 1e9, 0.0))))
    assert '"alpha_s": 0.0\n  },\n' in path.read_text()
    assert path.read_text().endswith('"schema_version": 1\n}\n')
    assert read(path) == Network("n", Tier("t", 1e9, 0.0))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("[]", "is no network"),
        ('{"name": "n"}', "required field `inter`"),
        ('{"name": "n", "inter": {"name": "t", "bandwidth_bps": "fast"}}', r"`\$.inter.band"),
        ('{"name": "n", "speed": 1}', "unknown field `speed`"),
        ('{"name": "\xff"}', "not text"),
    ],
)
def test_files_that_are_no_network_are_refused_in_one_line(
    tmp_path: Path, content: str, message: str
) -> None:
    """The error names the file and the place."""
    path = tmp_path / "net.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ReadError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_files_directories_and_impossible_machines_name_the_file(tmp_path: Path) -> None:
    """Whatever the reason, the user sees which file it was."""
    with pytest.raises(ReadError, match="No such file"):
        read(tmp_path / "none.json")
    with pytest.raises(ReadError, match="directory"):
        read(tmp_path)
    path = tmp_path / "net.json"
    path.write_text('{"name": "n", "inter": {"name": "t", "bandwidth_bps": -1, "alpha_s": 0}}')
    with pytest.raises(NetworkError, match=r"net\.json: tier 't': bandwidth_bps is -1"):
        read(path)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_network_or_an_error_for_people(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """No other exception gets out."""
    path = tmp_path_factory.mktemp("any") / "net.json"
    path.write_bytes(content)
    with pytest.raises(WireboundError):
        read(path)

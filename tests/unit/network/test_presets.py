"""Presets: complete, sourced, found by name, and what a bare link rate becomes."""

from pathlib import Path

import pytest

from wirebound.errors import NetworkError, QuantityError, ReadError
from wirebound.network import Preset, dumps, load, network, network_for_link, presets, tier

NAMES = [preset.name for preset in presets()]


def test_names_are_unique_whatever_their_case() -> None:
    """Lookup ignores case, so two names must differ in more."""
    assert len({name.lower() for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize("preset", presets(), ids=lambda preset: preset.name)
def test_every_preset_loads_and_says_where_its_numbers_come_from(preset: Preset) -> None:
    """Its source and its assumptions travel with the network."""
    assert len(preset.source) > 20
    if preset.place == "intra":
        assert tier(preset.name).bandwidth_bps == preset.bandwidth_bps
        return
    built = network(preset.name.upper())
    assert built.name == preset.name
    assert built.inter.node_bps == preset.bandwidth_bps
    assert preset.source in built.source
    assert set(preset.assumptions) <= set(built.assumptions)
    assert (built.intra is None) == (preset.place == "inter")


def test_machines_have_the_rate_their_vendor_states() -> None:
    """All NICs that carry GPU traffic together [Gbit/s]; a new machine needs a line here."""
    assert {p.name: p.bandwidth_bps / 1e9 for p in presets() if p.place == "machine"} == {
        "p3dn.24xlarge": 100,
        "p4d.24xlarge": 400,
        "p5.48xlarge": 3200,
        "p5en.48xlarge": 3200,
        "g5.48xlarge": 100,
        "g6e.48xlarge": 400,
        "nd96asr_v4": 1600,
        "nd96isr_h100_v5": 3200,
        "a2-highgpu-8g": 100,
        "a3-highgpu-8g": 800,
        "a3-megagpu-8g": 1600,
    }


def test_ethernet_payload_shares_are_frame_arithmetic() -> None:
    """Preamble 8, header 14, checksum 4 and gap 12 on the wire; IP 20 and TCP 32 inside."""
    wire, inside = 8 + 14 + 4 + 12, 20 + 32
    assert tier("10gbe").efficiency == round((1500 - inside) / (1500 + wire), 2)
    assert tier("10gbe-jumbo").efficiency == round((9000 - inside) / (9000 + wire), 2)
    # RoCE v2: IP 20, UDP 8, base transport header 12, invariant checksum 4.
    assert tier("100gbe-roce").efficiency == round(4096 / (4096 + 20 + 8 + 12 + 4 + wire), 2)


def test_pcie_rates_are_lanes_times_transfers_times_code() -> None:
    """16 lanes; 128 of 130 bits up to PCIe 5."""
    for name, transfers in (("pcie3", 8e9), ("pcie4", 16e9), ("pcie5", 32e9)):
        assert tier(name).bandwidth_bps == pytest.approx(16 * transfers * 128 / 130, rel=1e-4)


def test_tcp_alpha_fits_the_published_latencies_it_is_derived_from() -> None:
    """8 B on 2 and 8 Polaris nodes of 4 GPUs, NCCL's LL tree: base 6.8, NVLink 0.6 x 1.8 us."""
    hop_us = [
        (46.6 - 6.8 - 2 * 3 * 0.6 * 1.8) / (2 * 1),
        (124.0 - 6.8 - 2 * 3 * 0.6 * 1.8) / (2 * 3),
    ]
    low_latency_us, simple_us = 5.0, 14.0
    derived_us = round(sum(hop_us) / 2) + simple_us - low_latency_us
    assert tier("10gbe").alpha_s * 1e6 == pytest.approx(derived_us, abs=1)


def test_a_bare_link_is_ethernet_with_tcp() -> None:
    """It differs from the preset of that rate in name and wording, and says what it assumes."""
    link, preset = network_for_link(10e9), network("10gbe")
    assert link.inter.bandwidth_bps == 10e9
    assert (link.inter.alpha_s, link.inter.efficiency) == (
        preset.inter.alpha_s,
        preset.inter.efficiency,
    )
    assert (link.gpus_per_node, link.intra) == (1, None)
    assert "Ethernet with TCP at an MTU of 1500: payload gets 94%" in link.assumptions


@pytest.mark.parametrize("rate", [0.0, -1.0, float("inf"), float("nan")])
def test_impossible_link_rates_are_refused(rate: float) -> None:
    """A link moves something, and not infinitely much."""
    with pytest.raises(QuantityError, match="link rate"):
        network_for_link(rate)


def test_unknown_names_name_the_nearest() -> None:
    """For networks, and for tiers."""
    with pytest.raises(NetworkError, match=r"'10g'.*nearest is '10gbe'"):
        network("10g")
    with pytest.raises(NetworkError, match=r"'nvlink6'.*nearest is 'nvlink"):
        tier("nvlink6")


def test_links_inside_a_node_are_no_network() -> None:
    """NVLink alone connects no nodes."""
    with pytest.raises(NetworkError, match="no preset network is called 'nvlink4'"):
        network("nvlink4")


def test_load_takes_names_and_files(tmp_path: Path) -> None:
    """A suffix or a separator makes it a file."""
    path = tmp_path / "mine.json"
    path.write_text(dumps(network("p4d.24xlarge")))
    assert load(path) == load(str(path)) == load("P4D.24xlarge")
    with pytest.raises(ReadError, match="No such file"):
        load("none.json")
    with pytest.raises(ReadError, match=r"[Dd]irectory"):
        load(f"{tmp_path}")
    with pytest.raises(NetworkError, match=r"a file needs"):
        load("mine")

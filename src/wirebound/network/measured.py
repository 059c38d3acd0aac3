"""Samples seen through the model: what they should take, and their bandwidths."""

import numpy as np

from wirebound.network.collectives import Layout, Leg, bus_factor, cost
from wirebound.network.record import Network, Reduction, Tier
from wirebound.samples import Measured, Sample
from wirebound.units import bytes_per_second

LOCAL = frozenset({"reduction", "copy"})
"""What one rank does alone."""


def predict(network: Network, sample: Sample, algorithm: str) -> float:
    """What the model says a measured collective takes [s], as the simulator prices it.

    Args:
        network: Prices.
        sample: Its kind, size and layout; its time is not looked at.
        algorithm: Of the all-reduce.
    """
    busy = [leg for leg in legs(sample, algorithm) if leg.inter_bytes or leg.intra_bytes]
    return max(
        tier_s(network.inter, leg.inter_bytes, leg.inter_messages, sample)
        + tier_s(network.intra, leg.intra_bytes, leg.intra_messages, sample)
        + adds_s(network.reduction, leg)
        for leg in busy
    )


def bandwidths(sample: Sample) -> tuple[float, float]:
    """Algorithm and bus bandwidth of a sample as nccl-tests defines them [bytes/s].

    What one rank does alone has no bus: both are the same.
    """
    algbw_Bps = sample.nbytes / sample.seconds
    if sample.kind in LOCAL:
        return algbw_Bps, algbw_Bps
    return algbw_Bps, algbw_Bps * float(bus_factor(_kind(sample.kind), sample.ranks))


def _kind(kind: Measured) -> str:
    """The collective of the model; ports are full duplex, so both ways cost what one does."""
    return "send_recv" if kind == "send_recv_both_ways" else kind


def per_node(sample: Sample) -> int:
    """Ranks on the fullest node of a sample."""
    return -(-sample.ranks // sample.nodes)


def legs(sample: Sample, algorithm: str) -> tuple[Leg, ...]:
    """What a sample's collective costs; nothing of its time is looked at."""
    layout = Layout(sample.ranks, sample.nodes, per_node(sample))
    return cost(_kind(sample.kind), algorithm, sample.nbytes, layout)


def tier_s(tier: Tier | None, through: object, messages: object, sample: Sample) -> float:
    """What the bytes and messages of one tier take [s]."""
    if tier is None:
        return 0.0
    occupied = number(tier.occupancy_bytes(number(through), sample.nbytes))
    return occupied / bytes_per_second(tier.node_bps) + number(messages) * tier.alpha_s


def adds_s(reduction: Reduction, leg: Leg) -> float:
    """What the additions of a leg take [s]."""
    return sum(
        (number(count) * number(reduction.seconds(nbytes)) for count, nbytes in leg.adds), 0.0
    )


def number(value: object) -> float:
    """One scenario's amount as a plain number."""
    return float(np.asarray(value, dtype=np.float64))

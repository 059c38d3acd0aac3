"""What moving bytes costs: tiers and their prices, collectives and their costs, presets."""

from wirebound.network.collectives import Layout, Leg, all_gather_v, bus_factor, cost
from wirebound.network.presets import (
    Preset,
    load,
    network,
    network_for_link,
    presets,
    tier,
)
from wirebound.network.record import Contention, Fit, Network, Reduction, Tier, dumps, read

__all__ = [
    "Contention",
    "Fit",
    "Layout",
    "Leg",
    "Network",
    "Preset",
    "Reduction",
    "Tier",
    "all_gather_v",
    "bus_factor",
    "cost",
    "dumps",
    "load",
    "network",
    "network_for_link",
    "presets",
    "read",
    "tier",
]

"""What is different: the world, the link, the algorithm, compression, the compute.

Everything numeric may become an axis of a grid and is evaluated as one array; the
rest decides which operations exist (`Schedule`) or which formula prices them.
"""

import math
from statistics import NormalDist
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.errors import ScenarioError
from wirebound.workload.schedule import Schedule

NUMERIC = (
    "workers",
    "gpus_per_node",
    "link_bps",
    "latency_s",
    "efficiency",
    "compression_ratio",
    "encode_s_per_byte",
    "decode_s_per_byte",
    "compute_speed",
    "batch_scale",
)
"""Fields that are evaluated as arrays; all others make separate programs."""

MOST_RANKS = 1_000_000
LARGEST = 1e18
"""A price beyond any machine, up or down; within it no step overflows."""

LARGEST_SPREAD = 10
MOST_DRAWS = 100_000


class Jitter(msgspec.Struct, frozen=True, kw_only=True):
    """Compute time that varies from rank to rank and step to step.

    Every rank draws a relative deviation a step; collectives wait for the largest of N.
    Its distribution is that of the maximum of N draws, F(x)^N, sampled by inversion, so
    the cost does not depend on N.

    Attributes:
        distribution: `normal` and `lognormal` by standard deviation, `exponential` by mean
            of a one-sided delay.
        spread: Relative to the compute time, 0.05 for 5 %.
        seed: Of the generator.
        draws: Steps that are averaged, one from each of as many equally likely strata.
    """

    distribution: Literal["normal", "lognormal", "exponential"]
    spread: float
    seed: int = 0
    draws: int = 32

    def __post_init__(self) -> None:
        """Refuse a spread or number of draws that means nothing."""
        if not (math.isfinite(self.spread) and 0 <= self.spread <= LARGEST_SPREAD):
            raise ScenarioError(f"jitter spread is {self.spread}, expected a ratio such as 5%")
        if not 1 <= self.draws <= MOST_DRAWS:
            raise ScenarioError(f"jitter draws is {self.draws}, expected 1 to {MOST_DRAWS}")

    def slowdown(self, ranks: NDArray[np.float64]) -> NDArray[np.float64]:
        """How much longer the slowest of `ranks` (S,) computes, relative, at least 0.

        Returns:
            Shape (S, draws); zero for one rank, whose own variation is part of the
            measured time already.
        """
        # One draw from each of `draws` equally likely strata: far closer to the mean than
        # as many independent ones.
        offsets = np.random.default_rng(self.seed).random(self.draws)
        uniform = (np.arange(self.draws) + offsets) / self.draws
        level = uniform ** (1 / ranks[:, None])
        deviation = np.maximum(self._quantile(level), 0.0)
        return np.where(ranks[:, None] > 1, deviation, 0.0)

    def _quantile(self, level: NDArray[np.float64]) -> NDArray[np.float64]:
        level = np.clip(level, 1e-12, 1 - 1e-12)
        if self.distribution == "exponential":
            delay: NDArray[np.float64] = -self.spread * np.log1p(-level)
            return delay
        normal: NDArray[np.float64] = np.vectorize(NormalDist().inv_cdf, otypes=[np.float64])(level)
        if self.distribution == "normal":
            return self.spread * normal
        sigma = math.sqrt(math.log1p(self.spread**2))
        return np.exp(sigma * normal - sigma**2 / 2) - 1


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One question.

    Attributes:
        workers: Ranks that train data-parallel.
        gpus_per_node: Ranks that share a node and its NICs.
        link_bps: Line rate of one inter-node port [bit/s]; None keeps the network's.
        latency_s: Time of one inter-node message [s]; None keeps the network's.
        efficiency: Share of the line rate the transport reaches, at every message size;
            None keeps the network's ("as measured"), 1 is a perfect transport.
        algorithm: All-reduce algorithm, a name of `network.collectives.ALL_REDUCE`.
        servers: Parameter servers; None for one a node.
        colocated: Whether the servers share the workers' nodes.
        schedule: How the step is organised.
        compression_ratio: Uncompressed over compressed gradient bytes.
        encode_s_per_byte: Of uncompressed bytes [s/byte].
        decode_s_per_byte: Of uncompressed bytes [s/byte], for each payload decoded.
        stays_compressed: Whether payloads can be added as they are; if not, the
            reduce-scatter half of an all-reduce travels at full size.
        compressed_collective: `all_gather` for payloads that cannot be added: every rank
            receives and decodes every other's.
        compute_speed: Of the device, relative to the measured one.
        compute_inflation: How much longer compute takes while a collective runs.
        batch_scale: Samples a worker over those measured; forward, backward and input
            follow it, the optimizer does not.
        streams: Collectives that may be in flight at once; they share the link.
        jitter: Variation of compute time over ranks.
    """

    workers: int = 8
    gpus_per_node: int = 1
    link_bps: float | None = None
    latency_s: float | None = None
    efficiency: float | None = None
    algorithm: str = "ring"
    servers: int | None = None
    colocated: bool = True
    schedule: Schedule = Schedule()
    compression_ratio: float = 1.0
    encode_s_per_byte: float = 0.0
    decode_s_per_byte: float = 0.0
    stays_compressed: bool = True
    compressed_collective: Literal["all_reduce", "all_gather"] = "all_reduce"
    compute_speed: float = 1.0
    compute_inflation: float = 0.0
    batch_scale: float = 1.0
    streams: int = 1
    jitter: Jitter | None = None

    def __post_init__(self) -> None:
        """Refuse what no job can be."""
        for name in ("workers", "gpus_per_node", "streams", "servers"):
            _check(name, getattr(self, name), 1, MOST_RANKS)
        for name in ("link_bps", "compression_ratio", "compute_speed", "batch_scale"):
            _check(name, getattr(self, name), 1 / LARGEST, LARGEST)
        for name in ("latency_s", "encode_s_per_byte", "decode_s_per_byte", "compute_inflation"):
            _check(name, getattr(self, name), 0, LARGEST)
        if self.efficiency is not None and not 0 < self.efficiency <= 1:
            raise ScenarioError(
                f"efficiency is {self.efficiency}, expected a ratio above 0, up to 1"
            )

    @property
    def order_depends_on_durations(self) -> bool:
        """Whether only the event engine can answer: no fixed order, or speeds that interact."""
        return (
            self.streams > 1
            or self.compute_inflation > 0
            or self.schedule.order == "priority"
            or self.schedule.overlap_next_forward
        )


def _check(name: str, value: float | None, lowest: float, highest: float) -> None:
    if value is not None and not lowest <= value <= highest:
        raise ScenarioError(f"{name} is {value}, expected {lowest:g} to {highest:g}")

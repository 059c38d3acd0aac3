"""From operations to seconds: the cost vector of each, times the prices of a scenario."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from wirebound.network import collectives
from wirebound.network.collectives import Layout
from wirebound.network.record import Network
from wirebound.resources import Resource
from wirebound.simulate.graph import Graph
from wirebound.simulate.run import Array, Costs, Leg
from wirebound.simulate.scenario import NUMERIC, Scenario
from wirebound.units import seconds_per_byte
from wirebound.workload.record import SPAN_RESOURCE, Kind, Operation

PER_BATCH = frozenset({Kind.INPUT, Kind.FORWARD, Kind.BACKWARD, Kind.COMPUTE})
"""Timed operations that take longer for more samples."""


class Prices(msgspec.Struct, frozen=True):
    """What a scenario asks for, resolved against a network; floats or one array entry a scenario.

    Attributes:
        layout: Where the ranks are.
        workers: Ranks.
        inter_s_per_byte: Line rate of a node between nodes [s/byte], before efficiency.
        inter_alpha_s: Of a message between nodes [s].
        efficiency: One for all message sizes, or None for the network's.
        compression_ratio: Uncompressed over compressed bytes.
        encode_s_per_byte: Of uncompressed bytes [s/byte].
        decode_s_per_byte: Of uncompressed bytes [s/byte].
        compute_speed: Relative to the measured device.
        batch_scale: Relative to the measured batch.
        slowdown: Extra compute time of the slowest rank, relative.
    """

    layout: Layout
    workers: Array
    inter_s_per_byte: Array
    inter_alpha_s: Array
    efficiency: Array | None
    compression_ratio: Array
    encode_s_per_byte: Array
    decode_s_per_byte: Array
    compute_speed: Array
    batch_scale: Array
    slowdown: Array


def prices(network: Network, scenario: Scenario, columns: Mapping[str, Array] = {}) -> Prices:
    """Resolve a scenario, with some of its numeric fields replaced by arrays.

    Args:
        network: Supplies what the scenario leaves open.
        scenario: The base.
        columns: Numeric fields -> one value a scenario, all of one shape (S,).

    Returns:
        With jitter every array gets a last axis, of its draws or of one.
    """
    given: dict[str, Any] = {name: getattr(scenario, name) for name in NUMERIC}
    given.update(columns)
    slowdown: Array = 0.0
    if scenario.jitter is not None:
        slowdown = scenario.jitter.slowdown(np.atleast_1d(given["workers"]))
        given = {
            name: value[..., None] if isinstance(value, np.ndarray) else value
            for name, value in given.items()
        }
    inter = network.inter
    rate = inter.bandwidth_bps if given["link_bps"] is None else given["link_bps"]
    return Prices(
        layout=Layout.filled(given["workers"], given["gpus_per_node"]),
        workers=given["workers"],
        inter_s_per_byte=seconds_per_byte(rate) * inter.oversubscription / inter.nics,
        inter_alpha_s=inter.alpha_s if given["latency_s"] is None else given["latency_s"],
        efficiency=given["efficiency"],
        compression_ratio=given["compression_ratio"],
        encode_s_per_byte=given["encode_s_per_byte"],
        decode_s_per_byte=given["decode_s_per_byte"],
        compute_speed=given["compute_speed"],
        batch_scale=given["batch_scale"],
        slowdown=slowdown,
    )


def price(graph: Graph, network: Network, scenario: Scenario, at: Prices) -> Costs:
    """Seconds by resource of every operation of a graph.

    A network without an intra tier carries bytes inside a node for free.
    """
    pricing = _Pricing(network, scenario, at)
    return [pricing.legs(op) for op in graph.operations]


class _Pricing:
    """Prices one scenario; what is the same for all operations is worked out once."""

    def __init__(self, network: Network, scenario: Scenario, at: Prices) -> None:
        self.network = network
        self.scenario = scenario
        self.at = at
        self.intra = network.intra
        self.span_scale = 1 / at.compute_speed
        self.batch_span_scale = at.batch_scale * self.span_scale
        self._link_prices: dict[bool, Array] = {}

    def legs(self, op: Operation) -> tuple[Leg, ...]:
        if op.kind in SPAN_RESOURCE:
            return self._span(op)
        if op.kind is Kind.ENCODE:
            return ({Resource.CODEC: self._encode_s(op.nbytes)},)
        if op.kind is Kind.DECODE:
            return ({Resource.CODEC: self._decode_s(op.nbytes)},)
        if op.kind is Kind.NEGOTIATE:
            return self._negotiation()
        return self._collective(op)

    def _span(self, op: Operation) -> tuple[Leg, ...]:
        resource = SPAN_RESOURCE[op.kind]
        if resource is not Resource.COMPUTE:
            return ({resource: op.seconds * (self.at.batch_scale if op.kind in PER_BATCH else 1)},)
        scale = self.batch_span_scale if op.kind in PER_BATCH else self.span_scale
        seconds = op.seconds * scale
        if self.scenario.jitter is None:
            return ({resource: seconds},)
        return ({resource: seconds, Resource.WAIT: seconds * self.at.slowdown},)

    def _several(self, seconds: Array) -> Array:
        """Codecs run only where there is somebody to send to."""
        if isinstance(self.at.workers, np.ndarray):
            return np.where(self.at.workers > 1, seconds, 0.0)
        return seconds if self.at.workers > 1 else 0.0

    def _encode_s(self, nbytes: float) -> Array:
        return self._several(nbytes * self.at.encode_s_per_byte)

    def _decode_s(self, nbytes: float) -> Array:
        payloads = self.at.workers if self.scenario.compressed_collective == "all_gather" else 1
        return self._several(nbytes * self.at.decode_s_per_byte * payloads)

    def _negotiation(self) -> tuple[Leg, ...]:
        messages = negotiation_messages(self.scenario, self.at.workers)
        return ({Resource.LATENCY_INTER: messages * self.at.inter_alpha_s},)

    def _collective(self, op: Operation) -> tuple[Leg, ...]:
        kind = op.kind.value
        size: Array = op.nbytes
        codec_s: Array = 0.0
        if op.is_gradient:
            if self.scenario.compressed_collective == "all_gather":
                kind = "all_gather"
                size = op.nbytes * self.at.workers
            if self.scenario.schedule.codec_lane == "comm":
                codec_s = self._encode_s(op.nbytes) + self._decode_s(op.nbytes)
        legs = collectives.cost(
            kind,
            self.scenario.algorithm,
            size,
            self.at.layout,
            servers=self.scenario.servers,
            colocated=self.scenario.colocated,
        )
        # Legs of a tier that carries nothing cost no more than the others: the same latency.
        busy = [leg for leg in legs if np.any(leg.inter_bytes) or np.any(leg.intra_bytes)]
        return tuple(self._leg(op, leg, codec_s) for leg in busy or legs[:1])

    def _leg(self, op: Operation, leg: collectives.Leg, codec_s: Array) -> Leg:
        reduction = self.network.reduction
        additions: Array = 0.0
        for count, nbytes in leg.adds:
            additions = additions + count * reduction.seconds(nbytes)
        seconds: dict[Resource, Array] = {
            Resource.LINK_INTER: leg.inter_bytes * self._inter_s_per_byte(op),
            Resource.LATENCY_INTER: leg.inter_messages * self.at.inter_alpha_s,
            Resource.REDUCTION: additions,
            Resource.CODEC: codec_s,
        }
        if self.intra is not None:
            intra_s_per_byte = seconds_per_byte(self.intra.node_bps)
            occupied = self._occupied(op, self.intra.efficiency_at)
            seconds[Resource.LINK_INTRA] = leg.intra_bytes * (occupied * intra_s_per_byte)
            seconds[Resource.LATENCY_INTRA] = leg.intra_messages * self.intra.alpha_s
        plain = ((name, _plain(value)) for name, value in seconds.items())
        return {name: value for name, value in plain if isinstance(value, np.ndarray) or value}

    def _inter_s_per_byte(self, op: Operation) -> Array:
        """Seconds a byte of the uncompressed collective between nodes."""
        known = self._link_prices.get(op.is_gradient)
        if known is not None:
            return known
        given = self.at.efficiency
        efficiency_at = self.network.inter.efficiency_at if given is None else lambda _: given
        price = self.at.inter_s_per_byte * self._occupied(op, efficiency_at)
        if given is not None or not isinstance(self.network.inter.efficiency, tuple):
            self._link_prices[op.is_gradient] = price
        return price

    def _occupied(self, op: Operation, efficiency_at: Callable[[Array], Array]) -> Array:
        """Bytes of line rate for each byte of the collective, as its size was counted.

        Payloads that do not stay compressed travel whole through the reduce-scatter half.
        """
        if not op.is_gradient:
            return 1 / efficiency_at(op.nbytes)
        ratio = self.at.compression_ratio
        compressed = 1 / efficiency_at(op.nbytes / ratio) / ratio
        if self.scenario.stays_compressed or self.scenario.compressed_collective == "all_gather":
            return compressed
        return (1 / efficiency_at(op.nbytes) + compressed) / 2


def negotiation_messages(scenario: Scenario, workers: Array) -> Array:
    """Serialized messages of one agreement, where the bucketing policy negotiates."""
    count = getattr(scenario.schedule.bucketing, "negotiation_messages", None)
    if count is None:
        return 0.0
    if isinstance(workers, np.ndarray):
        messages: Array = np.vectorize(count, otypes=[np.float64])(workers)
        return messages
    return float(count(workers))


def _plain(value: Array) -> Array:
    """NumPy scalars as floats, on which the engine is faster; arrays as they are."""
    return value if isinstance(value, np.ndarray) and value.ndim else float(value)

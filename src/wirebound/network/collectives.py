"""What a collective costs: bytes through the busiest links, messages in a row, additions.

Nothing here knows a bandwidth or a second; the prices are in `record.py`. Every function
takes the size as nccl-tests counts it and returns `Leg`s that run at once. Sources and
limits of the formulas: `docs/model/collectives.md`. In formulas, S is the size, N the
ranks, n the nodes and g the ranks on the fullest node.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.errors import ScenarioError

Amount = float | NDArray[np.float64]
"""A number, or one number for each scenario; all arguments broadcast."""


class Layout(msgspec.Struct, frozen=True):
    """How workers are spread over nodes; ranks fill one node after the other.

    Attributes:
        ranks: Workers in all.
        nodes: Nodes that hold them.
        per_node: Ranks on the fullest node.
    """

    ranks: Amount
    nodes: Amount
    per_node: Amount

    def __post_init__(self) -> None:
        """Refuse layouts whose ranks do not fit their nodes."""
        ranks, nodes, per_node = (
            np.asarray(value) for value in (self.ranks, self.nodes, self.per_node)
        )
        fits = (nodes >= 1) & (per_node >= 1) & (ranks >= nodes + per_node - 1)
        if not np.all(fits & (ranks <= nodes * per_node)):
            raise ScenarioError(
                f"layout of {self.ranks} ranks on {self.nodes} nodes with at most "
                f"{self.per_node} a node is impossible: every node holds at least one rank"
            )

    @classmethod
    def filled(cls, ranks: Amount, gpus_per_node: Amount) -> "Layout":
        """Lay ranks out so that every node but the last is full."""
        return cls(
            ranks, np.ceil(np.divide(ranks, gpus_per_node)), np.minimum(ranks, gpus_per_node)
        )


class Leg(msgspec.Struct, frozen=True):
    """One of several flows that run at once; the collective lasts as long as its longest leg.

    What one leg lists happens one after the other: its time is the sum of its costs.

    Attributes:
        inter_bytes: Through one node's whole NIC capacity, one direction [bytes].
        intra_bytes: Through one GPU's port inside the node, one direction [bytes].
        inter_messages: Serialized messages between nodes, one alpha each.
        intra_messages: Serialized messages inside a node, one alpha each.
        adds: Serialized additions as pairs (how many, bytes of each).
    """

    inter_bytes: Amount = 0.0
    intra_bytes: Amount = 0.0
    inter_messages: Amount = 0.0
    intra_messages: Amount = 0.0
    adds: tuple[tuple[Amount, Amount], ...] = ()


Legs = tuple[Leg, ...]


def _numbers(nbytes: Amount, layout: Layout) -> tuple[NDArray[np.float64], ...]:
    """Return S, N, n and g as arrays."""
    values = (nbytes, layout.ranks, layout.nodes, layout.per_node)
    return tuple(np.asarray(value, dtype=np.float64) for value in values)


def _ring_legs(
    per_link: Amount, layout: Layout, laps: int, adds: tuple[tuple[Amount, Amount], ...]
) -> Legs:
    """Two flows around a ring: through the NICs, and through the ports inside the nodes.

    A message makes N - 1 of the ring's N hops in a lap, and a ring crosses between nodes
    n times; the slowest message meets every crossing.
    """
    _, ranks, nodes, per_node = _numbers(0.0, layout)
    crossings = np.where(nodes > 1, np.minimum(nodes, ranks - 1), 0)
    inter, intra = laps * crossings, laps * (ranks - 1 - crossings)
    return (
        Leg(np.where(nodes > 1, per_link, 0.0), 0.0, inter, intra, adds),
        Leg(0.0, np.where(per_node > 1, per_link, 0.0), inter, intra, adds),
    )


def ring(nbytes: Amount, layout: Layout) -> Legs:
    """All-reduce around one flat ring of all ranks: reduce-scatter, then all-gather.

    Bytes 2(N-1)/N S on every link of the ring; messages 2(N-1), of them 2n between nodes
    (at most 2(N-1)); N-1 additions of S/N. Source: Patarasuk and Yuan 2009; NCCL's
    tuning model for the messages. Limit: chunks are even and no link is shared.
    """
    size, ranks, _, _ = _numbers(nbytes, layout)
    return _ring_legs(2 * (ranks - 1) / ranks * size, layout, 2, ((ranks - 1, size / ranks),))


def hierarchical(nbytes: Amount, layout: Layout) -> Legs:
    """Reduce-scatter inside the nodes, all-reduce of the shards between, all-gather inside.

    Bytes 2(g-1)/g S inside and 2(n-1)/n S through a NIC, which carries all g shards;
    messages 2(g-1) and 2(n-1); additions g-1 of S/g and n-1 of S/(g n). Limit: the three
    phases do not overlap, and every node is as full as the fullest.
    """
    size, _, nodes, per_node = _numbers(nbytes, layout)
    return (
        Leg(
            inter_bytes=2 * (nodes - 1) / nodes * size,
            intra_bytes=2 * (per_node - 1) / per_node * size,
            inter_messages=2 * (nodes - 1),
            intra_messages=2 * (per_node - 1),
            adds=((per_node - 1, size / per_node), (nodes - 1, size / per_node / nodes)),
        ),
    )


def halving_doubling(nbytes: Amount, layout: Layout) -> Legs:
    """All-reduce by recursive halving, then doubling, nearest ranks first.

    With N and g powers of two: bytes 2(g-1)/g S inside and 2(n-1)/n S through a NIC,
    messages 2 log2 g and 2 log2 n, one addition each of S/2, S/4, ... S/N. Otherwise the
    N - 2^k extra ranks first hand all of S to a neighbour and get the result back, and
    the exchanges are counted one by one. Source: Thakur, Rabenseifner and Gropp 2005, the
    fold as in MPICH. Limit: an exchange in which any pair sits on two nodes is charged to
    the NIC alone.
    """
    size, ranks, _, per_node = _numbers(nbytes, layout)
    ranks, per_node = np.broadcast_arrays(ranks, per_node)
    layouts, where = np.unique(ranks + 1j * per_node, return_inverse=True)
    counts = np.array([_exchanges(int(pair.real), int(pair.imag)) for pair in layouts])
    inter, intra, inter_messages, intra_messages = np.moveaxis(
        counts[where.ravel()].reshape(*ranks.shape, 4), -1, 0
    )
    rounds = np.frexp(ranks)[1] - 1
    folded = np.where(ranks > np.exp2(rounds), 1.0, 0.0)
    halvings = range(1, int(rounds.max()) + 1)
    adds = ((folded, size), *((np.where(k <= rounds, 1.0, 0.0), size / 2**k) for k in halvings))
    return (Leg(inter * size, intra * size, inter_messages, intra_messages, adds),)


@lru_cache(maxsize=4096)
def _exchanges(ranks: int, per_node: int) -> tuple[float, float, int, int]:
    """Count halving-doubling's exchanges for S = 1: inter and intra bytes, then messages."""
    rounds = ranks.bit_length() - 1
    extra = ranks - 2**rounds
    paired = np.arange(0, 2 * extra, 2)
    node = np.concatenate([paired + 1, np.arange(2 * extra, ranks)]) // per_node
    phases = [(1.0, paired // per_node, (paired + 1) // per_node)] if extra else []
    index = np.arange(node.size)
    phases += [(0.5 ** (k + 1), node, node[index ^ 2**k]) for k in range(rounds)]
    bytes_, messages = [0.0, 0.0], [0, 0]
    for share, sender, receiver in phases:
        leaving = sender[sender != receiver]
        where = 0 if leaving.size else 1
        bytes_[where] += 2 * share * (np.bincount(leaving).max() if leaving.size else 1)
        messages[where] += 2
    return bytes_[0], bytes_[1], messages[0], messages[1]


def tree(nbytes: Amount, layout: Layout) -> Legs:
    """All-reduce on NCCL's double binary tree over the nodes, a chain inside each, pipelined.

    Bytes through a NIC: S on 2 nodes, 1.5 S on 3, 2 S beyond (counted on the two trees,
    each of which carries S/2); inside 2(g-1)/g S; messages 2(g-1) and 2 ceil(log2 n).
    Additions of the busiest rank: one of (g-1)/g S, and one (2 nodes) or two of S/2.
    Source: NVIDIA/nccl `src/graph/trees.cc` and `tuning.cc`, issue 946. Limit: the
    pipeline is full, and chains rotate so that all ports inside a node carry the same.
    """
    size, _, nodes, per_node = _numbers(nbytes, layout)
    halves = np.select([nodes > 3, nodes > 2, nodes > 1], [4.0, 3.0, 2.0], 0.0)  # noqa: PLR2004
    chain = (per_node - 1) / per_node * size
    children = np.clip(nodes - 1, 0, 2)
    inter = 2.0 * np.frexp(nodes - 1)[1]
    intra = 2 * (per_node - 1)
    adds = ((np.minimum(per_node - 1, 1), chain), (children, size / 2))
    return (
        Leg(halves * size / 2, 0.0, inter, intra, adds),
        Leg(0.0, 2 * chain, inter, intra, adds),
    )


def parameter_server(
    nbytes: Amount, layout: Layout, *, servers: Amount | None = None, colocated: bool = True
) -> Legs:
    """Push to k servers that add up and pull the sum, each node as one worker.

    Bytes through the busiest NIC: S(n+k-2)/k with servers on k of the worker nodes, and
    max(S, n S/k) with servers of their own; 2 messages; n-1 additions of S/k. Inside a
    node as hierarchical. Source: the load analysis of Jiang et al. (BytePS, OSDI 2020),
    derived again in the docs. Limit: parameters are spread evenly over the servers.

    Args:
        nbytes: Size of the reduced buffer [bytes].
        layout: Where the ranks are.
        servers: How many, as many as nodes by default; co-located at most one a node counts.
        colocated: Whether servers run on worker nodes.
    """
    size, _, nodes, _ = _numbers(nbytes, layout)
    count = nodes if servers is None else np.asarray(servers, dtype=np.float64)
    if np.any(count < 1):
        raise ScenarioError(f"servers is {servers}, expected at least one parameter server")
    if colocated:
        count = np.minimum(count, nodes)
        busiest = size * (nodes + count - 2) / count
    else:
        busiest = size * np.maximum(1.0, nodes / count)
    return _one_trip(busiest, nbytes, layout, ((nodes - 1, size / count),))


def in_network(nbytes: Amount, layout: Layout) -> Legs:
    """Shards cross each NIC once each way and are added up in the switch.

    Bytes S through a NIC, 2 messages; inside a node as hierarchical. Source: SwitchML
    (Sapio et al., NSDI 2021), NVIDIA SHARP. Limit: the switch adds at line rate and holds
    the whole job; NVLink SHARP inside a node is not modelled.
    """
    return _one_trip(nbytes, nbytes, layout, ())


def _one_trip(
    busiest: Amount, nbytes: Amount, layout: Layout, adds: tuple[tuple[Amount, Amount], ...]
) -> Legs:
    """Reduce inside the nodes, there and back between them, gather inside the nodes."""
    size, _, nodes, per_node = _numbers(nbytes, layout)
    crosses = np.where(nodes > 1, 1.0, 0.0)
    return (
        Leg(
            inter_bytes=crosses * busiest,
            intra_bytes=2 * (per_node - 1) / per_node * size,
            inter_messages=2 * crosses,
            intra_messages=2 * (per_node - 1),
            adds=((per_node - 1, size / per_node), *adds),
        ),
    )


def reduce_scatter(nbytes: Amount, layout: Layout) -> Legs:
    """Ring reduce-scatter of the full input S: the first lap of `ring`."""
    size, ranks, _, _ = _numbers(nbytes, layout)
    return _ring_legs((ranks - 1) / ranks * size, layout, 1, ((ranks - 1, size / ranks),))


def all_gather(nbytes: Amount, layout: Layout) -> Legs:
    """Ring all-gather of the full output S: the second lap of `ring`."""
    size, ranks, _, _ = _numbers(nbytes, layout)
    return _ring_legs((ranks - 1) / ranks * size, layout, 1, ())


def all_gather_v(nbytes_by_rank: Amount, layout: Layout) -> Legs:
    """Ring all-gather of blocks of unequal size, pipelined.

    The link into a rank carries every block but its own, so the busiest carries
    sum(b) - min(b). Limit: in lock step, without pipelining, every step would last as
    long as the largest block.

    Args:
        nbytes_by_rank: Size of each rank's block, ranks on the last axis [bytes].
        layout: Where the ranks are.
    """
    blocks = np.asarray(nbytes_by_rank, dtype=np.float64)
    if blocks.ndim == 0 or np.any(np.asarray(layout.ranks) != blocks.shape[-1]):
        raise ScenarioError(
            f"all-gather of blocks shaped {blocks.shape} on {layout.ranks} ranks, "
            "expected one block for each rank on the last axis"
        )
    return _ring_legs(blocks.sum(axis=-1) - blocks.min(axis=-1), layout, 1, ())


def broadcast(nbytes: Amount, layout: Layout) -> Legs:
    """Pipelined broadcast along a chain that starts at the root.

    Bytes S on every link; N-1 messages, n-1 of them between nodes. Limit: enough chunks
    to fill the pipeline.
    """
    size, ranks, nodes, per_node = _numbers(nbytes, layout)
    inter, intra = nodes - 1, ranks - nodes
    return (
        Leg(np.where(nodes > 1, size, 0.0), 0.0, inter, intra),
        Leg(0.0, np.where(per_node > 1, size, 0.0), inter, intra),
    )


def all_to_all(nbytes: Amount, layout: Layout) -> Legs:
    """Every rank sends S/N to each rank, to itself too.

    Bytes g(N-g)/N S through the NIC of the fullest node and (g-1)/N S through a port;
    one message for each peer, both flows at once. Limit: pairwise exchange; NCCL has
    several peers in flight, which hides part of the messages.
    """
    size, ranks, _, per_node = _numbers(nbytes, layout)
    away, near = ranks - per_node, per_node - 1
    return (
        Leg(inter_bytes=per_node * away / ranks * size, inter_messages=away),
        Leg(intra_bytes=near / ranks * size, intra_messages=near),
    )


def send_recv(nbytes: Amount, layout: Layout) -> Legs:
    """One rank sends S to another, on another node if there is one."""
    size, ranks, nodes, _ = _numbers(nbytes, layout)
    inter = np.where(nodes > 1, 1.0, 0.0)
    intra = np.where(ranks > 1, 1.0 - inter, 0.0)
    return (Leg(inter * size, intra * size, inter, intra),)


ALL_REDUCE: Mapping[str, Callable[[Amount, Layout], Legs]] = {
    "ring": ring,
    "hierarchical": hierarchical,
    "halving-doubling": halving_doubling,
    "tree": tree,
    "parameter-server": parameter_server,
    "in-network": in_network,
}
"""All-reduce algorithms by the name a scenario gives them."""

_OTHERS: Mapping[str, Callable[[Amount, Layout], Legs]] = {
    "reduce_scatter": reduce_scatter,
    "all_gather": all_gather,
    "broadcast": broadcast,
    "all_to_all": all_to_all,
    "send_recv": send_recv,
}


def cost(  # noqa: PLR0913 - the choices of a scenario, each by its name
    kind: str,
    algorithm: str,
    nbytes: Amount,
    layout: Layout,
    *,
    servers: Amount | None = None,
    colocated: bool = True,
) -> Legs:
    """Return what one collective costs.

    Args:
        kind: `all_reduce`, `reduce_scatter`, `all_gather`, `broadcast`, `all_to_all` or
            `send_recv`.
        algorithm: A key of `ALL_REDUCE`; the other kinds have one algorithm each.
        nbytes: Size as nccl-tests counts it [bytes]: the full input of a reduce-scatter,
            the full output of an all-gather, all that one rank sends in an all-to-all.
        layout: Where the ranks are.
        servers: Parameter servers, as many as nodes by default; unused by other algorithms.
        colocated: Whether they run on worker nodes.

    Raises:
        ScenarioError: An unknown kind or algorithm.
    """
    if algorithm not in ALL_REDUCE:
        raise _unknown("all-reduce algorithm", algorithm, ALL_REDUCE)
    if kind == "all_reduce":
        if algorithm == "parameter-server":
            return parameter_server(nbytes, layout, servers=servers, colocated=colocated)
        return ALL_REDUCE[algorithm](nbytes, layout)
    if kind not in _OTHERS:
        raise _unknown("collective", kind, ("all_reduce", *_OTHERS))
    return _OTHERS[kind](nbytes, layout)


def bus_factor(kind: str, ranks: Amount) -> Amount:
    """Return bus bandwidth over algorithm bandwidth, as nccl-tests defines it.

    Source: NVIDIA/nccl-tests `doc/PERFORMANCE.md` and `src/all_reduce.cu`; the column
    `busbw` has the same factor when the network reduces.
    """
    count = np.asarray(ranks, dtype=np.float64)
    if kind in {"broadcast", "send_recv"}:
        return np.ones_like(count)
    if kind == "all_reduce":
        return 2 * (count - 1) / count
    if kind in _OTHERS:
        return (count - 1) / count
    raise _unknown("collective", kind, ("all_reduce", *_OTHERS))


def _unknown(what: str, name: str, known: Iterable[str]) -> ScenarioError:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.0)
    return ScenarioError(
        f"unknown {what} {name!r}, expected one of {', '.join(names)}", f"did you mean {near[0]!r}?"
    )

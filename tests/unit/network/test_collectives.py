"""Collectives against counts from first principles: every message of small cases."""

from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebound.errors import ScenarioError
from wirebound.network import Layout, Leg, all_gather_v, bus_factor, cost
from wirebound.network.collectives import ALL_REDUCE, Legs

KINDS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "send_recv")
CASES = [(ranks, gpus) for ranks, gpus in product(range(1, 13), range(1, 6)) if gpus <= ranks]

counts = st.integers(1, 300)


class Wire:
    """Counts bytes by link of a cluster whose ranks fill one node after the other."""

    def __init__(self, gpus_per_node: int) -> None:
        self.gpus = gpus_per_node
        self.nic: defaultdict[tuple[str, int], float] = defaultdict(float)
        self.port: defaultdict[tuple[str, int], float] = defaultdict(float)

    def crosses(self, sender: int, receiver: int) -> bool:
        """Whether two ranks sit on two nodes."""
        return sender // self.gpus != receiver // self.gpus

    def send(self, sender: int, receiver: int, nbytes: float) -> None:
        """Count one message on the way out and on the way in."""
        if self.crosses(sender, receiver):
            self.nic["out", sender // self.gpus] += nbytes
            self.nic["in", receiver // self.gpus] += nbytes
        else:
            self.port["out", sender] += nbytes
            self.port["in", receiver] += nbytes

    @property
    def busiest(self) -> tuple[float, float]:
        """Bytes of the busiest NIC and of the busiest port, one direction."""
        return max(self.nic.values(), default=0.0), max(self.port.values(), default=0.0)


def busiest(legs: Legs) -> tuple[float, float]:
    """Bytes through the busiest links of all legs together."""
    return sum(float(leg.inter_bytes) for leg in legs), sum(float(leg.intra_bytes) for leg in legs)


def amounts(leg: Leg) -> list[float]:
    """All numbers of a leg, sizes of additions as bytes added."""
    costs = [leg.inter_bytes, leg.intra_bytes, leg.inter_messages, leg.intra_messages]
    return [float(value) for value in (*costs, *(count * size for count, size in leg.adds))]


def ring_lap(ranks: int, gpus: int) -> tuple[Wire, int]:
    """One lap of N - 1 steps: the wire, and crossings of the chunk that meets most."""
    wire = Wire(gpus)
    crossings = [0] * ranks
    for step, chunk in product(range(ranks - 1), range(ranks)):
        sender = (chunk + step) % ranks
        receiver = (sender + 1) % ranks
        wire.send(sender, receiver, 1 / ranks)
        crossings[chunk] += wire.crosses(sender, receiver)
    return wire, max(crossings)


@pytest.mark.parametrize(("ranks", "gpus"), CASES)
@pytest.mark.parametrize(
    ("kind", "laps"), [("all_reduce", 2), ("reduce_scatter", 1), ("all_gather", 1)]
)
def test_ring_counts_every_step(kind: str, laps: int, ranks: int, gpus: int) -> None:
    """Links, messages and additions are those of the ring walked step by step."""
    layout = Layout.filled(ranks, gpus)
    wire, crossings = ring_lap(ranks, gpus)
    legs = cost(kind, "ring", 1.0, layout)
    assert busiest(legs) == pytest.approx(tuple(laps * value for value in wire.busiest))
    for leg in legs:
        assert leg.inter_messages == laps * crossings
        assert leg.inter_messages + leg.intra_messages == laps * (ranks - 1)
        added = sum(count * size for count, size in leg.adds)
        assert added == pytest.approx(0 if kind == "all_gather" else (ranks - 1) / ranks)


@pytest.mark.parametrize(("nodes", "gpus"), [(2, 4), (3, 2), (4, 1), (1, 4), (5, 3)])
def test_hierarchical_counts_every_step(nodes: int, gpus: int) -> None:
    """Rings in the nodes, then one ring of nodes for each local rank."""
    wire = Wire(gpus)
    for node, local in product(range(nodes), range(gpus)):
        here = node * gpus + local
        for _ in range(2 * (gpus - 1)):
            wire.send(here, node * gpus + (local + 1) % gpus, 1 / gpus)
        for _ in range(2 * (nodes - 1)):
            wire.send(here, (node + 1) % nodes * gpus + local, 1 / gpus / nodes)
    (leg,) = cost("all_reduce", "hierarchical", 1.0, Layout(nodes * gpus, nodes, gpus))
    assert busiest((leg,)) == pytest.approx(wire.busiest)
    assert (leg.inter_messages, leg.intra_messages) == (2 * (nodes - 1), 2 * (gpus - 1))
    assert leg.adds == ((gpus - 1, 1 / gpus), (nodes - 1, 1 / gpus / nodes))


@given(nodes=counts, size=st.floats(1, 1e12))
def test_hierarchical_with_one_gpu_a_node_is_the_flat_ring(nodes: int, size: float) -> None:
    """Without anything inside a node, only the ring between nodes is left."""
    layout = Layout(nodes, nodes, 1)
    flat, empty = cost("all_reduce", "ring", size, layout)
    (leg,) = cost("all_reduce", "hierarchical", size, layout)
    assert sorted(amounts(leg)) == pytest.approx(sorted([*amounts(flat), 0.0]))
    assert empty.intra_bytes == 0


def halving_doubling(ranks: int, gpus: int) -> tuple[Leg, list[set[int]]]:
    """Exchange real pieces of a vector; return the costs and who contributed where."""
    paired = 1
    while 2 * paired <= ranks:
        paired *= 2
    extra = ranks - paired
    members = [2 * i + 1 if i < extra else i + extra for i in range(paired)]
    held = {rank: [{rank} for _ in range(paired)] for rank in range(ranks)}
    totals = {"nic": 0.0, "port": 0.0, "inter": 0, "intra": 0}

    def exchange(moves: list[tuple[int, int, range]], *, add: bool) -> None:
        if not moves:
            return
        wire = Wire(gpus)
        news = [(to, k, set(held[source][k])) for source, to, piece in moves for k in piece]
        for source, to, piece in moves:
            wire.send(source, to, len(piece) / paired)
        for to, k, new in news:
            held[to][k] = held[to][k] | new if add else new
        nic, port = wire.busiest
        totals["nic"] += nic
        totals["port"] += 0 if nic else port
        totals["inter" if nic else "intra"] += 1

    every = range(paired)
    exchange([(2 * i, 2 * i + 1, every) for i in range(extra)], add=True)
    piece = dict.fromkeys(range(paired), every)
    distance = 1
    while distance < paired:
        halves = {}
        for i in range(paired):
            middle = (piece[i].start + piece[i].stop) // 2
            low, high = range(piece[i].start, middle), range(middle, piece[i].stop)
            halves[i] = (high, low) if i & distance else (low, high)
        exchange(
            [(members[i], members[i ^ distance], halves[i][1]) for i in range(paired)], add=True
        )
        piece = {i: halves[i][0] for i in range(paired)}
        distance *= 2
    while distance > 1:
        distance //= 2
        exchange([(members[i], members[i ^ distance], piece[i]) for i in range(paired)], add=False)
        piece = {
            i: range(
                min(piece[i].start, piece[i ^ distance].start),
                max(piece[i].stop, piece[i ^ distance].stop),
            )
            for i in range(paired)
        }
    exchange([(2 * i + 1, 2 * i, every) for i in range(extra)], add=False)
    leg = Leg(totals["nic"], totals["port"], totals["inter"], totals["intra"])
    return leg, [set.intersection(*parts) for parts in held.values()]


@pytest.mark.parametrize(("ranks", "gpus"), [*CASES, (16, 4), (24, 8), (32, 8), (17, 4)])
def test_halving_doubling_counts_every_exchange(ranks: int, gpus: int) -> None:
    """The costs are those of a run that does leave the sum of all ranks everywhere."""
    expected, sums = halving_doubling(ranks, gpus)
    assert sums == [set(range(ranks))] * ranks
    (leg,) = cost("all_reduce", "halving-doubling", 1.0, Layout.filled(ranks, gpus))
    assert amounts(leg)[:4] == pytest.approx(amounts(expected))


@pytest.mark.parametrize(("nodes", "gpus"), [(1, 8), (4, 4), (8, 1), (2, 8)])
def test_halving_doubling_of_powers_of_two_moves_what_hierarchical_moves(
    nodes: int, gpus: int
) -> None:
    """Fewer messages, the same bytes, half the vector in the first addition."""
    layout = Layout(nodes * gpus, nodes, gpus)
    (leg,) = cost("all_reduce", "halving-doubling", 1.0, layout)
    assert busiest((leg,)) == pytest.approx(
        busiest(cost("all_reduce", "hierarchical", 1.0, layout))
    )
    assert leg.inter_messages + leg.intra_messages == 2 * np.log2(nodes * gpus)
    assert sum(count * size for count, size in leg.adds) == pytest.approx(1 - 1 / nodes / gpus)


def double_tree(nodes: int) -> list[dict[int, int]]:
    """Child to parent in NCCL's two trees: leaves are odd, the second is mirrored or shifted."""
    parents = {}
    for node in range(1, nodes):
        bit = node & -node
        up = node - bit + 2 * bit if (node // bit) % 4 == 1 else node - bit
        parents[node] = up if up < nodes else node - bit
    if nodes % 2:
        second = {(c + 1) % nodes: (p + 1) % nodes for c, p in parents.items()}
    else:
        second = {nodes - 1 - c: nodes - 1 - p for c, p in parents.items()}
    return [parents, second]


@pytest.mark.parametrize("nodes", range(1, 40))
def test_tree_counts_the_busiest_nic_of_the_two_trees(nodes: int) -> None:
    """Half of the vector goes up and down every edge of each tree."""
    wire, children, depth = Wire(1), Counter[int](), 0
    for parents in double_tree(nodes):
        for child, parent in parents.items():
            wire.send(child, parent, 0.5)
            wire.send(parent, child, 0.5)
            children[parent] += 1
            level, above = 1, parent
            while above in parents:
                level, above = level + 1, parents[above]
            depth = max(depth, level)
    inter, intra = cost("all_reduce", "tree", 1.0, Layout(nodes, nodes, 1))
    assert (inter.inter_bytes, intra.intra_bytes) == wire.busiest
    assert inter.inter_messages == 2 * depth
    assert inter.adds[1] == (max(children.values(), default=0), 0.5)
    assert inter.adds == intra.adds


def test_tree_halves_the_traffic_between_two_nodes() -> None:
    """NVIDIA/nccl issue 946: 2 nodes send half of what the links inside carry."""
    inter, intra = cost("all_reduce", "tree", 1.0, Layout(16, 2, 8))
    assert inter.inter_bytes == 1.0
    assert intra.intra_bytes == 2 * 7 / 8
    assert (intra.inter_messages, intra.intra_messages) == (2, 14)


@pytest.mark.parametrize("colocated", [True, False])
@pytest.mark.parametrize(("nodes", "servers"), [(1, 1), (2, 1), (4, 1), (4, 3), (4, 4), (5, 8)])
def test_parameter_server_counts_every_push_and_pull(
    nodes: int, servers: int, *, colocated: bool
) -> None:
    """A worker keeps what its own server holds, otherwise everything travels."""
    used = min(servers, nodes) if colocated else servers
    wire = Wire(1)
    homes = range(used) if colocated else range(nodes, nodes + used)
    for worker, home in product(range(nodes), homes):
        if worker != home:
            wire.send(worker, home, 1 / used)
            wire.send(home, worker, 1 / used)
    layout = Layout(nodes, nodes, 1)
    (leg,) = cost(
        "all_reduce", "parameter-server", 1.0, layout, servers=servers, colocated=colocated
    )
    # A single node needs no server, wherever it is.
    assert leg.inter_bytes == pytest.approx(wire.busiest[0] if nodes > 1 else 0.0)
    assert leg.inter_messages == (2 if nodes > 1 else 0)
    assert leg.adds[-1] == (nodes - 1, 1 / used)


def test_parameter_server_has_as_many_servers_as_nodes_by_default() -> None:
    """Then it moves what a ring of the nodes moves."""
    (leg,) = cost("all_reduce", "parameter-server", 1.0, Layout(32, 4, 8))
    assert busiest((leg,)) == (1.5, 1.75)
    assert leg.adds == ((7, 0.125), (3, 0.25))


def test_in_network_reduction_sends_everything_once() -> None:
    """S each way, two messages, and the rings inside the nodes."""
    (leg,) = cost("all_reduce", "in-network", 80.0, Layout(32, 4, 8))
    assert leg == Leg(80.0, 140.0, 2.0, 14, ((7, 10.0),))


@pytest.mark.parametrize(("ranks", "gpus"), CASES)
def test_all_to_all_counts_every_pair(ranks: int, gpus: int) -> None:
    """Every rank sends a share to every rank."""
    wire = Wire(gpus)
    for sender, receiver in product(range(ranks), repeat=2):
        if sender != receiver:
            wire.send(sender, receiver, 1 / ranks)
    legs = cost("all_to_all", "ring", 1.0, Layout.filled(ranks, gpus))
    assert busiest(legs) == pytest.approx(wire.busiest)
    assert sum(float(leg.inter_messages + leg.intra_messages) for leg in legs) == ranks - 1


@pytest.mark.parametrize(("ranks", "gpus"), CASES)
def test_broadcast_counts_the_chain(ranks: int, gpus: int) -> None:
    """Every rank but the last passes everything on."""
    wire = Wire(gpus)
    for sender in range(ranks - 1):
        wire.send(sender, sender + 1, 1.0)
    legs = cost("broadcast", "tree", 1.0, Layout.filled(ranks, gpus))
    assert busiest(legs) == wire.busiest
    crossings = sum(wire.crosses(rank, rank + 1) for rank in range(ranks - 1))
    for leg in legs:
        assert (leg.inter_messages, leg.intra_messages) == (crossings, ranks - 1 - crossings)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=9))
def test_all_gather_v_counts_every_block(blocks: list[int]) -> None:
    """With one GPU a node, every block passes all links but the one into its owner."""
    ranks = len(blocks)
    wire = Wire(1)
    for owner, step in product(range(ranks), range(ranks - 1)):
        wire.send((owner + step) % ranks, (owner + step + 1) % ranks, blocks[owner])
    legs = all_gather_v(np.array(blocks, dtype=np.float64), Layout(ranks, ranks, 1))
    assert busiest(legs) == wire.busiest


def test_all_gather_v_of_equal_blocks_is_all_gather() -> None:
    """Equal blocks, one row a scenario."""
    layout = Layout(4, 2, 2)
    legs = all_gather_v(np.array([[1.0, 1, 1, 1], [2, 2, 2, 2]]), layout)
    for leg, scalar in zip(legs, cost("all_gather", "ring", 4.0, layout), strict=True):
        for many, one in (
            (leg.inter_bytes, scalar.inter_bytes),
            (leg.intra_bytes, scalar.intra_bytes),
        ):
            assert np.broadcast_to(many, 2).tolist() == [one, 2 * one]
        assert leg.inter_messages == scalar.inter_messages


def test_send_recv_takes_the_far_link_if_there_is_one() -> None:
    """One message, through the NIC as soon as there are two nodes."""
    assert cost("send_recv", "ring", 5.0, Layout(4, 2, 2)) == (Leg(5.0, 0.0, 1.0, 0.0),)
    assert cost("send_recv", "ring", 5.0, Layout(2, 1, 2)) == (Leg(0.0, 5.0, 0.0, 1.0),)


@pytest.mark.parametrize("algorithm", ALL_REDUCE)
@pytest.mark.parametrize("kind", KINDS)
def test_one_rank_is_free(kind: str, algorithm: str) -> None:
    """Nothing to move, nothing to wait for, nothing to add."""
    for leg in cost(kind, algorithm, 1e9, Layout(1, 1, 1), servers=3, colocated=False):
        assert amounts(leg) == [0.0] * len(amounts(leg))
    for leg in all_gather_v(np.array([1e9]), Layout(1, 1, 1)):
        assert amounts(leg) == [0.0] * 4


@given(
    kind=st.sampled_from(KINDS),
    algorithm=st.sampled_from(sorted(ALL_REDUCE)),
    ranks=st.lists(counts, min_size=1, max_size=5),
    gpus=st.integers(1, 9),
    size=st.floats(0, 1e12),
)
def test_arrays_are_scalars_side_by_side(
    kind: str, algorithm: str, ranks: list[int], gpus: int, size: float
) -> None:
    """A vector of layouts gives what each layout gives alone."""
    together = cost(kind, algorithm, size, Layout.filled(np.array(ranks), gpus))
    for i, count in enumerate(ranks):
        alone = cost(kind, algorithm, size, Layout.filled(count, gpus))
        for many, one in zip(together, alone, strict=True):
            picked = [
                np.broadcast_to(value, len(ranks))[i]
                for value in (
                    many.inter_bytes,
                    many.intra_bytes,
                    many.inter_messages,
                    many.intra_messages,
                    sum(count * size for count, size in many.adds),
                )
            ]
            expected = [*amounts(one)[:4], sum(amounts(one)[4:])]
            assert picked == pytest.approx(expected)


@given(
    algorithm=st.sampled_from(sorted(set(ALL_REDUCE) - {"in-network"})),
    ranks=counts,
    gpus=st.integers(1, 16),
    servers=st.none() | counts,
)
def test_no_all_reduce_beats_the_lower_bound(
    algorithm: str, ranks: int, gpus: int, servers: int | None
) -> None:
    """Without help from switches or more machines a NIC carries 2(n-1)/n S, or a port 2(g-1)/g S.

    Patarasuk and Yuan 2009, for the nodes as single workers and for one node alone.
    """
    layout = Layout.filled(ranks, gpus)
    inter, intra = busiest(cost("all_reduce", algorithm, 1.0, layout, servers=servers))
    nodes = float(layout.nodes)
    bound = 2 * (nodes - 1) / nodes if nodes > 1 else 2 * (ranks - 1) / ranks
    assert (inter if nodes > 1 else intra) >= bound - 1e-9


def test_bus_factors_are_those_of_nccl_tests() -> None:
    """NVIDIA/nccl-tests doc/PERFORMANCE.md, for eight ranks and for one."""
    expected = {
        "all_reduce": 14 / 8,
        "reduce_scatter": 7 / 8,
        "all_gather": 7 / 8,
        "all_to_all": 7 / 8,
        "broadcast": 1.0,
        "send_recv": 1.0,
    }
    assert {kind: float(bus_factor(kind, 8)) for kind in KINDS} == expected
    factors = np.asarray(bus_factor("all_reduce", np.array([1.0, 2, 4])))
    assert factors.tolist() == [0.0, 1.0, 1.5]


@pytest.mark.parametrize("kind", ["all_reduce", "reduce_scatter", "all_gather"])
@given(ranks=counts)
def test_the_flat_ring_runs_at_bus_bandwidth(kind: str, ranks: int) -> None:
    """Bytes on the wire over the size are the bus factor: that is what the factor is for."""
    inter, _ = busiest(cost(kind, "ring", 1.0, Layout(ranks, ranks, 1)))
    assert inter == pytest.approx(float(bus_factor(kind, ranks)))


def test_unknown_names_are_refused_with_the_nearest() -> None:
    """Whatever the kind, an unknown algorithm is a mistake."""
    layout = Layout(2, 2, 1)
    with pytest.raises(ScenarioError, match="did you mean 'hierarchical'"):
        cost("broadcast", "hierarchic", 1.0, layout)
    with pytest.raises(ScenarioError, match="did you mean 'all_reduce'"):
        cost("allreduce", "ring", 1.0, layout)
    with pytest.raises(ScenarioError, match="unknown collective 'reduce'"):
        bus_factor("reduce", 2)


@pytest.mark.parametrize(
    ("ranks", "nodes", "per_node"), [(0, 1, 1), (5, 2, 2), (3, 2, 3), (2, 0, 2), (2, 1, np.nan)]
)
def test_impossible_layouts_are_refused(ranks: float, nodes: float, per_node: float) -> None:
    """Ranks must fit, and every node must hold one."""
    with pytest.raises(ScenarioError, match="impossible"):
        Layout(ranks, nodes, per_node)


def test_impossible_arguments_are_refused() -> None:
    """No server, or blocks for other ranks."""
    with pytest.raises(ScenarioError, match="servers is 0"):
        cost("all_reduce", "parameter-server", 1.0, Layout(2, 2, 1), servers=0)
    for blocks in (np.ones(3), 1.0):
        with pytest.raises(ScenarioError, match="one block for each rank"):
            all_gather_v(blocks, Layout(2, 2, 1))

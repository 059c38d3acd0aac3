"""Costs times prices, one resource at a time, by hand."""

import numpy as np
import pytest

from wirebound.network.record import Network, Reduction, Tier
from wirebound.resources import Resource
from wirebound.simulate.graph import compile_graph
from wirebound.simulate.pricing import negotiation_messages, price, prices
from wirebound.simulate.run import Costs
from wirebound.simulate.scenario import Jitter, Scenario
from wirebound.workload.horovod import Horovod
from wirebound.workload.record import Kind, Operation
from wirebound.workload.schedule import Schedule

NETWORK = Network(
    "n",
    Tier("inter", bandwidth_bps=8e9, alpha_s=1e-5, efficiency=0.5),
    Tier("intra", bandwidth_bps=80e9, alpha_s=1e-6),
    gpus_per_node=4,
    reduction=Reduction(seconds_per_byte=1e-12),
)
GRADIENT = Operation("g", Kind.ALL_REDUCE, lane="comm", nbytes=8e6, is_gradient=True)
PLAIN = Operation("p", Kind.ALL_REDUCE, lane="comm", nbytes=8e6)


def costs(op: Operation, scenario: Scenario, network: Network = NETWORK, **columns: float) -> Costs:
    """Legs of one operation; columns become arrays of one."""
    arrays = {name: np.array([value]) for name, value in columns.items()}
    at = prices(network, scenario, arrays)
    return price(compile_graph([op]), network, scenario, at)


def test_spans_scale_with_speed_and_batch() -> None:
    """The optimizer does not follow the batch, the host follows nothing."""
    scenario = Scenario(compute_speed=2.0, batch_scale=3.0)
    expected = {
        Kind.FORWARD: {Resource.COMPUTE: 1.5},
        Kind.BACKWARD: {Resource.COMPUTE: 1.5},
        Kind.COMPUTE: {Resource.COMPUTE: 1.5},
        Kind.OPTIMIZER: {Resource.COMPUTE: 0.5},
        Kind.INPUT: {Resource.INPUT: 3.0},
        Kind.HOST: {Resource.HOST: 1.0},
    }
    for kind, leg in expected.items():
        assert [(leg,)] == costs(Operation("s", kind, seconds=1.0), scenario)


def test_a_ring_over_one_node_each() -> None:
    """2 (N-1)/N bytes at half the line rate, 2 (N-1) messages, N-1 additions of S/N."""
    ((leg,),) = costs(PLAIN, Scenario(workers=8))
    assert leg == pytest.approx(
        {
            Resource.LINK_INTER: 2 * 7 / 8 * 8e6 / 0.5e9,
            Resource.LATENCY_INTER: 14 * 1e-5,
            Resource.REDUCTION: 7 * 1e6 * 1e-12,
        }
    )


def test_a_ring_over_two_tiers_has_two_legs() -> None:
    """Each through its own link, with the same latency."""
    ((inter, intra),) = costs(PLAIN, Scenario(workers=8, gpus_per_node=4))
    assert inter[Resource.LINK_INTER] == pytest.approx(14 / 8 * 8e6 / 0.5e9)
    assert intra[Resource.LINK_INTRA] == pytest.approx(14 / 8 * 8e6 / 10e9)
    assert inter[Resource.LATENCY_INTER] == intra[Resource.LATENCY_INTER] == pytest.approx(4e-5)
    assert inter[Resource.LATENCY_INTRA] == pytest.approx(10e-6)


def test_scenario_prices_replace_the_network() -> None:
    """Rate, latency and efficiency; ports and oversubscription stay."""
    tier = Tier("t", bandwidth_bps=8e9, alpha_s=1e-5, efficiency=0.5, nics=2, oversubscription=4.0)
    scenario = Scenario(workers=2, link_bps=16e9, latency_s=0.0, efficiency=1.0)
    ((leg,),) = costs(PLAIN, scenario, Network("n", tier))
    assert leg == pytest.approx({Resource.LINK_INTER: 8e6 / 2e9 * 4 / 2})


def test_one_rank_costs_nothing() -> None:
    """No byte, no message, no addition, no codec."""
    scenario = Scenario(workers=1, encode_s_per_byte=1.0, decode_s_per_byte=1.0)
    for kind in Kind:
        if kind.value in ("all_reduce", "all_gather", "broadcast", "all_to_all", "send_recv"):
            op = Operation("c", kind, nbytes=8e6, is_gradient=True)
            assert sum(leg.get(r, 0.0) for (leg,) in costs(op, scenario) for r in Resource) == 0
    assert costs(Operation("e", Kind.ENCODE, nbytes=8e6), scenario) == [({Resource.CODEC: 0.0},)]
    assert costs(Operation("d", Kind.DECODE, nbytes=8e6), scenario) == [({Resource.CODEC: 0.0},)]


def link_s(op: Operation, scenario: Scenario, network: Network = NETWORK) -> float:
    """Seconds of link of an operation with one leg."""
    ((leg,),) = costs(op, scenario, network)
    return float(leg[Resource.LINK_INTER])


def test_compression_divides_gradients_only() -> None:
    """Whole through the first half where payloads cannot be added as they are."""
    plain = Scenario(workers=2)
    four = Scenario(workers=2, compression_ratio=4.0)
    unpacked = Scenario(workers=2, compression_ratio=4.0, stays_compressed=False)
    whole = link_s(PLAIN, plain)
    assert whole == link_s(PLAIN, four)
    assert whole / 4 == pytest.approx(link_s(GRADIENT, four))
    assert whole * (1 + 1 / 4) / 2 == pytest.approx(link_s(GRADIENT, unpacked))


def test_all_gather_of_compressed_gradients_grows_with_ranks() -> None:
    """Everybody receives everybody's payload and decodes it; nothing is added."""
    scenario = Scenario(
        workers=8,
        compression_ratio=4.0,
        compressed_collective="all_gather",
        decode_s_per_byte=1e-9,
        schedule=Schedule(codec_lane="comm"),
    )
    ((leg,),) = costs(GRADIENT, scenario)
    assert leg[Resource.LINK_INTER] == pytest.approx(7 * 2e6 / 0.5e9)
    assert leg[Resource.CODEC] == pytest.approx(8 * 8e6 * 1e-9)
    assert Resource.REDUCTION not in leg


CURVE = Network("n", Tier("t", bandwidth_bps=8e9, alpha_s=0.0, efficiency=((1e6, 0.2), (8e6, 0.8))))


def test_efficiency_is_that_of_the_message_that_travels() -> None:
    """8 MB at 80 %, 1 MB at 20 %."""
    assert link_s(GRADIENT, Scenario(workers=2), CURVE) == pytest.approx(8e6 / 0.8e9)
    eighth = Scenario(workers=2, compression_ratio=8.0)
    assert link_s(GRADIENT, eighth, CURVE) == pytest.approx(1e6 / 0.2e9)


def test_each_half_has_the_efficiency_of_its_messages() -> None:
    """Whole messages there, small ones back."""
    scenario = Scenario(workers=2, compression_ratio=8.0, stays_compressed=False)
    expected = (8e6 / 0.8e9 + 1e6 / 0.2e9) / 2
    assert expected == pytest.approx(link_s(GRADIENT, scenario, CURVE))


def test_a_given_efficiency_holds_at_every_size() -> None:
    """`perfect` is a transport that fills the link with small messages too."""
    scenario = Scenario(workers=2, compression_ratio=8.0, efficiency=1.0)
    assert link_s(GRADIENT, scenario, CURVE) == pytest.approx(1e6 / 1e9)


def test_negotiation_is_messages() -> None:
    """As many as the policy says, between nodes."""
    scenario = Scenario(workers=8, schedule=Schedule(bucketing=Horovod()))
    assert costs(Operation("n", Kind.NEGOTIATE), scenario) == [
        ({Resource.LATENCY_INTER: pytest.approx(3e-5)},)
    ]
    assert negotiation_messages(Scenario(), 8) == 0.0
    several = negotiation_messages(scenario, np.array([2.0, 64.0]))
    assert np.asarray(several).tolist() == [1.0, 6.0]


def test_jitter_is_waiting() -> None:
    """Extra time of the slowest rank beside the measured time, one column a draw."""
    jitter = Jitter(distribution="exponential", spread=0.1, draws=3)
    scenario = Scenario(workers=8, jitter=jitter)
    ((leg,),) = costs(Operation("s", Kind.FORWARD, seconds=2.0), scenario)
    assert leg[Resource.COMPUTE] == 2.0
    expected = 2.0 * jitter.slowdown(np.array([8.0]))
    assert expected.tolist() == np.asarray(leg[Resource.WAIT]).tolist()


def test_columns_are_arrays_all_else_floats() -> None:
    """What does not vary costs no array."""
    ((leg,),) = costs(PLAIN, Scenario(workers=8), link_bps=8e9)
    assert isinstance(leg[Resource.LINK_INTER], np.ndarray)
    assert isinstance(leg[Resource.LATENCY_INTER], float)


def test_unknown_insides_of_nodes_are_free() -> None:
    """Only what is said to cost something costs; the verdict says what was not known."""
    network = Network("bare", Tier("t", bandwidth_bps=8e9, alpha_s=0.0))
    (legs,) = costs(PLAIN, Scenario(workers=8, gpus_per_node=4), network)
    assert pytest.approx([14 / 8 * 8e6 / 1e9, 0.0]) == [sum(leg.values()) for leg in legs]

"""Fitting: a network gives back the samples it was fitted to, and refuses contradictions."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import efficiency_curves
from wirebound.errors import NetworkError
from wirebound.network import Contention, Network, Reduction, Tier, dumps, read
from wirebound.network.fit import fit
from wirebound.network.measured import bandwidths, predict
from wirebound.readers import nccl_tests
from wirebound.samples import Measured, Sample, Samples
from wirebound.simulate.program import Program
from wirebound.simulate.scenario import Scenario
from wirebound.workload.record import Kind, Operation, Workload

SIZES = tuple(2**power for power in range(10, 29))
BUCKETS = (8_196_000, 31_502_336, 26_255_360, 26_550_272, 9_724_160)


def generated(
    network: Network, *, kind: Measured = "all_reduce", algorithm: str = "ring", ranks: int = 4
) -> Samples:
    """Samples of a network that is known, one rank a node."""
    blank = [Sample(kind, size, 1.0, ranks=ranks, nodes=ranks) for size in SIZES]
    return Samples(
        tuple(
            msgspec.structs.replace(sample, seconds=predict(network, sample, algorithm))
            for sample in blank
        ),
        source="generated.json",
    )


def simulated_s(network: Network, nbytes: float, workers: int, per_node: int = 1) -> float:
    """What the simulator says one all-reduce takes."""
    workload = Workload("one", (Operation("op", Kind.ALL_REDUCE, lane="comm", nbytes=nbytes),))
    scenario = Scenario(workers=workers, gpus_per_node=per_node)
    return float(Program(workload, network, scenario).step_s()[0])


@given(
    rate_bps=st.floats(1e8, 4e11),
    alpha_s=st.sampled_from([0.0, 1e-6, 2e-5, 1e-4]),
    efficiency=st.floats(0.2, 1.0) | efficiency_curves(),
    algorithm=st.sampled_from(["ring", "hierarchical", "tree", "halving-doubling"]),
    is_rate_given=st.booleans(),
)
def test_known_network_is_recovered(
    rate_bps: float, alpha_s: float, efficiency: float, algorithm: str, *, is_rate_given: bool
) -> None:
    """Times generated from alpha, rate and efficiency come back within 1 %."""
    known = Network("known", Tier("t", rate_bps, alpha_s, efficiency))
    samples = generated(known, algorithm=algorithm)

    fitted = fit([samples], algorithm=algorithm, link_bps=rate_bps if is_rate_given else None)

    actual = [predict(fitted, sample, algorithm) for sample in samples.samples]
    assert actual == pytest.approx([sample.seconds for sample in samples.samples], rel=0.01)
    assert fitted.fit is not None
    assert fitted.fit.worst_residual <= 0.01


def test_alpha_and_rate_come_back_exactly() -> None:
    """At constant efficiency the two parameters are the true ones."""
    known = Network("known", Tier("t", 1e10, 2e-5))

    fitted = fit([generated(known)])

    assert fitted.inter.alpha_s == pytest.approx(2e-5)
    assert fitted.inter.bandwidth_bps == pytest.approx(1e10)
    assert fitted.inter.best_efficiency == pytest.approx(1.0)


@given(
    seconds=st.lists(st.floats(1e-6, 10.0), min_size=len(SIZES), max_size=len(SIZES)),
    ranks=st.sampled_from([(2, 1), (2, 2), (8, 2)]),
)
def test_any_samples_make_a_network_within_its_own_residuals(
    seconds: list[float], ranks: tuple[int, int]
) -> None:
    """Whatever was measured, the simulator is no further off than the fit says."""
    samples = [
        Sample("all_reduce", size, second, ranks=ranks[0], nodes=ranks[1])
        for size, second in zip(SIZES, seconds, strict=True)
    ]

    network = fit([Samples(tuple(samples), "any")])

    assert network.fit is not None
    for sample in samples:
        says = simulated_s(network, sample.nbytes, ranks[0], ranks[0] // ranks[1])
        assert abs(says / sample.seconds - 1) <= network.fit.worst_residual + 1e-9


@pytest.mark.parametrize("kind", ["reduce_scatter", "all_gather", "all_to_all", "send_recv"])
def test_other_collectives(kind: Measured) -> None:
    """Every collective of the model can be fitted to."""
    known = Network("known", Tier("t", 1e10, 2e-5, 0.9))
    samples = generated(known, kind=kind, ranks=2 if kind == "send_recv" else 4)

    fitted = fit([samples], collective=kind)

    assert fitted.fit is not None
    assert fitted.fit.worst_residual < 0.01


def test_reduction_is_taken_apart_from_the_link() -> None:
    """The additions that were measured are a table, and the rest is the link's."""
    table = ((1024.0, 1e-6), (2.0**28, 2.0**28 * 1e-10))
    known = Network("known", Tier("t", 1e9, 2e-5), reduction=Reduction(table=table))
    samples = generated(known)
    additions = tuple(Sample("reduction", int(size), second) for size, second in table)

    fitted = fit([msgspec.structs.replace(samples, samples=samples.samples + additions)])

    assert fitted.reduction == Reduction(table=table)
    assert fitted.inter.bandwidth_bps == pytest.approx(1e9)


def test_additions_slower_than_the_collective_are_free() -> None:
    """Where alone they take longer than the whole, they are hidden in it."""
    samples = generated(Network("known", Tier("t", 1e10, 2e-5)))
    slow = Sample("reduction", SIZES[0], 1.0)

    fitted = fit([msgspec.structs.replace(samples, samples=(*samples.samples, slow))])

    assert fitted.reduction == Reduction()
    assert any("hide" in assumption for assumption in fitted.assumptions)


def test_one_node_and_several_make_two_tiers() -> None:
    """Samples of one node fit the tier inside it, the others the tier between."""
    known = Network("known", Tier("a", 1e10, 2e-5), Tier("b", 1e11, 3e-6), gpus_per_node=4)
    blank = [
        Sample("all_reduce", size, 1.0, ranks=4 * nodes, nodes=nodes)
        for nodes in (1, 2)
        for size in SIZES
    ]
    samples = [
        msgspec.structs.replace(one, seconds=predict(known, one, "hierarchical")) for one in blank
    ]

    fitted = fit([Samples(tuple(samples), "both")], algorithm="hierarchical", link_bps=1e10)

    assert fitted.gpus_per_node == 4
    assert fitted.intra is not None
    assert fitted.intra.bandwidth_bps == pytest.approx(1e11)
    assert fitted.inter.alpha_s == pytest.approx(2e-5)


def test_ranks_can_be_made_nodes() -> None:
    """One host with several network namespaces is several nodes if one says so."""
    samples = [Sample("all_reduce", size, size * 1e-9 + 1e-4, ranks=2) for size in SIZES]

    fitted = fit([Samples(tuple(samples), "lab")], gpus_per_node=1)

    assert fitted.gpus_per_node == 1
    assert fitted.intra is None


def test_bursts_above_the_link_are_no_contradiction() -> None:
    """A shaper lets the first bytes pass; the rate of the link stays as given."""
    samples = [
        Sample("all_reduce", size, 1e-5 + max(0, size - 2**17) * 8e-9, ranks=2, nodes=2)
        for size in SIZES
    ]

    fitted = fit([Samples(tuple(samples), "shaped")], link_bps=1e9)

    assert simulated_s(fitted, 2**28, 2) == pytest.approx(samples[-1].seconds, rel=0.01)


def test_contradictions_are_named() -> None:
    """Files of different networks are not averaged."""
    slow = generated(Network("slow", Tier("t", 1e9, 2e-5)))
    fast = msgspec.structs.replace(
        generated(Network("fast", Tier("t", 1e10, 2e-5))), source="fast.json"
    )

    with pytest.raises(NetworkError, match=r"generated\.json contradicts fast\.json: all_reduce"):
        fit([slow, fast])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"collective": "broadcast"}, "no samples of broadcast .* there are all_reduce"),
        ({"link_bps": 1e9}, "the link has 1.00 Gbit/s, but 10.0 Gbit/s went through it"),
    ],
)
def test_what_cannot_be_fitted(arguments: dict[str, object], message: str) -> None:
    """Each says what is there instead."""
    samples = generated(Network("known", Tier("t", 1e10, 1e-6)))

    with pytest.raises(NetworkError, match=message):
        fit([samples], **arguments)  # type: ignore[arg-type]


def test_network_files_keep_the_fit_and_need_none(tmp_path: Path) -> None:
    """A fitted network is written and read whole; files without a fit stay readable."""
    fitted = fit([generated(Network("known", Tier("t", 1e10, 2e-5)))])
    path = tmp_path / "network.json"

    path.write_text(dumps(fitted))
    assert read(path) == fitted

    path.write_text('{"name": "n", "inter": {"name": "t", "bandwidth_bps": 1e9, "alpha_s": 0}}')
    assert read(path).fit is None


def test_bandwidths_as_nccl_tests_defines_them() -> None:
    """Its factor is 2(n-1)/n for an all-reduce; a copy has no bus."""
    assert bandwidths(Sample("all_reduce", 8, 2.0, ranks=4)) == (4.0, 6.0)
    assert bandwidths(Sample("send_recv_both_ways", 8, 2.0, ranks=2)) == (4.0, 4.0)
    assert bandwidths(Sample("copy", 8, 2.0)) == (4.0, 4.0)


@pytest.mark.parametrize(("setup", "expected_ms"), [(1, 60.4), (4, 5.6)])
def test_published_tables_at_the_buckets_of_resnet50(
    shared_data: Path, setup: int, expected_ms: float
) -> None:
    """Five buckets on Polaris: over sockets and tuned, from the table and from the fit."""
    runs = shared_data / "alcf-nccl-tests" / "results_polaris" / "nccl_2_21"
    [path] = runs.glob(f"n2.*/all_reduce_output.dat.{setup}")
    samples = nccl_tests.read(path)
    sizes = [sample.nbytes for sample in samples.samples]
    table_s = np.interp(BUCKETS, sizes, [sample.seconds for sample in samples.samples]).sum()

    network = fit([samples])
    fitted_s = sum(simulated_s(network, nbytes, 8, 4) for nbytes in BUCKETS)

    assert network.fit is not None
    assert table_s * 1e3 == pytest.approx(expected_ms, abs=0.05)
    assert fitted_s == pytest.approx(table_s, rel=network.fit.worst_residual)


def test_published_tables_that_contradict_each_other(shared_data: Path) -> None:
    """Setup 1 of NCCL 2.18 and of 2.21 used different interfaces."""
    runs = shared_data / "alcf-nccl-tests" / "results_polaris"
    paths = [
        path
        for version in ("nccl_2_18", "nccl_2_21")
        for path in (runs / version).glob("n2.*/all_reduce_output.dat.1")
    ]

    with pytest.raises(NetworkError, match=r"nccl_2_21.* contradicts .*nccl_2_18"):
        fit([nccl_tests.read(path) for path in paths])


def test_contention_is_what_takes_longer_beside_computation() -> None:
    """Two files of one size are averaged; a sample that was faster beside it has no delay."""
    first = Sample("all_reduce", 1000, 0.010, ranks=2, nodes=2, beside_s=0.014, compute_share=0.5)
    again = msgspec.structs.replace(first, beside_s=0.016, compute_share=0.7)
    large = Sample("all_reduce", 4000, 0.040, ranks=2, nodes=2, beside_s=0.039, compute_share=0.9)
    network = fit([Samples((first, large), "a.json"), Samples((again,), "b.json")])
    assert network.contention is not None
    assert np.allclose(network.contention.table, [(1000, 0.005, 0.6), (4000, 0.0, 0.9)])
    assert fit([Samples((msgspec.structs.replace(large, beside_s=None),), "c")]).contention is None


def test_contention_between_and_beyond_its_points() -> None:
    """Linear between two sizes; beyond the last, the delay grows with the bytes."""
    contention = Contention(((1000, 0.001, 0.5), (3000, 0.003, 0.9)))
    assert contention.at(2000) == pytest.approx((0.002, 0.7))
    assert contention.at(6000) == pytest.approx((0.006, 0.9))
    assert contention.at(10) == pytest.approx((0.001, 0.5))


@pytest.mark.parametrize("point", [(0, 0.1, 0.5), (1000, -0.1, 0.5), (1000, 0.1, 0.0)])
def test_impossible_contention_is_refused(point: tuple[float, float, float]) -> None:
    """Sizes, delays and shares that no processor has."""
    with pytest.raises(NetworkError, match="contention"):
        Contention((point,))

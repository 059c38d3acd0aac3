"""The sentences of a verdict."""

from typing import Any

import pytest

from wirebound.api import whatif
from wirebound.network import Fit, Network, Tier, network
from wirebound.network.collectives import ALL_REDUCE
from wirebound.simulate.program import Program
from wirebound.simulate.scenario import Scenario
from wirebound.verdict.evidence import BOUNDS, warnings
from wirebound.verdict.record import Verdict
from wirebound.workload.record import Gradient, Kind, Operation, Source, Workload, data_parallel


def training(source: Source = Source()) -> Workload:
    """A short step with two gradients."""
    gradients = [Gradient("a", 10**7, 0.01), Gradient("b", 10**7, 0.02)]
    return data_parallel("job", gradients, backward_s=0.02, forward_s=0.01, source=source)


def one(workload: Workload | None = None, **keys: Any) -> Verdict:  # noqa: ANN401 - as the API
    """The verdict of one scenario."""
    if "network" not in keys:
        keys = {"link": "10Gbps", **keys}
    (verdict,) = whatif(workload or training(), **{"workers": 8, **keys})
    return verdict


def test_every_algorithm_says_what_it_bounds() -> None:
    """No algorithm is without a sentence."""
    assert set(BOUNDS) == set(ALL_REDUCE)
    for algorithm in ALL_REDUCE:
        assert one(algorithm=algorithm).bound.startswith(BOUNDS[algorithm])


def test_bound_of_a_perfect_transport() -> None:
    """Only a perfect transport makes a bound."""
    assert "no transport" in one(efficiency="perfect").bound
    assert "no transport" not in one(efficiency="90%").bound


def test_assumptions() -> None:
    """What nobody said is told."""
    found = one(gpus_per_node=4).assumptions
    assert any("Ethernet" in text for text in found)
    assert "the way between the GPUs of a node costs nothing" in found
    found = one(gpus_per_node=4, intra="nvlink3").assumptions
    assert "the way between the GPUs of a node costs nothing" not in found


def test_order_of_need_is_assumed() -> None:
    """Overlap with the next forward needs an order that nobody measured."""
    found = one(overlap_next_forward=True).assumptions
    assert any("reverse order" in text for text in found)


@pytest.mark.parametrize(
    ("kind", "is_assumed"), [("modelled", True), ("scaled", True), ("recorded", False)]
)
def test_source_of_compute_times(kind: Any, is_assumed: bool) -> None:  # noqa: ANN401, FBT001
    """Compute times that were not measured are an assumption."""
    found = one(training(Source(kind, "from somewhere"))).assumptions
    assert any("from somewhere" in text for text in found) is is_assumed


def test_free_compression_warns() -> None:
    """Compression for nothing is too good."""
    assert any("priced at zero" in text for text in one(compression=4).warnings)
    assert not any("priced at zero" in t for t in one(compression=4, encode="20GB/s").warnings)
    assert not one(compression=1).warnings


def test_unsettled_steps_warn() -> None:
    """An average over steps that never repeat says so."""
    program = Program(training(), network("25gbe"), Scenario())
    assert any("never settle" in text for text in warnings(program, Scenario(), is_settled=False))
    assert warnings(program, Scenario(), is_settled=True) == ()


def test_log_knows_backward_only() -> None:
    """Faster compute does not scale what a log leaves out."""
    log = training(Source("log"))
    assert any("backward pass alone" in text for text in one(log, compute_speed=2).warnings)
    assert not one(log).warnings


def test_no_bytes_warns() -> None:
    """A workload that moves nothing says nothing about the network."""
    still = Workload("still", (Operation("c", Kind.COMPUTE, seconds=0.1),))
    assert any("moves no bytes" in text for text in one(still).warnings)
    assert not one(still, workers=1).warnings


def test_next_measurement() -> None:
    """What to measure follows from what is known least."""
    assert "--step" in str(one(training(Source("modelled"))).next_measurement)
    assert "nccl-tests" in str(one().next_measurement)


def test_evidence_has_numbers() -> None:
    """Each cause's sentence names what it rests on."""
    evidence = {
        cause.word.value: cause.evidence
        for cause in one(
            data_parallel(
                "job",
                [Gradient(f"g{k}", 5 * 10**7, 0.01 * (k + 1)) for k in range(5)],
                backward_s=0.05,
                input_s=0.01,
            ),
            workers=16,
            gpus_per_node=8,
            intra="pcie3",
            efficiency="50%",
            jitter="normal:5%",
            accumulation=2,
            sync_every_micro_step=True,
            algorithm="hierarchical",
        ).causes
    }
    assert "5.00 %" in evidence["SKEW"]
    assert "each of 2 micro-steps" in evidence["VOLUME"]
    assert "50.0 % of the line rate" in evidence["TRANSPORT"]
    assert "messages in a row, 27.0 µs each" in evidence["LATENCY"]
    assert "pcie3 at " in evidence["INTRA_NODE"]
    assert "250 MB of gradients" in evidence["LINK"]
    assert "10.0 Gbit/s" in evidence["LINK"]
    assert "as measured" in evidence["INPUT"]
    assert "job" in evidence["COMPUTE"]


def test_overlap_names_both_sides() -> None:
    """Seconds on the link stand beside the backward pass they should hide under."""
    causes = {c.word.value: c.evidence for c in one(bucketing="one", link="100Gbps").causes}
    assert "on the link beside 20.0 ms of backward pass" in causes["OVERLAP"]


@pytest.mark.parametrize(
    ("largest_bytes", "keys", "expected"),
    [
        (10**9, {}, []),
        (10**6, {}, ["fitted to 1.00 kB to 1.00 MB"]),
        (10**9, {"algorithm": "tree"}, ["fitted assuming ring, the scenario says tree"]),
        (10**6, {"workers": 1}, []),
        (10**6, {"compression": 100, "encode": "1TB/s", "decode": "1TB/s"}, []),
    ],
)
def test_beyond_the_range_of_a_fit(
    largest_bytes: float, keys: dict[str, Any], expected: list[str]
) -> None:
    """A fitted network is not trusted silently where nothing was measured."""
    fitted = Network(
        "fitted",
        Tier("t", 1e10, 1e-5),
        fit=Fit("all_reduce", "ring", (2,), 1e3, largest_bytes, 0.0, 0.0, "samples.json"),
    )

    found = one(network=fitted, **keys).warnings

    assert [part in text for part, text in zip(expected, found, strict=True)] == [True] * len(
        expected
    )

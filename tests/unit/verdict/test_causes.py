"""The causes of a step: they add up, and each appears where it is at fault."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from wirebound.api import whatif
from wirebound.network.record import Network, Tier
from wirebound.simulate.grid import Grid, sweep
from wirebound.simulate.scenario import Scenario
from wirebound.verdict.judge import judge
from wirebound.verdict.record import (
    NETWORK_WORDS,
    SMALL_SHARE,
    Cause,
    Verdict,
    Word,
    headline,
)
from wirebound.workload.record import Gradient, Workload, data_parallel

MB = 10**6

SYNCHRONOUS: tuple[Mapping[str, Any], ...] = (
    {"bucketing": "none", "algorithm": "ring"},
    {"bucketing": "horovod", "algorithm": "hierarchical", "gpus_per_node": 8, "intra": "pcie3"},
    {"bucketing": "paper", "algorithm": "tree", "compression": 4, "encode": "20GB/s"},
    {"bucketing": "one", "efficiency": "40%", "stays_compressed": False, "compression": 10},
    {"accumulation": 3, "sync_every_micro_step": True, "efficiency": "40%"},
    {"algorithm": "parameter-server", "batch_scale": 2.5, "compute_speed": 0.5},
    {"algorithm": "halving-doubling", "jitter": "normal:10%"},
    {"algorithm": "in-network", "jitter": "exponential:3%", "latency": "1ms"},
    {"compressed_collective": "all_gather", "compression": 100, "decode": "50GB/s"},
)
BY_EVENTS: tuple[Mapping[str, Any], ...] = (
    {"streams": 2, "bucketing": "none"},
    {"streams": 4, "compute_inflation": "20%", "efficiency": "40%"},
    {"order": "priority", "partition": "1MB", "codec_lane": "comm", "encode": "10GB/s"},
    {"overlap_next_forward": True, "bucketing": "none", "order": "priority"},
    {"overlap_next_forward": True, "bucketing": "ddp", "partition": "4MB", "streams": 2},
    {"compute_inflation": "30%", "accumulation": 2, "sync_every_micro_step": True},
)


def training(nbytes: int = 40 * MB, count: int = 6, **spans: Any) -> Workload:  # noqa: ANN401
    """A step of 150 ms whose gradients become ready evenly over its backward pass."""
    every = 0.1 / count
    gradients = [Gradient(f"g{k}", nbytes, every * (k + 1)) for k in range(count)]
    return data_parallel("job", gradients, **{"backward_s": 0.1, "forward_s": 0.05, **spans})


def one(workload: Workload, **keys: Any) -> Verdict:  # noqa: ANN401 - as the API
    """The verdict of one scenario on 64 workers at 10 Gbit/s, unless told otherwise."""
    (verdict,) = whatif(workload, **{"workers": 64, "link": "10Gbps", **keys})
    return verdict


def seconds(verdict: Verdict) -> dict[Word, float]:
    """Causes by their word."""
    return {cause.word: cause.seconds for cause in verdict.causes}


@pytest.mark.parametrize("keys", SYNCHRONOUS + BY_EVENTS, ids=str)
def test_sums(keys: Mapping[str, Any]) -> None:
    """Causes and bill each add up to the step time, and nothing is negative."""
    workload = training(input_s=0.01, host_s=0.002, optimizer_s=0.01)
    for verdict in whatif(workload, workers=[1, 2, 64], link=["1Gbps", "25Gbps", "1Tbps"], **keys):
        assert sum(verdict.bill.values()) == pytest.approx(verdict.step_s, rel=1e-9)
        assert sum(seconds(verdict).values()) == pytest.approx(verdict.step_s, rel=1e-9)
        assert min(verdict.bill.values()) > 0
        assert min(seconds(verdict).values()) > 0
        assert [c.seconds for c in verdict.causes] == sorted(
            (c.seconds for c in verdict.causes), reverse=True
        )


@given(
    strategies.trainings(),
    strategies.networks(),
    strategies.scenarios(jitter=st.none() | strategies.jitters) | strategies.unordered_scenarios(),
)
def test_sums_of_any_step(workload: Workload, network: Network, scenario: Scenario) -> None:
    """Whatever the step, the network and the engine: both sums are the step time."""
    for chunk in sweep(workload, network, Grid(scenario, {}), with_bill=True):
        for verdict in judge(chunk):
            assert sum(verdict.bill.values()) == pytest.approx(verdict.step_s, rel=1e-9)
            assert sum(seconds(verdict).values()) == pytest.approx(verdict.step_s, rel=1e-9)
            assert min(seconds(verdict).values()) > 0
            assert verdict.network_share >= SMALL_SHARE or verdict.word not in NETWORK_WORDS


@pytest.mark.parametrize("keys", SYNCHRONOUS + BY_EVENTS, ids=str)
def test_small_share_is_no_network_word(keys: Mapping[str, Any]) -> None:
    """Below five percent the network is never named, from five percent on something is."""
    axes = {"workers": [2, 64], "link": ["1Gbps", "100Gbps", "100Tbps"], **keys}
    for verdict in whatif(training(), **axes):
        if verdict.network_share < SMALL_SHARE:
            assert verdict.word not in NETWORK_WORDS
        else:
            assert verdict.word is not Word.COMPUTE


def test_one_worker_has_no_network() -> None:
    """Alone, a step is compute, input and host."""
    verdict = one(training(input_s=0.02, host_s=0.001), workers=1)
    assert set(seconds(verdict)) == {Word.COMPUTE, Word.INPUT}
    assert verdict.network_share == 0
    assert verdict.scaling_factor == 1
    assert verdict.thresholds == {}


def test_link() -> None:
    """Bytes that do not fit under the backward pass whatever their order are the link's."""
    verdict = one(training(), efficiency="perfect", latency="0s")
    assert verdict.word is Word.LINK
    # 240 MB, twice 63/64 of it, at 10 Gbit/s, less the backward pass.
    assert seconds(verdict)[Word.LINK] == pytest.approx(240e6 * 8 * 2 * 63 / 64 / 10e9 - 0.1)


def test_transport() -> None:
    """At 40 % of the line rate the unused 60 % come first."""
    verdict = one(training(), efficiency="40%")
    assert verdict.word is Word.TRANSPORT
    assert "40.0 % of the line rate" in verdict.causes[0].evidence
    full = one(training(), efficiency="perfect")
    expected = verdict.step_s - full.step_s
    assert seconds(verdict)[Word.TRANSPORT] == pytest.approx(expected)


def test_headers_are_no_fault() -> None:
    """A transport that reaches 94 % has nothing left to fix."""
    assert Word.TRANSPORT not in seconds(one(training(), efficiency="94%"))


def test_latency() -> None:
    """Many tiny gradients at a large alpha wait for messages, not for bytes."""
    verdict = one(training(nbytes=1000, count=100), bucketing="none", latency="200us")
    assert verdict.word is Word.LATENCY
    assert seconds(verdict)[Word.LATENCY] > 0.9 * verdict.exposed_comm_s


def test_intra_node() -> None:
    """PCIe 3 inside the node beside a fast NIC is the slower way."""
    verdict = one(
        training(nbytes=200 * MB),
        workers=64,
        gpus_per_node=8,
        link="800Gbps",
        intra="pcie3",
        algorithm="hierarchical",
    )
    assert verdict.word is Word.INTRA_NODE


def test_volume() -> None:
    """A reduction after each of four micro-steps is traffic that need not be."""
    keys = {"accumulation": 4, "efficiency": "perfect", "latency": "0s"}
    often = one(training(), sync_every_micro_step=True, **keys)
    once = one(training(), **keys)
    assert often.word is Word.VOLUME
    assert seconds(often)[Word.VOLUME] == pytest.approx(often.step_s - once.step_s)
    assert Word.VOLUME not in seconds(once)


def test_volume_needs_micro_steps() -> None:
    """One micro-step has nothing to defer."""
    assert Word.VOLUME not in seconds(one(training(), sync_every_micro_step=True))


def test_skew() -> None:
    """Where ranks differ, waiting is billed, and named where it is the most."""
    verdict = one(training(nbytes=1000), jitter="normal:20%", link="100Gbps")
    assert verdict.word is Word.SKEW
    assert seconds(verdict)[Word.SKEW] == pytest.approx(verdict.bill["wait"], rel=0.2)


def test_skew_beside_the_network() -> None:
    """A network that costs little more than five percent does not hide a late rank."""
    verdict = one(
        training(), jitter="normal:30%", efficiency="perfect", link="30Gbps", latency="0s"
    )
    assert SMALL_SHARE < verdict.network_share < seconds(verdict)[Word.SKEW] / verdict.step_s
    assert verdict.word is Word.SKEW


def test_input() -> None:
    """A data pipeline that takes longer than the network is named before it."""
    verdict = one(training(input_s=0.3), link="100Gbps")
    assert verdict.word is Word.INPUT
    assert seconds(verdict)[Word.INPUT] == pytest.approx(0.3)


def test_overlap() -> None:
    """One late large bucket is exposed although the link would have the capacity."""
    verdict = one(training(), bucketing="one", link="100Gbps", efficiency="perfect", latency="0s")
    assert verdict.word is Word.OVERLAP
    assert Word.LINK not in seconds(verdict)


def test_compute() -> None:
    """A fast network is no limit."""
    assert one(training(), link="10Tbps", latency="0s").word is Word.COMPUTE


def test_efficiency_by_size_uses_its_best() -> None:
    """A transport that fills the link at some size is not blamed at that size."""
    curve = ((1e3, 0.05), (1e8, 0.95))
    network = Network("curve", Tier("port", 10e9, 0.0, efficiency=curve))
    (verdict,) = whatif(training(nbytes=1000), network=network, workers=64, bucketing="none")
    assert Word.LINK not in seconds(verdict)
    assert verdict.utilization < 0.2


def test_headline_of_nothing() -> None:
    """Without a cause that can be removed the word is COMPUTE."""
    assert headline([], 1.0, 0.0) is Word.COMPUTE
    assert headline([Cause(Word.COMPUTE, 1.0, "")], 1.0, 0.0) is Word.COMPUTE


def test_headline_ignores_a_small_network() -> None:
    """Network words are passed over while the network's share is small."""
    causes = [
        Cause(Word.VOLUME, 0.5, ""),
        Cause(Word.COMPUTE, 0.4, ""),
        Cause(Word.SKEW, 0.1, ""),
    ]
    assert headline(causes, 1.0, 0.04) is Word.SKEW
    assert headline(causes, 1.0, 0.05) is Word.VOLUME
    assert headline(causes[:2], 1.0, 0.04) is Word.COMPUTE


def test_headline_of_many_small_causes() -> None:
    """A network share of six percent has a name even where no cause reaches five."""
    causes = [
        Cause(Word.COMPUTE, 0.94, ""),
        Cause(Word.LINK, 0.04, ""),
        Cause(Word.LATENCY, 0.02, ""),
    ]
    assert headline(causes, 1.0, 0.06) is Word.LINK

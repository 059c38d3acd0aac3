"""Scenarios: what they refuse, and how compute varies over ranks."""

import math

import numpy as np
import pytest

from wirebound.errors import ScenarioError
from wirebound.simulate.scenario import Jitter, Scenario
from wirebound.workload.schedule import Schedule

POSITIVE = ("link_bps", "compression_ratio", "compute_speed", "batch_scale")
NOT_NEGATIVE = ("latency_s", "encode_s_per_byte", "decode_s_per_byte", "compute_inflation")
COUNTS = ("workers", "gpus_per_node", "streams", "servers")


@pytest.mark.parametrize("name", [*POSITIVE, *NOT_NEGATIVE, *COUNTS, "efficiency"])
@pytest.mark.parametrize("value", [math.nan, -1.0, math.inf, 1e300])
def test_impossible_numbers_are_refused(name: str, value: float) -> None:
    """Not a number, negative, infinite, or so large that a step overflows."""
    with pytest.raises(ScenarioError, match=rf"^{name} is .*, expected"):
        Scenario(**{name: value})


@pytest.mark.parametrize("name", [*POSITIVE, *COUNTS, "efficiency"])
def test_zero_of_what_must_exist_is_refused(name: str) -> None:
    """A link without rate, a job without ranks."""
    with pytest.raises(ScenarioError, match=rf"^{name} is 0, expected"):
        Scenario(**{name: 0})


@pytest.mark.parametrize("name", NOT_NEGATIVE)
def test_zero_of_what_may_be_free_is_allowed(name: str) -> None:
    """Latency or a codec that costs nothing."""
    assert getattr(Scenario(**{name: 0.0}), name) == 0.0


@pytest.mark.parametrize(
    ("scenario", "depends"),
    [
        (Scenario(), False),
        (Scenario(streams=2), True),
        (Scenario(compute_inflation=0.1), True),
        (Scenario(schedule=Schedule(order="priority")), True),
        (Scenario(schedule=Schedule(overlap_next_forward=True)), True),
        (Scenario(schedule=Schedule(accumulation=4)), False),
        (Scenario(jitter=Jitter(distribution="normal", spread=0.1)), False),
    ],
)
def test_which_scenarios_need_events(scenario: Scenario, *, depends: bool) -> None:
    """Only those whose order or speeds depend on durations."""
    assert depends == scenario.order_depends_on_durations


@pytest.mark.parametrize("spread", [-0.1, math.nan, math.inf, 11.0])
def test_impossible_spread_is_refused(spread: float) -> None:
    """With an example."""
    with pytest.raises(ScenarioError, match=r"jitter spread is .*, expected a ratio such as 5%"):
        Jitter(distribution="normal", spread=spread)


@pytest.mark.parametrize("draws", [0, -1, 10**6])
def test_impossible_number_of_draws_is_refused(draws: int) -> None:
    """Each draw is simulated."""
    with pytest.raises(ScenarioError, match=r"jitter draws is"):
        Jitter(distribution="normal", spread=0.1, draws=draws)


@pytest.mark.parametrize("distribution", ["normal", "lognormal", "exponential"])
def test_the_slowest_of_more_ranks_is_slower(distribution: str) -> None:
    """In every draw, as all ranks share its uniform number; one rank is as measured."""
    jitter = Jitter(distribution=distribution, spread=0.1, draws=50)
    slowdown = jitter.slowdown(np.array([1.0, 2.0, 8.0, 1024.0]))
    assert slowdown.shape == (4, 50)
    assert not slowdown[0].any()
    assert np.all(np.diff(slowdown[1:], axis=0) >= 0)
    assert np.all(slowdown >= 0)


def test_the_mean_of_the_largest_exponential_is_a_harmonic_number() -> None:
    """Of N delays with mean m the largest has mean m (1 + 1/2 + ... + 1/N)."""
    jitter = Jitter(distribution="exponential", spread=0.1, draws=20_000)
    ranks = np.array([2.0, 8.0])
    expected = [0.1 * sum(1 / k for k in range(1, n + 1)) for n in (2, 8)]
    assert expected == pytest.approx(jitter.slowdown(ranks).mean(axis=1), rel=0.02)


def test_the_mean_of_the_largest_normal_of_two() -> None:
    """Of two normal deviations: spread / sqrt(pi); negative draws count as none."""
    jitter = Jitter(distribution="normal", spread=0.1, draws=20_000)
    # Mean of max(0, largest of two): (1 + sqrt(2)) / (2 sqrt(pi)) * spread.
    expected = 0.1 * (1 + math.sqrt(2)) / (2 * math.sqrt(math.pi))
    assert expected == pytest.approx(float(jitter.slowdown(np.array([2.0])).mean()), rel=0.02)


def test_seeds_decide() -> None:
    """Same seed, same draws; another seed, others."""
    first = Jitter(distribution="normal", spread=0.1).slowdown(np.array([8.0]))
    again = Jitter(distribution="normal", spread=0.1).slowdown(np.array([8.0]))
    other = Jitter(distribution="normal", spread=0.1, seed=1).slowdown(np.array([8.0]))
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()

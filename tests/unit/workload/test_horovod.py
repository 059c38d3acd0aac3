"""Horovod's cycle: rhythm, packing, negotiation."""

import pytest

from wirebound.errors import ScenarioError
from wirebound.workload.horovod import Horovod
from wirebound.workload.record import Gradient

MS = 1e-3


def ready_at(*milliseconds: float, nbytes: int = 10) -> list[Gradient]:
    """Gradients of ten bytes each, ready then."""
    return [Gradient(f"g{i}", nbytes, at * MS) for i, at in enumerate(milliseconds)]


def test_the_thread_wakes_in_a_rhythm() -> None:
    """What is ready waits for the next turn; turns that find nothing launch nothing."""
    cycles = Horovod(cycle_time_s=5 * MS).cycles(ready_at(0, 1, 5, 12, 26), 0.0)
    assert pytest.approx([0, 5 * MS, 15 * MS, 30 * MS]) == [cycle.start_s for cycle in cycles]
    members = [[bucket.members for bucket in cycle.buckets] for cycle in cycles]
    assert members == [[(0,)], [(1, 2)], [(3,)], [(4,)]]


def test_negotiation_delays_the_next_cycle() -> None:
    """A turn that lasts longer than the cycle is followed by the next at once."""
    cycles = Horovod(cycle_time_s=5 * MS).cycles(ready_at(0, 1, 8), 7 * MS)
    assert pytest.approx([0, 7 * MS, 14 * MS]) == [cycle.start_s for cycle in cycles]
    assert pytest.approx([7 * MS, 14 * MS, 21 * MS]) == [cycle.done_s for cycle in cycles]
    launched = [bucket.ready_s for cycle in cycles for bucket in cycle.buckets]
    assert pytest.approx([7 * MS, 14 * MS, 21 * MS]) == launched


def test_short_negotiation_keeps_the_rhythm() -> None:
    """Agreement within the cycle costs the collective, not the rhythm."""
    cycles = Horovod(cycle_time_s=5 * MS).cycles(ready_at(0, 1, 8), 2 * MS)
    assert pytest.approx([0, 5 * MS, 10 * MS]) == [cycle.start_s for cycle in cycles]


def test_packing_is_greedy_and_never_above_the_threshold() -> None:
    """A larger tensor travels alone, and ends the response before it."""
    gradients = [Gradient(f"g{i}", n, 0.0) for i, n in enumerate([40, 40, 40, 250, 10, 90, 1])]
    buckets = Horovod(threshold_bytes=100).buckets(gradients)
    assert [bucket.members for bucket in buckets] == [(0, 1), (2,), (3,), (4, 5), (6,)]


def test_no_threshold_is_no_fusion() -> None:
    """`HOROVOD_FUSION_THRESHOLD=0` sends each tensor alone."""
    assert len(Horovod(threshold_bytes=0).buckets(ready_at(0, 0, 0))) == 3


@pytest.mark.parametrize(
    ("ranks", "with_cache", "without"), [(1, 0, 0), (2, 1, 4), (8, 3, 12), (9, 4, 16), (64, 6, 24)]
)
def test_messages_of_an_agreement(ranks: int, with_cache: float, without: float) -> None:
    """One recursive doubling with the cache, four trees without."""
    assert with_cache == Horovod().negotiation_messages(ranks)
    assert without == Horovod(response_cache=False).negotiation_messages(ranks)


@pytest.mark.parametrize("cycle", [0.0, -1.0, float("nan"), float("inf"), 1e-18])
def test_impossible_cycles_are_refused(cycle: float) -> None:
    """A cycle of no time would never end."""
    with pytest.raises(ScenarioError, match="expected a positive cycle such as 1ms"):
        Horovod(cycle_time_s=cycle)


@pytest.mark.parametrize("threshold", [-1.0, float("nan"), float("inf")])
def test_impossible_thresholds_are_refused(threshold: float) -> None:
    """Zero is one that Horovod knows."""
    with pytest.raises(ScenarioError, match="and a size such as 128MiB"):
        Horovod(threshold_bytes=threshold)


def test_the_shortest_cycle_ends() -> None:
    """However many turns find nothing, they are skipped in one go."""
    cycles = Horovod(cycle_time_s=1e-9).cycles(ready_at(0, 3.6e9), 0.0)
    assert pytest.approx([0, 3.6e6]) == [cycle.start_s for cycle in cycles]

"""Buckets as PyTorch, the paper and a list make them."""

from pathlib import Path

import pytest

from wirebound.errors import ScenarioError, WorkloadError
from wirebound.workload import zoo
from wirebound.workload.bucketing import DDP, Bucket, Explicit, OneBucket, PaperFusion, PerTensor
from wirebound.workload.modelled import scaled
from wirebound.workload.record import Gradient

MIB = 2**20

PAPER_BUCKETS = {
    "resnet50": """5486.4:43896736 11575.6:24158208 17197.9:9994240 22515.7:11298816
        27895.3:6574080 33462.2:1912832 38613.8:1976320 43940.8:1383424 49447.2:347648
        54555.1:281600 59900.9:201216 64806.6:203008""",
    "resnet101": """5722.9:43896736 11732.4:24158208 16786.2:8941568 22115.2:9990144
        27424.9:11298816 32837.7:9988096 37915.5:8941568 43208.4:9990144 48576.8:11298816
        54059.1:9988096 59708.8:9994240 65472.9:9986048 70814.5:4210688 75971.6:1976320
        81245.1:1912832 87337.3:722944 92549.9:281600 97784.7:281600 102788.2:283136
        106406.8:55040""",
    "vgg16": """834.0:83513248 2456.3:411058176 8296.7:9449472 16867.1:18886656
        22871.8:9443328 28096.1:14162944 34520.5:2048 41996.8:2362368 50096.2:3542528
        63727.4:1024 73792.7:591360 79768.2:295168 101631.5:512 111599.7:148224
        111620.5:6912""",
}
"""`ready_us:bytes` that the published rule makes of the published logs."""


def sizes(buckets: tuple[Bucket, ...]) -> list[int]:
    """Bytes of each bucket."""
    return [int(bucket.nbytes) for bucket in buckets]


def groups(buckets: tuple[Bucket, ...]) -> list[tuple[int, ...]]:
    """Positions of the gradients of each bucket."""
    return [bucket.members for bucket in buckets]


def resnet50() -> tuple[Gradient, ...]:
    """The gradients of ResNet-50, last layer first."""
    return scaled(zoo.load("resnet50"), 0.128, 32).gradients


def in_mib(*numbers: float) -> list[Gradient]:
    """Gradients of so many MiB, ready one second after the other."""
    return [
        Gradient(f"g{index}", round(number * MIB), float(index))
        for index, number in enumerate(numbers)
    ]


def test_ddp_on_resnet50_as_pytorch_does_it() -> None:
    """Bucket sizes that PyTorch logs after its rebuild, 25 MiB and 1 MiB caps."""
    assert sizes(DDP().buckets(resnet50())) == [8196000, 31502336, 26255360, 26550272, 9724160]


def test_ddp_counts_mib() -> None:
    """`bucket_cap_mb=25` is 25 * 2**20 bytes: 25 * 10**6 do not close a bucket yet."""
    below = [Gradient("first", MIB, 0.0), Gradient("a", 25_000_000, 1.0), Gradient("b", 4, 2.0)]
    at = [Gradient("first", MIB, 0.0), Gradient("a", 25 * MIB, 1.0), Gradient("b", 4, 2.0)]
    assert groups(DDP().buckets(below)) == [(0,), (1, 2)]
    assert groups(DDP().buckets(at)) == [(0,), (1,), (2,)]


def test_ddp_has_a_small_first_bucket() -> None:
    """1 MiB by default; what reaches a cap still belongs to the bucket."""
    assert groups(DDP().buckets(in_mib(0.5, 0.5, 20, 6, 3))) == [(0, 1), (2, 3), (4,)]
    large_first = DDP(first_bytes=25 * MIB)
    assert groups(large_first.buckets(in_mib(0.5, 0.5, 20, 6, 3))) == [(0, 1, 2, 3), (4,)]


def test_ddp_with_a_cap_that_somebody_sets_has_no_small_first_bucket() -> None:
    """`bucket_cap_mb` given is the cap of the first bucket too."""
    assert groups(DDP(cap_bytes=2.0 * MIB).buckets(in_mib(1, 1, 1, 1))) == [(0, 1), (2, 3)]


def test_ddp_before_its_rebuild_fills_in_registration_order() -> None:
    """The small bucket holds what is registered first, and goes out last."""
    gradients = in_mib(3, 20, 6, 0.5, 0.5)
    before = DDP(rebuilt=False)
    assert groups(before.buckets(gradients)) == [(0,), (2, 1), (4, 3)]
    assert [bucket.ready_s for bucket in before.buckets(gradients)] == [0.0, 2.0, 4.0]


def test_ddp_before_its_rebuild_with_another_registration_order() -> None:
    """Where a model registers layers in an order it does not use them in."""
    gradients = in_mib(0.6, 0.6, 30, 0.6)
    before = DDP(rebuilt=False, registration=("g3", "g0", "g1", "g2"))
    buckets = before.buckets(gradients)
    assert groups(buckets) == [(1, 2), (3, 0)]
    # The second is launched after the first, which waits for its last gradient.
    assert [bucket.ready_s for bucket in buckets] == [2.0, 3.0]


def test_ddp_launches_in_order() -> None:
    """A bucket that is ready early waits for the one before it."""
    gradients = in_mib(1, 1, 1)
    before = DDP(rebuilt=False, first_bytes=1, cap_bytes=1, registration=("g1", "g2", "g0"))
    assert [bucket.ready_s for bucket in before.buckets(gradients)] == [0.0, 2.0, 2.0]


def test_ddp_names_a_gradient_without_registration() -> None:
    """An incomplete order is no order."""
    with pytest.raises(WorkloadError, match=r"registration order lacks gradient 'g1'"):
        DDP(rebuilt=False, registration=("g0",)).buckets(in_mib(1, 1))


@pytest.mark.parametrize("cap", [0.0, -1.0, float("nan"), float("inf")])
def test_impossible_caps_are_refused(cap: float) -> None:
    """With what was expected."""
    with pytest.raises(ScenarioError, match=r"first bucket cap is .*, expected a positive size"):
        DDP(first_bytes=cap)
    with pytest.raises(ScenarioError, match=r"^bucket cap is .*, expected a positive size"):
        DDP(cap_bytes=cap)
    with pytest.raises(ScenarioError, match=r"fusion interval"):
        PaperFusion(interval_s=cap)


def test_paper_rule_closes_by_time_or_by_size() -> None:
    """Whichever is reached first; what is left goes out at the end."""
    gradients = [
        Gradient("a", 1, 0.002),
        Gradient("b", 1, 0.006),
        Gradient("c", 64 * MIB, 0.007),
        Gradient("d", 1, 0.008),
    ]
    buckets = PaperFusion().buckets(gradients)
    assert groups(buckets) == [(0, 1), (2,), (3,)]
    assert [bucket.ready_s for bucket in buckets] == [0.006, 0.007, 0.008]


@pytest.mark.parametrize("model", PAPER_BUCKETS)
def test_paper_rule_on_the_published_logs(model: str, paper_logs: Path) -> None:
    """Every bucket, its bytes and the 0.1 us in which it is ready."""
    lines = (paper_logs / "bk_time_logs" / f"{model}.bk.log").read_text().splitlines()[3:]
    gradients: list[Gradient] = []
    ready_us = 0.0
    for line in filter(None, lines):
        interval_us, nbytes = line.split(",")
        ready_us += float(interval_us)
        gradients.append(Gradient(f"g{len(gradients)}", int(nbytes), ready_us / 1e6))
    buckets = PaperFusion().buckets(gradients)
    actual = [f"{bucket.ready_s * 1e6:.1f}:{bucket.nbytes:.0f}" for bucket in buckets]
    assert PAPER_BUCKETS[model].split() == actual


def test_one_bucket_and_none() -> None:
    """The two ends: everything after backward, or each gradient as it is ready."""
    gradients = in_mib(1, 2, 3)
    assert (Bucket(6.0 * MIB, 2.0, (0, 1, 2)),) == OneBucket().buckets(gradients)
    assert groups(PerTensor().buckets(gradients)) == [(0,), (1,), (2,)]
    assert [bucket.ready_s for bucket in PerTensor().buckets(gradients)] == [0.0, 1.0, 2.0]


def test_explicit_lists_are_followed() -> None:
    """In their own order; an empty list makes no bucket."""
    listed = Explicit(groups=(("g2", "g0"), (), ("g1",)))
    buckets = listed.buckets(in_mib(1, 1, 1))
    assert groups(buckets) == [(2, 0), (1,)]
    assert [bucket.ready_s for bucket in buckets] == [2.0, 2.0]


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ((("g0", "x"), ("g1",)), "names 'x', which is no gradient"),
        ((("g0",),), "leaves out 'g1'"),
        ((("g0", "g1"), ("g1",)), "names a gradient twice"),
        ((), "leaves out 'g0'"),
    ],
)
def test_explicit_lists_hold_each_gradient_once(
    listed: tuple[tuple[str, ...], ...], message: str
) -> None:
    """Or are refused."""
    with pytest.raises(WorkloadError, match=message):
        Explicit(groups=listed).buckets(in_mib(1, 1))

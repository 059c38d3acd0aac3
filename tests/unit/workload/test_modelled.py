"""Modelled and scaled steps: against published measurements, and their arithmetic."""

from itertools import accumulate

import pytest

from wirebound.errors import WorkloadError
from wirebound.workload import zoo
from wirebound.workload.devices import device, names
from wirebound.workload.modelled import modelled, scaled
from wirebound.workload.record import Kind, Workload

# Zhang et al. 2020, one V100, float32, batch 32: Fig. 2, and the sum of the backward logs.
PUBLISHED_S = {
    "resnet50": (0.098, 0.0648),
    "resnet101": (0.1595, 0.1064),
    "vgg16": (0.161, 0.1116),
}

# NVIDIA DeepLearningExamples, ResNet-50 v1.5: device, type, images a second at batch 256.
PUBLISHED_IMAGES = (
    ("V100", "fp32", 367),
    ("V100", "bf16", 1200),
    ("A100", "tf32", 938),
    ("A100", "bf16", 2470),
)

# torchtitan, Llama 3.1 8B on H100, batch 2 of 8192 tokens: eager and compiled.
PUBLISHED_TOKENS = (5762, 6667)

# Points of the published backward logs: microseconds since backward began, and the bytes
# that became ready since the point before.
PUBLISHED_READY = {
    "resnet50": (
        (5486.4, 43896736), (11575.6, 24158208), (17197.9, 9994240), (22515.7, 11298816),
        (27895.3, 6574080), (33462.2, 1912832), (38613.8, 1976320), (43940.8, 1383424),
        (49447.2, 347648), (54555.1, 281600), (59900.9, 201216), (64806.6, 203008),
    ),
    "vgg16": (
        (834.0, 83513248), (2456.3, 411058176), (8296.7, 9449472), (16867.1, 18886656),
        (22871.8, 9443328), (28096.1, 14162944), (34520.5, 2048), (41996.8, 2362368),
        (50096.2, 3542528), (63727.4, 1024), (73792.7, 591360), (79768.2, 295168),
        (101631.5, 512), (111599.7, 148224), (111620.5, 6912),
    ),
}  # fmt: skip


def compute_s(step: Workload) -> float:
    """Forward and backward [s]."""
    return step.span_s(Kind.FORWARD) + step.span_s(Kind.BACKWARD)


@pytest.mark.parametrize(("name", "published"), PUBLISHED_S.items())
def test_convolutional_steps_are_near_the_published(
    name: str, published: tuple[float, float]
) -> None:
    """Forward and backward together, and backward alone, within the stated uncertainty."""
    step = modelled(zoo.load(name), device("V100"), 32)
    assert step.source.uncertainty == 0.1
    assert compute_s(step) == pytest.approx(published[0], rel=step.source.uncertainty)
    assert step.span_s(Kind.BACKWARD) == pytest.approx(published[1], rel=step.source.uncertainty)


@pytest.mark.parametrize(("name", "tolerance"), [("resnet50", 0.05), ("vgg16", 0.21)])
def test_gradients_are_ready_near_the_published_times(name: str, tolerance: float) -> None:
    """Same bytes in the same order, at about the same part of the backward pass."""
    points = PUBLISHED_READY[name]
    step = modelled(zoo.load(name), device("V100"), 32)
    ready_after = {}
    total = 0
    for gradient in step.gradients:
        total += gradient.nbytes
        ready_after[total] = gradient.ready_s / step.span_s(Kind.BACKWARD)
    published_bytes = accumulate(nbytes for _, nbytes in points)
    for (microseconds, _), nbytes in zip(points, published_bytes, strict=True):
        assert ready_after[nbytes] == pytest.approx(microseconds / points[-1][0], abs=tolerance)


@pytest.mark.parametrize(("name", "dtype", "images"), PUBLISHED_IMAGES)
def test_vendor_training_rates_are_met(name: str, dtype: str, images: int) -> None:
    """Step time at batch 256 within the stated uncertainty."""
    step = modelled(zoo.load("resnet50"), device(name), 256, dtype)  # type: ignore[arg-type]
    assert step.compute_s == pytest.approx(256 / images, rel=step.source.uncertainty)


@pytest.mark.parametrize("tokens", PUBLISHED_TOKENS)
def test_language_model_training_rate_is_met(tokens: int) -> None:
    """Both published rates lie within the stated uncertainty."""
    step = modelled(zoo.load("llama-8b"), device("H100"), 2, "bf16")
    assert step.compute_s == pytest.approx(2 * 8192 / tokens, rel=step.source.uncertainty)


def test_gradients_come_in_backward_order() -> None:
    """Last layer first; within it the last registered parameter first."""
    step = modelled(zoo.load("resnet50"), device("V100"), 32)
    first, second, *_, last = step.gradients
    assert (first.name, first.nbytes) == ("fc.bias", 4000)
    assert (second.name, second.nbytes) == ("fc.weight", 8_192_000)
    assert first.ready_s == second.ready_s > 0
    assert last.name == "conv1.weight"
    assert last.ready_s == pytest.approx(step.span_s(Kind.BACKWARD))


def test_needed_times_are_forward_starts() -> None:
    """The first layer is needed at once, the last just before the forward pass ends."""
    step = modelled(zoo.load("resnet50"), device("V100"), 32)
    needed = {gradient.name: gradient.needed_s for gradient in step.gradients}
    assert needed["conv1.weight"] == 0.0
    assert needed["fc.weight"] is not None
    assert 0.99 < needed["fc.weight"] / step.span_s(Kind.FORWARD) < 1
    in_forward_order = [gradient.needed_s or 0.0 for gradient in reversed(step.gradients)]
    assert in_forward_order == sorted(in_forward_order)


def test_tied_embedding_is_ready_last_and_needed_first() -> None:
    """Autograd adds up both uses, and the embedding's comes last."""
    step = modelled(zoo.load("gpt2"), device("A100"), 8, "bf16")
    embedding = step.gradients[-1]
    assert embedding.name == "transformer.wte.weight"
    assert embedding.needed_s == 0.0
    assert embedding.ready_s == pytest.approx(step.span_s(Kind.BACKWARD))


@pytest.mark.parametrize(
    ("dtype", "given", "expected"),
    [("fp32", None, 4), ("tf32", None, 4), ("bf16", None, 2), ("bf16", 4, 4)],
)
def test_gradient_bytes_follow_the_type(dtype: str, given: int | None, expected: int) -> None:
    """Unless told otherwise, as in mixed precision with float32 parameters."""
    architecture = zoo.load("gpt2")
    step = modelled(
        architecture,
        device("A100"),
        1,
        dtype,  # type: ignore[arg-type]
        gradient_dtype_bytes=given,
    )
    assert step.gradient_bytes == architecture.gradient_bytes(expected)


@pytest.mark.parametrize("name", zoo.names())
@pytest.mark.parametrize("device_name", names())
def test_every_pair_makes_a_workload(name: str, device_name: str) -> None:
    """And a larger batch never takes less time."""
    small, large = (modelled(zoo.load(name), device(device_name), n, "bf16") for n in (1, 16))
    assert small.source.kind == "modelled"
    assert 0 < small.compute_s <= large.compute_s
    assert small.gradient_bytes == large.gradient_bytes


def test_optimizer_time_is_memory_traffic() -> None:
    """SGD with momentum touches 5 values a parameter, Adam 7, at 4 bytes."""
    v100 = device("V100")
    for name, accesses in (("resnet50", 5), ("gpt2", 7)):
        architecture = zoo.load(name)
        expected = accesses * architecture.gradient_bytes() / v100.streaming_Bps
        actual = modelled(architecture, v100, 1).span_s(Kind.OPTIMIZER)
        assert actual == pytest.approx(expected)


def test_launch_bound_step_says_so() -> None:
    """A network of tiny layers is dominated by what is not modelled."""
    step = modelled(zoo.load("dlrm"), device("H100"), 2048, "bf16")
    assert step.source.uncertainty == 1.0
    assert "kernel launches" in step.source.detail


@pytest.mark.parametrize("name", ["resnet50", "bert-large", "dlrm"])
def test_scaled_step_takes_the_given_time(name: str) -> None:
    """Forward, backward and optimizer add up; proportions stay."""
    architecture = zoo.load(name)
    step = scaled(architecture, 0.128, 32)
    reference = modelled(architecture, device("V100"), 32)
    assert step.source.kind == "scaled"
    assert step.compute_s == pytest.approx(0.128, rel=1e-12)
    factor = 0.128 / reference.compute_s
    assert [gradient.ready_s for gradient in step.gradients] == pytest.approx(
        [factor * gradient.ready_s for gradient in reference.gradients]
    )
    assert step.gradients[-1].ready_s <= step.span_s(Kind.BACKWARD) * (1 + 1e-12)


def test_scaled_to_the_modelled_time_is_the_identity() -> None:
    """Nothing moves when the given time is the modelled one."""
    reference = modelled(zoo.load("vgg16"), device("V100"), 32)
    step = scaled(zoo.load("vgg16"), reference.compute_s, 32)
    for actual, expected in zip(step.gradients, reference.gradients, strict=True):
        assert actual.name == expected.name
        assert actual.ready_s == pytest.approx(expected.ready_s, rel=1e-12)


@pytest.mark.parametrize("step_s", [0.0, -1.0, float("nan"), float("inf")])
def test_impossible_step_is_refused(step_s: float) -> None:
    """A step takes a finite time above zero."""
    with pytest.raises(WorkloadError, match="step_s"):
        scaled(zoo.load("resnet50"), step_s, 32)


def test_impossible_batch_is_refused() -> None:
    """A step has at least one sample."""
    with pytest.raises(WorkloadError, match="batch is 0"):
        modelled(zoo.load("resnet50"), device("V100"), 0)


def test_missing_type_is_refused() -> None:
    """V100 has no tf32."""
    with pytest.raises(WorkloadError, match="no tf32"):
        modelled(zoo.load("resnet50"), device("V100"), 32, "tf32")

"""The zoo agrees with what others have published about its architectures."""

import importlib.util
import math
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from wirebound.errors import WorkloadError
from wirebound.workload import zoo

ROOT = Path(__file__).resolve().parents[3]
MADE_WITH_TORCH = "2.13"

PARAMETERS = {
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "vgg16": 138_365_992,
    "vit-l": 304_326_632,
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama-1b": 1_235_814_400,
    "llama-8b": 8_030_261_248,
    "llama-70b": 70_553_706_496,
    "dlrm": 2_368_897,
}

# Multiplications and additions counted as one, as torchvision prints them.
TORCHVISION_GMAC = {"resnet50": 4.09, "resnet101": 7.80, "vgg16": 15.47, "vit-l": 61.6}

# Gradient tensors and bytes of the published backward logs of Zhang et al. 2020.
PUBLISHED_GRADIENTS = {
    "resnet50": (161, 102_228_128),
    "resnet101": (314, 178_196_640),
    "vgg16": (58, 553_463_968),
}

# name: depth, width, tokens, elements of a block's matrices, width of the output layer
DECODERS = {
    "gpt2": (12, 768, 1024, 12 * 768**2, 50257),
    "gpt2-medium": (24, 1024, 1024, 12 * 1024**2, 50257),
    "gpt2-large": (36, 1280, 1024, 12 * 1280**2, 50257),
    "gpt2-xl": (48, 1600, 1024, 12 * 1600**2, 50257),
    "llama-1b": (16, 2048, 8192, 2048 * (2 * 2048 + 2 * 512 + 3 * 8192), 128256),
    "llama-8b": (32, 4096, 8192, 4096 * (2 * 4096 + 2 * 1024 + 3 * 14336), 128256),
    "llama-70b": (80, 8192, 8192, 8192 * (2 * 8192 + 2 * 1024 + 3 * 28672), 128256),
}


def tensors(architecture: zoo.Architecture) -> list[tuple[str, int]]:
    """Name and elements of every parameter, in forward order."""
    return [
        (name, math.prod(shape))
        for layer in architecture.layers
        for name, shape in layer.parameters
    ]


def test_names_are_those_with_a_published_count() -> None:
    """No architecture is without a check against its published size."""
    assert set(zoo.names()) == set(PARAMETERS)


@pytest.mark.parametrize(("name", "parameters"), PARAMETERS.items())
def test_parameter_count_is_the_published_one(name: str, parameters: int) -> None:
    """Counts agree exactly, and the file claims no other."""
    architecture = zoo.load(name)
    assert architecture.num_parameters == parameters
    assert architecture.published_parameters == parameters
    assert architecture.gradient_bytes(2) == 2 * parameters


@pytest.mark.parametrize("name", PARAMETERS)
def test_names_are_unique(name: str) -> None:
    """No parameter is counted twice, also where two layers share it."""
    names = [parameter for parameter, _ in tensors(zoo.load(name))]
    assert len(set(names)) == len(names)
    assert not any("{" in parameter for parameter in names)


@pytest.mark.parametrize(("name", "gmac"), TORCHVISION_GMAC.items())
def test_flops_are_those_of_torchvision(name: str, gmac: float) -> None:
    """Two FLOP a multiplication and addition, within the rounding of the source."""
    assert zoo.load(name).flops_forward / 2e9 == pytest.approx(gmac, rel=0.002)


@pytest.mark.parametrize(("name", "shape"), DECODERS.items())
def test_flops_are_the_closed_form_for_decoders(
    name: str, shape: tuple[int, int, int, int, int]
) -> None:
    """2 FLOP an element of a matrix and token, and 4 tokens^2 width for attention a block."""
    depth, width, tokens, block_elements, vocabulary = shape
    block = 2 * tokens * block_elements + 4 * tokens**2 * width
    assert zoo.load(name).flops_forward == depth * block + 2 * tokens * width * vocabulary


@pytest.mark.parametrize(
    ("name", "shape"), {"bert-base": (12, 768), "bert-large": (24, 1024)}.items()
)
def test_flops_are_the_closed_form_for_encoders(name: str, shape: tuple[int, int]) -> None:
    """As for decoders, with a pooler on one token instead of an output layer."""
    depth, width = shape
    block = 2 * 512 * 12 * width**2 + 4 * 512**2 * width
    assert zoo.load(name).flops_forward == depth * block + 2 * width**2


@pytest.mark.parametrize(("name", "expected"), PUBLISHED_GRADIENTS.items())
def test_gradients_are_those_of_the_published_logs(name: str, expected: tuple[int, int]) -> None:
    """Number of tensors and bytes in float32."""
    architecture = zoo.load(name)
    assert (len(tensors(architecture)), architecture.gradient_bytes()) == expected


def test_parameters_are_in_torchvision_order() -> None:
    """Registration order, first and last."""
    parameters = tensors(zoo.load("resnet50"))
    assert parameters[0] == ("conv1.weight", 64 * 3 * 7 * 7)
    assert parameters[12:15] == [
        ("layer1.0.downsample.0.weight", 64 * 256),
        ("layer1.0.downsample.1.weight", 256),
        ("layer1.0.downsample.1.bias", 256),
    ]
    assert parameters[-2:] == [("fc.weight", 2_048_000), ("fc.bias", 1000)]


def test_repeated_blocks_are_numbered() -> None:
    """A file writes equal blocks once; the loader hands out each."""
    names = [name for name, _ in tensors(zoo.load("llama-70b"))]
    assert names[1] == "model.layers.0.input_layernorm.weight"
    assert names[-3] == "model.layers.79.mlp.down_proj.weight"


def test_tied_output_layer_computes_without_parameters() -> None:
    """Its work is there; its gradient belongs to the embedding, which needs it last."""
    assert zoo.load("llama-1b").layers[0].parameters[0][0] == "model.embed_tokens.weight"
    first, *_, last = zoo.load("gpt2").layers
    assert first.parameters == (("transformer.wte.weight", (50257, 768)),)
    assert last.parameters == ()
    assert last.flops_forward == 2 * 1024 * 768 * 50257


def test_winograd_marks_3x3_convolutions_of_stride_1() -> None:
    """ResNet-50 has 16 3x3 convolutions, three of them with stride 2."""
    marked = [layer for layer in zoo.load("resnet50").layers if layer.is_winograd]
    assert len(marked) == 13
    assert all(layer.parameters[0][1][2:] == (3, 3) for layer in marked)


def test_unknown_name_gets_the_nearest() -> None:
    """The error says what is wrong and what was probably meant."""
    with pytest.raises(WorkloadError, match=r"'ResNet-50'.*did you mean 'resnet50'\?"):
        zoo.load("ResNet-50")
    with pytest.raises(WorkloadError, match="known are bert-base"):
        zoo.load("?")


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None
    or not metadata.version("torch").startswith(MADE_WITH_TORCH),
    reason="needs the torch version that the files were made with",
)
def test_files_are_what_the_generator_makes() -> None:
    """Nobody edited the data by hand."""
    command = [sys.executable, str(ROOT / "tools" / "make_zoo.py"), "--check"]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr

"""The architectures of the zoo: how each is built, and what others have published about it."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from zoo.language import GPT2, Bert, Llama
from zoo.recommendation import DLRM, NUM_TABLES
from zoo.vision import VGG16BN, ResNet, VisionTransformer

TORCHVISION = "torchvision, num_params of the weights"
KERAS_HUB = "keras-hub, params of the preset"
LLAMA_SAMPLE = "one sequence of 8192 tokens"


class Entry(NamedTuple):
    """One architecture.

    Attributes:
        title: What people call it, with what is special about this form.
        arithmetic: What most of its work is, `convolution` or `matmul`.
        sample: What one sample is.
        published_parameters: The count others give.
        published_source: Who gives it.
        build: Makes the module; called under the meta device.
        inputs: Makes the input of one sample.
        targets: Makes the class indices its loss needs, None without a loss.
    """

    title: str
    arithmetic: str
    sample: str
    published_parameters: int
    published_source: str
    build: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Tensor, ...]]
    targets: Callable[[], Tensor] | None


def _integers(*shape: int) -> Callable[[], Tensor]:
    return lambda: torch.zeros(shape, dtype=torch.long)


def _image(title: str, arithmetic: str, parameters: int, build: Callable[[], nn.Module]) -> Entry:
    return Entry(
        title,
        arithmetic,
        "one 224x224 image",
        parameters,
        TORCHVISION,
        build,
        lambda: (torch.empty(1, 3, 224, 224),),
        _integers(1),
    )


def _bert(title: str, parameters: int, source: str, shape: tuple[int, int, int]) -> Entry:
    return Entry(
        f"{title}, encoder and pooler without pre-training heads",
        "matmul",
        "one sequence of 512 tokens",
        parameters,
        source,
        lambda: Bert(*shape),
        lambda: (_integers(1, 512)(),),
        None,
    )


def _gpt2(title: str, parameters: int, shape: tuple[int, int, int]) -> Entry:
    return Entry(
        f"{title}, output layer tied to the token embedding",
        "matmul",
        "one sequence of 1024 tokens",
        parameters,
        KERAS_HUB,
        lambda: GPT2(*shape),
        lambda: (_integers(1, 1024)(),),
        _integers(1, 1024),
    )


def _llama(title: str, name: str, parameters: int, build: Callable[[], nn.Module]) -> Entry:
    return Entry(
        title,
        "matmul",
        LLAMA_SAMPLE,
        parameters,
        f"Hugging Face, safetensors total of meta-llama/{name}",
        build,
        lambda: (_integers(1, 8192)(),),
        _integers(1, 8192),
    )


CATALOGUE: dict[str, Entry] = {
    "resnet50": _image("ResNet-50 v1.5", "convolution", 25_557_032, lambda: ResNet((3, 4, 6, 3))),
    "resnet101": _image(
        "ResNet-101 v1.5", "convolution", 44_549_160, lambda: ResNet((3, 4, 23, 3))
    ),
    "vgg16": _image("VGG-16 with batch normalisation", "convolution", 138_365_992, VGG16BN),
    "vit-l": _image("ViT-L/16", "matmul", 304_326_632, lambda: VisionTransformer(24, 1024, 16)),
    "bert-base": _bert(
        "BERT-base uncased",
        109_482_240,
        "Hugging Face transformers, BertModel of bert-base-uncased",
        (12, 768, 12),
    ),
    "bert-large": _bert("BERT-large uncased", 335_141_888, KERAS_HUB, (24, 1024, 16)),
    "gpt2": _gpt2("GPT-2 small", 124_439_808, (12, 768, 12)),
    "gpt2-medium": _gpt2("GPT-2 medium", 354_823_168, (24, 1024, 16)),
    "gpt2-large": _gpt2("GPT-2 large", 774_030_080, (36, 1280, 20)),
    "gpt2-xl": _gpt2("GPT-2 XL", 1_557_611_200, (48, 1600, 25)),
    "llama-1b": _llama(
        "Llama 3.2 1B, output layer tied to the token embedding",
        "Llama-3.2-1B",
        1_235_814_400,
        lambda: Llama(depth=16, width=2048, heads=32, kv_heads=8, hidden=8192, is_tied=True),
    ),
    "llama-8b": _llama(
        "Llama 3 8B",
        "Llama-3.1-8B",
        8_030_261_248,
        lambda: Llama(depth=32, width=4096, heads=32, kv_heads=8, hidden=14336, is_tied=False),
    ),
    "llama-70b": _llama(
        "Llama 3 70B",
        "Llama-3.1-70B",
        70_553_706_496,
        lambda: Llama(depth=80, width=8192, heads=64, kv_heads=8, hidden=28672, is_tied=False),
    ),
    "dlrm": Entry(
        "DLRM in MLPerf sizes, the two perceptrons without the 26 embedding tables",
        "matmul",
        "one Criteo record",
        2_368_897,
        "layer widths 13-512-256-128 and 479-1024-1024-512-256-1 in "
        "mlcommons/training, recommendation_v2/torchrec_dlrm; no total is published",
        DLRM,
        lambda: (torch.empty(1, 13), torch.empty(1, NUM_TABLES, 128)),
        None,
    ),
}

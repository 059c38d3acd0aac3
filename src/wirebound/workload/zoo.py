"""Well-known architectures, layer by layer: what their forward pass computes and moves.

The numbers are data, made once by `tools/make_zoo.py` from the modules themselves; here
they are read. What they cost in seconds is a matter of a device: see `modelled`.
"""

import difflib
import functools
import math
from importlib import resources
from typing import Literal

import msgspec

from wirebound.errors import WorkloadError

Shape = tuple[int, ...]
Arithmetic = Literal["convolution", "matmul"]


class Layer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The parameters of one module and all work until the next module with parameters.

    Activations, residual sums, pooling and attention belong to the layer before them, so
    that going backward a layer's work ends exactly where its gradients are ready.

    Attributes:
        name: Path of the module.
        parameters: Name and shape of each parameter, in registration order; empty where
            the layer only uses parameters of an earlier one.
        flops_forward: Matrix products and convolutions for one sample [FLOP], a
            multiplication and an addition counted as two; nothing else is counted.
        activation_bytes: What every operation reads and writes for one sample [bytes], at
            4 bytes an element, without the parameters.
        is_winograd: Whether it is a 3x3 convolution of stride 1, for which float32
            libraries have an algorithm with fewer multiplications.
    """

    name: str
    parameters: tuple[tuple[str, Shape], ...]
    flops_forward: int
    activation_bytes: int
    is_winograd: bool = False

    @property
    def num_parameters(self) -> int:
        """Elements of all its parameters."""
        return sum(math.prod(shape) for _, shape in self.parameters)


class Architecture(msgspec.Struct, frozen=True):
    """A network as the zoo knows it.

    Attributes:
        name: Its name in the zoo.
        title: What people call it, with what is special about this form.
        arithmetic: What most of its work is.
        sample: What one sample is.
        published_parameters: The count that others give.
        published_source: Who gives it.
        layers: In forward order.
    """

    name: str
    title: str
    arithmetic: Arithmetic
    sample: str
    published_parameters: int
    published_source: str
    layers: tuple[Layer, ...]

    @property
    def num_parameters(self) -> int:
        """Elements of all parameters."""
        return sum(layer.num_parameters for layer in self.layers)

    @property
    def flops_forward(self) -> int:
        """Forward pass of one sample [FLOP]."""
        return sum(layer.flops_forward for layer in self.layers)

    def gradient_bytes(self, dtype_bytes: int = 4) -> int:
        """All gradients together [bytes].

        Args:
            dtype_bytes: Size of one element [bytes].
        """
        return self.num_parameters * dtype_bytes


class _Block(msgspec.Struct, frozen=True):
    """Layers that follow each other `repeat` times; `{i}` in a name counts from `first`."""

    layers: tuple[Layer, ...]
    first: int
    repeat: int

    def expand(self) -> list[Layer]:
        return [
            _numbered(layer, self.first + step)
            for step in range(self.repeat)
            for layer in self.layers
        ]


class _File(msgspec.Struct, frozen=True):
    """An architecture as stored."""

    title: str
    arithmetic: Arithmetic
    sample: str
    published_parameters: int
    published_source: str
    blocks: tuple[_Block, ...]


@functools.cache
def names() -> tuple[str, ...]:
    """Names of all architectures, sorted."""
    found = (
        file.name for file in resources.files("wirebound.workload").joinpath("zoo_data").iterdir()
    )
    return tuple(sorted(name.removesuffix(".json") for name in found if name.endswith(".json")))


@functools.cache
def load(name: str) -> Architecture:
    """The architecture of that name.

    Raises:
        WorkloadError: There is none.
    """
    if name not in names():
        raise WorkloadError(f"no architecture is named {name!r} in the zoo", nearest(name, names()))
    path = resources.files("wirebound.workload").joinpath("zoo_data", f"{name}.json")
    stored = msgspec.json.decode(path.read_bytes(), type=_File)
    return Architecture(
        name=name,
        title=stored.title,
        arithmetic=stored.arithmetic,
        sample=stored.sample,
        published_parameters=stored.published_parameters,
        published_source=stored.published_source,
        layers=tuple(layer for block in stored.blocks for layer in block.expand()),
    )


def nearest(name: str, known: tuple[str, ...]) -> str:
    """A hint for a name that is not known: the one that looks most like it, or all."""
    lowered = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), lowered, n=1)
    return f"did you mean {lowered[close[0]]!r}?" if close else f"known are {', '.join(known)}"


def _numbered(layer: Layer, number: int) -> Layer:
    def name_of(template: str) -> str:
        return template.replace("{i}", str(number))

    parameters = tuple((name_of(name), shape) for name, shape in layer.parameters)
    return msgspec.structs.replace(layer, name=name_of(layer.name), parameters=parameters)

"""Run a module on the meta device and count, layer by layer, what its forward pass does.

A layer begins with the first operation that reads the parameters of a module and
lasts until the next one begins, so activations, residual sums and attention belong to
the layer before them. Going backward that is exactly the work after which a layer's
gradients are ready.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from zoo import ops

ELEMENT_BYTES = 4
WINOGRAD_KERNEL = (3, 3)
UNTRAFFICKED = {torch.ops.aten.empty_like, torch.ops.aten.new_empty, torch.ops.aten.empty}
"""Operations that touch no memory although they are no views."""


class Owner(NamedTuple):
    """The parameters one layer brings, and the name it goes by."""

    layer: str
    parameters: tuple[tuple[str, tuple[int, ...]], ...]


class Tally:
    """One layer while it is being counted."""

    def __init__(self, owner: Owner, parameters: tuple[tuple[str, tuple[int, ...]], ...]) -> None:
        self.owner = owner
        self.parameters = parameters
        self.flops = 0
        self.traffic = 0
        self.is_winograd = False

    def as_record(self) -> dict[str, Any]:
        """The layer as it stands in the zoo's files."""
        record: dict[str, Any] = {
            "name": self.owner.layer if self.parameters else f"{self.owner.layer} (tied)",
            "parameters": [[name, list(shape)] for name, shape in self.parameters],
            "flops_forward": self.flops,
            "activation_bytes": self.traffic,
        }
        return record | ({"is_winograd": True} if self.is_winograd else {})


class LayerCounter(TorchDispatchMode):
    """Attributes every operation to the layer whose parameters were read last."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.tallies: list[Tally] = []
        self._owners: dict[int, Owner] = {}
        for storage, owner in _owners(model):
            # A shared parameter goes by the name it was registered under first.
            self._owners.setdefault(storage, owner)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation and count it."""
        result = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        for tensor in tensors:
            self._enter(self._owners.get(_storage(tensor)), func)
        if not self.tallies:
            return result
        tally = self.tallies[-1]
        tally.flops += _flops(func, args, result)
        tally.is_winograd |= _is_winograd(func, args)
        if not func.is_view and func.overloadpacket not in UNTRAFFICKED:
            results = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
            read = [tensor for tensor in tensors if _storage(tensor) not in self._owners]
            tally.traffic += ELEMENT_BYTES * sum(t.numel() for t in read + results)
        return result

    def _enter(self, owner: Owner | None, func: Any) -> None:
        if owner is None or func.is_view:
            return
        if self.tallies and self.tallies[-1].owner.layer == owner.layer:
            return
        is_first_use = all(tally.owner.layer != owner.layer for tally in self.tallies)
        self.tallies.append(Tally(owner, owner.parameters if is_first_use else ()))


def trace(model: nn.Module, *inputs: Tensor, targets: Tensor | None) -> list[dict[str, Any]]:
    """Layers of `model` in forward order, for one sample.

    Args:
        model: On the meta device.
        *inputs: A batch of one.
        targets: Class indices for a cross-entropy loss, where the model ends in logits.
    """
    with torch.no_grad(), LayerCounter(model) as counter:
        output = model(*inputs)
        if targets is not None:
            nn.functional.cross_entropy(output.flatten(0, -2), targets.flatten())
    return [tally.as_record() for tally in counter.tallies]


def _owners(model: nn.Module) -> Iterator[tuple[int, Owner]]:
    for path, module in model.named_modules():
        own = [
            (f"{path}.{name}".lstrip("."), parameter)
            for name, parameter in module.named_parameters(recurse=False)
        ]
        # A lone parameter beside submodules (a class token) is a layer by its own name.
        is_lone = len(own) == 1 and next(module.children(), None) is not None
        layer = own[0][0] if is_lone else path
        shapes = tuple((name, tuple(parameter.shape)) for name, parameter in own)
        for _, parameter in own:
            yield _storage(parameter), Owner(layer, shapes)


def _storage(tensor: Tensor) -> int:
    # Views of a parameter (a transposed weight) share its storage, also on meta.
    return int(tensor.untyped_storage()._cdata)  # noqa: SLF001 - meta storages have no address


def _flops(func: Any, args: Any, result: Any) -> int:
    if func is torch.ops.zoo.attention.default:
        return ops.attention_flops(args[0], args[1])
    count = flop_registry.get(func.overloadpacket)
    return 0 if count is None else int(count(*args, out_val=result))


def _is_winograd(func: Any, args: Any) -> bool:
    if func is not torch.ops.aten.convolution.default:
        return False
    return tuple(args[1].shape[2:]) == WINOGRAD_KERNEL and tuple(args[3]) == (1, 1)

"""Operations that run as one fused kernel in training, and that torch would take apart.

Only their shapes exist: nothing here is ever computed.
"""

import torch
from torch import Tensor


@torch.library.custom_op("zoo::attention", mutates_args=())
def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention of [batch, heads, tokens, width] as one kernel, scores never in memory."""
    raise NotImplementedError


@attention.register_fake
def _(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    del key, value
    return torch.empty_like(query)


@torch.library.custom_op("zoo::rotate", mutates_args=())
def rotate(states: Tensor) -> Tensor:
    """Rotary position embedding."""
    raise NotImplementedError


@rotate.register_fake
def _(states: Tensor) -> Tensor:
    return torch.empty_like(states)


@torch.library.custom_op("zoo::rms_norm", mutates_args=())
def rms_norm(states: Tensor, weight: Tensor) -> Tensor:
    """Root-mean-square normalisation."""
    raise NotImplementedError


@rms_norm.register_fake
def _(states: Tensor, weight: Tensor) -> Tensor:
    del weight
    return torch.empty_like(states)


def attention_flops(query: Tensor, key: Tensor) -> int:
    """Both matrix products, without leaving out what a causal mask hides [FLOP]."""
    batch, heads, tokens, width = query.shape
    return 4 * batch * heads * tokens * key.shape[2] * width


def split_heads(states: Tensor, heads: int) -> Tensor:
    """[batch, tokens, heads * width] as [batch, heads, tokens, width]."""
    batch, tokens, _ = states.shape
    return states.view(batch, tokens, heads, -1).transpose(1, 2)


def merge_heads(states: Tensor) -> Tensor:
    """The inverse of `split_heads`; one kernel writes the merged form, so no copy."""
    batch, heads, tokens, width = states.shape
    return states.new_empty(batch, tokens, heads * width)

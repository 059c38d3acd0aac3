"""Language models, with modules named as the usual implementations name them."""

import torch
from torch import Tensor, nn

from zoo.ops import attention, merge_heads, rms_norm, rotate, split_heads


def tree(**children: nn.Module) -> nn.Module:
    """A module that only holds others, so that parameters get their usual names."""
    module = nn.Module()
    for name, child in children.items():
        module.add_module(name, child)
    return module


class BertLayer(nn.Module):
    """Post-norm transformer block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        linear = {name: nn.Linear(width, width) for name in ("query", "key", "value", "dense")}
        self.attention = tree(
            self=tree(query=linear["query"], key=linear["key"], value=linear["value"]),
            output=tree(dense=linear["dense"], LayerNorm=nn.LayerNorm(width)),
        )
        self.intermediate = tree(dense=nn.Linear(width, 4 * width))
        self.output = tree(dense=nn.Linear(4 * width, width), LayerNorm=nn.LayerNorm(width))

    def forward(self, x: Tensor) -> Tensor:
        """[batch, tokens, width] to the same."""
        project = self.attention.self
        query, key, value = (
            split_heads(linear(x), self.heads)
            for linear in (project.query, project.key, project.value)
        )
        attended = self.attention.output.dense(merge_heads(attention(query, key, value)))
        x = self.attention.output.LayerNorm(x + attended)
        hidden = nn.functional.gelu(self.intermediate.dense(x))
        return self.output.LayerNorm(x + self.output.dense(hidden))


class Bert(nn.Module):
    """Devlin et al. 2018: embeddings, encoder and pooler, without pre-training heads."""

    def __init__(self, depth: int, width: int, heads: int) -> None:
        super().__init__()
        self.embeddings = tree(
            word_embeddings=nn.Embedding(30522, width),
            position_embeddings=nn.Embedding(512, width),
            token_type_embeddings=nn.Embedding(2, width),
            LayerNorm=nn.LayerNorm(width),
        )
        self.encoder = tree(layer=nn.ModuleList(BertLayer(width, heads) for _ in range(depth)))
        self.pooler = tree(dense=nn.Linear(width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        """Token numbers [batch, tokens] to pooled states [batch, width]."""
        embeddings = self.embeddings
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = embeddings.word_embeddings(tokens) + embeddings.position_embeddings(positions)
        x = embeddings.LayerNorm(x + embeddings.token_type_embeddings(torch.zeros_like(tokens)))
        for layer in self.encoder.layer:
            x = layer(x)
        return torch.tanh(self.pooler.dense(x[:, 0]))


class Conv1D(nn.Module):
    """A linear layer whose weight is stored [inputs, outputs], as GPT-2 has it."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """[batch, tokens, inputs] to [batch, tokens, outputs]."""
        flat = torch.addmm(self.bias, x.flatten(0, 1), self.weight)
        return flat.view(*x.shape[:2], -1)


class GPT2Block(nn.Module):
    """Pre-norm transformer block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.attn = tree(c_attn=Conv1D(width, 3 * width), c_proj=Conv1D(width, width))
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = tree(c_fc=Conv1D(width, 4 * width), c_proj=Conv1D(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """[batch, tokens, width] to the same."""
        projected = self.attn.c_attn(self.ln_1(x)).chunk(3, dim=-1)
        query, key, value = (split_heads(part, self.heads) for part in projected)
        x = x + self.attn.c_proj(merge_heads(attention(query, key, value)))
        return x + self.mlp.c_proj(nn.functional.gelu(self.mlp.c_fc(self.ln_2(x))))


class GPT2(nn.Module):
    """Radford et al. 2019; the output layer shares the weight of the token embedding."""

    def __init__(self, depth: int, width: int, heads: int) -> None:
        super().__init__()
        self.transformer = tree(
            wte=nn.Embedding(50257, width),
            wpe=nn.Embedding(1024, width),
            h=nn.ModuleList(GPT2Block(width, heads) for _ in range(depth)),
            ln_f=nn.LayerNorm(width),
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Token numbers [batch, tokens] to logits [batch, tokens, 50257]."""
        body = self.transformer
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = body.wte(tokens) + body.wpe(positions)
        for block in body.h:
            x = block(x)
        return nn.functional.linear(body.ln_f(x), body.wte.weight)


class RMSNorm(nn.Module):
    """Root-mean-square norm with a gain."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x: Tensor) -> Tensor:
        """[batch, tokens, width] to the same."""
        return rms_norm(x, self.weight)


class LlamaBlock(nn.Module):
    """Pre-norm block with grouped-query attention and a gated perceptron."""

    def __init__(self, width: int, heads: int, kv_heads: int, hidden: int) -> None:
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        kv_width = width // heads * kv_heads
        self.self_attn = tree(
            q_proj=nn.Linear(width, width, bias=False),
            k_proj=nn.Linear(width, kv_width, bias=False),
            v_proj=nn.Linear(width, kv_width, bias=False),
            o_proj=nn.Linear(width, width, bias=False),
        )
        self.mlp = tree(
            gate_proj=nn.Linear(width, hidden, bias=False),
            up_proj=nn.Linear(width, hidden, bias=False),
            down_proj=nn.Linear(hidden, width, bias=False),
        )
        self.input_layernorm = RMSNorm(width)
        self.post_attention_layernorm = RMSNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, tokens, width] to the same."""
        project = self.self_attn
        normed = self.input_layernorm(x)
        query = rotate(split_heads(project.q_proj(normed), self.heads))
        key = rotate(split_heads(project.k_proj(normed), self.kv_heads))
        value = split_heads(project.v_proj(normed), self.kv_heads)
        x = x + project.o_proj(merge_heads(attention(query, key, value)))
        normed = self.post_attention_layernorm(x)
        gated = nn.functional.silu(self.mlp.gate_proj(normed)) * self.mlp.up_proj(normed)
        return x + self.mlp.down_proj(gated)


class Llama(nn.Module):
    """Llama 3 (Meta 2024), vocabulary of 128256."""

    def __init__(  # noqa: PLR0913 - the shape of the model, each by its name
        self, *, depth: int, width: int, heads: int, kv_heads: int, hidden: int, is_tied: bool
    ) -> None:
        super().__init__()
        self.model = tree(
            embed_tokens=nn.Embedding(128256, width),
            layers=nn.ModuleList(LlamaBlock(width, heads, kv_heads, hidden) for _ in range(depth)),
            norm=RMSNorm(width),
        )
        self.lm_head = nn.Linear(width, 128256, bias=False)
        if is_tied:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """Token numbers [batch, tokens] to logits [batch, tokens, 128256]."""
        x = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            x = layer(x)
        return self.lm_head(self.model.norm(x))

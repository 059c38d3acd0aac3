"""A transformer that tells apart made sequences: a large embedding, then even layers.

Run it alone, or as ranks:

    python examples/transformer.py
    torchrun --nproc-per-node 2 examples/transformer.py
"""

import torch
from torch import nn
from training import Samples, train

CLASSES = 10
WORDS = 4096
LENGTH = 24
WIDTH = 384
LAYERS = 4
HEADS = 6


class Transformer(nn.Module):
    """Embedding, four encoder layers, and a mean over the sequence; 8.7 million parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Scores (batch, classes) for words (batch, length)."""
        scores: torch.Tensor = self.head(self.encoder(self.embedding(words)).mean(dim=1))
        return scores


def make(count: int) -> Samples:
    """Made sequences."""
    return torch.randint(WORDS, (count, LENGTH)), torch.randint(CLASSES, (count,))


if __name__ == "__main__":
    train(__doc__, Transformer, make)

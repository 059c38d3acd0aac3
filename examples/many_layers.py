"""A residual network of many small layers: hundreds of tiny gradients.

Run it alone, or as ranks:

    python examples/many_layers.py
    torchrun --nproc-per-node 2 examples/many_layers.py
"""

import torch
from torch import nn
from training import Samples, train

CLASSES = 10
WIDTH = 96
BLOCKS = 40


class Block(nn.Module):
    """Normalisation and two small layers beside a short cut."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH)
        )

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Add what the layers say, (batch, width) to the same."""
        added: torch.Tensor = inputs + self.layers(inputs)
        return added


def build() -> nn.Module:
    """240 gradients of 1.5 million parameters."""
    return nn.Sequential(*(Block() for _ in range(BLOCKS)), nn.Linear(WIDTH, CLASSES))


def make(count: int) -> Samples:
    """Made features."""
    return torch.randn(count, WIDTH), torch.randint(CLASSES, (count,))


if __name__ == "__main__":
    train(__doc__, build, make)

"""An MLP whose output layer holds most parameters: VGG's shape of problem.

Run it alone, or as ranks:

    python examples/huge_layer.py
    torchrun --nproc-per-node 2 examples/huge_layer.py
"""

import torch
from torch import nn
from training import Samples, train

FEATURES = 768
CLASSES = 9000
HIDDEN = 5


def build() -> nn.Module:
    """A few even layers, and an output layer with two thirds of the 10 million parameters."""
    layers: list[nn.Module] = []
    for _ in range(HIDDEN):
        layers += [nn.Linear(FEATURES, FEATURES), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(FEATURES, CLASSES))


def make(count: int) -> Samples:
    """Made features."""
    return torch.randn(count, FEATURES), torch.randint(CLASSES, (count,))


if __name__ == "__main__":
    train(__doc__, build, make)

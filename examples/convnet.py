"""A convolutional network: much compute for few gradients.

Run it alone, or as ranks:

    python examples/convnet.py
    torchrun --nproc-per-node 2 examples/convnet.py
"""

import torch
from torch import nn
from training import Samples, train

CLASSES = 10
SIDE = 16


def block(inputs: int, outputs: int) -> nn.Sequential:
    """Two convolutions, and half the resolution."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.MaxPool2d(2),
    )


def build() -> nn.Module:
    """Six convolutions, whose last hold most of the 1.1 million parameters."""
    return nn.Sequential(
        block(1, 32), block(32, 64), block(64, 256), nn.Flatten(), nn.Linear(256 * 4, CLASSES)
    )


def make(count: int) -> Samples:
    """Made images of one channel."""
    return torch.randn(count, 1, SIDE, SIDE), torch.randint(CLASSES, (count,))


if __name__ == "__main__":
    train(__doc__, build, make)

"""A recommendation model, with modules named as facebookresearch/dlrm names them."""

from itertools import pairwise

import torch
from torch import Tensor, nn

BOTTOM_WIDTHS = (13, 512, 256, 128)
TOP_WIDTHS = (1024, 1024, 512, 256, 1)
NUM_TABLES = 26


class DLRM(nn.Module):
    """Naumov et al. 2019 in the MLPerf sizes, dense part only.

    The embedding tables are sharded over the workers and exchanged with all-to-all, so
    they have no gradients to reduce; their looked-up vectors come in as an input.
    """

    def __init__(self) -> None:
        super().__init__()
        vectors = NUM_TABLES + 1
        interactions = vectors * (vectors - 1) // 2
        self.num_interactions = interactions
        self.bot_l = _perceptron(BOTTOM_WIDTHS)
        self.top_l = _perceptron((interactions + BOTTOM_WIDTHS[-1], *TOP_WIDTHS))

    def forward(self, dense: Tensor, looked_up: Tensor) -> Tensor:
        """Features [batch, 13] and vectors [batch, 26, 128] to scores [batch, 1]."""
        bottom = self.bot_l(dense)
        vectors = torch.cat([bottom.unsqueeze(1), looked_up], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        pairs = products.new_empty(len(dense), self.num_interactions)
        return self.top_l(torch.cat([bottom, pairs], dim=1))


def _perceptron(widths: tuple[int, ...]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.Sigmoid() if outputs == 1 else nn.ReLU()]
    return nn.Sequential(*layers)

"""Image models, with modules named as torchvision names them."""

import torch
from torch import Tensor, nn

from zoo.ops import attention, merge_heads, split_heads

EXPANSION = 4
VGG16_WIDTHS = (64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512)


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 with a shortcut; the stride sits on the 3x3 (version 1.5)."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * EXPANSION
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """[batch, inputs, h, w] to [batch, 4 * width, h / stride, w / stride]."""
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    """He et al. 2015 with bottleneck blocks, 224x224 inputs, 1000 classes."""

    def __init__(self, blocks: tuple[int, int, int, int]) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        inputs = 64
        for stage, count in enumerate(blocks):
            width = 64 * 2**stage
            stage_blocks = []
            for block in range(count):
                stride = 2 if block == 0 and stage > 0 else 1
                stage_blocks.append(Bottleneck(inputs, width, stride))
                inputs = width * EXPANSION
            setattr(self, f"layer{stage + 1}", nn.Sequential(*stage_blocks))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inputs, 1000)

    def forward(self, x: Tensor) -> Tensor:
        """Images [batch, 3, 224, 224] to logits [batch, 1000]."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in range(1, 5):
            x = getattr(self, f"layer{stage}")(x)
        return self.fc(self.avgpool(x).flatten(1))


class VGG16BN(nn.Module):
    """Simonyan and Zisserman 2014, configuration D, with batch normalisation."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inputs = 3
        for width in (*VGG16_WIDTHS, "M"):
            if width == "M":
                layers.append(nn.MaxPool2d(2))
                continue
            convolution = nn.Conv2d(inputs, int(width), 3, padding=1)
            layers += [convolution, nn.BatchNorm2d(int(width)), nn.ReLU(inplace=True)]
            inputs = int(width)
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            *(nn.Linear(512 * 7 * 7, 4096), nn.ReLU(inplace=True), nn.Identity()),
            *(nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Identity()),
            nn.Linear(4096, 1000),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Images [batch, 3, 224, 224] to logits [batch, 1000]."""
        return self.classifier(self.features(x).flatten(1))


class SelfAttention(nn.Module):
    """Multi-head attention with the parameters of `nn.MultiheadAttention`."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * width))
        self.out_proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, tokens, width] to the same."""
        projected = nn.functional.linear(x, self.in_proj_weight, self.in_proj_bias)
        query, key, value = (split_heads(t, self.heads) for t in projected.chunk(3, dim=-1))
        return self.out_proj(merge_heads(attention(query, key, value)))


class EncoderBlock(nn.Module):
    """Pre-norm transformer block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.self_attention = SelfAttention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Identity(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        """[batch, tokens, width] to the same."""
        x = x + self.self_attention(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Positions, blocks and the last norm."""

    def __init__(self, tokens: int, depth: int, width: int, heads: int) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, tokens, width))
        self.layers = nn.Sequential()
        for index in range(depth):
            self.layers.add_module(f"encoder_layer_{index}", EncoderBlock(width, heads))
        self.ln = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, tokens, width] to the same."""
        return self.ln(self.layers(x + self.pos_embedding))


class VisionTransformer(nn.Module):
    """Dosovitskiy et al. 2020, 224x224 inputs, patches of 16, 1000 classes."""

    def __init__(self, depth: int, width: int, heads: int) -> None:
        super().__init__()
        self.class_token = nn.Parameter(torch.empty(1, 1, width))
        self.conv_proj = nn.Conv2d(3, width, 16, stride=16)
        self.encoder = Encoder(14 * 14 + 1, depth, width, heads)
        self.heads = nn.Sequential()
        self.heads.add_module("head", nn.Linear(width, 1000))

    def forward(self, x: Tensor) -> Tensor:
        """Images [batch, 3, 224, 224] to logits [batch, 1000]."""
        x = self.conv_proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)
        return self.heads(self.encoder(x)[:, 0])

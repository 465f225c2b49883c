"""Sizes of the models of the benchmarks: as published, and small ones of the same structure for tests."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ResNet:
    image: int
    width: int            # channels behind the stem
    blocks: tuple         # per stage; each stage doubles the channels
    classes: int
    has_bottlenecks: bool = True


@dataclass(frozen=True)
class InvertedResiduals:
    image: int
    stem: int             # channels
    stages: tuple         # (expansion, channels, blocks, stride of the first, kernel)
    head: int             # channels of the last convolution
    classes: int
    activation: str       # Clip: between 0 and 6
    squeeze: int = 0      # a gate's inner layer is as many times narrower than the block's operand; 0: no gates


@dataclass(frozen=True)
class Encoder:
    layers: int
    heads: int
    head_size: int
    classes: int          # outputs of the head, or words
    tokens: int           # of a sentence; cached before this one with GPT-2
    image: int = 0        # ViT: its side in pixels
    patch: int = 16

    @property
    def width(self):
        return self.heads * self.head_size


LARGE = {
    "resnet18": ResNet(image=224, width=64, blocks=(2, 2, 2, 2), classes=1000, has_bottlenecks=False),
    "resnet50": ResNet(image=224, width=64, blocks=(3, 4, 6, 3), classes=1000),
    "mobilenet_v2": InvertedResiduals(
        image=224, stem=32, head=1280, classes=1000, activation="Clip",
        stages=((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3), (6, 96, 3, 1, 3),
                (6, 160, 3, 2, 3), (6, 320, 1, 1, 3))),
    "efficientnet_b0": InvertedResiduals(
        image=224, stem=32, head=1280, classes=1000, activation="Silu", squeeze=4,
        stages=((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
                (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))),
    "bert_base": Encoder(layers=12, heads=12, head_size=64, classes=30522, tokens=128),
    "vit_tiny": Encoder(layers=12, heads=3, head_size=64, classes=1000, tokens=197, image=224),
    "vit_b16": Encoder(layers=12, heads=12, head_size=64, classes=1000, tokens=197, image=224),
    "gpt2_decode": Encoder(layers=12, heads=12, head_size=64, classes=50257, tokens=128),
}
SMALL = {
    "resnet18": ResNet(image=32, width=8, blocks=(2, 1), classes=10, has_bottlenecks=False),
    "resnet50": ResNet(image=32, width=8, blocks=(2, 1), classes=10),
    "mobilenet_v2": InvertedResiduals(image=32, stem=8, head=32, classes=10, activation="Clip",
                                      stages=((1, 8, 1, 1, 3), (6, 8, 2, 2, 3))),
    "efficientnet_b0": InvertedResiduals(image=32, stem=8, head=32, classes=10, activation="Silu", squeeze=4,
                                         stages=((1, 8, 1, 1, 3), (6, 16, 2, 2, 5))),
    "bert_base": Encoder(layers=2, heads=2, head_size=16, classes=50, tokens=12),
    "vit_tiny": Encoder(layers=2, heads=1, head_size=16, classes=10, tokens=5, image=32),
    "vit_b16": Encoder(layers=2, heads=2, head_size=16, classes=10, tokens=5, image=32),
    "gpt2_decode": Encoder(layers=2, heads=2, head_size=16, classes=50, tokens=6),
}
# Microseconds of one run, batch 1, in fp16, that gcompile is to reach. An H100 has the multiprocessors of an H200, and
# 3350 GB/s of memory for 4800: what is bound by memory, 62 us of GPT-2 and some 25 of the others, may take 1.43 times as long.
GOALS = {"H200": {"bert_base": 330, "vit_b16": 380, "resnet50": 200, "gpt2_decode": 220},
         "H100": {"bert_base": 340, "vit_b16": 390, "resnet50": 205, "gpt2_decode": 247}}


def goals_of(device):
    """The goals of the device that nvidia-smi names so; there are none for others."""
    return next((goals for name, goals in GOALS.items() if name in device), {})


# Those that the CUDA benchmarks time; torch_models.py has them too.
ON_A_GPU = ("resnet50", "bert_base", "vit_b16", "gpt2_decode")
POSITIONS = {"bert_base": 512, "gpt2_decode": 1024}

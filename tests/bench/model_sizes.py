"""Sizes of the models of the CUDA benchmarks: as published, and small ones of the same structure for tests."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ResNet:
    image: int
    width: int            # channels behind the stem
    blocks: tuple         # bottlenecks per stage; each stage doubles the channels
    classes: int


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
    "resnet50": ResNet(image=224, width=64, blocks=(3, 4, 6, 3), classes=1000),
    "bert_base": Encoder(layers=12, heads=12, head_size=64, classes=30522, tokens=128),
    "vit_b16": Encoder(layers=12, heads=12, head_size=64, classes=1000, tokens=197, image=224),
    "gpt2_decode": Encoder(layers=12, heads=12, head_size=64, classes=50257, tokens=128),
}
SMALL = {
    "resnet50": ResNet(image=32, width=8, blocks=(2, 1), classes=10),
    "bert_base": Encoder(layers=2, heads=2, head_size=16, classes=50, tokens=12),
    "vit_b16": Encoder(layers=2, heads=2, head_size=16, classes=10, tokens=5, image=32),
    "gpt2_decode": Encoder(layers=2, heads=2, head_size=16, classes=50, tokens=6),
}
POSITIONS = {"bert_base": 512, "gpt2_decode": 1024}

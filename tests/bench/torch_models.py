"""The architectures of big_models.py as PyTorch modules with random weights, and example inputs for them.

Written the way a PyTorch user would have it run fast: scaled_dot_product_attention, joined products for queries, keys
and values where the architecture has them, channels_last for convolutions (which peers_on_gpu.py asks for).
"""

import torch
from torch import nn
from torch.nn import functional as F

from model_sizes import LARGE, POSITIONS, SMALL


class Bottleneck(nn.Module):
    def __init__(self, channels, inner, stride):
        super().__init__()
        outer = 4 * inner
        self.body = nn.Sequential(
            nn.Conv2d(channels, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            nn.Conv2d(inner, outer, 1, bias=False), nn.BatchNorm2d(outer))
        self.shortcut = nn.Identity()
        if stride != 1 or channels != outer:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x), inplace=True)


class ResNet50(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, size.width, 7, 2, 3, bias=False), nn.BatchNorm2d(size.width),
                                  nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        channels, layers = size.width, []
        for stage, blocks in enumerate(size.blocks):
            inner = size.width << stage
            for block in range(blocks):
                layers.append(Bottleneck(channels, inner, 2 if stage > 0 and block == 0 else 1))
                channels = 4 * inner
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(channels, size.classes)

    def forward(self, image):
        return self.head(self.layers(self.stem(image)).mean((2, 3)))


def split_heads(x, size):
    return x.unflatten(-1, (size.heads, size.head_size)).transpose(1, 2)


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)


class BertLayer(nn.Module):
    def __init__(self, size):
        super().__init__()
        width = size.width
        self.size = size
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, mask):
        q, k, v = (split_heads(layer(x), self.size) for layer in (self.query, self.key, self.value))
        x = self.norm1(x + self.out(merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))))
        return self.norm2(x + self.narrow(F.gelu(self.wide(x))))


class Bert(nn.Module):
    def __init__(self, size):
        super().__init__()
        width = size.width
        self.words, self.types = nn.Embedding(size.classes, width), nn.Embedding(2, width)
        self.positions = nn.Parameter(torch.randn(POSITIONS["bert_base"], width))
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(BertLayer(size) for _ in range(size.layers))
        self.pooler = nn.Linear(width, width)

    def forward(self, input_ids, attention_mask, token_type_ids):
        x = self.words(input_ids) + self.types(token_type_ids) + self.positions[:input_ids.shape[1]]
        x = self.norm(x)
        lowest = torch.finfo(x.dtype).min
        mask = (1 - attention_mask[:, None, None, :].to(x.dtype)) * lowest
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


class PreNormLayer(nn.Module):
    def __init__(self, size):
        super().__init__()
        width = size.width
        self.size = size
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)


class VitLayer(PreNormLayer):
    def forward(self, x):
        q, k, v = (split_heads(part, self.size) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.proj(merge_heads(F.scaled_dot_product_attention(q, k, v)))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class Vit(nn.Module):
    def __init__(self, size):
        super().__init__()
        width = size.width
        self.patches = nn.Conv2d(3, width, size.patch, size.patch)
        self.first = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, size.tokens, width))
        self.layers = nn.Sequential(*(VitLayer(size) for _ in range(size.layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, size.classes)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(x.shape[0], -1, -1), x), 1) + self.positions
        return self.head(self.norm(self.layers(x))[:, 0])


class GptLayer(PreNormLayer):
    def forward(self, x, past_key, past_value):
        q, k, v = (split_heads(part, self.size) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        k, v = torch.cat((past_key, k), 2), torch.cat((past_value, v), 2)
        x = x + self.proj(merge_heads(F.scaled_dot_product_attention(q, k, v)))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x)), approximate="tanh")), k, v


class Gpt2Decode(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.words = nn.Embedding(size.classes, size.width)
        self.positions = nn.Embedding(POSITIONS["gpt2_decode"], size.width)
        self.layers = nn.ModuleList(GptLayer(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)

    def forward(self, input_ids, position_ids, *past):
        x = self.words(input_ids) + self.positions(position_ids)
        present = []
        for i, layer in enumerate(self.layers):
            x, key, value = layer(x, past[2 * i], past[2 * i + 1])
            present += [key, value]
        return (F.linear(self.norm(x), self.words.weight), *present)


MODULES = {"resnet50": ResNet50, "bert_base": Bert, "vit_b16": Vit, "gpt2_decode": Gpt2Decode}


def build(name, batch, dtype, device, is_small=False):
    """The module in evaluation mode, and inputs for it."""
    torch.manual_seed(4)
    size = (SMALL if is_small else LARGE)[name]
    module = MODULES[name](size).to(device=device, dtype=dtype).eval()
    if name in ("resnet50", "vit_b16"):
        image = torch.rand(batch, 3, size.image, size.image, device=device, dtype=dtype) * 2 - 1
        if name == "resnet50":
            module, image = module.to(memory_format=torch.channels_last), image.to(memory_format=torch.channels_last)
        return module, (image,)
    if name == "bert_base":
        return module, tuple(torch.randint(0, 2, (batch, size.tokens), device=device) for _ in range(3))
    tokens = [torch.randint(0, 2, (batch, 1), device=device) for _ in range(2)]
    cache = (batch, size.heads, size.tokens, size.head_size)
    return module, (*tokens, *(torch.rand(cache, device=device, dtype=dtype) * 2 - 1 for _ in range(2 * size.layers)))

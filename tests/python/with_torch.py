#!/usr/bin/env python3
"""gcompile.from_torch and torch.compile(backend="gcompile"), in the interpreter that has PyTorch.

    with_torch.py

Started by pytorch.py of this folder. Exit: 0 right, 1 not, 77 there is no PyTorch.
"""

import sys
import warnings

try:
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: {error}; install torch, and set GCOMPILE_TORCH_PYTHON")
    sys.exit(77)

import gcompile
from gcompile import torch_backend

QUICK = {"variables": {"CXXFLAGS": "-O0"}}


class Net(nn.Module):
    """Two results in a dictionary, of which one is of integers."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, x, scale):
        x = torch.relu(self.norm(self.conv(x))) * scale
        logits = self.head(nn.functional.dropout(x.mean((2, 3)), training=self.training))
        return {"logits": logits, "best": logits.argmax(1)}


class Branch(nn.Module):
    """Takes what PyTorch has no way to export."""

    def forward(self, x):
        return torch.linalg.eigvals(x).real


def close(one, other):
    return torch.allclose(one, other, rtol=1e-4, atol=1e-5)


def check_from_torch():
    net, x, scale = Net().train(), torch.randn(2, 3, 8, 8), torch.tensor(0.5)
    fast = gcompile.from_torch(net, (x, scale), **QUICK)
    assert net.training, "the module's mode"
    net.eval()
    for _ in range(3):
        x = torch.randn(2, 3, 8, 8)
        with torch.no_grad():
            found, expected = fast(x, scale), net(x, scale)
        assert sorted(found) == ["best", "logits"] and close(found["logits"], expected["logits"])
        assert torch.equal(found["best"], expected["best"]) and found["best"].dtype == torch.int64
    turned = torch.randn(2, 8, 8, 3).permute(0, 3, 1, 2)
    with torch.no_grad():
        assert close(fast(turned, scale)["logits"], net(turned, scale)["logits"]), "another layout"
    try:
        fast(x[:1], scale)
    except gcompile.InputError as error:
        assert "the project takes 'x0' (2, 3, 8, 8)" in str(error), error
    else:
        raise AssertionError("another size is taken")
    linear = nn.Linear(4, 3).eval()
    many = gcompile.from_torch(linear, torch.randn(2, 4), input_names=["x"], dynamic_axes={"x": {0: "batch"}},
                               dims={"batch": "1..6"}, **QUICK)
    for batch in (1, 6):
        x = torch.randn(batch, 4)
        with torch.no_grad():
            assert close(many(x), linear(x)), batch
    try:
        gcompile.from_torch(Branch(), torch.eye(3), **QUICK)
    except torch_backend.NotCompiled as error:
        assert "PyTorch does not export it" in str(error), error
    else:
        raise AssertionError("eigenvalues are exported")


def check_compile():
    net = Net().eval()
    fast = torch.compile(net, backend="gcompile", options={**QUICK, "fallback": False})
    for batch in (2, 3, 2):
        x, scale = torch.randn(batch, 3, 8, 8), torch.tensor(0.5)
        with torch.no_grad():
            found, expected = fast(x, scale), net(x, scale)
        assert close(found["logits"], expected["logits"]) and torch.equal(found["best"], expected["best"]), batch
    with torch.no_grad():
        net.head.weight.mul_(2)
        assert close(fast(x, scale)["logits"], net(x, scale)["logits"]), "after the weights have changed"
    torch._dynamo.reset()
    for module, word in ((Branch(), "PyTorch does not export it"), (net, "gradients are wanted")):
        fast = torch.compile(module, backend="gcompile", options=QUICK)
        inputs = (torch.eye(3),) if module is not net else (x, scale)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(2):
                found = fast(*inputs)
        texts = [str(each.message) for each in said if "gcompile leaves a graph to PyTorch" in str(each.message)]
        assert len(texts) == 1 and word in texts[0], f"{[str(each.message) for each in said]}"
        assert module is net or close(found, torch.ones(3)), found
    assert found["logits"].requires_grad


if __name__ == "__main__":
    torch.manual_seed(1)
    check_from_torch()
    check_compile()
    print("as PyTorch")

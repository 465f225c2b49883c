#!/usr/bin/env python3
"""Networks as PyTorch's exporter writes them, small and with random weights: all compile, with open sizes where people
leave them open, and are right.

    exported_models.py GCOMPILE GROUP [NAME...]

GROUP is "encoders" (Hugging Face, open batch and length), "vision", "audio" or "detectors". Each network is exported by
torch.onnx.export, and `gcompile verify` compares it with the evaluator at several sizes; detectors are compared with
ONNX Runtime where it is there. What is refused stands in REFUSED with a part of the message, and must be refused. Needs torch,
transformers and torchvision (2.5, 4.46 and 0.20 were tried) in the interpreter that runs it, for which CMake takes
GCOMPILE_TORCH_PYTHON. Exit: 0 all as said, 1 not, 77 PyTorch is not there.
"""

import pathlib
import subprocess
import sys
import tempfile
import warnings

try:
    import torch
    import torchvision
    import transformers
    from torch import nn
except ImportError as error:
    print(f"skipped: {error}; install torch, torchvision and transformers, and set GCOMPILE_TORCH_PYTHON")
    sys.exit(77)

WORDS, WIDTH = 100, 32
BODY = {"vocab_size": WORDS, "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
        "max_position_embeddings": 64}
GROUPED = {**BODY, "num_key_value_heads": 2, "use_cache": False}
EMBEDDED = {**BODY, "embedding_size": WIDTH}
POSITIONS = {**BODY, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
ENCODERS = {  # name of the classes, without Config and Model: arguments of the configuration
    "Bert": BODY, "Roberta": BODY, "XLMRoberta": BODY, "Camembert": BODY, "MPNet": BODY, "IBert": BODY,
    "BigBird": {**BODY, "attention_type": "original_full"}, "Electra": EMBEDDED, "ConvBert": EMBEDDED,
    "SqueezeBert": EMBEDDED, "RoFormer": EMBEDDED, "Albert": {**BODY, "embedding_size": 16},
    "DistilBert": {"vocab_size": WORDS, "dim": WIDTH, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": 64},
    "Deberta": POSITIONS, "DebertaV2": {**POSITIONS, "position_buckets": 16},
    "XLNet": {"vocab_size": WORDS, "d_model": WIDTH, "n_layer": 2, "n_head": 4, "d_inner": 64},
    "GPT2": {"vocab_size": WORDS, "n_embd": WIDTH, "n_layer": 2, "n_head": 4, "n_positions": 64, "use_cache": False},
    "GPTNeoX": {**BODY, "use_cache": False}, "Phi": {**BODY, "use_cache": False}, "Llama": GROUPED, "Qwen2": GROUPED,
    "Mistral": {**GROUPED, "sliding_window": 8}, "Gemma2": {**GROUPED, "head_dim": 8},
    "OPT": {"vocab_size": WORDS, "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64,
            "max_position_embeddings": 64, "word_embed_proj_dim": WIDTH, "use_cache": False},
    "Bloom": {"vocab_size": WORDS, "hidden_size": WIDTH, "n_layer": 2, "n_head": 4, "use_cache": False},
    "Funnel": {"vocab_size": WORDS, "d_model": WIDTH, "n_head": 4, "d_head": 8, "d_inner": 64, "block_sizes": [1, 1]},
    "Longformer": {**BODY, "attention_window": 8},
}
PATCHES = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32,
           "patch_size": 8}
WINDOWS = {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
STAGES = {"hidden_sizes": [16, 32, 32, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 4, 4]}
VISION = {  # with the side of the image
    "ViT": (PATCHES, 32), "DeiT": (PATCHES, 32), "Beit": ({**PATCHES, "use_relative_position_bias": True}, 32),
    "Dinov2": ({key: value for key, value in PATCHES.items() if key != "intermediate_size"}, 32),
    "Swin": (WINDOWS, 32), "Swinv2": (WINDOWS, 32), "Segformer": (STAGES, 64), "Pvt": ({**STAGES, "image_size": 64}, 64),
    "MobileViT": ({"image_size": 64, "hidden_sizes": [24, 32, 40], "neck_hidden_sizes": [8, 16, 24, 32, 40, 64, 64]}, 64),
    "Levit": ({"image_size": 64, "hidden_sizes": [32, 48, 64], "num_attention_heads": [2, 3, 4], "depths": [1, 1, 1],
               "key_dim": [8, 8, 8]}, 64),
}
SAMPLES = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "conv_dim": [16, 16],
           "conv_kernel": [10, 3], "conv_stride": [5, 2], "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 16,
           "num_conv_pos_embedding_groups": 4}
AUDIO = {"Wav2Vec2": SAMPLES, "Hubert": SAMPLES, "WavLM": SAMPLES}
DETECTORS = ("ssdlite320_mobilenet_v3_large", "fcos_resnet50_fpn", "retinanet_resnet50_fpn",
             "fasterrcnn_mobilenet_v3_large_320_fpn")
REFUSED = {"Funnel": "start must be known", "Longformer": "is 0 at some runs",
           "fasterrcnn_mobilenet_v3_large_320_fpn": "must be known at compile time"}


class First(nn.Module):
    """The first of what a model gives, of tensors by their places."""

    def __init__(self, model, *names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values):
        return self.model(**dict(zip(self.names, values)))[0]


def built(name, arguments):
    return getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**arguments))


def exported(path, model, inputs, names, open_axes):
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model.eval(), inputs, str(path), input_names=list(names), opset_version=17,
                          dynamic_axes={name: open_axes for name in names} if open_axes else None)


def encoder(path, name):
    words, mask = torch.randint(0, WORDS, (1, 16)), torch.ones(1, 16, dtype=torch.long)
    names = ("input_ids", "attention_mask")
    exported(path, First(built(name, ENCODERS[name]), *names), (words, mask), names, {0: "batch", 1: "seq"})
    return ["--dim", "batch=1..2", "--dim", "seq=1..32"]


def vision(path, name):
    arguments, side = VISION[name]
    exported(path, First(built(name, arguments), "pixel_values"), (torch.randn(1, 3, side, side),), ("pixel_values",), None)
    return []


def audio(path, name):
    names = ("input_values",)
    exported(path, First(built(name, AUDIO[name]), *names), (torch.randn(1, 800),), names, {0: "batch", 1: "samples"})
    return ["--dim", "batch=1..2", "--dim", "samples=100..1000"]


def detector(path, name):
    model = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None)
    image = torch.rand(3, 128, 128)
    exported(path, model, ([image],), ("image",), None)
    return with_reference(path, image.numpy())


def with_reference(path, image):
    """What ONNX Runtime makes of the image, as data for verify."""
    try:
        import onnx.numpy_helper
        import onnxruntime
    except ImportError:
        return []
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    data = path.with_suffix(".data")
    data.mkdir()
    for kind, values in (("input", [image]), ("output", session.run(None, {"image": image}))):
        ports = session.get_inputs() if kind == "input" else session.get_outputs()
        for i, (port, value) in enumerate(zip(ports, values)):
            tensor = onnx.numpy_helper.from_array(value, port.name)
            (data / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())
    return ["--data", str(data)]


GROUPS = {"encoders": (encoder, tuple(ENCODERS)), "vision": (vision, tuple(VISION)), "audio": (audio, tuple(AUDIO)),
          "detectors": (detector, DETECTORS)}


def complaint(gcompile, path, flags, refusal):
    """Why a network does not do what it is expected to; empty: it does."""
    done = subprocess.run([gcompile, "verify", str(path), "-q", *flags], capture_output=True, text=True, check=False)
    if refusal is None:
        return "" if done.returncode == 0 else f"exit code {done.returncode}\n{done.stderr[-2000:]}"
    if done.returncode == 0:
        return "is right after all: take it out of REFUSED"
    return "" if done.returncode == 1 and refusal in done.stderr else f"is not refused as said\n{done.stderr[-2000:]}"


def main():
    if len(sys.argv) < 3 or sys.argv[2] not in GROUPS:
        sys.exit(__doc__)
    make, names = GROUPS[sys.argv[2]]
    torch.manual_seed(0)
    failed = 0
    for name in sys.argv[3:] or names:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.onnx"
            found = complaint(sys.argv[1], path, make(path, name), REFUSED.get(name))
        print(f"FAILED   {name}: {found}" if found else f"ok       {name}", flush=True)
        failed += bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The models of the benchmarks in small: right on both targets, and as few kernels as their structure needs.

    large_models.py --gcompile GCOMPILE [CASE...]
"""

import json
import re
import sys

from cuda import nvcc
from support import ROOT, Skip, check, contains, equal, flags, layers_of, run_main

sys.path.insert(0, str(ROOT / "tests" / "bench"))

from gpu_table import MODELS as TITLES  # noqa: E402

MODELS = ("resnet50", "bert_base", "vit_b16", "gpt2_decode")
CONVOLUTIONAL = ("resnet18", "mobilenet_v2", "efficientnet_b0")
# Most kernels of a layer, and all others: embeddings, masks, patches, heads. GPT-2 also carries its cache along.
MOST_KERNELS = {"resnet50": (0, 17), "bert_base": (7, 7), "vit_b16": (7, 8), "gpt2_decode": (9, 5)}
TO_SPARE_MEMORY = {("gpt2_decode", "cpp"): 2}  # more of a layer
LAYERS = 2
# Most kernels that one run starts, of the models at their full size for sm_90a in fp16. BERT: 7 for each of 12 layers, and
# embeddings, their norm, the mask and the pooler. ViT: and its patches in four, the last norm and the head. A step of GPT-2: 5 for each of 12 layers, of which
# attention carries the caller's cache along; embeddings and logits.
MOST_LAUNCHES = {"resnet50": 58, "bert_base": 7 * 12 + 4, "vit_b16": 7 * 12 + 6, "gpt2_decode": 5 * 12 + 2}
ARCHITECTURES = ("80", "87", "90a", "120")


def write(world, *models):
    world.run(["/usr/bin/python3", ROOT / "tests" / "bench" / "big_models.py", "--small", "--out", world.path("models"),
               *models])
    return [world.path("models") / f"{name}_small" / "model.onnx" for name in models]


def case_same_bytes(world):
    """A second run writes the same files."""
    names = [*MODELS, *CONVOLUTIONAL]
    first = {path: path.read_bytes() for path in write(world, *names)}
    for path in write(world, *names):
        check(path.read_bytes() == first[path], f"{path} differs in a second run")


def verify(world, name, *flags):
    (model,) = write(world, name)
    done = world.run([world.gcompile, "verify", model, "--dim", "batch=2", *flags])
    contains(done.stdout + done.stderr, "verified")


def case_resnet50(world):
    verify(world, "resnet50")


def case_bert_base(world):
    verify(world, "bert_base")


def case_resnet18(world):
    verify(world, "resnet18")


def case_mobilenet_v2(world):
    verify(world, "mobilenet_v2")


def case_efficientnet_b0(world):
    verify(world, "efficientnet_b0")


def case_vit_tiny(world):
    verify(world, "vit_tiny")


def case_vit_b16(world):
    verify(world, "vit_b16")


def case_gpt2_decode(world):
    verify(world, "gpt2_decode")


def case_resnet50_cuda(world):
    verify(world, "resnet50", "--target", "cuda", "--emulate")


def case_bert_base_cuda(world):
    verify(world, "bert_base", "--target", "cuda", "--emulate")


def case_vit_b16_cuda(world):
    verify(world, "vit_b16", "--target", "cuda", "--emulate")


def case_gpt2_decode_cuda(world):
    verify(world, "gpt2_decode", "--target", "cuda", "--emulate")


def case_planted_cache_cuda(world):
    """The first new row is read from behind the cache."""
    (model,) = write(world, "gpt2_decode")
    planter = world.path("planter")
    planter.write_text("""#!/bin/sh
for word; do
  header=${word#-I}/gcrt/cuda/attention/attention_rows.h
  [ ! -f "$header" ] || sed -i 's/i < count ?/i <= count ?/' "$header"
done
exec g++ "$@"
""")
    planter.chmod(0o755)
    done = world.run([world.gcompile, "verify", model, "--dim", "batch=1", "--target", "cuda", "--emulate", "--cxx", planter],
                     status=3)
    contains(done.stdout + done.stderr, "present")


def compile_for_gpus(world, name, folder, architectures, precision, *more):
    """The model at its full size."""
    world.run(["/usr/bin/python3", ROOT / "tests" / "bench" / "big_models.py", "--out", world.path("models"), name])
    model = world.path("models") / name / "model.onnx"
    try:
        return world.compile(model, world.path(folder), "--target", "cuda", "--arch", architectures, "--precision", precision,
                             "--dim", "batch=1", *more)
    finally:
        model.unlink()


def launches_of(world, name):
    """The times of one run of the model in fp16, by layers, and the list of them."""
    dump = world.path("dump")
    compile_for_gpus(world, name, "big", "sm_90a", "fp16", "--dump-dir", dump)
    layers = layers_of(dump)
    return sum(layer["launches"] for layer in layers), "\n".join(
        f"{layer['launches']} {layer['function']}: {layer['origins']}" for layer in layers)


# Microseconds on an H200, batch 1, fp16: what the model says since it was fitted to one. Goals are lower
# (model_sizes.GOALS); no change makes these worse unseen.
MOST_PREDICTED = {"bert_base": 335, "vit_b16": 435, "resnet50": 206, "gpt2_decode": 220}
# How many times the necessary bytes a layer may move.
MOST_MOVED = 1.15
TERMS = ("launch", "fill", "memory", "cache", "math", "latency", "join")


def predicted_row(name, layers):
    """A row of docs/benchmarks.md. What bounds a layer is counted where it does."""
    sums = dict.fromkeys(TERMS, 0.0)
    for layer in layers:
        terms = layer["predicted"]
        bound = max(TERMS[2:6], key=lambda term: terms.get(term, 0))
        for term in ("launch", "fill", bound, "join"):
            sums[term] += terms.get(term, 0)
    moved = sum(layer["moved_bytes"] for layer in layers) / sum(layer["necessary_bytes"] for layer in layers)
    numbers = [sum(layer["launches"] for layer in layers), sum(sums.values()), *sums.values()]
    return f"| {TITLES[name]} | " + " | ".join(f"{number:.0f}" for number in numbers) + f" | {moved:.2f} |"


def check_predicted(world, name):
    """The sum of the layers, by the terms that gcrt/cuda/device/time_model.h has sources for, and what the document says."""
    launches_of(world, name)
    layers = json.loads((world.path("big") / "meta" / "big.json").read_text())["layers"]
    total = sum(layer["picoseconds"] for layer in layers) / 1e6
    for layer in layers:
        terms = layer["predicted"]
        told = sum(terms.get(term, 0) for term in ("launch", "fill", "join")) + max(terms.get(term, 0) for term in TERMS[2:6])
        check(abs(told - layer["picoseconds"] / 1e6) < 0.01, f"{terms} are not {layer['picoseconds']} ps")
        check(terms["launch"] >= 0.339 * layer["launches"], f"no kernel follows another so soon: {terms}")
        check(terms.get("memory", 0) >= 0.99 * layer["weight_bytes"] / 4.31e6 - 0.001, f"weights do not arrive so fast: {terms}")
    check(total <= MOST_PREDICTED[name], f"{total:.1f} us, at most {MOST_PREDICTED[name]}")
    row = predicted_row(name, layers)
    print(f"         {row}", flush=True)
    for layer in layers:
        moved = layer["moved_bytes"] / layer["necessary_bytes"]
        check(moved <= MOST_MOVED, f"{layer['function']}: {moved:.2f} of the necessary bytes are moved, at most {MOST_MOVED}")
    contains((ROOT / "docs" / "benchmarks.md").read_text(), row)


def case_predictions_bert_base(world):
    check_predicted(world, "bert_base")


def case_predictions_vit_b16(world):
    check_predicted(world, "vit_b16")


def case_predictions_resnet50(world):
    check_predicted(world, "resnet50")


def case_predictions_gpt2_decode(world):
    check_predicted(world, "gpt2_decode")


def check_launches(world, name):
    count, listed = launches_of(world, name)
    print(f"         {name}: {count} launches", flush=True)
    check(count <= MOST_LAUNCHES[name], f"{count} launches, at most {MOST_LAUNCHES[name]}:\n{listed}")


def check_local_memory(world, name, precision):
    """No kernel of the project for all of the GPUs keeps anything in local memory."""
    compiler = nvcc()
    known = world.run([compiler, "--list-gpu-code"]).stdout
    numbers = [number for number in ARCHITECTURES if f"sm_{number.rstrip('a')}" in known]
    check(numbers, "nvcc knows none of the architectures")
    compile_for_gpus(world, name, precision, ",".join(f"sm_{number}" for number in numbers), precision)
    targets = [flag for number in numbers for flag in ("-gencode", f"arch=compute_{number},code=sm_{number}")]
    project, kernels = world.path(precision), 0
    for source in sorted((project / "src").glob("*_kernels*.cu")):
        done = world.run([compiler, "-std=c++17", "-O3", *flags("cuda"), "--threads", "2", *targets, "-Xptxas", "-v",
                          f"-I{project}", f"-I{project}/include", "-c", source, "-o", world.path(f"{source.stem}.o")])
        text = done.stdout + done.stderr
        found = re.findall(r"Function properties for (\S+)\n\s*(\d+) bytes stack frame", text)
        check(found, f"nvcc told nothing of {source.name}")
        kernels += len(found)
        for function, size in found:
            equal(int(size), 0, f"{source.name}: bytes of local memory in {function}")
    print(f"         no local memory in {kernels} kernels of {', '.join(numbers)}", flush=True)


def check_no_local_memory(world, name):
    check_local_memory(world, name, "fp16")
    check_local_memory(world, name, "fp32")


def case_launches_resnet50(world):
    check_launches(world, "resnet50")


def case_local_memory_resnet50(world):
    check_no_local_memory(world, "resnet50")


def case_launches_vit_b16(world):
    check_launches(world, "vit_b16")


def case_local_memory_vit_b16(world):
    check_no_local_memory(world, "vit_b16")


def case_launches_bert_base(world):
    check_launches(world, "bert_base")


def case_local_memory_bert_base(world):
    check_no_local_memory(world, "bert_base")


def case_launches_gpt2_decode(world):
    check_launches(world, "gpt2_decode")


def case_local_memory_gpt2_decode(world):
    check_no_local_memory(world, "gpt2_decode")


def case_kernels(world):
    for name, model in zip(MODELS, write(world, *MODELS)):
        for target in ("cpp", "cuda"):
            dump = world.path(f"dump_{name}_{target}")
            world.compile(model, world.path(f"{name}_{target}"), "--target", target, "--dim", "batch=1", "--dump-dir", dump)
            layers = layers_of(dump)
            listed = "\n".join(f"{layer['family']}: {layer['origins']}" for layer in layers)
            of_layer, others = MOST_KERNELS[name]
            of_layer += TO_SPARE_MEMORY.get((name, target), 0)
            check(len(layers) <= of_layer * LAYERS + others, f"{name}, {target}: {len(layers)} kernels:\n{listed}")
            fused = sum(layer["family"].startswith("attention.") for layer in layers)
            equal(fused, 0 if name == "resnet50" else LAYERS, f"attention kernels in\n{listed}")


if __name__ == "__main__":
    run_main(globals())

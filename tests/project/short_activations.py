#!/usr/bin/env python3
"""What products read lies in memory in 16 bits whoever else reads it, and a float16 file ends in the kernels of the float32 file.

    short_activations.py --gcompile GCOMPILE [CASE...]
"""

import sys

import numpy
import onnx
from cuda import cxx
from onnx import numpy_helper
from support import ROOT, check, contains, equal, layers_of, run_main

CUDA = ["--target", "cuda", "--arch", "sm_80"]
OF_ONE = ["--dim", "batch=1"]


def written(world, name):
    """A model of the benchmarks in small."""
    world.run([sys.executable, ROOT / "tests" / "bench" / "big_models.py", "--small", "--out", world.path("models"), name])
    return world.path("models") / f"{name}_small" / "model.onnx"


def halved(path):
    """The same network in float16: weights, inputs, outputs, and all between."""
    model = onnx.load(path)
    tensors = list(model.graph.initializer)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                tensors.append(attribute.t)
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == onnx.TensorProto.FLOAT:
                attribute.i = onnx.TensorProto.FLOAT16
    for tensor in tensors:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            values = numpy.clip(numpy_helper.to_array(tensor), -65504, 65504).astype(numpy.float16)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    half = path.with_name("half.onnx")
    onnx.save(model, half)
    return half


def compiled(world, model, folder, *options):
    """What the compiler says, and the calls of the program."""
    dump = world.path(f"{folder}_dump")
    told = world.compile(model, world.path(folder), *CUDA, "--dump-dir", dump, *options)
    return told, [layer["function"] for layer in layers_of(dump)]


def check_files(world, name):
    """The calls of both files, which the float16 file's inputs and outputs may have a conversion beside."""
    model = written(world, name)
    _, floats = compiled(world, model, "floats", *OF_ONE, "--precision", "fp16")
    half = halved(model)
    told, halves = compiled(world, half, "halves", *OF_ONE, "--precision", "fp16")
    check("--precision fp16 multiplies" not in told, "a hint that was followed is given again")
    more = [function for function in halves if function not in floats]
    check(len(halves) <= len(floats) + 1, f"{len(halves)} calls of the float16 file, {len(floats)} of the float32 file: {more}")
    world.run([world.gcompile, "verify", half, *CUDA, *OF_ONE, "--precision", "fp16", "--emulate", "--cxx", cxx()])


def case_encoder(world):
    check_files(world, "bert_base")


def case_decoder(world):
    check_files(world, "gpt2_decode")


def case_convolutions(world):
    check_files(world, "resnet50")


def case_told(world):
    """Whoever compiles a float16 file for floats hears what that costs."""
    told, _ = compiled(world, halved(written(world, "gpt2_decode")), "plain", *OF_ONE)
    contains(told, "the model has weights in float16: --precision fp16 multiplies them as they are")


def halves_of(world, folder):
    """Buffers of the plan that hold 16-bit floats."""
    (plan,) = (world.path(folder) / "src").glob("*_plan.h")
    return plan.read_text().count("Buffer<Half>")


def case_residual_streams(world):
    """What a norm leaves, and a product and a sum read, is short, but with --activations fp32."""
    model = world.path("stream.onnxtxt")
    model.write_text("""<ir_version: 8, opset_import: ["" : 18]>
stream (float[64, 128] x, float[128, 128] a, float[128, 128] b, float[128] scale) => (float[64, 128] y) {
  product = MatMul(x, a)
  sum = Add(product, x)
  norm = LayerNormalization(sum, scale)
  other = MatMul(norm, b)
  y = Add(other, norm)
}
""")
    for folder, halves, options in (("short", 1, []), ("same", 1, ["--activations", "fp16"]), ("kept", 0, ["--activations", "fp32"]),
                                    ("exact", 0, ["--exact"])):
        compiled(world, model, folder, "--precision", "fp16", *options)
        equal(halves_of(world, folder), halves, f"buffers of 16 bits, {options}")
        world.run([world.gcompile, "verify", model, *CUDA, "--precision", "fp16", *options, "--emulate", "--cxx", cxx()])
    (kernels,) = (world.path("short") / "src").glob("*_kernels.cu")
    contains(kernels.read_text(), "const Half* residual;")


if __name__ == "__main__":
    run_main(globals())

#!/usr/bin/env python3
"""CUDA projects of sizes with bounds, on the emulator: right at every size, and decoders that go on in their state.

    cuda_sizes.py --gcompile GCOMPILE [CASE...]
"""

import re
import subprocess

import decoder_models
import growing_state
import range_kernels
import ranges
from cuda import cxx, nvcc
from encoder import Encoder
from families import Model
from sizes import compiled, encoder, image
from support import HERE, check, contains, equal, flags, manifest, run_main

EMULATOR = HERE.parent.parent / "runtime_stub" / "emulator"
CUDA = ["--target", "cuda"]


def verified(world, name, model, *options, tensors):
    """By the numbers of the model's evaluator, at the corners of the bounds and between them."""
    path = world.path(f"{name}.onnxtxt")
    path.write_text(model.text())
    done = world.run([world.gcompile, "verify", path, *CUDA, "--emulate", "--cxx", cxx(), *options])
    contains(done.stdout + done.stderr, f"verified: {tensors} tensors are right")


def case_encoder(world):
    verified(world, "encoder", encoder(), *ranges.BOUNDS, tensors=16)
    out = compiled(world, "bounded", encoder(), *ranges.BOUNDS, *CUDA)
    check((out / "gcrt/cuda/attention/attention.h").exists(), "scores of attention in memory")


class OpenEncoder(Encoder):
    """Two layers as exporters write them, of any batch and length."""

    def text(self):
        numbers = super().text()
        for name, shape in (("split", "0, 0, 2, 16"), ("merged", "0, 0, 32")):
            numbers = re.sub(rf"(int64\[\d\] {name} = ){{[^}}]*}}", rf"\1{{{shape}}}", numbers)
        head = re.search(r"encoder \(.*\) => \(.*\)\n", numbers)[0]
        return numbers.replace(head, "encoder (float[batch,length,32] x, float[batch,1,1,length] mask) => (float[b,l,32] y)\n")


def case_layers(world):
    """Transformer layers with normalisations before and behind; rows of one sample and of many by the same packed weights."""
    for norm_first in (False, True):
        verified(world, f"layers_{norm_first}", OpenEncoder(norm_first), "--dim", "batch=1..3", "--dim", "length=1..40", tensors=8)


def case_resize(world):
    verified(world, "nearest", range_kernels.nearest(), *range_kernels.NEAREST_BOUNDS, tensors="1,952")
    verified(world, "weighted", range_kernels.weighted(), *range_kernels.WEIGHTED_BOUNDS, tensors=336)


def case_windows(world):
    verified(world, "image", image(), "--dim", "height=2..14:2", "--dim", "width=4..12:4", tensors=8)
    model = Model()
    model.inputs = ["float[batch,8,height,width] x"]
    model.outputs = ["float[b,8,h,w] y", "float[b,8,1,1] mean"]
    model.constant("point", "float", (16, 8, 1, 1))
    model.constant("deep", "float", (16, 1, 3, 3))
    model.constant("last", "float", (8, 16, 3, 3))
    model.nodes = ["a = Conv(x, point)", "b = Relu(a)", "c = Conv<group = 16, pads = [1, 1, 1, 1], strides = [2, 2]>(b, deep)",
                   "d = Sigmoid(c)", "e = Conv<pads = [1, 1, 1, 1]>(d, last)", "f = MaxPool<kernel_shape = [2, 2]>(e)",
                   "y = Add(f, f)", "mean = GlobalAveragePool(y)"]
    verified(world, "windows", model, "--dim", "batch=1..2", "--dim", "height=8..24:4", "--dim", "width=8..20:4", tensors=32)


def case_shapes(world):
    """A batch and a length joined and parted, sizes as data, tensors of no elements, and a deep product of few rows."""
    verified(world, "shapes", ranges.shapes(), "--dim", "batch=0..2", "--dim", "past=0..20", "--dim", "rows=1..20", "--dim",
             "past+rows=1..24", tensors=84)
    model = Model()
    model.inputs = ["float[rows,4096] x"]
    model.outputs = ["float[rows,20] y"]
    model.constant("w", "float", (4096, 20))
    model.nodes = ["y = MatMul(x, w)"]
    verified(world, "deep", model, "--dim", "rows=1..96@16", tensors=4)


def case_lines(world):
    verified(world, "lines", ranges.lines(), "--dim", "batch=1..3", "--dim", "length=3..40", tensors=40)


def case_recurrence(world):
    """Any number of steps, by the plain loops."""
    model = Model()
    model.inputs = ["float[steps,batch,4] x"]
    model.outputs = ["float[steps,1,batch,4] y"]
    model.constant("w", "float", (1, 16, 4))
    model.constant("r", "float", (1, 16, 4))
    model.nodes = ["y = LSTM<hidden_size = 4>(x, w, r)"]
    verified(world, "recurrence", model, "--dim", "steps=1..9", "--dim", "batch=1..3", tensors=8)


def case_integers(world):
    """By tensor cores for bytes, whose weights are packed once."""
    options = ["--dim", "batch=1..3", "--dim", "length=1..20"]
    verified(world, "integers", ranges.integers(), *options, tensors=16)
    kernels = (compiled(world, "integers_project", ranges.integers(), *options, *CUDA) / "src" / "net_kernels.cu").read_text()
    equal(kernels.count("gemm_integer<"), 2, "products of integers")


def case_large_maps(world):
    """Several packs for each thread, transposes through shared memory, and rows longer than a warp keeps."""
    model = Model()
    model.inputs = ["float[rows,512] x", "float[length] z"]
    model.outputs = ["float[512,rows] turned", "float[rows,512] y", "float[rows,length] outer", "int64[rows] best"]
    model.constants = ["int64[2] column = {-1, 1}"]
    model.nodes = ["turned = Transpose<perm = [1, 0]>(x)", "e = Exp(x)", "y = Softmax(e)", "c = Reshape(z, line)",
                   "s = ReduceSum<keepdims = 1>(x, axis)", "o = Mul(s, c)", "outer = Softmax(o)",
                   "best = ArgMax<axis = 1, keepdims = 0>(x)"]
    model.constants += ["int64[1] axis = {1}", "int64[2] line = {1, -1}"]
    options = ["--dim", "rows=1..600@600", "--dim", "length=1..3000@1500", "--arch", "sm_87"]
    verified(world, "maps", model, *options, tensors=32)
    out = compiled(world, "maps_project", model, *options, *CUDA)
    kernels = "".join(path.read_text() for path in (out / "src").glob("net_kernels*.cu"))
    contains(kernels, "SharedTile<", "make_group<32>", "vectorize<1>(group, length")


def objects(world, project, *extra):
    """Object files of a project's library, of the emulator and of more sources."""
    out = []
    includes = [f"-I{EMULATOR}", f"-I{project}", f"-I{project}/include", f"-I{project}/apps", f"-I{project}/data"]
    sources = [*sorted((project / "src").glob("*.cu")), *sorted((project / "src").glob("*.S")), *sorted(EMULATOR.glob("*.cc")), *extra]
    for source in sources:
        target = world.path(f"{project.name}_{source.name}.o")
        language = "assembler-with-cpp" if source.suffix == ".S" else "c++"
        world.run([*cxx().split(), "-std=c++17", "-O1", *flags("cpp"), "-pthread", *includes, "-x", language, "-c", source, "-o",
                   target])
        out.append(target)
    return out


def linked(world, program, files):
    world.run(["g++", "-pthread", *files, "-o", world.path(program)])
    return world.path(program)


def stepped(world, name, model, *options, element_bytes=4):
    """The decoder as a project, and a program that goes through a sequence with it."""
    project = compiled(world, name, model, *growing_state.SIZES, *model.states(), *CUDA, *options)
    rows = 2 * decoder_models.CONTEXT * decoder_models.SIZE * element_bytes
    equal(manifest(project, "net")["state_bytes"], 4 * rows * model.heads_of_caches, "bytes of the state")
    schedule = (project / "src" / "net.cu").read_text()
    check("copy(queue, state[" not in schedule, "the state is copied")
    program = linked(world, f"{name}_caller", objects(world, project, HERE / "growing_state_cuda.cpp"))
    print(world.run([program]).stdout, end="")
    return project


def case_gpt2(world):
    project = stepped(world, "gpt2", decoder_models.gpt2())
    # The planted error: a remembered graph serves runs of other sizes.
    header = project / "gcrt/cuda/device/captured_run.h"
    is_same = "std::memcmp(&sizes, &s, sizeof(s)) == 0"
    contains(header.read_text(), is_same)
    header.write_text(header.read_text().replace(is_same, "sizeof(s) > 0"))
    program = linked(world, "stale_caller", objects(world, project, HERE / "growing_state_cuda.cpp"))
    contains(world.run([program], status=1).stderr, "error: logits of a step")


def case_llama(world):
    stepped(world, "llama", decoder_models.llama())


def case_grouped(world):
    """Rows are scattered into the state, where there is room between those of two heads."""
    stepped(world, "grouped", decoder_models.llama(grouped_operator=True))


def shared_cache(reads_keys_first):
    """Two attentions over one cache; or one whose queries are made from the joined keys."""
    model = Model()
    model.inputs = ["float[1,2,3,16] q", "float[1,2,3,16] r", "float[1,2,3,16] k", "float[1,2,3,16] v", "float[1,2,9,16] past_k",
                    "float[1,2,9,16] past_v"]
    model.outputs = ["float[1,2,3,16] y", "float[1,2,3,16] z", "float[1,2,12,16] keys", "float[1,2,12,16] values"]
    model.constants = ["int64[1] axis = {2}"]
    model.nodes = ["keys = Concat<axis = 2>(past_k, k)", "values = Concat<axis = 2>(past_v, v)",
                   "turned = Transpose<perm = [0, 1, 3, 2]>(keys)"]
    if reads_keys_first:
        model.nodes += ["mean = ReduceMean<axes = [2]>(keys)", "first = Add(q, mean)"]
    else:
        model.nodes.append("first = Identity(q)")
    for query, scores, weights, result in (("first", "s", "w", "y"), ("r", "t", "x", "z")):
        model.nodes += [f"{scores} = MatMul({query}, turned)", f"{weights} = Softmax<axis = -1>({scores})",
                        f"{result} = MatMul({weights}, values)"]
    return model


def case_shared_cache(world):
    """The attention that comes last appends to the cache, and what reads the joined keys comes behind."""
    for reads_keys_first in (False, True):
        model, name = shared_cache(reads_keys_first), f"shared_{reads_keys_first}"
        verified(world, name, model, tensors=4)
        kernels = (compiled(world, f"{name}_project", model, *CUDA) / "src" / "net_kernels.cu").read_text()
        equal(kernels.count("const AttentionCache<float> cache"), 1, "attentions that append to the cache")


def case_attention_operators(world):
    sizes = ["--dim", "batch=1..2", "--dim", "past=0..30", "--dim", "rows=1..20", "--dim", "past+rows=1..32", "--dim",
             "joined=past+rows"]
    for name, model, states in growing_state.attention_models():
        if name == "several_heads":
            continue  # a row of which a random mask hides everything is as exact as float32 is at -10000
        options = [*sizes, *(word for state in states for word in ("--state", state))]
        verified(world, name, model, *options, tensors=24 if name == "joined_cache" else 36)
    verified(world, "scattered", growing_state.scattered(), "--dim", "batch=1..2", "--dim", "room=8..12", "--dim", "rows=1..7",
             tensors=32)



def case_programs(world):
    """The runner, the benchmark and the self test at sizes of their own."""
    project = compiled(world, "image", image(), "--dim", "height=2..14:2", "--dim", "width=4..12:4", "--selftest", *CUDA)
    library = objects(world, project)
    programs = {}
    for source in (project / "apps" / "run.cpp", project / "apps" / "bench.cu", project / "tests" / "selftest.cpp"):
        main = objects(world, project, source)[-1]
        programs[source.stem] = linked(world, f"net_{source.stem}", [*library, main])
    world.run([programs["run"], "--random", "1", "--dim", "height=6", "--dim", "width=8", "--output-dir", world.path("outputs")])
    contains(world.run([programs["bench"], "--layers", "--repeat", "2", "--dim", "height=8"]).stdout, "of predicted", "Conv")
    world.run([programs["selftest"], "--dim", "height=14", "--dim", "width=12", project / "data" / "net_height_width.golden.bin"])
    refused = subprocess.run([programs["run"], "--random", "1", "--dim", "height=3"], capture_output=True, text=True, check=False)
    equal(refused.returncode, 1, "exit code")
    check("2 to 14, a multiple of 2" in refused.stderr, refused.stderr)


CPP_PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include "net/net.hpp"

#define CHECK(condition) \
  if (!(condition)) { std::printf("line %d: %s\n", __LINE__, #condition); std::exit(1); }

int main() {
  net::Model model;
  CHECK(model.status() == NET_OK);
  const net_sizes good{6, 8}, off{7, 8}, high{6, 16};
  std::int64_t shape[NET_MAX_RANK] = {};
  CHECK(net_output_shape(&good, 0, shape) == NET_OK && shape[1] == 6 && shape[2] == 3 && shape[3] == 4);
  CHECK(net_output_shape(&off, 0, shape) == NET_INVALID_SIZES && net_input_shape(&high, 0, shape) == NET_INVALID_SIZES);
  const std::vector<float> x(3 * 6 * 8, 0.5f), other(3 * 2 * 4, 0.25f);
  const net::Result found = model.run(good, net::Inputs{x});
  CHECK(model.status() == NET_OK && found->y.size() == 6 * 3 * 4);
  CHECK(model.run(net_sizes{2, 4}, net::Inputs{other})->y.size() == 6 * 1 * 2 && model.status() == NET_OK);
  CHECK(!model.run(good, net::Inputs{other}) && model.status() == NET_WRONG_SIZE);
  CHECK(!model.run(high, net::Inputs{x}) && model.status() == NET_INVALID_SIZES);
  CHECK(model.run(good, net::Inputs{x})->y == found->y);
  float *from = nullptr, *to = nullptr;
  std::vector<float> y(found->y.size());
  CHECK(cudaMalloc(&from, x.size() * 4) == cudaSuccess && cudaMalloc(&to, y.size() * 4) == cudaSuccess);
  CHECK(cudaMemcpy(from, x.data(), x.size() * 4, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(model.run(off, {from}, {to}) == NET_INVALID_SIZES);
  CHECK(model.run(good, {from}, {to}) == NET_OK && model.finish() == NET_OK);
  CHECK(cudaMemcpy(y.data(), to, y.size() * 4, cudaMemcpyDeviceToHost) == cudaSuccess && y == found->y);
  CHECK(net_run(&model.memory(), nullptr, nullptr, nullptr) == NET_NULL_POINTER);
  CHECK(net_enqueue(&model.memory(), &high, nullptr, nullptr) == NET_INVALID_SIZES);
  return 0;
}
"""


def case_interface(world):
    project = compiled(world, "image", image(), "--dim", "height=2..14:2", "--dim", "width=4..12:4", *CUDA)
    caller = world.path("caller.cpp")
    caller.write_text(CPP_PROGRAM)
    world.run([linked(world, "caller", objects(world, project, caller))])


def case_nvcc(world):
    """The device's own compiler has nothing to say, either."""
    compiler = nvcc()
    model = decoder_models.llama(grouped_operator=True)
    project = compiled(world, "net", model, *growing_state.SIZES, *model.states(), *CUDA)
    for source in sorted((project / "src").glob("*.cu")):
        done = world.run([compiler, "-std=c++17", "-O3", *flags("cuda"), "--threads", "2", "-gencode", "arch=compute_80,code=sm_80",
                          f"-I{project}", f"-I{project}/include", "-c", source, "-o", world.path(f"{source.stem}.o")])
        equal(done.stdout + done.stderr, "", f"what nvcc says of {source.name}")


def case_refused(world):
    """A kernel that knows numbers alone says so, and nothing is written."""
    model = Model()
    model.inputs = ["float[rows,8] x"]
    model.outputs = ["float[rows,4] y"]
    model.constant("w", "float", (8, 4))
    model.nodes = ["y = MatMul(x, w)"]
    path = world.path("refused.onnxtxt")
    path.write_text(model.text())
    done = subprocess.run([world.gcompile, path, "-o", world.path("refused"), "--dim", "rows=1..4", "--kernel", "y=product.gemv",
                           *CUDA], capture_output=True, text=True, check=False)
    equal(done.returncode, 1, f"exit code: {done.stderr}")
    contains(done.stderr, "MatMul 'y'", "sizes that only a run knows")
    check(not world.path("refused").exists(), "something was written")


if __name__ == "__main__":
    run_main(globals())

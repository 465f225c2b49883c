#!/usr/bin/env python3
"""Kernels for each architecture of --arch: chosen, compiled and started for it alone, and right on each.

    architectures.py --gcompile GCOMPILE [CASE...]
"""

import re
import struct

import cuda
from clusters import LAYERS
from encoder import Encoder, Sizes
from support import check, contains, equal, flags, manifest, run_main
from warpgroups import FORCED, transformer

NAMED = ("sm_80", "sm_87", "sm_90a")
ARCH = ",".join(NAMED)
# The most that a kernel has which is another architecture's: a trap and what fills a line of instructions.
MOST_OF_A_STUB = 512


def compiled(world, model, arch, *options, name="out"):
    """Text of the kernels, of what they share, and the manifest."""
    world.compile(model, world.path(name), "--force", "--name", "m", "--target", "cuda", "--arch", arch, *options)
    source = world.path(name) / "src"
    return (source / "m_kernels.cu").read_text(), (source / "m_internal.h").read_text(), manifest(world.path(name), "m")


def layers_model(world, rows=50):
    path = world.path("layers.onnxtxt")
    path.write_text(LAYERS.format(rows=rows))
    return path


def verify_each(world, model, tensors, arch, *options):
    done = world.run([world.gcompile, "verify", model, "--target", "cuda", "--arch", arch, "--emulate", "--cases", "1", "--cxx",
                      cuda.cxx(), *options])
    said = done.stdout + done.stderr
    for gpu in arch.split(","):
        contains(said, f" as {gpu.replace('compute_', 'sm_')}")
    contains(said, f"verified: {tensors} tensors are right")


def case_layers(world):
    """Convolutions and products in parts: through memory on the older ones, in clusters from sm_90 on."""
    kernels, shared, told = compiled(world, layers_model(world), ARCH, "--precision", "fp16")
    equal(kernels.count("switch (queue.architecture)"), 2, "functions with several kernels")
    for word in ("SplitDepth<", "gemm_wgmma<", "conv2d_wgmma<", "case sm_87:", "OnlyOn<sm_90a, "):
        contains(kernels, word)
    contains(shared, "if (has_warpgroups) return sm_90a;", "if (capability == 87) return sm_87;", "return sm_80;")
    product = next(layer for layer in told["layers"] if "MatMul" in layer["origins"])
    equal([entry["architecture"] for entry in product["architectures"]], list(NAMED), "architectures of a layer")
    choices = [entry["choice"] for entry in product["architectures"]]
    check(len(set(choices)) == 3 and choices[2].endswith("of a cluster, fp16"), f"choices {choices}")
    check(all(entry["picoseconds"] > 0 and entry["blocks"] > 0 for entry in product["architectures"]), "no predictions")
    verify_each(world, layers_model(world), 6, ARCH, "--precision", "fp16")
    verify_each(world, layers_model(world), 6, ARCH)


def case_workspaces(world):
    """One of the largest size: an architecture's own is within it."""
    def scratch(arch):
        return compiled(world, layers_model(world), arch)[2]["statistics"]["scratch_bytes"]

    alone = {gpu: scratch(gpu) for gpu in NAMED}
    check(len(set(alone.values())) == 3 and alone["sm_90a"] == 0, f"the same scratch everywhere: {alone}")
    equal(scratch(ARCH), max(alone.values()), f"bytes of scratch, of {alone}")


def case_one_architecture(world):
    """Where the kernels are the same, a project is as one for one architecture."""
    one = compiled(world, layers_model(world), "sm_90")
    same = compiled(world, layers_model(world), "sm_90,compute_90")
    equal(same[:2], one[:2], "sources")
    for text in one[:2]:
        for word in ("rchitecture", "OnlyOn"):
            check(word not in text, f"{word} in a project of one architecture")
    kernels = compiled(world, layers_model(world), "sm_90,compute_100")[0]
    # Architectures of one class: what differs is left.
    check("case sm_90:\n    case sm_100: {" in kernels or "switch" not in kernels, kernels[-2000:])


def case_transformer(world):
    """Attention, vectors, and warpgroups where there are such: a forced family serves where it can."""
    options = ("--precision", "fp16", *FORCED)
    kernels, _, told = compiled(world, transformer(world), "sm_80,sm_90a", *options)
    contains(kernels, "gemm_wgmma<", "OnlyOn<sm_90a, ", "OnlyOn<sm_80, ")
    families = {entry["architecture"]: {layer["architectures"][i]["family"] for layer in told["layers"]}
                for i, entry in enumerate(told["layers"][0]["architectures"])}
    check("product.wgmma" in families["sm_90a"] and "product.wgmma" not in families["sm_80"], f"families {families}")
    verify_each(world, transformer(world), 2, "sm_80,sm_90a", *options)


ATTENTION = """<ir_version: 9, opset_import: ["" : 20]>
attention (float[1, 16, 4, 64] q, float[1, 16, 64, 512] k, float[1, 16, 512, 64] v) => (float[1, 16, 4, 64] y)
<float root = {8.0}>
{
  products = MatMul(q, k)
  scores = Div(products, root)
  weights = Softmax<axis = -1>(scores)
  y = MatMul(weights, v)
}
"""


def case_attention(world):
    """Keys in as many parts as a GPU has multiprocessors for."""
    path = world.path("attention.onnxtxt")
    path.write_text(ATTENTION)
    kernels = compiled(world, path, ARCH)[0]
    contains(kernels, "switch (queue.architecture)", "attention<", "OnlyOn<sm_87, ")
    verify_each(world, path, 3, ARCH)


def case_row(world):
    """Vectors, whose blocks make the norm ahead for themselves, are the same everywhere."""
    path = world.path("row.onnxtxt")
    path.write_text(Encoder(True, Sizes(batch=1, rows=1, heads=8, size=64, inner=2048, layers=1)).text())
    kernels = compiled(world, path, ARCH)[0]
    contains(kernels, "gemv_of_rows<")
    check("switch" not in kernels, "several kernels where one is chosen for all")


def case_sizes(world):
    """Within bounds, and as choices."""
    model = layers_model(world, "rows")
    for dim, tensors in (("rows=1..200@50", 8), ("rows=4,50", 4)):
        kernels = compiled(world, model, ARCH, "--dim", dim)[0]
        contains(kernels, "switch (queue.architecture)", "OnlyOn<sm_87, ")
        verify_each(world, model, 3 * tensors, ARCH, "--dim", dim)


def kernels_of(cubin):
    """{mangled name: bytes of its code} of an ELF file of 64 bits."""
    data = cubin.read_bytes()
    offset, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    sections = [struct.unpack_from("<IIQQQQ", data, offset + i * size) for i in range(count)]
    table = sections[names][4]
    found = {}
    for section in sections:
        name = data[table + section[0]:data.index(b"\0", table + section[0])].decode()
        if name.startswith(".text."):
            found[name[len(".text."):]] = section[5]
    return found


def case_machine_code(world):
    """Code for an architecture holds its own kernels: of the others it has a trap."""
    compiler = cuda.nvcc()
    compiled(world, layers_model(world), ARCH, "--precision", "fp16")
    out = world.path("out")
    for bit, gpu in enumerate(NAMED):
        cubin = world.path(f"{gpu}.cubin")
        done = world.run([compiler, "-std=c++17", "-O3", *flags("cuda"), "-cubin", "-arch", gpu, f"-I{out}", f"-I{out}/include",
                          out / "src" / "m_kernels.cu", "-o", cubin])
        check("warning" not in done.stdout + done.stderr, done.stdout + done.stderr)
        own, foreign = [], []
        for name, code in kernels_of(cubin).items():
            if match := re.search(r"EpilogueOnly\w*?ArchitecturesELj(\d+)E", name):
                (own if int(match.group(1)) >> bit & 1 else foreign).append(code)
        check(len(own) == 2 and min(own) > 4 * MOST_OF_A_STUB, f"{gpu}: own kernels of {own} bytes")
        check(len(foreign) >= 2 and max(foreign) <= MOST_OF_A_STUB, f"{gpu}: foreign kernels of {foreign} bytes")


if __name__ == "__main__":
    run_main(globals())

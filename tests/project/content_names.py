#!/usr/bin/env python3
"""Functions of emitted code are named by what they compute: a layer more leaves the names and the text of all others as they
are, and what lies where stands in the plan alone.

    content_names.py --gcompile GCOMPILE [CASE...]
"""

import difflib
import re

from model_text import Model
from support import check, contains, equal, run_main

TARGETS = {"cpp": "cpp", "cuda": "cu"}


def network(has_pool):
    """Convolutions, depthwise ones among them, whose sizes a pool at their head does not change."""
    model = Model()
    model.inputs, model.outputs = ["float[1,3,16,16] x"], ["float[1,10] y"]
    last = "x"

    def convolution(name, inputs, outputs, kernel, groups=1, stride=1):
        nonlocal last
        weight = model.constant(f"{name}_w", "float", (outputs, inputs // groups, kernel, kernel))
        bias = model.constant(f"{name}_b", "float", (outputs,))
        pad = kernel // 2
        model.nodes += [f"{name} = Conv<pads = [{pad}, {pad}, {pad}, {pad}], strides = [{stride}, {stride}], group = {groups}>"
                        f"({last}, {weight}, {bias})", f"{name}_relu = Relu({name})"]
        last = f"{name}_relu"

    convolution("stem", 3, 16, 3)
    if has_pool:
        model.nodes.append(f"pooled = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [1, 1]>({last})")
        last = "pooled"
    for i in range(6):
        convolution(f"deep{i}", 16, 16, 3, groups=16)
        convolution(f"point{i}", 16, 16, 1)
    convolution("wide", 16, 32, 3, stride=2)
    product, bias = model.constant("head_w", "float", (32, 10)), model.constant("head_b", "float", (10,))
    model.nodes += [f"mean = GlobalAveragePool({last})", "flat = Flatten(mean)", f"head = MatMul(flat, {product})",
                    f"sum = Add(head, {bias})", "y = Softmax(sum)"]
    return model


def sources(world, name, model, target, *flags):
    """{file: its lines without the marks of the run} of what is in src/."""
    path, project = world.path(f"{name}.onnxtxt"), world.path(f"{name}_{target}")
    path.write_text(model.text(), encoding="utf-8")
    world.run([world.gcompile, path, "-q", "--target", target, "--name", "net", "-o", project, *flags])
    return {file.name: [line for line in file.read_text(encoding="utf-8").splitlines() if "_MARK_OF_" not in line]
            for file in (project / "src").iterdir() if file.suffix in (".cpp", ".cu", ".h")}


def functions(lines):
    return [found.group(1) for line in lines if (found := re.match(r"(?:void|bool) (\w+)\(", line))]


def case_a_layer_more(world):
    """A pool behind the first activation: its own function, its call, and what reads it."""
    for target, suffix in TARGETS.items():
        before, behind = (sources(world, name, network(has_pool), target) for name, has_pool in (("few", False), ("more", True)))
        equal(sorted(before), sorted(behind), "files")
        changed = {name: [line for line in difflib.unified_diff(before[name], behind[name], n=0, lineterm="")
                          if line[0] in "+-" and not line.startswith(("---", "+++"))] for name in before}
        schedule, declared = changed[f"net.{suffix}"], changed["net_internal.h"]
        schedule = [line for line in schedule if "kSteps" not in line]
        removed = [line for line in schedule if line[0] == "-"]
        check(len(removed) <= 2 and len(schedule) <= 8, "\n".join(["the schedule:", *schedule]))
        check(not [line for line in declared if line[0] == "-"], "\n".join(["declarations:", *declared]))
        kernels = [line for name, lines in changed.items() if "kernels" in name for line in lines]
        check(not [line for line in kernels if line[0] == "-"], "\n".join(["kernels:", *kernels]))
        check(len(schedule) + len(kernels) <= 16, "\n".join(["lines of a pool:", *schedule, *kernels]))
        print(f"         {target}: {len(schedule)} lines of the schedule, {len(kernels)} of kernels", flush=True)


def case_names(world):
    """They say what a function computes, and none is numbered."""
    for target in TARGETS:
        files = sources(world, "named", network(True), target)
        names = {name for file, lines in files.items() if "kernels" in file for name in functions(lines)}
        contains(" ".join(sorted(names)), "conv3x3_3x16_relu", "max_pool3x3_16", "depthwise3x3_16_relu", "conv1x1_16x16_relu",
                 "conv3x3s2_16x32_relu", "product_32x10", "softmax_10")
        numbered = [name for name in names if re.search(r"_\d+$", name) and re.sub(r"_\d+$", "", name) in names]
        equal(numbered, [], f"numbered functions for {target}")


def case_buffers(world):
    """What a step needs for itself and a value without a name are called after what makes them, whatever stands before."""
    def plan(has_pool, target):
        model = Model()
        model.inputs, model.outputs = ["float16[1,32,32,32] x"], ["float16[1,32,32,32] y"]
        last = "x"
        for i in range(5):
            if i == 1 and has_pool:
                model.nodes.append(f"pooled = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [1, 1]>({last})")
                last = "pooled"
            weight = model.constant(f"w{i}", "float", (32, 32, 3, 3))
            model.nodes += [f"half{i} = Cast<to = 10>({weight})", f"c{i} = Conv<pads = [1, 1, 1, 1]>({last}, half{i})",
                            f"{'y' if i == 4 else f'r{i}'} = Relu(c{i})"]
            last = f"r{i}"
        lines = sources(world, f"buffers_{has_pool}", model, target)["net_plan.h"]
        return {name for line in lines for name in re.findall(r"^constexpr Buffer<[^>]*> (at_\w+)", line)}

    for target in TARGETS:
        few, more = plan(False, target), plan(True, target)
        equal(sorted(few - more), [], f"{target}: names that a pool changes")
        found = [name for name in more if re.match(r"at_(value|scratch|strips)(_\d+)?$", name)]
        equal(sorted(found), [], f"{target}: buffers that are called after nothing")
        check(target != "cpp" or [name for name in more if "scratch" in name], f"no scratch: {sorted(more)}")


def sized():
    """Rows along two sizes by the same text, a product of both, and a pool whose size is a formula."""
    model = Model()
    model.inputs = ["float[batch,seq_len,8] x", "float[1,seq_len,8] z", "float[1,3,height,8] image"]
    model.outputs = ["float[batch,seq_len,8] y", "float[1,seq_len,8] w", "float[seq_len,seq_len] both", "float[1,3,rows,8] small"]
    weight, other = model.constant("m", "float", (8, 8)), model.constant("k", "float", (8, 8))
    model.nodes = [f"a = MatMul(x, {weight})", "y = Softmax(a)", f"b = MatMul(z, {other})", "w = Softmax(b)",
                    "first = ReduceMean<axes = [0], keepdims = 0>(x)", "turned = Transpose<perm = [1, 0]>(first)", "both = MatMul(first, turned)",
                    "small = MaxPool<kernel_shape = [3, 1], strides = [2, 1], pads = [1, 0, 1, 0]>(image)"]
    return model


def case_sizes(world):
    """Parameters that are sizes of a run are called as these, where every call of the function passes the same one."""
    bounds = ["--dim", "batch=1..8", "--dim", "seq_len=1..32", "--dim", "height=1..64"]
    for target in TARGETS:
        files = sources(world, "sized", sized(), target, *bounds)
        text = "\n".join(line for file, lines in files.items() if "kernels" in file for line in lines)
        found = set(re.findall(r"std::ptrdiff_t (\w+)(?=[,)])", text))
        check({"batch", "seq_len"} <= found, f"{target}: {found}")
        contains(text, "n0: batch x seq_len, or seq_len")
        numbered = {name for name in found if re.fullmatch(r"n\d+", name)}
        noted = set(re.findall(r"^// (n\d+): ", text, re.MULTILINE))
        equal(sorted(numbered), sorted(noted), f"{target}: numbered sizes, and notes on them")


def parts():
    """Loops of several kinds."""
    model = Model()
    model.inputs = ["float[4,32] x", "float[4,32] z", "int64[4] at", "bool[4,32] which"]
    model.outputs = ["float[4,32] norm", "float[4,32] soft", "float[4,32] rows", "float[4,32] sum", "float[4,32] chosen",
                     "float[8,32] both", "int64[4] best"]
    scale, bias = model.constant("s", "float", (32,)), model.constant("t", "float", (32,))
    table = model.constant("u", "float", (9, 32))
    model.nodes = [f"norm = LayerNormalization(x, {scale}, {bias})", "soft = Softmax(x)", f"rows = Gather({table}, at)",
                   "sum = Add(x, z)", "chosen = Where(which, x, z)", "m = Exp(x)", "n = Log(z)", "both = Concat<axis = 0>(m, n)",
                   "best = ArgMax<axis = 1, keepdims = 0>(x)"]
    return model


def case_operands(world):
    """Parameters and sums of loops are called by what they are; a lookup is called so, whatever its positions are computed of."""
    for target in TARGETS:
        files = sources(world, "parts", parts(), target)
        text = "\n".join(line for file, lines in files.items() if "kernels" in file for line in lines)
        for function, parameters in {"layer_norm_32": "x scale bias y", "softmax_32": "x y", "gather_4x32": "indices table y",
                                     "add_4x32": "x residual y", "where_4x32": "condition x other y"}.items():
            found = re.search(rf"^(?:void|bool) {function}\(([^)]*)\)", text, re.MULTILINE)
            check(found, f"{target} has no {function}:\n{text}")
            equal(" ".join(re.findall(r"\* (\w+)", found[1])), parameters, f"{target}: operands of {function}")
        contains(text, "highest", "squares")
        equal(re.findall(r"\b(?:x|acc)\d+\b", text), [], f"{target}: numbered operands and sums")


def case_what_repeats_is_in_gcrt(world):
    """Kernels of the CPU name their tile, hand their threads on, and have no epilogue that only stores. On CUDA an epilogue
    has its operands and what it computes."""
    lines = sources(world, "repeats", network(True), "cpp")["net_kernels.cpp"]
    text = "\n".join(lines)
    contains(text, "conv2d<UsualTile>(threads, shape, x, w, zeros, blocking, ", "max_pool2d(threads, shape, x, StoreRows<float>{y, 16});",
             "gemm<")
    found = [line for line in lines if re.search(r"TileOfLevel|_work_items|const \w+ epilogue\{", line)]
    equal(found, [], "lines that repeat")
    text = "\n".join(sources(world, "repeats_cuda", network(True), "cuda")["net_kernels.cu"])
    contains(text, "const Epilogue<BiasRelu, 4> epilogue{bias, y, 16};", "const Epilogue<Sums<float>, 4> epilogue{y, 16};")
    equal(re.findall(r"at_batch|kMaxLanes|void put", text), [], "members that repeat")


def case_the_schedule_comes_first(world):
    """A reader of a schedule's file meets its calls, not tables."""
    for target, suffix in TARGETS.items():
        lines = sources(world, "short", network(False), target)[f"net.{suffix}"]
        begin = next(i for i, line in enumerate(lines) if " run(" in line or "Schedule::enqueue(" in line)
        check(begin < 60, f"{target}: the run begins in line {begin}")
        check(not [line for line in lines if "at<float>(arena" in line], f"{target}: casts at calls")


UNARY = ["Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu",
         "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign",
         "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu"]


def case_epilogues_of_one_function(world):
    """A project of its own builds where an epilogue is called as the function in it."""
    model = Model(opset=20)
    model.inputs = ["float[3,8] x"]
    for i, function in enumerate(UNARY):
        model.inputs.append(f"float[8,9] w{i}")
        model.outputs.append(f"float[3,9] y{i}")
        model.nodes += [f"p{i} = MatMul(x, w{i})", f"y{i} = {function}(p{i})"]
    path = world.path("functions.onnxtxt")
    path.write_text(model.text(), encoding="utf-8")
    for target in TARGETS:
        world.run([world.gcompile, "verify", path, "-q", "--target", target, *(["--emulate"] if target == "cuda" else [])])


if __name__ == "__main__":
    run_main(globals())

"""Rows 1 to 61: a technique, where it is known from, what gcompile does of it, and cases that test it."""

import collections
import pathlib

from graphs import (CHANNELS, CONV, EPSILON, GROUP_NORM, GROUPS, IMAGE, IMAGE_OUT, LAST, PRODUCT, ROWS as X, ROWS_OUT, SOFTMAX, TWO,
                    VARIANCE, filled, text)

DOCS = pathlib.Path(__file__).resolve().parent.parent.parent / "docs"

Case = collections.namedtuple("Case", "what text holds options", defaults=[()])
Row = collections.namedtuple("Row", "number technique source state does cases refused", defaults=[(), ()])


def require(condition, what):
    if not condition:
        raise AssertionError(what)


def calls(count):
    return lambda project: require(project.calls == count, f"{project.calls} calls, not {count}")


def at_most(count):
    return lambda project: require(project.calls <= count, f"{project.calls} calls, more than {count}")


def families(*names):
    return lambda project: require(project.families() == list(names), f"families {project.families()}")


def kind(name, count=1):
    def holds(project):
        found = sum(family.split(",")[0].startswith(name) for family in project.families())
        require(found == count, f"{found} kernels of {name}, not {count}: {project.families()}")
    return holds


def says(*words):
    def holds(project):
        code = project.text()
        for word in words:
            require(word in code, f"the sources lack '{word}'")
    return holds


def never_says(*words):
    def holds(project):
        code = project.text()
        for word in words:
            require(word not in code, f"the sources have '{word}'")
    return holds


def bytes_below(member, limit):
    return lambda project: require(project.manifest[member] <= limit, f"{member} is {project.manifest[member]}")


def buffers_below(limit):
    """The arena without what kernels need for themselves."""
    def holds(project):
        statistics = project.manifest["statistics"]
        found = project.manifest["arena_bytes"] - statistics.get("scratch_bytes", 0)
        require(found <= limit, f"buffers of {found} bytes, more than {limit}; {statistics}")
    return holds


def saves(word, without=None):
    """`opt --save-onnx` writes a model with an operator, and gcompile reads it."""
    def holds(project):
        path = project.folder.parent / "saved.onnx"
        project.run("opt", project.model, "--save-onnx", path)
        saved = path.read_bytes()
        require(word in saved and (without is None or without not in saved), "the saved model has other operators")
        project.run("check", path)
    return holds


def all_of(*checks):
    def holds(project):
        for check in checks:
            check(project)
    return holds


QK = "t = Transpose<perm = [0, 1, 3, 2]>(k); s = MatMul(q, t); c = Mul(s, f); "
HEADS = "float[1,4,96,16] q, float[1,4,96,16] k, float[1,4,96,16] v"
HEADS_OUT = "float[1,4,96,16] y"
SCALE = "float f = {0.25}"
NET = ("float[10,3,5,5] w1, float[10] b1, float[20,10,5,5] w2, float[20] b2, float[50,320] w3, float[50] b3, float[10,50] w4, "
       "float[10] b4")
QDQ = ("q = QuantizeLinear(x, s, z); d = DequantizeLinear(q, s, z); f = DequantizeLinear(w, s, z); c = Conv(d, f); r = Relu(c); o = QuantizeLinear(r, s, z); "
       "y = DequantizeLinear(o, s, z)")
WIDE = "float[1,16,16,16] x, float[16,16,3,3] w, float[16,16,3,3] v, float[16,16,3,3] u"
SAME = "pads = [1, 1, 1, 1]"

ROWS = [
    Row(1, "constant folding", "every compiler", "whole", "what does not depend on inputs is computed at compile time", (
        Case("shape arithmetic", text("s = Shape(x); i = Gather(s, k); j = Unsqueeze(i, k0); c = Concat<axis = 0>(j, m); "
                                      "r = Reshape(x, c); y = Relu(r)", outputs="float[8,1024] y",
                                      constants="int64 k = {0}, int64[1] k0 = {0}, int64[1] m = {-1}"), calls(1)),
        Case("numbers", text("p = Mul(a, b); y = Add(x, p)", constants="float a = {3}, float b = {4}"),
             all_of(calls(1), says("12.0f"))))),
    Row(2, "redundant nodes", "onnx-simplifier, ONNX Runtime", "whole",
        "what only passes on, repeats or cancels leaves no kernel", (
            Case("nodes that pass on", text("i = Identity(x); c = Cast<to = 1>(i); r = Reshape(c, s); e = Expand(r, s); "
                                            "d = Dropout(e); y = Relu(d)", constants="int64[3] s = {8, 16, 64}"), calls(1)),
            Case("split and joined", text("p, q = Split<axis = 1, num_outputs = 2>(x); c = Concat<axis = 1>(p, q); y = Relu(c)"),
                 calls(1)))),
    Row(3, "common subexpressions", "every compiler", "whole", "equal nodes are computed once, inside branches too", (
        Case("a convolution twice", text("a = Conv(x, w); p = Relu(a); b = Conv(x, w); q = Relu(b); y = Mul(p, q)", CONV,
                                         "float[1,16,16,16] y"), kind("conv")),)),
    Row(4, "dead code", "every compiler", "whole", "what no output needs is not emitted, nor its weights", (
        Case("a branch that nobody reads", text("d = Conv(x, w); y = Relu(x)", CONV, "float[1,8,16,16] y"),
             all_of(calls(1), bytes_below("weights_bytes", 64))),)),
    Row(5, "algebra", "TASO, TVM, every compiler", "whole",
        "rules in tables, with tiers: exact, reassociate, approximate", (
            Case("neutral elements", text("a = Mul(x, one); b = Add(a, none); c = Div(b, one); y = Relu(c)",
                                          constants="float one = {1}, float none = {0}"), calls(1)),
            Case("a chain of constants", text("p = Mul(x, k); q = Add(p, k); r = Mul(q, k); y = Add(r, k)",
                                              constants="float k = {1.5}"), calls(1)),
            Case("(A B) v", text("p = MatMul(x, z); y = MatMul(p, v)", "float[64,64] x, float[64,64] z, float[64,1] v",
                                 "float[64,1] y"),
                 lambda project: require(sum(layer["multiply_adds"] for layer in project.layers) <= 2 * 64 * 64,
                                         "the matrices are multiplied with each other")),
            Case("means of means", text("m = ReduceMean(x, a); y = ReduceMean(m, b)", IMAGE, "float[2,8,1,1] y",
                                        "int64[1] a = {3}, int64[1] b = {2}"), calls(1)))),
    Row(6, "operators for operators", "ONNX Runtime, TVM", "whole", "spelled-out functions and composites are one expression", (
        Case("GELU", text("d = Div(x, r); e = Erf(d); o = Add(e, one); p = Mul(x, o); y = Mul(p, h)",
                          constants="float r = {1.41421356}, float one = {1}, float h = {0.5}"), all_of(calls(1), says("erf("))),
        Case("batch normalisation alone", text("y = BatchNormalization(x, s, b, m, v)", IMAGE, IMAGE_OUT,
                                               ", ".join(filled((8,), name) for name in "sbmv")), calls(1)))),
    Row(7, "transposes sink and cancel", "ONNX Runtime's transpose optimizer", "whole", "views meet through maps", (
        Case("around maps", text("t = Transpose<perm = [0, 2, 1]>(x); e = Relu(t); s = Sigmoid(e); "
                                 "y = Transpose<perm = [0, 2, 1]>(s)"), all_of(calls(1), never_says("transpose_"))),)),
    Row(8, "layer norm from its parts", "ONNX Runtime", "whole", "any spelling, any axis: one kernel for a row", (
        Case("nine nodes", text(VARIANCE + "f = Add(v, eps); s = Sqrt(f); n = Div(d, s); t = Mul(n, w); y = Add(t, b)",
                                X + ", float[64] w, float[64] b", constants=LAST + EPSILON), calls(1)),)),
    Row(9, "PReLU from its parts", "ncnn", "whole", "one map", (
        Case("by the magnitude", text("r = Relu(x); b = Abs(x); d = Sub(x, b); t = Mul(d, a); h = Mul(t, k); y = Add(r, h)",
                                      X + ", float[64] a", constants="float k = {0.5}"), calls(1)),)),
    Row(10, "products of transposed operands", "ONNX Runtime's FusedMatMul", "partly",
        "transposed operands are read as they lie; a transposed result is a step of its own", (
            Case("on the right", text("t = Transpose<perm = [0, 2, 1]>(z); y = MatMul(x, t)", TWO, "float[8,16,16] y"), calls(1)),
            Case("the result", text("m = MatMul(x, w); r = Transpose<perm = [0, 2, 1]>(m); y = Add(r, c)",
                                    PRODUCT + ", float[32,1] c", "float[8,32,16] y"), calls(2)))),
    Row(11, "sums of products by elements", "ncnn's binary and eltwise fusion", "whole", "one map for any number of terms", (
        Case("three terms", text("p = Mul(x, k); q = Mul(z, l); s = Add(p, q); t = Mul(x, z); y = Add(s, t)", TWO,
                                 constants="float k = {2.5}, float l = {3.5}"), calls(1)),)),
    Row(12, "reductions to a global pool", "ncnn", "whole", "with kept and dropped axes mixed", (
        Case("mixed", text("m = ReduceMean<keepdims = 0>(x, a); y = ReduceMean(m, b)", IMAGE, "float[2,8,1] y",
                           "int64[1] a = {3}, int64[1] b = {2}"), calls(1)),)),
    Row(13, "flash attention", "Dao et al. 2022; Milakov and Gimelshein 2018", "whole",
        "one kernel on both targets, no matrix of scores in memory", (
            Case("with a scale", text(QK + "p = Softmax(c); y = MatMul(p, v)", HEADS, HEADS_OUT, SCALE),
                 all_of(families("attention.flash"), bytes_below("arena_bytes", 4 * 4 * 96 * 96 - 1))),
            Case("on a device", text(QK + "p = Softmax(c); y = MatMul(p, v)", HEADS, HEADS_OUT, SCALE), calls(1),
                 ("--target", "cuda")))),
    Row(14, "masked softmax", "Megatron-LM", "whole", "one kernel where no product follows", (
        Case("a mask that is added", text("t = Add(x, z); y = Softmax(t)", X + ", float[8,1,64] z"), calls(1)),)),
    Row(15, "layouts", "ONNX Runtime, TVM", "partly",
        "channels-last inside, conversions at the edges alone; packed weights are blocked, activations are not", (
            Case("a chain", text(f"a = Conv<{SAME}>(x, w); b = Conv<{SAME}>(a, v); y = Conv<{SAME}>(b, u)", WIDE,
                                 "float[1,16,16,16] y"), at_most(5)),)),
    Row(16, "conversions as nodes", "CANN", "whole", "casts and layouts are nodes that fuse", (
        Case("a cast between maps", text("e = Exp(x); c = Cast<to = 6>(e); d = Cast<to = 1>(c); y = Relu(d)"), calls(1)),)),
    Row(17, "in place", "every runtime", "whole", "the last reader writes over what it reads", (
        Case("a softmax of a product", text("m = MatMul(x, w); s = Softmax(m); y = MatMul(s, v)", X, "float[8,16,8] y",
                                         filled((64, 32), "w") + ", " + filled((32, 8), "v")),
             all_of(calls(3), buffers_below(4 * 8 * 16 * 32))),)),
    Row(18, "shared memory of tensors", "every runtime", "whole", "lifetimes share bytes whatever their sizes", (
        Case("a chain of products", text("a = MatMul(x, w); b = Softmax(a); c = MatMul(b, v); d = Softmax(c); "
                                         "e = MatMul(d, w); y = Relu(e)", "float[64,64] x", "float[64,64] y",
                                         filled((64, 64), "w") + ", " + filled((64, 64), "v")),
             buffers_below(2 * 4 * 64 * 64)),)),
    Row(19, "one arena", "TensorFlow Lite for Microcontrollers", "whole", "planned at compile time; run() allocates nothing", (
        Case("no allocation", text("a = MatMul(x, w); y = Softmax(a)", PRODUCT, "float[8,16,32] y"),
             all_of(never_says("malloc", "new float", "std::vector"),
                    lambda project: require("M_ARENA_BYTES" in next(project.folder.rglob("m.h")).read_text(encoding="utf-8"),
                                            "the header does not say its bytes"))),)),
    Row(20, "planners by name", "InfiniTensor", "open", "one planner; none is chosen by name", (),
        (("compile", "x.onnx", "-o", "y", "--planner", "naive"),)),
    Row(21, "simple transposes", "RefactorGraph", "whole",
        "axes of one element and neighbours that stay together are one; movements that keep the order are aliases", (
            Case("axes of one element", text("t = Transpose<perm = [0, 2, 1, 3]>(x); y = Relu(t)", "float[2,1,3,4] x",
                                             "float[2,3,1,4] y"), all_of(calls(1), never_says("transpose_"))),
            Case("one kernel", text("y = Transpose<perm = [0, 3, 2, 1]>(x)", "float[2,3,1,4] x", "float[2,4,1,3] y"), calls(1)))),
    Row(22, "simpler ONNX files", "onnx-simplifier", "partly", "`opt --save-onnx` for the operators of ONNX", (
        Case("a file", text("i = Identity(x); a = Mul(i, one); y = Relu(a)", constants="float one = {1}"),
             saves(b"Relu", without=b"Mul")),)),
    Row(23, "caches of keys as states", "TensorRT-LLM", "whole", "states lie in place, in bounds that grow", (
        Case("a step of decoding", text("h = Concat<axis = 1>(past, x); y = ReduceSum(h, a)", "float[1,past,8] past, float[1,1,8] x",
                                        "float[1,1,8] y, float[1,rows,8] h", "int64[1] a = {1}"),
             lambda project: require(project.manifest["state_bytes"] > 0, "there is no state"),
             ("--dim", "past=0..31", "--state", "past=h")),)),
    Row(24, "passes by name", "LLVM", "partly", "`--disable-pass`, `--pass-limit`, `--dump-dir`; they are not listed", (
        Case("without fusion", text("a = Relu(x); y = Exp(a)"), calls(2), ("--disable-pass", "fuse")),)),
    Row(25, "tuning", "AutoTVM", "open", "kernels are chosen by a cost model", (), (("tune", "x.onnx"),)),
    Row(26, "CUDA graphs", "CUDA, TVM", "whole", "captured once and replayed", (
        Case("a capture", text("a = MatMul(x, w); y = Softmax(a)", PRODUCT, "float[8,16,32] y"), says("Capture"),
             ("--target", "cuda")),)),
    Row(27, "shapes of fusion", "MLSys chapter on fusion", "partly",
        "chains, inlined producers and epilogues; a kernel has one result", (
            Case("a chain", text("a = Relu(x); b = Exp(a); y = Add(b, x)"), calls(1)),
            Case("two readers", text("y = Relu(x); z = Sigmoid(x)", outputs=ROWS_OUT + ", float[8,16,64] z"), calls(2)))),
    Row(28, "memory wall and parallel wall", "Rammer", "partly",
        "the report says what each step moves; branches run one after another", (
            Case("bytes of a step", text("y = Relu(x)"),
                 lambda project: require(project.layers[0]["bytes"] == 2 * 4 * 8 * 16 * 64, "bytes of the step")),)),
    Row(29, "convolution, batch normalisation, activation", "every compiler", "whole", "one kernel, folded weights", (
        Case("all three", text("c = Conv(x, w); n = BatchNormalization(c, s, b, m, v); y = Relu(n)",
                               "float[1,8,16,16] x", "float[1,4,16,16] y",
                               ", ".join([filled((4, 8, 1, 1), "w")] + [filled((4,), name) for name in "sbmv"])),
             kind("conv")),)),
    Row(30, "groups by dominators", "TVM", "partly", "the epilogue takes a chain of maps, not several branches", (
        Case("a diamond", text("c = MatMul(x, w); p = Relu(c); q = Sigmoid(c); s = Add(p, q); y = Add(s, c)", PRODUCT,
                               "float[8,16,32] y"), calls(1)),)),
    Row(31, "mapping types", "DNNFusion", "partly", "legality by index maps, three constants instead of a price", (
        Case("a shuffle behind a map", text("r = Relu(x); t = Transpose<perm = [0, 2, 1]>(r); y = Exp(t)",
                                            outputs="float[8,64,16] y"), calls(2)),)),
    Row(32, "stitched reductions", "AStitch, FusionStitching", "whole", "any reductions and maps over the same rows", (
        Case("softmax", text(SOFTMAX + "y = Div(e, d)", constants=LAST), calls(1)),
        Case("group norm and SiLU", text(GROUP_NORM + "u = Add(t, b); s = Sigmoid(u); y = Mul(u, s)", IMAGE + CHANNELS, IMAGE_OUT,
                                         GROUPS), calls(1)),
        Case("on a device", text(SOFTMAX + "l = Log(d); y = Sub(s, l)", constants=LAST), calls(1), ("--target", "cuda")))),
    Row(33, "no padding", "ByteTransformer, EffectiveTransformer", "open", "masked rows are computed", (
        Case("all rows", text("m = MatMul(x, w); y = Mul(m, k)", PRODUCT + ", float[8,16,1] k", "float[8,16,32] y"),
             lambda project: require(sum(layer["multiply_adds"] for layer in project.layers) == 8 * 16 * 64 * 32,
                                     "the product has other rows")),)),
    Row(34, "queries, keys and values by one product", "FasterTransformer", "partly", "where attention forms", (
        Case("three products of one input",
             text("q = MatMul(x, w); k = MatMul(x, v); u = MatMul(x, z); t = Transpose<perm = [0, 2, 1]>(k); s = MatMul(q, t); "
                  "p = Softmax(s); y = MatMul(p, u)", "float[1,32,16] x", "float[1,32,16] y",
                  ", ".join(filled((16, 16), name, number) for name, number in (("w", "0.1"), ("v", "0.2"), ("z", "0.3")))),
             calls(2)),)),
    Row(35, "expert rules of fusion", "Faith", "partly", "reductions by shuffles; nothing is measured", (
        Case("a warp for a row", text("y = ReduceSum(x, a)", outputs="float[8,16,1] y", constants=LAST), calls(1),
             ("--target", "cuda")),), (("compile", "x.onnx", "-o", "y", "--tuned", "f"),)),
    Row(36, "search of plans", "Ansor, csTuner", "open", "plans are chosen by a cost model", (),
        (("compile", "x.onnx", "-o", "y", "--tune", "f"),)),
    Row(37, "bytes and roofline", "Ivanov et al. 2021", "whole", "each step's bytes, arithmetic and predicted time in the report", (
        Case("a report", text("y = MatMul(x, w)", PRODUCT, "float[8,16,32] y"),
             lambda project: require({"bytes", "multiply_adds", "picoseconds"} <= set(project.layers[0]) and
                                     any(project.folder.rglob("report.html")), "the report lacks them")),)),
    Row(38, "search of graphs", "TASO, PET", "open", "rules alone", (), (("compile", "x.onnx", "-o", "y", "--search", "9"),)),
    Row(39, "fusion of loop nests", "Tensor Comprehensions, Tiramisu", "partly",
        "maps and reductions are loop nests that are composed; the plan is greedy", (
            Case("columns", text(VARIANCE + "y = Sqrt(v)", outputs="float[8,1,64] y", constants="int64[1] a = {1}"), calls(1)),)),
    Row(40, "sizes of a run", "Nimble, DISC, DietCode", "whole", "one project for all sizes in bounds", (
        Case("bounds", text("m = MatMul(x, w); y = Softmax(m)", "float[n,64] x, float[64,32] w", "float[n,32] y"), calls(2),
             ("--dim", "n=1..32")),)),
    Row(41, "small operators side by side", "Rammer", "open", "steps run one after another", (
        Case("two towers", text("a = MatMul(x, w); y = Relu(a); b = MatMul(z, w); c = Tanh(b)", PRODUCT + ", float[8,16,64] z",
                                "float[8,16,32] y, float[8,16,32] c"), calls(2)),)),
    Row(42, "counters for barriers", "sync-free solvers, MPK", "open", "a barrier behind each step of threads", (
        Case("parallel_for", text("y = Relu(x)", "float[64,64,64] x", "float[64,64,64] y"), says("parallel_for(")),)),
    Row(43, "values computed again", "checkpointing", "open", "only what costs nothing is computed again", (
        Case("a value that waits", text("e = Exp(x); m = MatMul(e, w); s = MatMul(m, v); y = Mul(s, e)",
                                        "float[32,64] x, float[64,64] w, float[64,64] v", "float[32,64] y"), calls(3)),)),
    Row(44, "vectors, tiles and copies ahead", "every back end", "whole", "packs on the CPU, tiles through shared memory on a device", (
        Case("packs", text("y = Exp(x)"), says("vectorize")),
        Case("a device", text("y = MatMul(x, w)", "float[256,256] x, float[256,256] w", "float[256,256] y"), calls(1),
             ("--target", "cuda")))),
    Row(45, "preprocessing in the model", "TVM survey", "partly", "scales and shifts of the image go into the first convolution", (
        Case("mean and deviation", text("s = Sub(x, m); d = Div(s, v); y = Conv(d, w)", "float[1,3,16,16] x",
                                        "float[1,8,14,14] y",
                                        ", ".join([filled((1, 3, 1, 1), "m"), filled((1, 3, 1, 1), "v"),
                                                   filled((8, 3, 3, 3), "w", "0.25")])), kind("map", 0)),)),
    Row(46, "integers", "ONNX Runtime, TensorFlow Lite", "partly", "quantised models are integer kernels; nothing is calibrated", (
        Case("a quantised layer", text(QDQ, "float[1,64,16,16] x", "float[1,64,16,16] y",
                                       filled((64, 64, 1, 1), "w", "1").replace("float", "int8") +
                                       ", float s = {0.05}, int8 z = {0}"), kind("conv.integer")),),
        (("compile", "x.onnx", "-o", "y", "--quantise", "int8"),)),
    Row(47, "sparse weights", "Sparse tensor cores", "open", "zeros are multiplied", (
        Case("zeros", text("y = MatMul(x, w)", X, "float[8,16,4] y", filled((64, 4), "w", "0")),
             lambda project: require(sum(layer["multiply_adds"] for layer in project.layers) > 0, "zeros are left out")),)),
    Row(48, "low rank", "SVD", "open", "weights keep their rank", (), (("compile", "x.onnx", "-o", "y", "--low-rank", "0.1"),)),
    Row(49, "one kernel for a kind of window", "code generators", "whole", "equal layers share a function", (
        Case("three layers", text(f"a = Conv<{SAME}>(x, w); b = Conv<{SAME}>(a, v); y = Conv<{SAME}>(b, u)", WIDE,
                                  "float[1,16,16,16] y"),
             lambda project: require(len({layer["function"] for layer in project.layers if layer["family"].startswith("conv")}) < 3,
                                     "each has its own")),)),
    Row(50, "locality", "Goto and van de Geijn 2008", "whole", "blocked products, strips of layers", (
        Case("packed weights", text("y = MatMul(x, w)", X, "float[8,16,64] y", filled((64, 64), "w")), kind("product")),)),
    Row(51, "products of products", "PyTorch Inductor", "partly",
        "of weights at compile time; of computed values by the cheaper order, not in one kernel", (
            Case("two linears", text("p = MatMul(x, w); y = MatMul(p, v)", X, "float[8,16,8] y",
                                     filled((64, 64), "w") + ", " + filled((64, 8), "v")), kind("product")),)),
    Row(52, "maps as one kernel", "every compiler", "whole", "one launch", (
        Case("add and multiply", text("s = Add(x, z); y = Mul(s, z)", TWO), calls(1), ("--target", "cuda")),)),
    Row(53, "levels", "ONNX Runtime", "partly", "-O0 to -O3; 1, 2 and 3 are the same", (
        Case("nothing", text("a = Relu(x); y = Exp(a)"), calls(2), ("-O0",)),
        Case("everything", text("a = Relu(x); y = Exp(a)"), calls(1), ("-O3",)))),
    Row(54, "optimised models as files", "ONNX Runtime's offline mode", "partly", "`opt --save-onnx` for the operators of ONNX", (
        Case("a graph", text("a = Mul(x, k); y = Mul(a, k)", constants="float k = {3}"),
             saves(b"Mul")),)),
    Row(55, "the documents' own network", "PyTorch's MNIST example", "whole", "compiles; 320 features make 36 rows", (
        Case("the network", text("a = Conv(x, w1, b1); b = Relu(a); c = Conv(b, w2, b2); d = Relu(c); e = Reshape(d, rows); "
                                 "f = Gemm<transB = 1>(e, w3, b3); h = Relu(f); y = Gemm<transB = 1>(h, w4, b4)",
                                 "float[1,3,32,32] x, " + NET, "float[36,10] y", "int64[2] rows = {-1, 320}"),
             lambda project: require(project.manifest["outputs"][0]["shape"] == [36, 10], "another shape")),)),
    Row(56, "engines to compare with", "ONNX Runtime, OpenVINO, torch", "whole", "docs/benchmarks.md, docs/comparison.md", (
        Case("peers by name", text("y = Softmax(x)"), lambda _: require(
            all(peer in (DOCS / "benchmarks.md").read_text(encoding="utf-8") for peer in ("ONNX Runtime", "OpenVINO", "torch")),
            "docs/benchmarks.md lacks a peer")),)),
    Row(57, "functions of a model", "ONNX, DirectML", "whole", "expanded and fused as if written out", (
        Case("a function", '<ir_version: 8, opset_import: ["" : 20, "own" : 1]>\n'
             "g (float[8,16,64] x) => (float[8,16,64] y) {\n  y = own.swish(x)\n}\n"
             '<domain: "own", opset_import: ["" : 20]>\nswish (x) => (y) {\n  s = Sigmoid(x)\n  y = Mul(x, s)\n}\n', calls(1)),)),
    Row(58, "ahead of time", "TVM, torch.export", "whole", "nothing of the compiler is linked or called", (
        Case("sources alone", text("y = Relu(x)"), never_says("onnx::", "protobuf", "dlopen")),)),
    Row(59, "reasons of decisions", "XLA's FusionDecision", "partly",
        "`--explain NODE` and the choices of the manifest; refusals of some passes are silent", (
            Case("why a family", text("y = MatMul(x, w)", PRODUCT, "float[8,16,32] y"),
                 lambda project: require(project.manifest["choices"], "no choice is told")),)),
    Row(60, "block-sparse masks", "sparse transformers", "open", "constant masks are added", (
        Case("a mask", text(QK + "b = Add(c, m); p = Softmax(b); y = MatMul(p, v)", HEADS + ", float[96,96] m", HEADS_OUT, SCALE),
             families("attention.flash")),)),
    Row(61, "Einsum", "opt_einsum", "partly", "products of two operands; others are taken apart", (
        Case("scores", text('y = Einsum<equation = "bhqd,bhkd->bhqk">(q, k)', "float[1,4,32,16] q, float[1,4,32,16] k",
                            "float[1,4,32,32] y"), all_of(calls(1), kind("product"))),)),
]

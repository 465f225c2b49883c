"""Hostile models, each made from random numbers: what hostile.py tries."""

import os

from onnx_bytes import BOOL, FLOAT, INT64, Graph, block, blocks, number, value_info, varint
from support import EXAMPLES, HERE

KINDS = []


def kind(make):
    """Registers what makes a hostile input: (random, folder) -> words of the command line behind gcompile."""
    KINDS.append(make)
    return make


def compiled(folder, model, name="model.onnx"):
    path = folder / name
    path.write_bytes(model)
    return [path, "-o", folder / "out"]


def small_graph():
    graph = Graph()
    graph.input("x", FLOAT, [4, 8])
    return graph


def ended(graph, last, dims):
    graph.output(last, FLOAT, dims)
    return graph.model()


def some_model(r):
    names = ("shapes_classifier", "tiny_attention", "streaming_denoiser")
    return (EXAMPLES / r.choice(names) / "model.onnx").read_bytes()


def some_text(r):
    return r.choice(sorted((HERE / "models").glob("*.onnxtxt"))).read_bytes()


def damaged(r, data):
    """Cut, changed, repeated or moved."""
    data = bytearray(data)
    for _ in range(r.randint(1, 8)):
        at, size = r.randrange(len(data)), r.choice((1, 1, 2, 5, 40, 1000))
        action = r.randrange(5)
        if action == 0:
            data[at] = r.randrange(256)
        elif action == 1:
            del data[at:at + size]
        elif action == 2:
            data[at:at] = data[at:at + size] * r.choice((1, 2, 50))
        elif action == 3:
            data[at:at] = bytes(r.choice((0, 255, 127, 8, 10)) for _ in range(size))
        else:
            data[at:at] = varint(r.choice((1 << 31, (1 << 63) - 1, 1 << 63, 1 << 40)))
        if not data:
            data = bytearray(b"\n")
    return bytes(data)


@kind
def damaged_model(r, folder):
    return compiled(folder, damaged(r, some_model(r)))


@kind
def cut_model(r, folder):
    whole = some_model(r)
    return compiled(folder, whole[:r.randrange(len(whole))])


@kind
def damaged_text(r, folder):
    return compiled(folder, damaged(r, some_text(r)), "model.onnxtxt")


@kind
def deep_text(r, folder):
    opening, count = r.choice((b"<", b"{", b"(", b"[", b"then_branch = g () => (float y) {",
                               b"<a:")), r.choice((100, 20_000, 500_000))
    head = b'<ir_version: 8, opset_import: ["" : 17]>\ng (float[4] x) => (float[4] y) { y = If '
    return compiled(folder, head + opening * count, "model.onnxtxt")


@kind
def long_text(r, folder):
    """One token of megabytes."""
    token = r.choice((b"9", b"a", b'"', b"-", b"1.", b"\\", b"\0", b"\xff", b"1e")) * r.choice((1000, 3_000_000))
    head = b'<ir_version: 8, opset_import: ["" : 17]>\ng (float[4] x) => (float[4] y) { y = Add(x, '
    return compiled(folder, head + token + b") }", "model.onnxtxt")


@kind
def text_of_a_large_tensor(r, folder):
    size = r.choice((10**9, 2**31 - 1, 2**62, -1))
    body = f'''<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] y) <float[{size}] w = {{ {", ".join(["1"] * r.choice((0, 1, 1000)))} }}> {{ y = Add(x, w) }}'''
    return compiled(folder, body.encode(), "model.onnxtxt")


@kind
def random_messages(r, folder):
    """Fields that begin as a model does, and go on by chance."""

    def message(depth):
        out = b""
        for _ in range(r.randint(0, 6)):
            field = r.choice((1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 20, 25))
            out += number(field, r.choice((0, 1, 7, 1 << 31, 1 << 63))) if r.random() < 0.4 or depth == 0 else block(
                field, message(depth - 1) if r.random() < 0.7 else r.randbytes(r.randint(0, 9)))
        return out

    return compiled(folder, number(1, 8) + block(7, message(6)) + block(8, number(2, 17)))


@kind
def nested_messages(r, folder):
    data = b""
    for _ in range(r.choice((20, 120, 3000))):
        data = r.choice((block(6, block(1, block(5, data))), block(14, block(4, block(1, data)))))[:1 << 22]
    return compiled(folder, number(1, 8) + block(7, block(1, block(5, data))))


@kind
def lying_tensors(r, folder):
    graph = small_graph()
    dims = r.choice(([2**31 - 1], [2**62, 2**62], [-1], [65536] * 4, [1] * 1000, [0, 2**62], [2**32, 2**32], [3, 3]))
    data = [number(1, dim) for dim in dims]
    field = r.choice((4, 5, 7, 9, 10))
    graph.constants.append(b"".join(data) + number(2, r.choice((1, 3, 7, 8, 10, 16, 22, 99))) + block(8, "w") +
                           block(field, r.randbytes(r.choice((0, 4, 36, 1 << 16)))))
    graph.node("Add", ["x", "w"], ["y"])
    return compiled(folder, ended(graph, "y", [4, 8]))


@kind
def external_data(r, folder):
    """Places that are not beside the model."""
    (folder / "inside.bin").write_bytes(bytes(128))
    (folder / "link.bin").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe.bin")
    place = r.choice(("/etc/passwd", "../../../../etc/passwd", "link.bin", "pipe.bin", "/dev/zero", "", ".", "out",
                      "inside.bin",
                      "inside.bin\0x", "x" * 5000, "model.onnx"))
    entries = [("location", place), ("offset", r.choice(("0", "-1", "9223372036854775807", "x", "64",
                                                         "99999999999999999999"))),
               ("length", r.choice(("128", "-5", "18446744073709551615", "0", "")))]
    graph = small_graph()
    graph.constants.append(number(1, 4) + number(1, 8) + number(2, 1) + block(8, "w") +
                           blocks(13, [block(1, key) + block(2, value) for key, value in entries]) + number(14, 1))
    graph.node("Add", ["x", "w"], ["y"])
    return compiled(folder, ended(graph, "y", [4, 8]))


@kind
def calls_that_multiply(r, folder):
    """Functions that call the one before them several times, with names that grow and constants that are copied."""
    functions = []
    width, levels = r.choice(((2, 30), (10, 9), (1000, 5), (1, 60), (3, 14)))
    name = "n" * r.choice((1, 1, 3000))
    for level in range(levels):
        body, last = Graph(), "a"
        for i in range(width):
            body.node(*(("here_f" + str(level - 1), [last]) if level else ("Softmax", [last])), [f"b{i}"], f"{name}{i}",
                      domain="here" if level else "")
            last = f"b{i}"
        functions.append(body.function(f"here_f{level}", ["a"], [last], "here", (("", 17), ("here", 1))))
    graph = small_graph()
    graph.node(f"here_f{levels - 1}", ["x"], ["y"], "call", domain="here")
    graph.output("y", FLOAT, [4, 8])
    return compiled(folder, graph.model((("", 17), ("here", 1)), functions=functions))


@kind
def names(r, folder):
    """Names for everything: for terminals, file systems, C++, HTML, formats."""
    odd = r.choice((b"../../../../tmp/x", b"/etc/passwd", b"\x1b[2J\x1b]0;x\x07", b"a\0b", b"\xff\xfe",
                    b"*/ #include </etc/passwd> /*",
                    b"%s%n{}{0}{{", b"</script><script>", b'";system("x");//', b"??/\n\\\n", b"$(x)`x`${x}",
                    b"int", b"x" * 1_000_000,
                    "\u202e\u2066".encode(), b"R\"(x)\"", b"__FILE__"))
    graph = Graph(odd)
    graph.input(odd, FLOAT, [odd, 8] if r.random() < 0.3 else [4, 8])
    graph.node("Exp", [odd], [odd + b"1"], odd, documentation=odd)
    graph.node(odd if r.random() < 0.2 else "Neg", [odd + b"1"], [odd + b"2"], odd, domain=odd if r.random() < 0.2 else "")
    graph.output(odd + b"2", FLOAT, [4, 8])
    return compiled(folder, graph.model(documentation=odd, producer=odd))


@kind
def large_results(r, folder):
    """Operators that ask for more than there is: shapes, counts and factors at the ends of what integers hold."""
    graph, large = small_graph(), r.choice((2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -2**63, 100_000))

    def integers(name, values):
        return graph.constant(name, INT64, [len(values)], values)

    operator = r.randrange(10)
    if operator == 0:
        graph.node("ConstantOfShape", [integers("s", [large, r.choice((1, 2, 70_000))])], ["y"])
    elif operator == 1:
        graph.node("Expand", ["x", integers("s", [large, 4, 8])], ["y"])
    elif operator == 2:
        graph.node("Tile", ["x", integers("s", [large, large])], ["y"])
    elif operator == 3:
        graph.node("Pad", ["x", integers("s", [large, 0, r.choice((0, -large)), 1])], ["y"])
    elif operator == 4:
        graph.node("Resize", ["x", "", "", integers("s", [large, 8])], ["y"])
    elif operator == 5:
        graph.node("Range", [graph.constant(n, INT64, [], [v]) for n, v in (("a", 0), ("b", large),
                                                                            ("c", r.choice((1, -1, 0))))], ["y"])
    elif operator == 6:
        graph.node("OneHot", [integers("i", [1]), graph.constant("d", INT64, [], [large]),
                              graph.constant("v", FLOAT, [2], [0, 1])], ["y"])
    elif operator == 7:
        graph.node("Reshape", ["x", integers("s", [large, r.choice((0, -1, large))])], ["y"])
    elif operator == 8:
        graph.node("Slice", ["x", integers("s", [large]), integers("e", [-large if large > -2**63 else large]),
                             integers("a", [0]),
                             integers("t", [r.choice((large, -1, 1))])], ["y"])
    else:
        graph.node("Einsum", ["x", "x", "x", "x"], ["y"], equation="ab,cd,ef,gh->abcdefgh")
    graph.node("Exp", ["y"], ["z"])
    return compiled(folder, ended(graph, "z", [4, 8]))


@kind
def doubling_values(r, folder):
    """Each node makes twice of what it reads: in memory, or in what is folded."""
    graph, last, count = small_graph(), "x", r.choice((10, 24, 40, 60))
    if r.random() < 0.5:
        last = graph.constant("w", FLOAT, [4, 8], [1.0] * 32)
    for i in range(count):
        operator = r.choice(("Concat", "Concat", "MatMul", "Add"))
        if operator == "Concat":
            graph.node("Concat", [last, last], [f"y{i}"], axis=0)
        else:
            graph.node("Add", [last, last], [f"y{i}"])
        last = f"y{i}"
    graph.node("ReduceMean", [last], ["z"], keepdims=0)
    return compiled(folder, ended(graph, "z", []))


@kind
def many_of_something(r, folder):
    graph, count = small_graph(), r.choice((1000, 5000))
    what = r.randrange(8)
    last = "x"
    if what == 0:
        graph.node("Concat", ["x"] * count, ["y"], axis=0)
    elif what == 1:
        for _ in range(count):
            graph.output("x", FLOAT, [4, 8])
        graph.node("Exp", ["x"], ["y"])
    elif what == 2:
        for i in range(count):
            graph.node(f"Unknown{i}", ["x"], [f"v{i}"], domain="acme")
        graph.node("Exp", ["v0"], ["y"])
    elif what == 3:
        graph.node("Exp", ["x"], ["y"], **{f"a{i}": i for i in range(count)})
    elif what == 4:
        for i in range(count):
            graph.node("Add", ["x", graph.constant(f"c{i}", FLOAT, [3], [1, 2, 3])], [f"v{i}"])
        graph.node("Exp", ["x"], ["y"])
    elif what == 5:
        for i in range(count):
            graph.node("If", ["b"], [f"t{i}"], then_branch=one_node("Tanh", last, f"u{i}"),
                       else_branch=one_node("Sin", last, f"v{i}"))
            last = f"t{i}"
        graph.input("b", BOOL, [])
        graph.node("Exp", [last], ["y"])
    elif what == 6:
        for i in range(count):
            graph.node("Exp", ["x"], ["same"], "same")
        graph.node("Exp", ["same"], ["y"])
    else:
        for i in range(count):
            graph.infos.append(value_info(f"x{i}", FLOAT, [f"d{i}"]))
            graph.input(f"i{i}", FLOAT, [f"d{i}"])
        graph.node("Exp", ["x"], ["y"])
    return compiled(folder, ended(graph, "y", [4, 8]))


def one_node(operator, operand, result):
    graph = Graph(result)
    graph.node(operator, [operand], [result])
    graph.output(result, FLOAT, [4, 8])
    return graph


@kind
def nested_branches(r, folder):
    graph = small_graph()
    graph.input("b", BOOL, [])
    inner = one_node("Exp", "x", "r")
    for depth in range(r.choice((3, 29, 31, 200))):
        outer = Graph(f"g{depth}")
        outer.node("If", ["b"], [f"r{depth}"], then_branch=inner, else_branch=one_node("Neg", "x", f"e{depth}"))
        outer.output(f"r{depth}", FLOAT, [4, 8])
        inner = outer
    graph.node("If", ["b"], ["y"], then_branch=inner, else_branch=one_node("Sin", "x", "e"))
    return compiled(folder, ended(graph, "y", [4, 8]))


@kind
def wrong_graphs(r, folder):
    """Cycles, names that nobody makes, two makers of one value, inputs of size zero or without an end."""
    graph = Graph()
    graph.input("x", r.choice((1, 7, 9, 10, 8, 99)), r.choice(([4, 8], [0, 8], [2**62], ["n", "n"], [""], [-1], [1] * 100)))
    for i in range(r.randint(1, 40)):
        operands = [r.choice(("x", "", "nobody", *(f"y{k}" for k in range(40)))) for _ in range(r.randint(0, 4))]
        operator = r.choice(("Add", "Concat", "Conv", "LSTM", "Gemm", "Split", "TopK", "Where", "If", "Loop", "Resize",
                             "Attention", "Einsum"))
        graph.node(operator, operands, [f"y{r.randrange(40)}" for _ in range(r.randint(0, 3))],
                   axis=r.choice((0, -1, 2**63 - 1)))
    graph.output("y0", FLOAT, [4, 8])
    return compiled(folder, graph.model(tuple(("", r.choice((17, 0, -1, 2**31, 22))) for _ in range(r.choice((0, 1, 1000))))))


@kind
def things_that_are_no_files(r, folder):
    path = folder / "model.onnx"
    what = r.randrange(6)
    if what == 0:
        os.mkfifo(path)
    elif what == 1:
        path.symlink_to("/dev/zero")
    elif what == 2:
        path.symlink_to(path)
    elif what == 3:
        path.mkdir()
    elif what == 4:
        with open(path, "wb") as file:  # zeros that take no place
            file.truncate(r.choice((1 << 20, 1 << 30, 1 << 40)))
    else:
        path.write_bytes(b"")
    return [path, "-o", folder / "out"]

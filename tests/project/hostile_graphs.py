"""Hostile graphs, whose bytes are in order and whose nodes are not, each made from random numbers: what hostile.py tries."""

import functools
import json
import os
import pathlib
import subprocess

from hostile_data import TOOL
from hostile_models import KINDS, compiled, ended, kind, small_graph
from onnx_bytes import BOOL, FLOAT, INT64, Graph, block, blocks, number, tensor

INT8, UINT8, STRING, FLOAT16, DOUBLE, UINT4, INT4 = 3, 2, 8, 10, 11, 21, 22
EXTREMES = (0, 1, -1, 2, 3, 16, 2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))
DIMS = ([], [0], [1], [4], [8], [4, 8], [8, 4], [1, 1, 1, 1], [2, 3, 5, 4], [0, 3, 5, 4], [2, 8, 0], [3, 2, 2], [1] * 16)


@functools.cache
def operators():
    """Each that the tool has, as it tells of them."""
    said = subprocess.run([os.environ[TOOL], "ops", "--json"], capture_output=True, text=True, check=True).stdout
    return json.loads(said)["operators"]


def some_integers(r, most=4):
    return [r.choice((*EXTREMES, *range(-3, 9), *range(9))) for _ in range(r.randint(0, most))]


def some_values(r, element, count):
    """As many values as the dimensions of a constant say."""
    if element == FLOAT:
        return [r.choice((0.0, -0.0, 1.0, -1.0, 1e38, 1e-45, float("inf"), float("nan"), 2.5)) for _ in range(count)]
    if element == BOOL:
        return [r.random() < 0.5 for _ in range(count)]
    return [r.choice((*EXTREMES, 0, 1, 2, 3)) for _ in range(count)]


def some_operand(r, graph, number_of_it, opens, usual):
    """An input or a constant, mostly a float of the usual shape."""
    name, dims = f"o{number_of_it}", list(usual if r.random() < 0.7 else r.choice(DIMS))
    element = r.choice((FLOAT, FLOAT, FLOAT, FLOAT, FLOAT, INT64, INT64, BOOL))
    if r.random() < 0.4:
        count = 1
        for dim in dims:
            count *= dim
        return graph.constant(name, element, dims, some_values(r, element, count))
    if opens:
        dims = [r.choice((dim, "n", "m")) for dim in dims]
    other = r.choice((INT8, UINT8, FLOAT16, DOUBLE, STRING, 99))
    return graph.input(name, element if r.random() < 0.9 else other, dims)


WORDS = ("SAME_UPPER", "VALID", "NOTSET", "linear", "cubic", "reflect", "add", "none", "bidirectional", "reverse", "ij,jk->ik",
         "...i,->", "a" * 60 + "->", "\0", "")


def some_attribute(r, type_):
    """A value of the type, or of any."""
    if r.random() < 0.05:
        type_ = r.choice(("int", "ints", "float", "string"))
    if type_ == "ints":
        return some_integers(r)
    if type_ == "float":
        return float(r.choice((0, -1, 1, 0.5, 1e38, 1e-45)))
    return r.choice(WORDS) if type_ == "string" else r.choice((r.choice(EXTREMES), r.randrange(5), r.randrange(2), -1))


def some_attributes(r, known):
    """Some of those that there are, and now and then one that there is not."""
    chosen = [each for each in known if r.random() < (0.95 if each["required"] else 0.3)]
    found = {each["name"]: some_attribute(r, each["kind"]) for each in chosen}
    if r.random() < 0.05:
        found["nobody"] = 1
    return found


@kind
def any_operator(r, folder):
    """Each that there is, of operands and attributes that have nothing to do with it, some of their sizes open."""
    graph, opens = Graph(), r.random() < 0.3
    graph.input("x", FLOAT, ["n", "m"] if opens else [1])
    for i in range(r.choice((1, 1, 2, 4))):
        record, usual = r.choice(operators()), r.choice(DIMS[:-1])
        counts = {place: r.randint(record[place]["least"], min(record[place]["most"] or 99, record[place]["least"] + 4))
                  for place in ("operands", "results")}
        operands = [r.choice(("", f"y{i - 1}_0" if i else "")) if r.random() < 0.15
                    else some_operand(r, graph, 10 * i + k, opens, usual)
                    for k in range(counts["operands"] + (r.random() < 0.03))]
        graph.node(record["name"], operands, [f"y{i}_{k}" for k in range(counts["results"] + (r.random() < 0.03))], f"n{i}",
                   record["domain"].replace("ai.onnx", ""), **some_attributes(r, record["attributes"]))
        graph.output(f"y{i}_0", FLOAT, ["?"])
    command = compiled(folder, graph.model((("", r.choice((1, 7, 11, 13, 17, 21, 23))), ("com.microsoft", 1))))
    return command + (["--dim", "n=1..7", "--dim", "m=0..3"] if opens else [])


@kind
def windows(r, folder):
    """Windows, strides, pads and factors at the ends of what integers hold."""
    graph = Graph()
    spatial = r.choice((1, 2, 2, 3))
    graph.input("x", FLOAT, [r.choice((1, 0)), 4, *[r.choice((1, 5, 16, 0, 2**31 - 1)) for _ in range(spatial)]])
    sizes = (1, 1, 2, 2, 3, 5, 0, -1, 2**31 - 1, 2**62, 100_000)
    operator = r.choice(("Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"))
    names = ("kernel_shape", "strides", "pads", "dilations") + (("output_padding", "output_shape") if "T" in operator else ())
    more = {name: [r.choice(sizes) for _ in range(r.choice((spatial, spatial, 1)) * (2 if name == "pads" else 1))]
            for name in names if r.random() < 0.4}
    depth = r.choice((4, 1, 0))
    weights = graph.constant("w", FLOAT, [4, depth] + [1] * spatial, [1.0] * (4 * depth))
    if r.random() < 0.3:
        weights = graph.input("v", FLOAT, [r.choice((4, 2**31 - 1)), 4] + [r.choice((1, 3, 0))] * spatial)
    is_conv = operator.startswith("Conv")
    if is_conv:
        more["group"] = r.choice((1, 1, 4, 0, -1, 2**62))
    graph.node(operator, ["x"] + ([weights] if is_conv else []), ["y"], **more)
    return compiled(folder, ended(graph, "y", ["?"]))


@kind
def sparse_tensors(r, folder):
    """Values and indices that do not belong together, of dimensions that nobody has memory for."""
    dims = r.choice(([4, 8], [4, 8], [2**31, 2**31], [-1, 8], [], [2**62], [100_000, 10_000]))
    count = r.choice((0, 1, 3, 1000))
    values = tensor("w", FLOAT, [r.choice((count, count, 7))], [1.0] * count)
    places = [r.choice((0, 1, 31, 32, -1, 2**62, 5)) for _ in range(count * r.choice((1, 1, 2)))]
    shape = [len(places)] if r.random() < 0.6 else [count, max(len(dims), 1)]
    indices = tensor("i", INT64, shape, places)
    sparse = b"".join([block(1, values)] * r.choice((1, 1, 0)) + [block(2, indices)] * r.choice((1, 1, 0))) + b"".join(
        number(3, dim) for dim in dims)
    graph = small_graph()
    if r.random() < 0.5:
        graph.node("Add", ["x", "w"], ["y"])
        graph.output("y", FLOAT, [4, 8])
        return compiled(folder, number(1, 8) + block(7, graph.content() + block(15, sparse)) + block(8, number(2, 17)))
    node = b"".join([block(2, "w"), block(4, "Constant"),
                     block(5, block(1, "sparse_value") + block(22, sparse) + number(20, 11))])
    graph.nodes.append(node)
    graph.node("Add", ["x", "w"], ["y"])
    return compiled(folder, ended(graph, "y", [4, 8]))


@kind
def quantised(r, folder):
    """Scales, zero points and blocks of shapes, types and values that do not fit."""
    graph = small_graph()
    shapes = ([], [1], [4], [8], [3], [0], [4, 8], [2, 4], [1] * 6)

    def scale(name):
        dims = list(r.choice(shapes))
        count = 1
        for dim in dims:
            count *= dim
        if r.random() < 0.3:
            return graph.input(name, FLOAT, dims)
        return graph.constant(name, FLOAT, dims, [r.choice((0.5, 0.0, -1.0, float("nan"), 1e-45, float("inf")))] * count)

    def bytes_of(name, dims, element):
        count = 1
        for dim in dims:
            count *= dim
        graph.constants.append(b"".join(number(1, dim) for dim in dims) + number(2, element) + block(8, name) +
                               block(9, r.randbytes((count + 1) // 2 if element in (UINT4, INT4) else count)))
        return name

    def zero(name):
        element = r.choice((INT8, UINT8, UINT8, UINT8, UINT4, INT4))
        return "" if r.random() < 0.2 else bytes_of(name, list(r.choice(shapes)), element)

    operator = r.randrange(5)
    more = {name: some_attribute(r, "int") for name in (("group",) if operator == 2 else ("axis", "block_size"))
            if r.random() < 0.3}
    if operator == 0:
        graph.node("QuantizeLinear", ["x", scale("s"), zero("z")], ["q"], **more)
        graph.node("DequantizeLinear", ["q", scale("t"), zero("u")], ["y"], **more)
    elif operator == 1:
        w = bytes_of("w", list(r.choice(([8, 3], [4, 3], [8], [2, 8, 3]))), r.choice((INT8, UINT8)))
        graph.node("QuantizeLinear", ["x", scale("s"), zero("z")], ["q"])
        graph.node("QLinearMatMul", ["q", scale("a"), zero("b"), w, scale("c"), zero("d"), scale("e"), zero("f")], ["y"])
    elif operator == 2:
        graph.input("p", r.choice((INT8, UINT8)), [1, 4, 5, 5])
        w = bytes_of("w", list(r.choice(([3, 4, 3, 3], [4, 1, 3, 3], [3, 4, 9], [0, 4, 1, 1]))), r.choice((INT8, UINT8)))
        graph.node("QLinearConv", ["p", scale("a"), zero("b"), w, scale("c"), zero("d"), scale("e"), zero("f")], ["y"], **more)
    elif operator == 3:
        b = bytes_of("w", list(r.choice(([3, 2, 2], [3, 1, 4], [0, 1, 4], [5]))), UINT8)
        more = {"K": r.choice((8, 8, 2**40, -1)), "N": r.choice((3, 3, 2**40, 0)), "bits": r.choice((4, 4, 8, 0, 63)),
                "block_size": r.choice((8, 16, 4, 0, -1, 2**40))}
        graph.node("MatMulNBits", ["x", b, scale("s"), zero("z")], ["y"], domain="com.microsoft", **more)
    else:
        graph.node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])
        w = bytes_of("w", list(r.choice(([8, 3], [3], [4, 4]))), INT8)
        graph.node("MatMulInteger", ["q", w, r.choice(("z", zero("a"))), zero("b")], ["y"])
    return compiled(folder, ended(graph, "y", ["?", "?"]))


@kind
def functions_in_functions(r, folder):
    """Functions that call themselves or each other, chains of them, two of one name, attributes that nobody gives."""
    count = r.choice((1, 2, 5, 63, 64, 65, 500))
    functions = []
    for i in range(count):
        body = Graph()
        callee = r.choice((i, 0, count - 1)) if r.random() < 0.1 or i + 1 == count else i + 1
        last = "Exp" if i + 1 == count and r.random() < 0.7 else f"f{callee}"
        body.node(last, ["a"], ["b"], domain="" if last == "Exp" else "here")
        if r.random() < 0.1:
            body.nodes[-1] += block(5, block(1, "axis") + block(21, r.choice(("nobody", "", "axis"))) + number(20, 2))
        name = f"f{i}" if r.random() < 0.98 else "f0"
        functions.append(body.function(name, r.choice((["a"], ["a"], ["a", "c"], [])), ["b"], "here", (("", 17), ("here", 1))))
    graph = small_graph()
    graph.node("f0", ["x"], ["y"], domain="here")
    graph.output("y", FLOAT, [4, 8])
    return compiled(folder, graph.model((("", 17), ("here", 1)), functions=functions))


def one_body(r, depth, operator):
    """The body of a loop: sizes that grow from trip to trip, captures that nobody makes, results that it does not have."""
    body = Graph(f"b{depth}")
    body.input(f"i{depth}", INT64, [])
    body.input(f"c{depth}", BOOL, [])
    body.input(f"v{depth}", FLOAT, r.choice(([4, 8], ["n", 8], [])))
    if depth > 0:
        inner = one_body(r, depth - 1, operator)
        body.node(operator, ["trips", f"c{depth}", f"v{depth}"], [f"w{depth}"], body=inner)
    else:
        body.node(r.choice(("Concat", "Add")), [f"v{depth}", r.choice((f"v{depth}", "x", "nobody"))], [f"w{depth}"], axis=0)
    for name, element in ((f"c{depth}", BOOL), (f"w{depth}", FLOAT)):
        if r.random() < 0.9:
            body.output(name, element, [])
    return body


@kind
def loops(r, folder):
    graph = small_graph()
    graph.constant("trips", INT64, [], [r.choice((0, 3, 1000, 2**62, -1))])
    graph.constant("go", BOOL, [], [True])
    operator = r.choice(("Loop", "Loop", "Scan", "SequenceMap"))
    graph.node(operator, ["trips", r.choice(("go", "")), "x"], ["y"], body=one_body(r, r.choice((0, 1, 5, 40)), operator),
               **({"num_scan_inputs": r.choice(EXTREMES)} if operator == "Scan" else {}))
    return compiled(folder, ended(graph, "y", ["?", 8]))


@kind
def sequences(r, folder):
    """Lists that grow, positions outside, more parts than memory has room for, and what is no sequence in their place."""
    graph = small_graph()
    graph.constant("at", r.choice((INT64, INT64, INT64, FLOAT)), [], [r.choice((0, 0, 1, -1, 2**31 - 1, -9))])
    graph.constant("parts", INT64, [2], [r.choice((1, 1, 0, -1, 2**62)), 3])
    graph.constant("long", FLOAT, [4], [0.5] * 4)
    graph.constant("wide", INT64, [2], [r.choice((1, 4, 300, 20_000, 2**31)), 4])
    graph.node("Expand", ["long", "wide"], ["many"])
    makers = (("SequenceConstruct", r.choice((["x"], ["x", "long"], ["x", "at"], [])), {}), ("SequenceEmpty", [], {"dtype": 1}),
              ("SplitToSequence", ["many"] + r.choice(([], ["at"], ["parts"])), {"axis": r.choice((0, 1, 1, -3))}),
              ("SplitToSequence", ["many"], {"keepdims": r.choice((0, 1, 2**40))}), ("Optional", r.choice(([], ["x"])), {}))
    operator, operands, attributes = r.choice(makers)
    graph.node(operator, operands, ["s0"], **attributes)
    count = r.choice((0, 1, 3, 40, 9_000))
    for i in range(count):
        operator = r.choice(("SequenceInsert", "SequenceInsert", "SequenceErase", "Identity", "OptionalGetElement"))
        if count > 40:
            operator = "SequenceInsert"
        operands = [f"s{i}"] + ([r.choice(("x", "long"))] if operator == "SequenceInsert" else [])
        if operator.startswith("Sequence") and r.random() < 0.2:
            operands.append("at")
        graph.node(operator, operands, [f"s{i + 1}"])
    last = r.choice([f"s{count}"] * 5 + ["x"])
    operator = r.choice(("SequenceAt", "SequenceLength", "ConcatFromSequence", "OptionalHasElement", "Relu", "SequenceMap"))
    body = Graph("body")
    body.input("e", FLOAT, [])
    body.node("Add", ["e", r.choice(("e", "x", last, "nobody"))], ["f"])
    body.output("f", FLOAT, [])
    attributes = {"ConcatFromSequence": {"axis": r.choice((0, 1, -9)), "new_axis": r.choice((0, 1, 7))},
                  "SequenceMap": {"body": body}}.get(operator, {})
    graph.node(operator, [last, "at"] if operator == "SequenceAt" else [last], ["y"], **attributes)
    element = INT64 if operator == "SequenceLength" else BOOL if operator == "OptionalHasElement" else FLOAT
    graph.output("y", element, ["?"])
    return compiled(folder, graph.model())


@kind
def strings(r, folder):
    """Tensors of strings, with zeros and megabytes in them, and attributes of each kind where another belongs."""
    graph = small_graph()
    words = [r.choice((b"", b"a\0b", b"\xff\xfe", b"x" * 1_000_000, b"1e999", b"\n")) for _ in range(r.choice((0, 1, 4, 5)))]
    graph.constants.append(number(1, r.choice((len(words), 4, 2**40))) + number(2, STRING) + block(8, "w") + blocks(6, words))
    bare = graph.constants[-1]
    operator = r.choice(("Cast", "Identity", "Equal", "StringNormalizer", "LabelEncoder", "Concat", "Gather", "Shape"))
    graph.node(operator, ["w"] + r.choice(([], ["x"], ["w"])), ["y"], to=r.choice((1, 8, 99)), axis=0)
    if r.random() < 0.5:
        value = r.choice((block(5, bare), block(9, r.choice(words or [b""])), block(6, b"\x0a"), number(3, 7), block(22, b"")))
        graph.nodes.append(b"".join([block(2, "z"), block(4, "Constant"),
                                     block(5, block(1, r.choice(("value", "value_strings", "value_ints"))) + value +
                                           number(20, r.choice((1, 3, 4, 5, 8, 11, 99))))]))
        graph.node("Identity", ["z"], ["u"])
    return compiled(folder, ended(graph, "y", ["?"]))


@kind
def open_sizes(r, folder):
    """What the command line says of sizes, and formulas that grow from node to node."""
    graph = Graph()
    names = ["n", r.choice(("m", "m", "n", 8)), r.choice(("k", 4))]
    graph.input("x", FLOAT, names)
    last = "x"
    for i in range(r.choice((1, 3, 12, 40))):
        operator = r.choice(("Concat", "Flatten", "Shape", "Tile", "Pool", "Multiply", "Slice"))
        if operator == "Concat":
            graph.node("Concat", [last, r.choice((last, "x"))], [f"y{i}"], axis=r.choice((0, 1, 2)))
        elif operator == "Flatten":
            graph.node("Reshape", [last, graph.constant(f"c{i}", INT64, [3], [r.choice((0, -1, 1)), r.choice((-1, 0, 2)), 1])],
                       [f"y{i}"])
        elif operator == "Shape":
            graph.node("Shape", [last], [f"s{i}"])
            graph.node("Mul", [f"s{i}", f"s{i}"], [f"t{i}"])
            graph.node("ConstantOfShape", [f"t{i}"], [f"y{i}"])
        elif operator == "Tile":
            times = [r.choice((1, 2, 3, 2**40)) for _ in range(3)]
            graph.node("Tile", [last, graph.constant(f"c{i}", INT64, [3], times)], [f"y{i}"])
        elif operator == "Pool":
            graph.node("MaxPool", [last], [f"y{i}"], kernel_shape=[r.choice((2, 3, 2, 3, 2**31 - 1))],
                       strides=[r.choice((1, 2, 3, 7))])
        elif operator == "Multiply":
            graph.node("Transpose", [last], [f"t{i}"], perm=[0, 2, 1])
            graph.node("MatMul", [last, f"t{i}"], [f"y{i}"])
        else:
            ends = [graph.constant(f"{name}{i}", INT64, [1], [r.choice((1, -1, 2, -(2**63), 2**63 - 1))]) for name in "abcd"]
            graph.node("Slice", [last, *ends], [f"y{i}"])
        last = f"y{i}"
    command = compiled(folder, ended(graph, last, ["a", "b", "c"]))
    for name in sorted({name for name in names if isinstance(name, str)}):
        low, high = sorted(r.choice((0, 1, 1, 2, 2, 4, 4, 7, 7, 16, 64, 2**31, 2**61)) for _ in range(2))
        wrong = ("", "..", "n", "m+1", "k*n", "-1..5", "1..99999999999999999999", "7" * 5000, ",".join(map(str, range(1, 70))))
        right = (f"{low}..{high + 1}", f"{low}..{high + 1}", f"{3 * low}..{3 * high + 3}:3", f"{low},{high + 1}", str(high))
        command += ["--dim", f"{name}={r.choice(right if r.random() < 0.95 else wrong)}"]
    return command


# What else the command line may do with a hostile model.


@kind
def other_commands(r, folder):
    make = r.choice([each for each in KINDS if each.__module__ in ("hostile_models", __name__) and each is not other_commands])
    command = list(make(r, folder))
    at = command.index("-o")
    rest = command[:at] + command[at + 2:]
    what = r.randrange(6)
    if what == 0:
        return ["check", *rest, *r.choice(([], ["--json"]))]
    if what == 1:
        return ["opt", *rest, *r.choice(([], ["--json"]))]
    if what == 2:
        return [*command, "--target", "cuda", *r.choice(([], ["--precision", "fp16"]))]
    if what == 3:
        return [*command, *r.choice((["-O0"], ["--optimize-for", "size"], ["--weight-bits", "4"], ["--exact"],
                                     ["--cpu", "cortex-m7"]))]
    if what == 4:
        return [*command, "--dump-dir", folder / "out" / "dump"]
    return ["opt", *rest, "--save-onnx", folder / "out" / "saved.onnx"]


@kind
def places_for_output(r, folder):
    """Where nothing can be written."""
    graph = small_graph()
    graph.node("Exp", ["x"], ["y"])
    command = compiled(folder, ended(graph, "y", [4, 8]))
    (folder / "file").write_bytes(b"kept")
    os.mkfifo(folder / "pipe")
    (folder / "closed").mkdir(mode=0o500)
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "away").symlink_to("/dev")
    place = r.choice(("/dev/full", "/dev/null", "/proc/self/x", "/proc", "/sys/x", folder / "file",
                      folder / "file" / "x", folder / "pipe", folder / "pipe" / "x", folder / "closed" / "x" / "y", folder / "loop" / "x",
                      folder / "away" / "full",
                      folder / ("x" * 300), folder / "/".join("x" * 2500), "", folder / "model.onnx"))
    command[command.index("-o") + 1] = place
    return command + r.choice(([], ["--force"]))


@kind
def reports(r, folder):
    """What `report` reads: folders and figures that no tool wrote."""
    graph = small_graph()
    graph.node("Exp", ["x"], ["y"])
    out, layers = folder / "project", folder / "layers.json"
    subprocess.run([os.environ[TOOL], *map(str, compiled(folder, ended(graph, "y", [4, 8]))[:1]), "-o", str(out), "--quiet"],
                   check=True)
    bad = r.choice((b"", b"[" * 1_000_000, b'{"layers":' * 100_000, b"{}", b"null", b'{"layers": [{"name": 1}]}',
                    b"\xff" * 100, b'{"layers": [{"median_ns": 1e999, "name": "<script>"}]}', b"0" * 10_000_000))
    lists = pathlib.Path(sorted((out / "meta").glob("*.json"))[0])
    what = r.randrange(5)
    layers.write_bytes(bad)
    if what == 0:
        lists.write_bytes(bad)
    elif what == 1:
        lists.unlink()
        r.choice((os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)))(lists)
    elif what == 2:
        text = lists.read_text(encoding="utf-8")
        at = r.randrange(len(text))
        other = r.choice(('"', "{", "9" * 50, "", "-1", "null"))
        lists.write_text(text[:at] + other + text[at + r.randrange(4):], encoding="utf-8")
    elif what == 3:
        layers.unlink()
        r.choice((os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)))(layers)
    command = ["report", out, "-o", folder / "out"]
    if r.random() < 0.6:
        command += ["--layers", layers]
    if r.random() < 0.4:
        command += ["--sizes-from", r.choice((out, layers, folder / "nothing", "/dev/zero"))]
    return command

#!/usr/bin/env python3
"""Times networks of one operator beside ONNX Runtime and OpenVINO, in turns: the next cliff is the first row.

    operators.py --gcompile BUILD/gcompile [--only REGEX] [--threads 1,2] [--rounds R] [--markdown FILE] [--write DIR] [--list]

The networks are those of operators.txt with their variants: in float16, of batch 8, with an open batch. Each is compiled,
built and timed as compare_peers.py does it; the table is sorted by the ratio of the fastest peer's time to ours. "Bound"
is the share of what the machine can do at most, by the larger of two times: multiply-adds at the peak of its cores, and the
bytes of inputs, constants and outputs at the bandwidth of its memory, both measured in the same run: more than all of it
where caches hold them. --write leaves the models in DIR, for other tools, and times nothing; --list names them. Needs the
environment of scripts/install_packages.sh bench. Exit: 0, or 1 where a project could not be made or is wrong.
"""

import argparse
import contextlib
import dataclasses
import json
import pathlib
import re
import sys
import tempfile

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

import compare_peers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from gcompile import peers  # noqa: E402  pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).resolve().parent
TYPES = {"float32": np.float32, "double": np.float64, "float16": np.float16, "int64": np.int64, "int32": np.int32,
         "int8": np.int8, "uint8": np.uint8}
ONNX_TYPES = {np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE, np.float16: TensorProto.FLOAT16,
              np.int64: TensorProto.INT64, np.int32: TensorProto.INT32, np.int8: TensorProto.INT8, np.uint8: TensorProto.UINT8}
OPEN_BATCH = "N=1..8"
BATCH = 8


@dataclasses.dataclass
class Value:
    """An input or a constant of a network."""

    name: str
    is_constant: bool
    sizes: list
    dtype: type = np.float32
    below: int = 0       # of integers
    numbers: list = None  # of a constant that is not random

    def array(self, generator):
        if self.numbers is not None:
            return np.array(self.numbers, self.dtype).reshape(self.sizes)
        if self.below or np.issubdtype(self.dtype, np.integer):
            most = self.below or np.iinfo(self.dtype).max + 1
            least = 1 if self.is_constant else 0
            return generator.integers(least, max(most, least + 1), self.sizes).astype(self.dtype)
        values = generator.standard_normal(self.sizes)
        if self.is_constant and len(self.sizes) > 1:
            values /= np.sqrt(np.prod(self.sizes[1:]))
        return values.astype(self.dtype)


def value_of(word):
    """"w!:64,3,7,7" or "i:512:int64<4096>" or "f!:4:=1,1,2,2"."""
    name, sizes, *rest = word.split(":")
    value = Value(name.rstrip("!"), name.endswith("!"), [int(size) for size in sizes.split(",")] if sizes != "0" else [0])
    for kind in rest:
        if kind.startswith("="):
            value.numbers = [float(number) for number in kind[1:].split(",")]
        else:
            word, below = re.fullmatch(r"(\w+)(?:<(\d+)>)?", kind).groups()
            value.dtype, value.below = TYPES[word], int(below or 0)
    return value


@dataclasses.dataclass
class Network:
    name: str
    values: list
    nodes: list
    open_axes: bool = False

    def model(self):
        """The network with its random constants, and inputs for it."""
        generator = np.random.default_rng(sum(map(ord, self.name)))
        arrays = {value.name: value.array(generator) for value in self.values}
        shape = lambda value: ["N" if self.open_axes and i == 0 and size == 1 else size for i, size in enumerate(value.sizes)]
        inputs = [value for value in self.values if not value.is_constant]
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info(v.name, ONNX_TYPES[v.dtype], shape(v)) for v in inputs],
            [onnx.ValueInfoProto(name="y")],
            [numpy_helper.from_array(arrays[v.name], v.name) for v in self.values if v.is_constant])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        return onnx.shape_inference.infer_shapes(model), {v.name: arrays[v.name] for v in inputs}

    def in_half(self):
        values = [dataclasses.replace(v, dtype=np.float16 if v.dtype is np.float32 else v.dtype) for v in self.values]
        return Network(f"{self.name}/half", values, [in_half(node) for node in self.nodes])

    def of_batch(self):
        values = [dataclasses.replace(v, sizes=[BATCH, *v.sizes[1:]]) if not v.is_constant and v.sizes[0] == 1 else v
                  for v in self.values]
        return Network(f"{self.name}/batch", values, self.nodes)

    def with_open_batch(self):
        return Network(f"{self.name}/open", self.values, self.nodes, open_axes=True)


def in_half(node):
    """A constant float becomes one of 16 bits."""
    if node.op_type != "Constant" or node.attribute[0].name != "value_float":
        return node
    half = numpy_helper.from_array(np.array(node.attribute[0].f, np.float16))
    return helper.make_node("Constant", [], node.output, value=half)


def networks(text):
    """All networks of operators.txt, each followed by its variants."""
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, values, nodes, variants = (part.strip() for part in line.split("|"))
        body = "\n".join(statement.strip() for statement in nodes.split(";"))
        graph = onnx.parser.parse_graph(f"g () => () {{ {body} }}")
        network = Network(name, [value_of(word) for word in values.split()], list(graph.node))
        yield network
        made = {"h": network.in_half, "b": network.of_batch, "o": network.with_open_batch}
        for variant in variants.split():
            yield made[variant]()


class Case(compare_peers.Case):
    """One network: its file, its inputs, its project."""

    def __init__(self, network, arguments):  # pylint: disable=super-init-not-called
        self.name, self.arguments = network.name, arguments
        self.folder = arguments.work / network.name.replace("/", "_")
        self.folder.mkdir(parents=True)
        model, self.inputs = network.model()
        self.model = self.folder / "model.onnx"
        onnx.save(model, self.model)
        self.reference = None
        self.inputs_file = self.folder / "inputs.npz"
        np.savez(self.inputs_file, **self.inputs)
        self.outputs = [output.name for output in model.graph.output]
        self.has_integers = any(compare_peers.WITH_INTEGERS.search(node.op_type) for node in model.graph.node)
        self.open_axes = network.open_axes
        self.constant_bytes = sum(len(numpy_helper.to_array(c).tobytes()) for c in model.graph.initializer)

    def sizes(self):
        return ["--dim", OPEN_BATCH] if self.open_axes else super().sizes()

    def least_milliseconds(self, peak, threads):
        """By multiply-adds and by bytes, on so many cores."""
        # The manifest of open sizes has no layers: there are bytes alone.
        manifest = json.loads((self.folder / "project" / "meta" / "m.json").read_text(encoding="utf-8"))
        layers = manifest.get("layers", [])
        products = 2 * sum(layer["multiply_adds"] for layer in layers) / (peak["float_gflops"] * threads * 1e6)
        moved = sum(v.nbytes for v in [*self.inputs.values(), *self.reference]) + self.constant_bytes
        return max(products, moved / (peak["memory_gbytes"] * 1e6))


def row_text(name, row, bound):
    """A line of the table."""
    cells = [row[c].text() if isinstance(row[c], compare_peers.Entry) else "no" for c in row]
    ratio = compare_peers.ratio_of(row)
    share = 100 * bound / row[compare_peers.OURS].best
    return f"| {name} | {' | '.join(cells)} | {share:.0f} % | {'' if ratio is None else format(ratio, '.2f')} |"


def table(found, threads, contenders):
    """Sorted by ratio; those without a peer, and those that are refused, at the end."""
    rows = [(name, result[threads], bound[threads]) for name, result, bound in found if not isinstance(result, str)]
    rows.sort(key=lambda entry: compare_peers.ratio_of(entry[1]) or np.inf)
    lines = ["| network | " + " | ".join(peers.NAMES.get(c, c) for c in contenders) + " | bound | ratio |",
             "|---|" + "---:|" * (len(contenders) + 2)]
    lines += [row_text(*entry) for entry in rows]
    ratios = [ratio for _, row, _ in rows if (ratio := compare_peers.ratio_of(row)) is not None]
    if ratios:
        mean = compare_peers.geometric_mean(ratios)
        lines += ["", f"{len(ratios)} networks, geometric mean {mean:.2f}, least {min(ratios):.2f}, "
                  f"{sum(ratio < 0.95 for ratio in ratios)} below 0.95."]
    lines += [f"{name}: not compiled: {result}" for name, result, _ in found if isinstance(result, str)]
    return "\n".join(lines)


def compare(arguments, chosen):
    peak = compare_peers.calibrated(arguments.work)
    found, versions, peaks, is_good = [], {}, [peak()], True
    contenders = [compare_peers.OURS, *arguments.peers]
    for network in chosen:
        try:
            case = Case(network, arguments)
            result, known = case.run()
            versions |= known
            bound = {threads: case.least_milliseconds(peaks[0], threads) for threads in arguments.threads}
            is_good &= all(row[compare_peers.OURS].is_right for row in result.values())
            print(row_text(network.name, result[arguments.threads[0]], bound[arguments.threads[0]]), flush=True)
        except (compare_peers.CannotCompile, peers.Refused) as error:
            result, bound, is_good = str(error), {}, False
            print(f"{network.name}: {error}", flush=True)
        found.append((network.name, result, bound))
    peaks.append(peak())
    listed = ", ".join(f"{peers.NAMES[name]} {version}" for name, version in sorted(versions.items()))
    text = f"{compare_peers.machine_text(peaks)}; {listed}; {arguments.rounds} rounds, ms: minimum / median.\n"
    for threads in arguments.threads:
        text += f"\n{'One thread' if threads == 1 else f'{threads} threads'}:\n\n{table(found, threads, contenders)}\n"
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text, encoding="utf-8")
    return 0 if is_good else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gcompile", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--only", type=re.compile, default=re.compile(""), help="networks whose name has this in it")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=lambda text: [int(word) for word in text.split(",")], default=[1])
    parser.add_argument("--peers", type=lambda text: text.split(","), default=["onnxruntime", "openvino"])
    parser.add_argument("--processor-time", action="store_true", help="not by the clock")
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path, help="where the models go; nothing is timed")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    chosen = [n for n in networks((HERE / "operators.txt").read_text(encoding="utf-8")) if arguments.only.search(n.name)]
    if arguments.list:
        print("\n".join(network.name for network in chosen))
        return 0
    if arguments.write:
        for network in chosen:
            folder = arguments.write / network.name.replace("/", "_")
            folder.mkdir(parents=True, exist_ok=True)
            onnx.save(network.model()[0], folder / "model.onnx")
        return 0
    if not arguments.gcompile:
        parser.error("--gcompile is needed")
    with contextlib.ExitStack() as stack:
        arguments.work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gcompile_operators_")))
        return compare(arguments, chosen)


if __name__ == "__main__":
    sys.exit(main())

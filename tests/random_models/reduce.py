#!/usr/bin/env python3
"""Shrinks a random model that fails to the few nodes that fail.

    reduce.py RANDOM_MODELS MODEL_FOLDER OUT_FOLDER [OPTION...]

RANDOM_MODELS is the program that judges; OPTIONs are handed on (--cuda, --cxxflags ...). Outputs are left out, and nodes
turned into inputs of random numbers, as long as something is found. OUT_FOLDER gets what is left, laid out as it was.
Exit: 0 done, 1 the model does not fail, 2 usage.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper

from random_graph import Graph, KIND, tensor

KINDS = {number: kind for kind, number in KIND.items()}


def types_of(model):
    """name -> (kind, shape) of everything that the generator has declared."""
    types = {}
    for value in [*model.graph.input, *model.graph.value_info, *model.graph.output]:
        kind = value.type.tensor_type
        types[value.name] = (KINDS[kind.elem_type], tuple(dim.dim_value for dim in kind.shape.dim))
    return types


def reads(node):
    """Names that a node reads, also in its branches."""
    names = set(node.input)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                names |= reads(inner)
            names |= {output.name for output in attribute.g.output}
    return names


class Subject:
    """A model and its inputs, and what may be taken from it."""

    def __init__(self, model, data):
        self.model, self.data = model, data

    def pruned(self, outputs):
        """With these outputs and what they need."""
        graph = self.model.graph
        needed, kept = set(outputs), []
        for node in reversed(graph.node):
            if needed & set(node.output):
                kept.append(node)
                needed |= reads(node)
        types = types_of(self.model)
        made = {name for node in kept for name in node.output}
        inputs = [helper.make_tensor_value_info(name, KIND[types[name][0]], types[name][1])
                  for name in self.data if name in needed and name not in made]
        infos = [helper.make_tensor_value_info(name, KIND[kind], shape) for name, (kind, shape) in types.items()
                 if name in made and name not in outputs]
        out = onnx.ModelProto()
        out.CopyFrom(self.model)
        out.graph.CopyFrom(helper.make_graph(
            kept[::-1], graph.name, inputs,
            [helper.make_tensor_value_info(name, KIND[types[name][0]], types[name][1]) for name in outputs],
            [constant for constant in graph.initializer if constant.name in needed], value_info=infos))
        return Subject(out, {value.name: self.data[value.name] for value in inputs})

    def without(self, node, random):
        """The node's results become inputs."""
        types = types_of(self.model)
        data = dict(self.data)
        for name in node.output:
            if name:
                data[name] = (types[name][0], random.array(*types[name]))
        out = onnx.ModelProto()
        out.CopyFrom(self.model)
        out.graph.node.remove(node)
        outputs = [value.name for value in out.graph.output if value.name not in node.output]
        return Subject(out, data).pruned(outputs) if outputs else None

    def save(self, folder):
        (folder / "test_data_set_0").mkdir(parents=True)
        onnx.save(self.model, folder / "model.onnx")
        for i, value in enumerate(self.model.graph.input):
            kind, array = self.data[value.name]
            (folder / "test_data_set_0" / f"input_{i}.pb").write_bytes(tensor(value.name, kind, array).SerializeToString())


class Judge:
    def __init__(self, program, options):
        self.program, self.options = program, options

    def fails(self, subject):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            subject.save(folder / "cases" / "model")
            done = subprocess.run([self.program, "--cases", folder / "cases", "--build", folder / "build", *self.options],
                                  capture_output=True, text=True, check=False)
            return done.stdout if done.returncode == 1 else ""


def read_subject(folder):
    model = onnx.load(folder / "model.onnx")
    data = {}
    for i, value in enumerate(model.graph.input):
        proto = onnx.TensorProto()
        proto.ParseFromString((folder / "test_data_set_0" / f"input_{i}.pb").read_bytes())
        kind = KINDS[proto.data_type]
        if kind == "bfloat16":
            words = np.frombuffer(proto.raw_data, np.uint16).astype(np.uint32) << 16
            data[value.name] = (kind, words.view(np.float32).reshape(tuple(proto.dims)))
        else:
            data[value.name] = (kind, onnx.numpy_helper.to_array(proto))
    return Subject(model, data)


def smaller(subject, random):
    """Candidates, the smallest first."""
    outputs = [value.name for value in subject.model.graph.output]
    if len(outputs) > 1:
        for name in outputs:
            yield subject.pruned([name])
    for node in list(subject.model.graph.node)[::-1]:
        candidate = subject.without(node, random)
        if candidate is not None:
            yield candidate
    # A value within can be the output instead.
    for node in list(subject.model.graph.node)[:-1]:
        yield subject.pruned([name for name in node.output if name][:1])


def main():
    if len(sys.argv) < 4:
        sys.exit(2)
    judge = Judge(sys.argv[1], sys.argv[4:])
    subject, out = read_subject(pathlib.Path(sys.argv[2])), pathlib.Path(sys.argv[3])
    random = Graph(np.random.default_rng(1))
    found = judge.fails(subject)
    if not found:
        print("it does not fail")
        return 1
    again = True
    while again:
        again = False
        for candidate in smaller(subject, random):
            if len(candidate.model.graph.node) >= len(subject.model.graph.node) and \
                    len(candidate.model.graph.output) >= len(subject.model.graph.output):
                continue
            text = judge.fails(candidate)
            if text:
                subject, found, again = candidate, text, True
                print(f"{len(subject.model.graph.node)} nodes", flush=True)
                break
    shutil.rmtree(out, ignore_errors=True)
    subject.save(out)
    print(onnx.printer.to_text(subject.model.graph) if hasattr(onnx, "printer") else
          helper.printable_graph(subject.model.graph))
    print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())

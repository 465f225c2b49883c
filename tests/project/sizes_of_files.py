#!/usr/bin/env python3
"""A runner takes the sizes of a run from the shapes of its files: within bounds, among choices, of states; and Python
through it.

    sizes_of_files.py --gcompile GCOMPILE [CASE...]
"""

import os
import sys

from support import ROOT, check, contains, equal, read_npy, run_main, write_npy

OPEN = """<ir_version: 8, opset_import: ["" : 17]>
net (float[batch, rows, 4] x, float[past, 4] old, float[twice, 2] z) => (float[batch, rows, 4] y, float[all, 4] kept, float[twice, 2] w)
<int64[1] first = {0}, int64[1] second = {1}, int64[2] tail = {-1, 4}>
{
  y = Neg (x)
  one = Slice (x, first, second, first)
  flat = Reshape (one, tail)
  kept = Concat <axis = 0> (old, flat)
  w = Relu (z)
}
"""
STATE = """<ir_version: 8, opset_import: ["" : 17]>
net (float[rows, 4] x, float[past, 4] old) => (float[1, 4] y, float[all, 4] new)
{
  new = Concat <axis = 0> (old, x)
  y = ReduceSum <keepdims = 1> (new, axis)
}
"""


def built(world, text, *options):
    world.path("net.onnxtxt").write_text(text)
    world.compile(world.path("net.onnxtxt"), world.path("net"), "--name", "net", *options)
    world.run(["make", "-j2", "-C", world.path("net"), "build/net_run", "CXXFLAGS=-O0", "ARCH=native"])
    return world.path("net") / "build" / "net_run"


def array(world, name, *shape):
    count = 1
    for size in shape:
        count *= size
    return write_npy(world.path(f"{name}.npy"), "float32", shape, [float(i % 7) for i in range(count)])


def shape_of(path):
    text = path.read_bytes()[:128].decode("latin1")
    return [int(size) for size in text.partition("'shape': (")[2].partition(")")[0].split(",") if size.strip()]


def shapes_of(world, runner, label, *words):
    folder = world.path(f"out_{label}")
    world.run([runner, "--output-dir", folder, *words])
    return [shape_of(path) for path in sorted(folder.glob("[0-9]*.npy"))]


def case_bounds(world):
    """Sizes of their own, multiples, and what --dim says beside the files or against them."""
    runner = built(world, OPEN, "--dim", "batch=1..3", "--dim", "rows=1..5", "--dim", "past=0..6", "--dim", "twice=2..8:2")
    z = array(world, "z", 4, 2)
    for batch, rows, past in ((1, 1, 0), (3, 5, 6), (2, 3, 4)):
        files = [array(world, "x", batch, rows, 4), array(world, "old", past, 4), z]
        expected = [[batch, rows, 4], [past + rows, 4], [4, 2]]
        equal(shapes_of(world, runner, f"{batch}", *files), expected, "shapes by files in order")
        named = [word for name, path in zip(("z", "old", "x"), files[::-1]) for word in ("--input", f"{name}={path}")]
        equal(shapes_of(world, runner, f"{batch}_named", *named), expected, "shapes by files with names")
        equal(shapes_of(world, runner, f"{batch}_told", "--dim", f"batch={batch}", *files), expected, "with --dim")
    values = read_npy(world.path("out_2") / "0_y.npy")
    equal(values, [-float(i % 7) for i in range(24)], "values")
    # What no file tells is the largest, or what --dim says.
    x = array(world, "x", 2, 3, 4)
    equal(shapes_of(world, runner, "some", x, "--random", "1"), [[2, 3, 4], [9, 4], [8, 2]], "with one file")
    equal(shapes_of(world, runner, "told", x, "--random", "1", "--dim", "past=1"), [[2, 3, 4], [4, 4], [8, 2]], "with --dim")
    equal(shapes_of(world, runner, "random", "--random", "1"), [[3, 5, 4], [11, 4], [8, 2]], "without files")
    for label, words in (("batch", [array(world, "a", 4, 3, 4)]), ("odd", [x, array(world, "b", 2, 4), array(world, "c", 3, 2)]),
                         ("rank", [array(world, "d", 2, 4)]), ("told", ["--dim", "batch=1", x])):
        done = world.run([runner, "--random", "1", *words], status=3)
        contains(done.stderr, "no run has inputs of these shapes: 'x' [", "batch=N", "1 to 3")
        check(label, "")


def case_choices(world):
    runner = built(world, OPEN, "--dim", "batch=1,2", "--dim", "rows=3,5", "--dim", "past=2", "--dim", "twice=4")
    others = [array(world, "old", 2, 4), array(world, "z", 4, 2)]
    for batch in (1, 2):
        for rows in (3, 5):
            found = shapes_of(world, runner, f"{batch}_{rows}", array(world, "x", batch, rows, 4), *others)
            equal(found, [[batch, rows, 4], [2 + rows, 4], [4, 2]], "shapes of a choice")
    done = world.run([runner, array(world, "x", 2, 4, 4), *others], status=3)
    contains(done.stderr, "no run has inputs of these shapes: 'x' [2, 4, 4], 'old' [2, 4], 'z' [4, 2]", "3, 5")


def case_choices_beside_bounds(world):
    runner = built(world, OPEN, "--dim", "batch=1,2", "--dim", "rows=1..5", "--dim", "past=0..6", "--dim", "twice=4")
    others = [array(world, "old", 3, 4), array(world, "z", 4, 2)]
    for batch, rows in ((1, 1), (2, 4), (1, 5)):
        found = shapes_of(world, runner, f"{batch}_{rows}", array(world, "x", batch, rows, 4), *others)
        equal(found, [[batch, rows, 4], [3 + rows, 4], [4, 2]], "shapes")
    world.run([runner, array(world, "x", 3, 4, 4), *others], status=3)


def case_states(world):
    """A state that grows tells how much it holds; so one run follows another without a word about sizes."""
    text = STATE.replace("{\n  new", "<int64[1] axis = {0}>\n{\n  new")
    runner = built(world, text, "--state", "old=new", "--dim", "rows=1..4", "--dim", "past=0..8", "--dim", "past+rows=1..9")
    state, held = array(world, "state", 0, 4), 0
    for number, rows in enumerate((2, 1, 4)):
        folder = world.path(f"step_{number}")
        world.run([runner, array(world, "x", rows, 4), "--state", f"old={state}", "--output-dir", folder])
        held += rows
        state, = folder.glob("state_*.npy")
        equal(shape_of(state), [held, 4], f"the state after run {number}")


PYTHON = """
import numpy, pathlib, sys, gcompile
place = pathlib.Path(sys.argv[1])
project = gcompile.compile(place / 'net.onnxtxt', place / 'py', name='net',
                           options=['--dim', 'batch=1..3', '--dim', 'rows=1..5', '--dim', 'past=0..6', '--dim', 'twice=2..8:2'])
project.build(variables={'CXXFLAGS': '-O0'})
for batch, rows, past in ((3, 5, 6), (1, 2, 0), (2, 1, 3)):
    x = numpy.random.rand(batch, rows, 4).astype('float32')
    outputs = project.run(x, numpy.ones((past, 4), 'float32'), numpy.ones((2, 2), 'float32'))
    assert (outputs['y'] == -x).all() and outputs['kept'].shape == (past + rows, 4), outputs
for x in (numpy.ones((4, 1, 4), 'float32'), numpy.ones((2, 4), 'float32')):
    try:
        project.run(x, numpy.ones((1, 4), 'float32'), numpy.ones((2, 2), 'float32'))
    except ValueError as error:
        assert 'no run has inputs of these shapes' in str(error), error
    else:
        sys.exit('taken')
"""


def case_python(world):
    world.path("net.onnxtxt").write_text(OPEN)
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "GCOMPILE_EXECUTABLE": world.gcompile}
    world.run([python, "-c", PYTHON, world.folder], env=environment)


if __name__ == "__main__":
    run_main(globals())

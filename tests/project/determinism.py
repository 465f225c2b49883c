#!/usr/bin/env python3
"""The same model and the same options give the same bytes, wherever and whoever one is; the same inputs give the same
bits, however many threads compute.

    determinism.py --gcompile GCOMPILE [CASE...]
"""

import os
import shutil

from onnx_bytes import shape_flags
from support import EXAMPLE_FLAGS, EXAMPLES, HERE, SHARED_MODELS, Failure, check, equal, main_suite, run_main, shared_model, tree

# A place is a folder, a mask of new files and variables of the environment.
PLACES = [
    ("near", 0o022, {"LC_ALL": "C", "TZ": "UTC", "HOME": "/", "USER": "one"}),
    ("far/away from/n\u00e4r", 0o022, {"LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu",
                                      "SOURCE_DATE_EPOCH": "1", "USER": "other", "COLUMNS": "20",
                                      "MALLOC_PERTURB_": "165"}),
    ("open", 0o000, {"LC_ALL": "C.UTF-8", "TZ": "America/St_Johns", "MALLOC_ARENA_MAX": "1"}),
    ("closed", 0o077, {"LC_ALL": "POSIX"}),
]


def with_mask(mask, function):
    before = os.umask(mask)
    try:
        return function()
    finally:
        os.umask(before)


def emit(world, model, flags, place, mask, variables):
    """One run with a working folder, a copy of the model and an environment of its own."""
    folder = world.path(place)
    folder.mkdir(parents=True)
    copy = folder / f"{folder.name}.onnx" if model.suffix == ".onnx" else folder / f"{folder.name}{model.suffix}"
    shutil.copyfile(model, copy)
    environment = {"PATH": os.environ["PATH"], **variables}
    with_mask(mask, lambda: world.compile(copy.name, "out", "--name", "same", *flags, cwd=folder, env=environment))
    return folder / "out"


def compare(world, model, flags, places):
    reference = None
    for place, mask, variables in places:
        project = emit(world, model, flags, place, mask, variables)
        found = {name: data for name, (_, data) in tree(project).items()}
        check(len(found) > 10, f"only {sorted(found)}")
        for path in project.rglob("*"):
            wanted = (0o777 if path.is_dir() else 0o666) & ~mask
            equal(path.stat().st_mode & 0o777, wanted, f"mode of {path.name} with umask {mask:o}")
        if reference is None:
            reference = found
            for name, data in found.items():
                for word in (str(world.folder), os.uname().nodename if len(os.uname().nodename) > 5 else None, "/tmp"):
                    check(word is None or word.encode() not in data, f"{name} holds '{word}'")
            continue
        equal(sorted(found), sorted(reference), "files")
        for name, data in found.items():
            if data != reference[name]:
                raise Failure(f"{name} differs in '{place}'")
    check(reference, "nothing was compared")


def case_classifier(world):
    compare(world, EXAMPLES / "shapes_classifier" / "model.onnx", ["--selftest"], PLACES)


def case_denoiser(world):
    compare(world, EXAMPLES / "streaming_denoiser" / "model.onnx", EXAMPLE_FLAGS["streaming_denoiser"], PLACES)


def case_attention(world):
    compare(world, EXAMPLES / "tiny_attention" / "model.onnx", ["--optimize-for", "size", "--weights", "array"], PLACES)


def case_operators(world):
    compare(world, HERE / "models" / "many_operators.onnxtxt", ["-O0"], PLACES)


def case_again(world):
    """A second run into the same folder changes nothing, not even a time."""
    project = world.example("shapes_classifier", "project")

    def times():
        return {path: path.stat().st_mtime_ns for path in [project, *project.rglob("*")]}

    before = times()
    world.example("shapes_classifier", "project")
    equal(times(), before, "times of modification")


def case_options(world):
    """Different options give different projects, so that equality above means something."""
    projects = [tree(world.example("shapes_classifier", f"p{i}", *flags)) for i, flags in
                enumerate(([], ["-O0"], ["--weights", "array"], ["--name", "other"]))]
    for i, one in enumerate(projects):
        for other in projects[:i]:
            check(one != other, "different options, same project")


def case_threads(world):
    """One row, a transposed convolution of few columns, and pixels left over behind whole tiles, summed over a long depth:
    where sums once depended on how the work was dealt out. Then what is split along columns, with sums that wait between
    parts of the depth, and loops: rows, and blocks of one long axis."""
    values = [((i * 7919) % 2001 - 1000) / 1001 for i in range(9 * 7 * 3 * 3)]
    text = """<ir_version: 8, opset_import: ["" : 13]>
    threads (float[1, 131] x, float[131, 200] w, float[1, 9, 9, 5] image, float[105, 1100] rows, float[1100, 7] b,
             float[100, 4096] deep, float[4096, 150] c)
        => (float[1, 200] y, float[1, 7, 19, 11] z, float[105, 7] p, float[100, 150] d, float[105, 1100] s,
            float[100, 4096] e) {
      k = Constant <value = float[9, 7, 3, 3] {%s}> ()
      y = MatMul (x, w)
      z = ConvTranspose <strides = [2, 2]> (image, k)
      p = MatMul (rows, b)
      d = MatMul (deep, c)
      s = Softmax <axis = -1> (rows)
      e = Exp (deep)
    }
    """ % ", ".join(f"{value:.6f}" for value in values)
    model = world.path("threads.onnxtxt")
    model.write_text(text, encoding="utf-8")
    project = world.path("project")
    world.compile(model, project, "--name", "m")
    kernels = (project / "src/m_kernels.cpp").read_text(encoding="utf-8")
    for way in (", sums);", "vector_blocks(", "i0 = begin; i0 < end"):
        check(way in kernels, f"no kernel has '{way}'")
    program = world.runner(project, "m", ("-O1", "-march=native"))
    expected = None
    for threads in (1, 2, 3, 4, 16):
        out = world.path(f"threads_{threads}")
        out.mkdir()
        world.run([program, "--random", "1", "--threads", threads, "--output-dir", out])
        found = {name: data for name, (_, data) in tree(out).items()}
        equal(len(found), 6, "outputs")
        expected = expected or found
        for name, data in found.items():
            check(data == expected[name], f"{threads} threads: other bits in {name}")


def case_main_suite(world):
    for model in main_suite():
        place = world.path(model)
        place.mkdir()
        source = shared_model(model)
        flags = shape_flags(SHARED_MODELS / model)
        compare(world, source, flags, [(f"{model}/{name}", mask, variables) for name, mask, variables in PLACES[:2]])
        shutil.rmtree(place)
        print(f"         {model}", flush=True)


if __name__ == "__main__":
    run_main(globals())

#!/usr/bin/env python3
"""Every command that README.md, CONTRIBUTING.md and the documents show is run by a test, or listed as not run, with the reason.

    shown_commands.py --gcompile GCOMPILE [CASE...]

A command is a line of a block of code: one indented by four columns, or one of kind `sh`. shown_commands.txt says where each is
run. Those of the pages in RUN are run here, page by page in a folder of its own, with models in the place of the reader's:
one page in turn, by the number of the commit; with GCOMPILE_LONG_TESTS=1 all. SHOWN_PAGE=docs/PAGE.md tries that one alone.
"""

import os
import pathlib
import random
import re
import shutil

from support import ROOT, Skip, check, run_main, turn

LIST = pathlib.Path(__file__).resolve().parent / "shown_commands.txt"
PROGRAM = re.compile(r"(\(?cd \S+ && |[A-Z]+=\S+ )*(gcompile|cmake|cpack|make|ninja|pip|g\+\+|gcc|ar|size|grep|test|ctest|mkdir|python3|printf|\.ci/run"
                     r"|[\w./]*/(gcompile|python|\w+_(run|bench|test)|\w+\.sh)|\./\w+)([\s)]|$)")
# Pages whose commands are run here, in their order.
RUN = ["README.md", "docs/troubleshooting.md", "docs/quantised_models.md", "docs/porting.md", "docs/updating_weights.md",
       "docs/code_size.md", "docs/manifest.md", "docs/adding_an_operator.md"]
MODEL = """<ir_version: 8, opset_import: ["" : 17]>
net (float[1,3,8,8] image) => (float[1,5] probabilities)
<float[8,3,3,3] w = {{{w}}}, float[8] b = {{{b}}}, float[8,5] v = {{{v}}}, int64[2] shape = {{1, 8}}>
{{
  conv = Conv<pads = [1, 1, 1, 1]>(image, w, b)
  relu = Relu(conv)
  pool = GlobalAveragePool(relu)
  flat = Reshape(pool, shape)
  head = MatMul(flat, v)
  probabilities = Softmax(head)
}}
"""
QUANTISED = """<ir_version: 8, opset_import: ["" : 17]>
net (uint8[1,4,8,8] image) => (uint8[1,8,8,8] y)
<int8[8,4,3,3] w = {{{w}}}, float s = {{0.02}}, float ws = {{0.01}}, uint8 z = {{128}}>
{{
  x = DequantizeLinear(image, s, z)
  f = DequantizeLinear(w, ws)
  conv = Conv<pads = [1, 1, 1, 1]>(x, f)
  y = QuantizeLinear(conv, s, z)
}}
"""
def commands_of(text):
    """Commands of a page, joined where they go on, without what explains them."""
    out, fence = [], None
    for line in text.split("\n"):
        if line.startswith("```"):
            fence = line[3:].strip() if fence is None else None
        elif fence == "sh" or (fence is None and line.startswith("    ")):
            command = re.sub(r"\s+#\s.*|\s{3,}\S.*$", "", line.strip())
            if out and out[-1].endswith("\\"):
                out[-1] = out[-1][:-1].rstrip() + " " + command
            elif command and (fence == "sh" or PROGRAM.match(command)):
                out.append(command)
    return out


def pages():
    names = ["README.md", "CONTRIBUTING.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))]
    return {name: commands_of((ROOT / name).read_text(encoding="utf-8")) for name in names}


def listed():
    """{command: where it is run, or why not} of shown_commands.txt."""
    where, found = "", {}
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            check(line.strip() not in found, f"twice in {LIST.name}: {line.strip()}")
            found[line.strip()] = where
        elif line and not line.startswith("#"):
            where = line
    return found


def constants(seed, **shapes):
    values = random.Random(seed)
    return {name: ", ".join(str(values.randint(-120, 120) if name == "w8" else round(values.uniform(-1, 1), 4)) for _ in range(count))
            for name, count in shapes.items()}


def furnished(world, page):
    """A folder with what the commands of the pages take, and the surroundings in which a page runs them."""
    place = world.path(pathlib.Path(page).stem)
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "gcompile").symlink_to(world.gcompile)
    (place / "build").mkdir()
    (place / "build" / "gcompile").symlink_to(world.gcompile)
    (place / "examples").symlink_to(ROOT / "examples")
    for name, text in (("model", MODEL.format(**constants(1, w=216, b=8, v=40))),
                       ("retrained", MODEL.format(**constants(2, w=216, b=8, v=40))),
                       ("quantised", QUANTISED.format(w=constants(3, w8=288)["w8"]))):
        (place / f"{name}.onnxtxt").write_text(text)
        world.compile(place / f"{name}.onnxtxt", place / "scratch", "--force", "-O0", "--save-onnx", place / f"{name}.onnx")
    return place


def case_every_command_is_listed(_world):
    """And what is listed is shown."""
    assert commands_of("a\n\n    gcompile a.onnx -o b   # c\n    int x;\n\n```sh\nmake -C b\n```\n```cpp\n    make()\n```\n") == [
        "gcompile a.onnx -o b", "make -C b"]
    known, shown = listed(), pages()
    here = {command for page in RUN for command in shown[page]}
    missing = [f"{page}: {command}" for page, commands in shown.items() for command in commands if command not in known and command not in here]
    check(not missing, f"say in {LIST.name} which test runs them, or why none does:\n" + "\n".join(missing))
    gone = sorted(set(known) - {command for commands in shown.values() for command in commands})
    check(not gone, f"{LIST.name} lists what no page shows:\n" + "\n".join(gone))
    check(len(here) > 20, f"{here}")
    for where in set(known.values()):
        check(where.startswith("not run: ") or (ROOT / where.split(",")[0]).exists(), f"{LIST.name}: {where} is no file of tests")


def run_page(world, page):
    place, known = furnished(world, page), listed()
    environment = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
    for command in commands_of((ROOT / page).read_text(encoding="utf-8")):
        if "arm-none-eabi-" in command and not shutil.which("arm-none-eabi-g++"):
            raise Skip(f"{page}: no arm-none-eabi-g++: scripts/install_packages.sh test installs it")
        if command not in known:
            world.run(["sh", "-ec", command], cwd=place, env=environment)


def case_pages_in_turn(world):
    chosen = os.environ.get("SHOWN_PAGE")
    everything = os.environ.get("GCOMPILE_LONG_TESTS") == "1"
    for i, page in enumerate(RUN):
        if page == chosen if chosen else everything or turn() % len(RUN) == i:
            print(f"         {page}", flush=True)
            run_page(world, page)


if __name__ == "__main__":
    run_main(globals())

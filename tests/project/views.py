#!/usr/bin/env python3
"""Every view (slice, part, transposed, reshaped, expanded) under every reader, with each axis open in turn: each cell is
refused as views.txt says, or right at the corners of its bounds and between them. What is right is the model of those sizes
alone, evaluated.

    views.py --gcompile GCOMPILE [CASE...]

Without GCOMPILE_LONG_TESTS=1 one cell of each reader, others with each commit: GCOMPILE_ROTATION=NUMBER repeats a choice.
VIEWS_BLESS=1 writes views.txt anew, after a look at all cells.
"""

import collections
import concurrent.futures
import json
import os
import re
import shutil

from families import Model
from support import HERE, check, run_main, turn
import view_products
import view_readers
from view_cells import BOUNDS, READERS, NotACell, Part, views

MODULES = view_products, view_readers  # they fill READERS
VIEWS = views()
OPENED = ("none", "0", "1", "2", "3", "all")
TARGETS = {"cpp": ["--target", "cpp"], "cuda": ["--target", "cuda", "--emulate"]}
CELLS_OF_A_PROJECT = 400
# A project is run at the corners of all its sizes: cells of like sizes have one of their own, where it pays to build it.
CELLS_THAT_PAY = 12
SHARDS = 8
# Wrong before they had a test: each time.
ALWAYS = [("tail2", "linear_4", "none"), ("both2", "linear_4", "0"), ("entry1_of_tail0", "matmul_broadcast", "0"),
          ("turn_of_both1", "turned_behind_201", "0")]


def empty_model():
    model = Model(opset=23)
    model.domains = ', "com.microsoft" : 1'
    return model


def add_cell(model, cell, prefix):
    """The names of the open sizes."""
    view, reader, opened = cell
    inputs = len(model.inputs)
    part = Part(model, prefix, VIEWS[view], int(opened) if opened.isdigit() else opened)
    READERS[reader](part)
    derived = [size for size in part.sizes if size.startswith("n")]
    if len(derived) != 1 or not re.fullmatch(r"n\d", derived[0]):
        return part.sizes
    # What is cut has bounds of its own where nothing else is of the size that is left.
    model.inputs[inputs:] = [re.sub(rf"\b{derived[0]}\b", "whole", text) for text in model.inputs[inputs:]]
    return part.sizes - set(derived) | {"whole"}


def is_cell(cell):
    try:
        sizes = add_cell(empty_model(), cell, "c")
    except NotACell:
        return False
    return bool(sizes) or cell[2] == "none"


def cells_of(reader):
    return [cell for cell in ((view, reader, opened) for opened in OPENED for view in VIEWS) if is_cell(cell)]


def all_cells():
    return [cell for reader in READERS for cell in cells_of(reader)]


def cells_in_turn(number):
    """One of each reader, of unlike views and open axes."""
    readers = [cells_of(reader) for reader in READERS]
    return [cells[(number * 97 + place * 41) % len(cells)] for place, cells in enumerate(readers)]


def options_of(sizes, typical=""):
    """What --dim says of them."""
    options = []
    for size in sorted(sizes | {size[0] for size in sizes if re.fullmatch(r"[nmk]\d", size)}):
        if size in BOUNDS:
            options.append(f"{size}={BOUNDS[size]}{typical if size == 'n' else ''}")
        elif "x" in size:
            name, factor = size.split("x")
            low, high = (int(factor) * int(bound) for bound in BOUNDS[name].split(".."))
            options.append(f"{size}={low}..{high}:{factor}")
        else:
            options.append(f"{size}={size[0]}+{size[1:]}")
    return [word for option in options for word in ("--dim", option)]


def written(world, cells, name, typical=""):
    """The file of a model of these cells, its options, and the cell of each output."""
    model, sizes, owners = empty_model(), set(), {}
    for number, cell in enumerate(cells):
        known = len(model.outputs)
        sizes |= add_cell(model, cell, f"c{number}")
        owners.update({output.split()[-1]: cell for output in model.outputs[known:]})
    path = world.path(f"{name}.onnxtxt")
    path.write_text(model.text())
    return path, options_of(sizes, typical), owners


def shown(cell):
    return f"{cell[1]} of {cell[0]}, open: {cell[2]}"


# Refusals ----------------------------------------------------------------------------------------------------------------


def refusal_of(world, number, cell, target):
    """How gcompile refuses a cell; empty: it takes it."""
    path, options, _ = written(world, [cell], f"cell_{number}")
    done = world.run([world.gcompile, "check", path, "-q", *TARGETS[target][:2], *options], status=None)
    path.unlink()
    if done.returncode == 0:
        return ""
    check(done.returncode == 1, f"{shown(cell)}: exit {done.returncode}: {done.stderr}")
    first = next(line for line in done.stderr.splitlines() if line.startswith("error"))
    return re.sub(r"c\d+_\d+", "_", first.removeprefix("error"))


def refusals(world, cells, target):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda pair: refusal_of(world, *pair, target), enumerate(cells)))
    return dict(zip(cells, found))


def read_refusals(target):
    """{cell: message}. A line: target, reader, open axis, views or "every view"; a line that begins with ":" tells how."""
    out, message = {}, ""
    for line in (HERE / "views.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(":"):
            message = line[1:].strip()
        elif line and not line.startswith("#"):
            of, reader, opened, *names = line.split()
            for view in VIEWS if names == ["every", "view"] else names:
                if of == target:
                    out[view, reader, opened] = message
    return out


def write_refusals(found):
    """`found`: {target: {cell: message or empty}}."""
    groups = collections.defaultdict(list)
    for target, cells in found.items():
        of_axis = collections.defaultdict(set)
        for cell in cells:
            of_axis[cell[1:]].add(cell[0])
        refused = collections.defaultdict(set)
        for cell, message in cells.items():
            if message:
                refused[message, cell[1:]].add(cell[0])
        for (message, (reader, opened)), names in refused.items():
            which = "every view" if names == of_axis[reader, opened] else " ".join(sorted(names))
            groups[message].append(f"{target} {reader} {opened} {which}")
    count = {target: sum(1 for message in cells.values() if message) for target, cells in found.items()}
    lines = ["# Cells of views.py that gcompile refuses, and how; VIEWS_BLESS=1 views.py writes this.",
             *(f"# {target}: {count[target]} of {len(cells)}" for target, cells in found.items())]
    for message in sorted(groups):
        lines += ["", f": {message}", *sorted(groups[message])]
    (HERE / "views.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def check_refusals(found, target):
    """`found`: {cell: message or empty}."""
    known = read_refusals(target)
    surprises = [f"{shown(cell)}: {text or 'is taken'}, expected: {known.get(cell) or 'is taken'}"
                 for cell, text in found.items() if text != known.get(cell, "")]
    check(not surprises, "\n".join(surprises))


def taken_of(world, cells, target):
    """Those that gcompile takes, where it refuses those that are known, by what is known."""
    found = refusals(world, cells, target)
    check_refusals(found, target)
    return [cell for cell in cells if not found[cell]]


def are_taken(world, cells, target):
    """Whether gcompile takes all of them, asked at once."""
    path, options, _ = written(world, cells, "together")
    return world.run([world.gcompile, "check", path, "-q", *TARGETS[target][:2], *options], status=None).returncode == 0


# Results -----------------------------------------------------------------------------------------------------------------


def fast_compiler(world):
    """What compiles in the time that there is: without optimisation, and once for what many projects have."""
    path = world.path("cxx")
    if not path.exists():
        cache = "ccache " if shutil.which("ccache") else ""
        path.write_text(f'#!/bin/sh\nfor word; do shift; [ "$word" = -O2 ] && word=-O0; set -- "$@" "$word"; done\n'
                        f'exec {cache}{os.environ.get("CXX", "c++")} "$@"\n')
        path.chmod(0o755)
    return path


def wrong_cells(world, cells, target, name="cells", typical=""):
    """The cells that gcompile takes and that are wrong: {cell: what is off}."""
    if not cells:
        return {}
    path, options, owners = written(world, cells, name, typical)
    done = world.run([world.gcompile, "verify", path, "-q", "--json", "--cxx", fast_compiler(world), *options,
                      *TARGETS[target]], status=None, timeout=3600)
    answer = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    wrong = {}
    for finding in answer.get("findings", []):
        if not finding["ok"]:
            what = finding.get("mismatch") or f"{finding.get('worst_ratio')} of the tolerance"
            wrong.setdefault(owners[finding["value"]], f"{finding['case']}: {what}")
    if done.returncode == 0 or (wrong and not answer.get("failures")):
        return wrong
    if len(cells) == 1:
        return {cells[0]: str(answer.get("failures") or answer.get("errors") or done.stderr)[:600]}
    half = len(cells) // 2
    return {**wrong_cells(world, cells[:half], target, name + "a", typical),
            **wrong_cells(world, cells[half:], target, name + "b", typical)}


def projects_of(cells):
    """Lists of cells for one project each, of like sizes where there are enough of them."""
    groups = collections.defaultdict(list)
    for cell in cells:
        groups[tuple(sorted(add_cell(empty_model(), cell, "c")))].append(cell)
    rest = collections.defaultdict(list)
    for sizes in sorted(groups):
        if len(groups[sizes]) < CELLS_THAT_PAY:
            rest[len(sizes) > 1] += groups.pop(sizes)
    lists = [*groups.values(), *rest.values()]
    return [cells[first:first + CELLS_OF_A_PROJECT] for cells in lists for first in range(0, len(cells), CELLS_OF_A_PROJECT)]


def are_right(world, projects, target, number):
    known = read_refusals(target)
    refused = taken_of(world, [cell for cells in projects for cell in cells if cell in known], target)
    check(not refused, f"{len(refused)} of those that are known to be refused are taken")
    wrong, taken = {}, 0
    for place, cells in enumerate(projects):
        cells = [cell for cell in cells if cell not in known]
        if cells and not are_taken(world, cells, target):
            cells = taken_of(world, cells, target)
        typical = ("", "@1", "@7")[(number + place) % 3]
        wrong.update(wrong_cells(world, cells, target, f"cells_{place}", typical))
        taken += len(cells)
    print(f"         {taken} of {sum(map(len, projects))} cells are taken, in {len(projects)} projects; number {number}",
          flush=True)
    check(taken and not wrong, "\n".join(f"{shown(cell)}: {text}" for cell, text in wrong.items()))


def case_in_turn_cpp(world):
    are_right(world, projects_of(cells_in_turn(turn()) + ALWAYS), "cpp", turn())


def case_in_turn_cuda(world):
    are_right(world, projects_of(cells_in_turn(turn() + 1) + ALWAYS), "cuda", turn())


def case_refusals(world):
    """What is refused of all cells; long."""
    found = {target: refusals(world, all_cells(), target) for target in TARGETS}
    if os.environ.get("VIEWS_BLESS") == "1":
        write_refusals(found)
    for target, cells in found.items():
        check_refusals(cells, target)


def shard(place, target):
    return lambda world: are_right(world, projects_of(all_cells())[place::SHARDS], target, place)


for _place in range(SHARDS):
    for _target in TARGETS:
        globals()[f"case_all_{_target}_{_place}"] = shard(_place, _target)


if __name__ == "__main__":
    run_main(globals())

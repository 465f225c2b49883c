#!/usr/bin/env python3
"""`gcompile diff`: what a change of a model does to its project, and figures that may not grow.

    diff.py --gcompile GCOMPILE [CASE...]
"""

import json
import shutil

from content_names import network
from support import check, contains, equal, manifest, run_main


def projects(world, *flags):
    """The network without and with a pool near its head, compiled."""
    for name, has_pool in (("before", False), ("after", True)):
        path = world.path(f"{name}.onnxtxt")
        path.write_text(network(has_pool).text(), encoding="utf-8")
        world.run([world.gcompile, path, "-q", "--name", "net", "-o", world.path(name), *flags])


def told(world, *words, status=0):
    return json.loads(world.run([world.gcompile, "diff", *words, "--json"], status=status, cwd=world.folder).stdout)


def figures(answer):
    return {figure["name"]: (figure["before"], figure["after"]) for figure in answer["figures"]}


def case_a_layer_more(world):
    """The layer is named first, and it is all that is new; the figures are those of the manifests."""
    projects(world)
    answer = told(world, "before", "after")
    added = [call for call in answer["calls"] if call["change"] == "added"]
    equal(len(added), 1, "calls that are new")
    equal(answer["calls"][0], added[0], "the first call")
    contains(added[0]["after"]["origins"], "MaxPool")
    equal(added[0]["before"], None, "what it was")
    equal([call for call in answer["calls"] if call["change"] == "removed"], [], "calls that are gone")
    before, after = (manifest(world.path(name), "net") for name in ("before", "after"))
    found = figures(answer)
    equal(found["calls"], (len(before["layers"]), len(after["layers"])), "calls")
    equal(found["arena"], (before["arena_bytes"], after["arena_bytes"]), "arena")
    equal(found["weights"], (before["weights_bytes"], after["weights_bytes"]), "weights")
    equal(found["flash"], (None, None), "flash of what was not built")
    changed = {file["path"]: (file["removed"], file["added"]) for file in answer["files"]}
    check(changed["src/net.cpp"][1] >= 1 and changed["src/net.cpp"][1] <= 20, f"lines of the schedule: {changed}")
    text = world.run([world.gcompile, "diff", "before", "after"], cwd=world.folder).stdout
    contains(text, "\ncalls\n  + step ")
    contains(text, "MaxPool")
    # The other way round it is gone.
    equal(told(world, "after", "before")["calls"][0]["change"], "removed", "the other way round")


def case_the_same(world):
    projects(world)
    shutil.copytree(world.path("before"), world.path("copy"))
    answer = told(world, "before", "copy", "--max-regression", "ram=0,stack=0,weights=0,calls=0,kernels=0,time=0,state=0%")
    equal((answer["calls"], answer["files"], answer["exceeded"]), ([], [], []), "of a copy")
    check(all(a == b for a, b in figures(answer).values()), "figures of a copy")


def case_names_that_count(world):
    """Nodes whose names count what was exported before them are the same calls."""
    projects(world)
    text = network(False).text()
    world.path("renamed.onnxtxt").write_text(text.replace("deep", "layer"), encoding="utf-8")
    world.run([world.gcompile, "renamed.onnxtxt", "-q", "--name", "net", "-o", "renamed"], cwd=world.folder)
    equal(told(world, "before", "renamed")["calls"], [], "calls")


def case_sizes(world):
    """Schedules are compared with those of the same sizes."""
    path = world.path("open.onnxtxt")
    path.write_text('<ir_version: 8, opset_import: ["" : 17]>\n'
                    "open (float[batch, 3] x) => (float[batch, 3] y) { y = Relu (x) }\n", encoding="utf-8")
    for name, sizes in (("few", "1,2"), ("more", "1,2,4")):
        world.run([world.gcompile, path, "-q", "--name", "net", "-o", world.path(name), "--dim", f"batch={sizes}"])
    calls = told(world, "few", "more")["calls"]
    equal([(call["change"], call["after"] and call["after"]["function"].startswith("relu")) for call in calls],
          [("added", True)], f"calls: {calls}")


def case_budgets(world):
    projects(world)
    before, after = (manifest(world.path(name), "net")["arena_bytes"] for name in ("before", "after"))
    calls = told(world, "before", "after", "--max-regression", "calls=1,arena=100%")
    equal(calls["exceeded"], [], "within budgets")
    calls = told(world, "before", "after", "--max-regression", "calls=0,time=0%", status=3)
    equal([(each["figure"], each["growth"], each["most"]) for each in calls["exceeded"] if each["figure"] == "calls"],
          [("calls", 1, 0)], "a call more")
    equal({each["figure"] for each in calls["exceeded"]}, {"calls", "time"}, "what grows")
    text = world.run([world.gcompile, "diff", "before", "after", "--max-regression=calls=0"], status=3, cwd=world.folder).stderr
    contains(text, "error: calls grows by 1, of 0 at most")
    check(before <= after, f"arenas of {before} and {after}")
    # What becomes smaller is no regression.
    equal(told(world, "after", "before", "--max-regression", "calls=0,time=0%")["exceeded"], [], "smaller")


def case_built(world):
    """Code and flash of projects that were built in their folders."""
    projects(world)
    for name in ("before", "after"):
        world.run(["cmake", "-S", world.path(name), "-B", world.path(name) / "build", "-DCMAKE_BUILD_TYPE=Release"])
        world.run(["cmake", "--build", world.path(name) / "build", "--target", "net"])
    answer = told(world, "before", "after", "--max-regression", "flash=50%")
    code, flash, weights = (figures(answer)[name] for name in ("code", "flash", "weights"))
    check(0 < code[0] < code[1], f"code of {code}")
    check(all(whole >= part + weight for whole, part, weight in zip(flash, code, weights)), f"flash of {flash}")


def case_wrong(world):
    projects(world)
    for words, status, message in ((("before",), 2, "needs the folders of two projects"),
                                   (("before", "after", "after"), 2, "takes two projects"),
                                   (("before", "nowhere"), 4, "is no project of gcompile"),
                                   (("before", "after", "--max-regression", "ran=0"), 2, "there is no figure 'ran'"),
                                   (("before", "after", "--max-regression", "ram"), 2, "not of the form FIGURE=MOST"),
                                   (("before", "after", "--max-regression", "ram=-1"), 2, "not of the form FIGURE=MOST"),
                                   (("before", "after", "--max-regression", "ram=0,ram=1"), 2, "is given twice"),
                                   (("before", "after", "--max-regression", "flash=0"), 2, "was not built")):
        done = world.run([world.gcompile, "diff", *words], status=status, cwd=world.folder)
        contains(done.stderr, message)
    path = world.path("after") / "meta" / "net.json"
    right = path.read_text(encoding="utf-8")
    for old, new, message in (('"layers": [', '"layers": 3, "others": [', "a member is of another kind"),
                              ('"path": "CMakeLists.txt"', '"path": "../../CMakeLists.txt"', "names a file outside of it")):
        check(old in right, f"{old} is not in the manifest")
        path.write_text(right.replace(old, new, 1), encoding="utf-8")
        contains(world.run([world.gcompile, "diff", "before", "after"], status=4, cwd=world.folder).stderr, message)


if __name__ == "__main__":
    run_main(globals())

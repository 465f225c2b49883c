#!/usr/bin/env python3
"""Outputs of which only data knows the size: what the interface says of them, and runs that choose none, some and all.

    counted.py --gcompile GCOMPILE [CASE...]
"""

from support import check, contains, equal, manifest, read_npy, run_main, write_npy

HEAD = '<ir_version: 9, opset_import: ["" : 18]>\n'
# The rows that a run chooses, through a layer; where they are; their sum; and the tensor with the rows put back negated.
ROWS = HEAD + """rows (float[5,3] x, bool[5] m, float[3,2] w) => (float[n,2] y, int64[1,n] at, float[3] sum, float[5,3] back)
<int64[1] first = {0}> {
  at = NonZero(m)
  places = Transpose(at)
  chosen = GatherND(x, places)
  product = MatMul(chosen, w)
  y = Relu(product)
  sum = ReduceSum<keepdims = 0>(chosen, first)
  negated = Neg(chosen)
  back = ScatterND(x, places, negated)
}
"""
MODELS = {
    "rows": ROWS,
    "words": HEAD + """words (int64[9] x) => (int64[n] y, int64[n] at, int64[9] which, int64[n] often) {
  y, at, which, often = Unique<sorted = 0>(x)
}
""",
    "best": HEAD + """best (float[4,6] x, int64[1] k) => (float[4,n] y, int64[4,n] at) {
  y, at = TopK(x, k)
}
""",
    "open": HEAD + """open (float[batch,4] x, bool[batch] m) => (float[n,4] y, float[n,1] mean) {
  y = Compress<axis = 0>(x, m)
  mean = ReduceMean<axes = [1]>(y)
}
""",
}
X = [0.5 * i - 3 for i in range(15)]
W = [1.0, -1.0, 0.5, 2.0, -0.25, 1.0]


def expected(mask):
    chosen = [i for i, holds in enumerate(mask) if holds]
    rows = [X[3 * i:3 * i + 3] for i in chosen]
    products = [[sum(row[k] * W[2 * k + j] for k in range(3)) for j in range(2)] for row in rows]
    back = [-value if mask[i // 3] else value for i, value in enumerate(X)]
    return {"y": [max(0.0, value) for row in products for value in row], "at": chosen,
            "sum": [sum(row[k] for row in rows) for k in range(3)], "back": back, "y_count": [len(chosen)]}


def written(world, name):
    path = world.path(f"{name}.onnxtxt")
    path.write_text(MODELS[name])
    return path


def case_interface(world):
    """There is an output that says how many, and every place that shows an output says that it does."""
    told = world.compile(written(world, "rows"), world.path("rows"))
    contains(told, "W0208", "'y_count' says how many there are")
    project = world.path("rows")
    outputs = manifest(project, "rows")["outputs"]
    equal([each["name"] for each in outputs], ["y", "at", "sum", "back", "y_count"], "outputs")
    equal([each.get("counted") for each in outputs],
          [{"axis": 0, "output": 4}, {"axis": 1, "output": 4}, None, None, None], "counted")
    contains((project / "include" / "rows" / "rows.h").read_text(), "filled for the first `y_count` of axis 0")


def case_runs(world):
    """None, some and all; what the program writes has as many as there are."""
    world.compile(written(world, "rows"), world.path("rows"), "--name", "rows")
    runner = world.runner(world.path("rows"), "rows")
    x, w = write_npy(world.path("x.npy"), "float32", [5, 3], X), write_npy(world.path("w.npy"), "float32", [3, 2], W)
    for mask in ([0] * 5, [0, 1, 0, 1, 1], [1] * 5, [1, 0, 0, 0, 0]):
        m = write_npy(world.path("m.npy"), "bool", [5], mask)
        for flags in ((), ("--whole",)):
            world.run([runner, x, m, w, "--output-dir", world.path("out"), *flags])
            for index, (name, values) in enumerate(expected(mask).items()):
                found = list(read_npy(world.path("out") / f"{index}_{name}.npy"))
                room = 2 * 5 if name == "y" else 5 if name == "at" else len(values)
                equal(len(found), room if flags else len(values), f"elements of {name}")
                check(all(abs(a - b) < 1e-5 for a, b in zip(found, values)), f"{name} of {mask}: {found}, expected {values}")


def case_verified(world):
    """On both targets, and with an open size."""
    for name in MODELS:
        flags = ["--dim", "batch=1..6"] if name == "open" else []
        for target in (["--target", "cpp"], ["--target", "cuda", "--emulate"]):
            world.run([world.gcompile, "verify", written(world, name), "-q", *flags, *target])
    world.run([world.gcompile, "verify", written(world, "rows"), "-q", "--layers"])


if __name__ == "__main__":
    run_main(globals())

#!/usr/bin/env python3
"""What --json prints: every command and every outcome, held to docs/gcompile.schema.json, and figures that agree; and
manifests, held to docs/manifest.schema.json.

    json_answers.py --gcompile GCOMPILE [CASE...]
"""

import json
import shlex
import shutil

from support import EXAMPLES, EXAMPLE_FLAGS, ROOT, check, contains, equal, manifest, run_main

SCHEMA = json.loads((ROOT / "docs" / "gcompile.schema.json").read_text(encoding="utf-8"))
MANIFEST = json.loads((ROOT / "docs" / "manifest.schema.json").read_text(encoding="utf-8"))
CLASSIFIER = EXAMPLES / "shapes_classifier"
DENOISER = EXAMPLES / "streaming_denoiser"
TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None), "object": dict,
         "array": list}
KNOWN = {"type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "$ref", "minimum",
         "description"}
OPEN = """<ir_version: 8, opset_import: ["" : 17]>
open (float[batch, 3] x) => (float[batch, 4] y) { y = Relu (x) }
"""


def is_of(value, name):
    return isinstance(value, TYPES[name]) and not (isinstance(value, bool) and name in ("integer", "number"))


def complaints(value, schema, place="answer", of=SCHEMA):
    """What of `value` is not as the part of JSON Schema that the schema `of` uses says."""
    if "$ref" in schema:
        return complaints(value, of["$defs"][schema["$ref"].rsplit("/", 1)[1]], place, of)
    unknown = set(schema) - KNOWN - {"$schema", "title", "$defs"}
    check(not unknown, f"the schema uses {unknown}, which this test does not read")
    found = []
    if "anyOf" in schema:
        tried = [complaints(value, each, place, of) for each in schema["anyOf"]]
        found += min(tried, key=len)
    if "enum" in schema and not any(value == each and isinstance(value, bool) == isinstance(each, bool)
                                    for each in schema["enum"]):
        found.append(f"{place} is {value!r}, not one of {schema['enum']}")
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(is_of(value, name) for name in names):
            return found + [f"{place} is no {names}: {value!r}"]
    if "minimum" in schema and isinstance(value, (int, float)) and value < schema["minimum"]:
        found.append(f"{place} is {value}, less than {schema['minimum']}")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found += [f"{place}.{key} is missing" for key in schema.get("required", []) if key not in value]
        for key, inner in value.items():
            rest = schema.get("additionalProperties", True)
            if key not in known and rest is False:
                found.append(f"{place}.{key} is not in the schema")
            elif key in known or isinstance(rest, dict):
                found += complaints(inner, known.get(key, rest), f"{place}.{key}", of)
    if isinstance(value, list):
        for i, inner in enumerate(value):
            found += complaints(inner, schema.get("items", {}), f"{place}[{i}]", of)
    return found


def answer(world, *words, status=0):
    done = world.run([world.gcompile, *words, "--json"], status=status, cwd=world.folder)
    told = json.loads(done.stdout)
    found = complaints(told, SCHEMA)
    check(not found, f"{words}: {found}\n{done.stdout[:2000]}")
    equal(told["exit_code"], status, f"exit code of {words}")
    equal(bool(told["errors"]), status != 0, f"errors of {words}")
    for error in told["errors"]:
        check(error["message"], f"{words}: an error without a message")
        contains(done.stderr, error["message"].splitlines()[0])
    return told


def case_the_schema_holds_answers(_world):
    """The test of the test: what is missing, extra or of another type is found."""
    good = {"gcompile": "1.0.0", "command": "check", "exit_code": 2, "errors": [], "warnings": []}
    equal(complaints(good, SCHEMA), [], "complaints")
    for bad in ({**good, "exit_code": 5}, {**good, "exit_code": True}, {**good, "errors": {}}, {**good, "more": 1},
                {key: value for key, value in good.items() if key != "gcompile"},
                {**good, "errors": [{"code": "E0001"}]}, {**good, "exit_code": 0}, []):
        check(complaints(bad, SCHEMA), f"{bad} passes")


def case_outcomes(world):
    model = CLASSIFIER / "model.onnx"
    world.path("open.onnxtxt").write_text(OPEN)
    for words, status in (((), 2), (("verfy",), 2), ((model,), 2), ((model, "-o", "x", "-O9"), 2),
                          (("verify", model, "--emulate"), 2), (("ops", "Sofmax"), 2), (("explain",), 2),
                          (("explain", "E9999"), 2), (("report",), 2), (("report", ".", "-o", "x"), 2),
                          (("diff", "x"), 2), (("diff", ".", "."), 4),
                          (("report", ".", "-o", "x", "--sizes-from", "."), 4), (("help", "nothing"), 2), (("missing.onnx", "-o", "x"), 4),
                          ((model, "-o", "/usr"), 4), (("check", "open.onnxtxt"), 1), (("opt", "open.onnxtxt"), 1),
                          (("verify", model, "--data", "nowhere"), 4)):
        told = answer(world, *words, status=status)
        equal(sorted(told), ["command", "errors", "exit_code", "gcompile", "warnings"], f"members of {words}")
    equal(answer(world, "check", "open.onnxtxt", status=1)["errors"][0]["code"], "E0401", "code")
    # A warning is told once, whatever the number of sizes.
    declared = answer(world, "check", "open.onnxtxt", "--ports")
    check(declared["inputs"][0]["shape"][0] == "batch" and declared["outputs"][0]["element"] == "float32", f"{declared}")
    told = answer(world, "check", "open.onnxtxt", "--dim", "batch=1,2,4")
    equal([warning["code"] for warning in told["warnings"]], ["W0205"], "warnings")
    equal(told["schedules"], 3, "schedules")
    check({"Conv", "Relu", "LSTM", "If"} <= {op["name"] for op in answer(world, "ops")["operators"]}, "operators")
    conv, = answer(world, "ops", "Conv")["operators"]
    check({"group", "strides"} <= {attribute["name"] for attribute in conv["attributes"]}, "attributes of Conv")
    equal([code["code"] for code in answer(world, "explain", "e0401", "W0205")["codes"]], ["E0401", "W0205"], "codes")
    world.compile(model, world.path("reported"), "--name", "m")
    layers = manifest(world.path("reported"), "m")["layers"]
    world.path("layers.json").write_text(json.dumps({"layers": [{"layer": 0, "kernel": layers[0]["function"], "min_ms": 1}]}))
    told = answer(world, "report", "reported", "--layers", "layers.json", "-o", "page.html")
    equal((told["name"], told["output"]), ("m", "page.html"), "report")
    world.compile(model, world.path("again"), "--name", "m", "-O0")
    told = answer(world, "diff", "reported", "again", "--max-regression", "kernels=1000000")
    check(told["calls"] and told["files"], "two levels of optimisation are the same")
    told = answer(world, "diff", "reported", "again", "--max-regression", "calls=0", status=3)
    equal(told["exceeded"][0]["figure"], "calls", "what grew too much")
    told = answer(world, "opt", model)
    check("Conv" in told["graph"] and told["passes"] and told["rules"], "opt")


def case_figures(world):
    """Equal to header, manifest and files, and to the line for scripts."""
    for example in (CLASSIFIER, DENOISER):
        flags = EXAMPLE_FLAGS.get(example.name, [])
        told = answer(world, example / "model.onnx", "-o", "out", "--name", "m", "--force", *flags)
        checked = answer(world, "check", example / "model.onnx", "--name", "m", *flags)
        same = ("gcompile", "exit_code", "errors", "warnings", "name", "target")
        for key in checked:
            if key != "command":
                equal(checked[key], told[key], f"{key} of check")
        project = world.path("out")
        listed = manifest(project, "m")
        header = (project / "include" / "m" / "m.h").read_text(encoding="utf-8")
        equal(listed["version"], told["gcompile"], "version")
        for key in ("arena", "state", "weights", "instance"):
            equal(listed[f"{key}_bytes"], told[f"{key}_bytes"], f"{key}_bytes")
            contains(header, f"#define M_{key.upper()}_BYTES {max(told[f'{key}_bytes'], 1)}u")  # C has no array of 0
        for key in ("nodes_imported", "nodes_optimised", "kernels", "calls", "arena_lower_bound", "bare_first_fit",
                    "scratch_bytes", "multiply_adds"):
            equal(listed["statistics"][key], told[key], key)
        equal(sum(path.is_file() for path in project.rglob("*")), told["files"], "files")
        line = world.run([world.gcompile, example / "model.onnx", "-o", "out", "--name", "m", *flags],
                         cwd=world.folder).stdout
        check(line.startswith("summary: ") and line.count("\n") == 1, line)
        summary = dict(word.split("=", 1) for word in shlex.split(line)[1:])
        for key, value in told.items():
            if isinstance(value, int) and key != "changed" or key in same[4:]:
                equal(summary[key], str(value), f"{key} of the summary")
        equal((summary["changed"], summary["errors"]), ("0", "0"), "changed, errors")
        shutil.rmtree(project)


def case_verify(world):
    told = answer(world, "verify", DENOISER / "model.onnx", "--layers", "--cases", "2", "-q")
    check(told["ok"] and told["kernels"] and told["tensors"] == len(told["findings"]) > 0, "verify is right")
    data = world.path("data")
    shutil.copytree(CLASSIFIER / "test_data_set_0", data)
    expected = bytearray((data / "output_0.pb").read_bytes())
    expected[-1] ^= 0x40  # the exponent of the last float
    (data / "output_0.pb").write_bytes(expected)
    told = answer(world, "verify", CLASSIFIER / "model.onnx", "--data", "data", status=3)
    check(not told["ok"] and told["off"] == 1, "verify finds the difference")
    equal([error["code"] for error in told["errors"]], ["E0701"], "codes")


# Projects whose manifests have together every member of the schema.
PROJECTS = [
    ("shapes_classifier", []), ("tiny_attention", ["--target", "cuda"]), ("tiny_attention", ["--weight-bits", "8"]),
    ("tiny_attention", ["--weight-bits", "4", "--weights", "array", "--pack", "arduino"]),
    ("shapes_classifier", ["--target", "cuda", "--arch", "sm_80,sm_90a", "--precision", "fp16"]),
    ("streaming_denoiser", EXAMPLE_FLAGS["streaming_denoiser"]), ("storyteller", EXAMPLE_FLAGS["storyteller"]),
    ("storyteller", [*EXAMPLE_FLAGS["storyteller"], "--target", "cuda"]),
]


def case_manifests(world):
    """As the schema says, which says nothing that no project has; and each member of the top is told in words."""
    open_model = world.path("open.onnxtxt")
    open_model.write_text(OPEN.replace("[batch, 4]", "[batch, 3]"))
    seen = set()
    for i, (example, flags) in enumerate([*PROJECTS, (None, ["--dim", "batch=1,2,4"])]):
        model = EXAMPLES / example / "model.onnx" if example else open_model
        world.compile(model, world.path(str(i)), "--name", "m", *flags)
        found = complaints(manifest(world.path(str(i)), "m"), MANIFEST, "manifest", MANIFEST)
        check(not found, f"{example} {flags}: {found[:5]}; what the manifest has, docs/manifest.schema.json tells")
        seen |= set(manifest(world.path(str(i)), "m"))
    equal(sorted(set(MANIFEST["properties"]) - seen), [], "members of the schema that no manifest has")
    for name, schema in MANIFEST["properties"].items():
        check(schema.get("description"), f"docs/manifest.schema.json does not say what {name} is")
    bad = {**manifest(world.path("0"), "m"), "more": 1, "arena_bytes": "1"}
    equal(len(complaints(bad, MANIFEST, "manifest", MANIFEST)), 2, "complaints of a manifest that is wrong twice")


if __name__ == "__main__":
    run_main(globals())

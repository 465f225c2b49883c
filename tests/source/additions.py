#!/usr/bin/env python3
"""The additions that docs/adding_*.md and docs/manifest.md show are real: each applies to a copy of the tree, takes no more
files and lines than it is said to, compiles, and does what the document says.

    additions.py SOURCE_DIR BUILD_DIR CLANG_FORMAT [all]

An addition is what stands in the blocks of kind `diff` behind a line `<!-- addition NAME -->`. All are applied, and their
sources compiled and linked with the libraries of BUILD_DIR, in which the target gcompile is up to date; then the gates of
tests/source and each addition's trials run in the copy. Of the unit tests that additions change, one in turn is built, by the
number of the commit; with `all`, or GCOMPILE_LONG_TESTS=1, each is. Exit: 0 all hold, 1 something does not.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "project"))
from json_answers import MANIFEST  # noqa: E402
from support import turn  # noqa: E402

# What an addition may take: files, lines that begin with +. Of an operator a script writes one more, its row of operators.md.
MOST = {"operator": (4, 97), "rules": (2, 23), "family": (5, 120), "manifest": (2, 2)}
MARKED = re.compile(r"<!-- addition (\w+) -->\n+((?:```diff\n(?:(?!```).*\n)*```\n+)+)")
BLOCK = re.compile(r"```diff\n((?:(?!```).*\n)*)```")
HEADER = '<ir_version: 8, opset_import: ["" : 21]>\n'


class Failure(Exception):
    """What does not hold."""


def run(command, cwd=None, status=0):
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, errors="replace", check=False,
                          stdin=subprocess.DEVNULL)
    if done.returncode != status:
        told = (done.stdout + done.stderr)[-4000:]
        raise Failure(f"{' '.join(map(str, command))[:300]}\nexit code {done.returncode}, expected {status}\n{told}")
    return done.stdout + done.stderr


def additions_of(text):
    """{name: patch} of a document."""
    return {name: "".join(BLOCK.findall(blocks)) for name, blocks in MARKED.findall(text)}


def size_of(patch):
    """How many files a patch touches, and how many lines it adds."""
    lines = patch.splitlines()
    return len({line for line in lines if line.startswith("+++ ")}), sum(line[:1] == "+" and line[:4] != "+++ " for line in lines)


def try_rules():
    text = "<!-- addition some -->\n```diff\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n x\n+y\n```\n\n```diff\n+z\n```\n```diff\n+w\n```\n"
    assert size_of(additions_of(text)["some"]) == (1, 3), additions_of(text)
    assert not additions_of("```diff\n+x\n```\n")


class Copy:
    """The tree in a folder of its own, always the same, so that a compiler's cache knows it again."""

    def __init__(self, root, build, clang_format):
        self.root, self.build, self.clang_format = root, build, clang_format
        self.tree, self.made = build / "additions" / "tree", build / "additions" / "made"
        shutil.rmtree(build / "additions", ignore_errors=True)
        self.made.mkdir(parents=True)
        self.changed, self.cache = [], [shutil.which("ccache")] if shutil.which("ccache") else []
        names = run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"]).splitlines()
        for name in names:
            if (root / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, self.tree / name)
        run(["git", "init", "-q", self.tree])

    def apply(self, name, patch):
        """As `git apply` does, whatever the numbers of lines."""
        path = self.made / f"{name}.patch"
        path.write_text(patch)
        try:
            run(["git", "apply", "--check", path], cwd=self.tree)
        except Failure as failure:
            raise Failure(f"the addition '{name}' that a document shows does not apply any more: make the same change by hand in a "
                          f"copy, and put the new `git diff -U1` into the document\n{failure}") from None
        run(["git", "apply", path], cwd=self.tree)
        self.changed += [line[6:] for line in patch.splitlines() if line.startswith("+++ ")]

    def command_of(self, source, target=""):
        """How BUILD_DIR compiles a source, for a target; one that is new is compiled as another of its folder."""
        commands = json.loads((self.build / "compile_commands.json").read_text())
        by_name = {pathlib.Path(each["file"]).relative_to(self.root).as_posix(): each for each in commands
                   if pathlib.Path(each["file"]).is_relative_to(self.root) and f"{target}.dir/" in each["command"]}
        folder = source.rpartition("/")[0]
        known = source if source in by_name else next(name for name in sorted(by_name) if name.rpartition("/")[0] == folder)
        # What is included lies in the copy, what was generated in the build folder.
        words = [word if str(self.build) in word else word.replace(str(self.root), str(self.tree))
                 for word in shlex.split(by_name[known]["command"])]
        target = self.made / (source.replace("/", "_") + ".o")
        words[words.index("-o") + 1] = str(target)
        words[words.index("-c") + 1] = str(self.tree / source)
        return self.cache + words, target

    def compiled(self, source, target=""):
        command, made = self.command_of(source, target)
        run(command, cwd=self.build)
        return made

    def sources(self):
        """The sources of the tool that changed, or include what changed."""
        tables = {name for name in self.changed if name.endswith(".def")}
        found = {name for name in self.changed if name.endswith(".cc") and not name.startswith("tests/")}
        for name in tables:
            folder = name.partition("/")[0]
            found |= {path.relative_to(self.tree).as_posix() for path in (self.tree / folder).rglob("*.cc")
                      if f'#include "{name}"' in path.read_text()}
        return sorted(found)

    def embedded(self):
        """The object with templates and runtime headers."""
        listed = sorted(path.relative_to(self.tree).as_posix() for top in ("templates", "runtime_stub", "docs/errors")
                        for path in (self.tree / top).rglob("*") if path.is_file())
        (self.made / "embedded.list").write_text("".join(f"{name}\n" for name in listed))
        source, target = self.made / "embedded.S", self.made / "embedded.o"
        run(["cmake", f"-DLIST={self.made / 'embedded.list'}", f"-DOUTPUT={source}", "-P", self.tree / "cmake" / "embed_files.cmake"])
        command, _ = self.command_of("codegen/emit/emit.cc")
        compiler = next(word for word in command if not word.endswith("ccache"))
        run([compiler, f"-I{self.tree}", "-c", source, "-o", target])
        return target

    def link(self, target, path, objects=()):
        """As BUILD_DIR links a target, with what changed before the libraries, which then are not asked for it."""
        last = run(["ninja", "-C", self.build, "-t", "commands", target]).splitlines()[-1]
        words = shlex.split(next(part for part in last.split(" && ") if f" -o {path} " in part))
        words[words.index("-o") + 1] = str(self.made / target)
        rooms = {word.rpartition("libgcompile_")[2].removesuffix(".a") for word in words if word.endswith(".a")}
        first = next((i for i, word in enumerate(words) if word.endswith(".a")), len(words))
        if objects:
            words = [word for word in words[:first] if not word.endswith(".cc.o")] + words[first:]
            first = next((i for i, word in enumerate(words) if word.endswith(".a")), len(words))
        changed = [path for room, path in self.objects if room in rooms]
        run([*words[:first], *objects, *changed, *words[first:]], cwd=self.build)
        return self.made / target

    def compile(self):
        """All of the tool that changed: self.objects, each with its room."""
        self.objects = [(source.partition("/")[0], self.compiled(source)) for source in self.sources()]
        if any(name.startswith(("templates/", "runtime_stub/")) for name in self.changed):
            self.objects.append(("embedded", self.embedded()))

    def gates(self, tool):
        """What `ctest -L source` looks at; operators.md is written first, as the document says."""
        gates = self.tree / "tests" / "source"
        run([sys.executable, self.tree / "scripts" / "list_operators.py", tool])
        for gate, *more in (("layering",), ("operator_names",), ("printed_text",), ("references",), ("facts",), ("program_keys",)):
            run([sys.executable, gates / f"{gate}.py", self.tree, *more])
        run([sys.executable, gates / "operator_tests.py", tool, self.tree])
        run([self.clang_format, "--dry-run", "--Werror", *[name for name in self.changed if name.endswith((".cc", ".h"))]],
            cwd=self.tree)

    def unit_test(self, source, path, words):
        """A test with the additions, built as `path` in BUILD_DIR, run with arguments."""
        target = pathlib.Path(path).name
        run([self.link(target, path, [self.compiled(source, target)]), *words])


def model(copy, name, text):
    path = copy.made / f"{name}.onnxtxt"
    path.write_text(HEADER + text)
    return path


def try_operator(copy, tool):
    product = model(copy, "product", "g (float[2,3,2] a, float[3,2] b) => (float[2,3,2] y) { y = com.microsoft.ComplexMul(a, b) }")
    for target in ((), ("--target", "cuda", "--emulate")):
        run([tool, "verify", product, "-q", *target])
    chosen = model(copy, "chosen", "g (float[n,1,2] a, float[m,2] b) => (float[n,m,2] y) { y = com.microsoft.ComplexMul(a, b) }")
    run([tool, "verify", chosen, "-q", "--dim", "n=1..9", "--dim", "m=2..70"])
    for row in (copy.tree / "docs" / "operators.md", copy.tree / "tests" / "conformance" / "edge_models.onnxtxt"):
        if "ComplexMul" not in row.read_text():
            raise Failure(f"{row} does not name the operator")


def try_rules_of(copy, tool):
    graph = "g (float[9] x) => (float[9] y) { t = Floor(x) u = Ceil(t) v = Abs(u) y = Relu(v) }"
    told = run([tool, "opt", model(copy, "rules", graph)])
    kept = run([tool, "opt", copy.made / "rules.onnxtxt", "--disable-pass", "relu-of-abs"])
    if "Relu(" not in kept or "Ceil(" in kept:
        raise Failure(f"a rule that is disabled:\n{kept}")
    if "Abs(" not in told or "Ceil(" in told or "Relu(" in told:
        raise Failure(f"the rules do not fire:\n{told}")


def try_family(copy, tool):
    pool = model(copy, "pool", "g (float[2,40,7,5] x) => (float[2,40,1,1] y) { y = AveragePool<kernel_shape = [7, 5]>(x) }")
    run([tool, "verify", pool, "-q", "--kernel", "y=pool.whole", "--threads", "3"])
    many = model(copy, "many", "g (float[n,40,7,5] x) => (float[n,40,1,1] y) { y = MaxPool<kernel_shape = [7, 5]>(x) }")
    run([tool, "verify", many, "-q", "--kernel", "y=pool.whole", "--dim", "n=1..5"])
    large = model(copy, "large", "g (float[1,40,h,5] x) => (float[1,40,k,1] y) { y = MaxPool<kernel_shape = [7, 5]>(x) }")
    told = run([tool, large, "-o", copy.made / "large", "--kernel", "y=pool.whole", "--dim", "h=7..9@7"], status=1)
    if "sizes that only a run knows" not in told:
        raise Failure(told)
    told = run([tool, pool, "-o", copy.made / "pool", "--explain", "y"])
    if "-> pool.whole" not in told:
        raise Failure(f"pool.whole is not the first of its price:\n{told}")
    part = model(copy, "part", "g (float[2,40,8,5] x) => (float[2,40,2,1] y) { y = AveragePool<kernel_shape = [7, 5]>(x) }")
    refused = run([tool, part, "-o", copy.made / "part", "--kernel", "y=pool.whole"], status=1)
    if "the window is not the whole image" not in refused:
        raise Failure(refused)


def try_manifest(copy, tool):
    run([tool, copy.tree / "examples" / "shapes_classifier" / "model.onnx", "--name", "m", "-o", copy.made / "project", "-q"])
    told = json.loads((copy.made / "project" / "meta" / "m.json").read_text())
    schema = json.loads((copy.tree / "docs" / "manifest.schema.json").read_text())
    new = set(told) - set(MANIFEST["properties"])
    if len(new) != 1 or not new <= set(schema["properties"]):
        raise Failure(f"members that are new in the manifest: {new}")


TRIALS = {"operator": try_operator, "rules": try_rules_of, "family": try_family, "manifest": try_manifest}
UNIT_TESTS = [("tests/unit/ir/operators_map_test.cc", "tests/unit/operators_map_test", ["--gtest_filter=ComplexMul*"]),
              ("tests/unit/passes/rule_values_test.cc", "tests/unit/rule_values_test", []),
              ("tests/kernels/pool_test.cc", "tests/kernels/pool_test_32", ["--gtest_filter=Pool.Whole*"])]


def main():
    try_rules()
    root, build, clang_format = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
    found = {}
    for path in sorted((root / "docs").glob("*.md")):
        found.update(additions_of(path.read_text(encoding="utf-8")))
    assert set(found) == set(MOST), f"additions: {sorted(found)}, expected {sorted(MOST)}"
    copy = Copy(root, build, clang_format)
    try:
        for name, patch in found.items():
            files, lines = size_of(patch)
            print(f"{name}: {files} files, {lines} lines")
            if files > MOST[name][0] or lines > MOST[name][1]:
                raise Failure(f"{name} takes more than {MOST[name]}: adding things has become dearer, or its document longer")
            copy.apply(name, patch)
        copy.compile()
        tool = copy.link("gcompile", "gcompile")
        copy.gates(tool)
        for name, trial in TRIALS.items():
            trial(copy, tool)
        everything = "all" in sys.argv[4:] or os.environ.get("GCOMPILE_LONG_TESTS") == "1"
        there = (build / "build.ninja").read_text()  # with the preset for developers, no kernels are tested
        for i, test in enumerate(UNIT_TESTS):
            if f"build {test[1]}: " in there and (everything or turn() % len(UNIT_TESTS) == i):
                copy.unit_test(*test)
    except Failure as failure:
        print(failure)
        return 1
    shutil.rmtree(build / "additions")
    print("additions apply, compile and work")
    return 0


if __name__ == "__main__":
    sys.exit(main())

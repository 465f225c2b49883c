#!/usr/bin/env python3
"""report.html: one page without anything from elsewhere, that everybody can read; `gcompile report` adds to it.

    report.py --gcompile GCOMPILE [CASE...]
"""

import html.parser
import json
import re
import subprocess
import sys

from onnx_bytes import FLOAT, INT64, Graph
from support import EXAMPLES, ROOT, SHARED_MODELS, SKIPPED, Skip, World, check, contains, equal, manifest, run_main

STYLE = (ROOT / "templates" / "report" / "style.j2").read_text(encoding="utf-8")
# What is read on what; WCAG 2.1, 1.4.3.
TEXTS = [("ink", "page"), ("ink", "panel"), ("faint", "page"), ("faint", "panel"), ("link", "page"), ("link", "panel"), ("ink", "tile")]
# What is told apart from what by its colour; 1.4.11.
SHAPES = [(name, "page") for name in ("k0", "k1", "k2", "k3", "k4", "bar", "mark", "focus", "line")]


def palettes(style):
    """The colours of each `:root {...}`, those of the first where another one names none."""
    found = []
    for block in re.findall(r":root \{([^}]*)\}", style):
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block))
        found.append({**(found[0] if found else {}), **colours})
    return found


def luminance(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def too_faint(style):
    found = []
    for number, palette in enumerate(palettes(style)):
        for pairs, least in ((TEXTS, 4.5), (SHAPES, 3.0)):
            found += [f"palette {number}: {a} on {b} has {contrast(palette[a], palette[b]):.2f}" for a, b in pairs
                      if contrast(palette[a], palette[b]) < least]
    return found


def case_contrast(_world):
    equal(round(contrast("#000000", "#ffffff"), 2), 21, "black on white")
    equal(len(palettes(STYLE)), 3, "palettes: light, dark, paper")
    equal(too_faint(STYLE), [], "what is too faint")
    check(too_faint(STYLE.replace("--faint: #57606a", "--faint: #9aa0a6")), "a grey that is too light is not found")


class Page(html.parser.HTMLParser):
    """What a screen reader is told, and what a browser would fetch."""

    VOID = {"meta", "input", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.fetched, self.unnamed, self.headings = [], [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if tag == "a":
            self.links.append(attrs["href"])
        self.fetched += [f"{tag} {name}" for name in ("src", "srcset", "data", "xlink:href") if name in attrs]
        if tag == "link":
            self.fetched.append(tag)
        if "tabindex" in attrs and not attrs.get("aria-label"):
            self.unnamed.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def handle_endtag(self, tag):
        check(self.open and self.open.pop() == tag, f"</{tag}> closes nothing")


def check_page(path):
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    equal(page.open, [], "open elements")
    equal(len(page.ids), len(set(page.ids)), "different ids")
    equal([link for link in page.links if link[0] != "#" or link[1:] not in page.ids], [], "links that lead nowhere")
    equal(page.fetched, [], "what is fetched")
    equal(page.unnamed, [], "stops of the tabulator without a name")
    equal(page.headings[0], 1, "first heading")
    check(all(after <= before + 1 for before, after in zip(page.headings, page.headings[1:])), "a heading leaves a level out")
    equal(re.findall(r"https?://[^\s\"'<)]+|url\(|@import", text), [], "addresses")
    contains(text, "Content-Security-Policy", "default-src 'none'")
    return text


def case_parts(world: World):
    """Each resource has a table and a picture, and their figures are those of the manifest."""
    for name, flags in (("shapes_classifier", []), ("tiny_attention", ["--target", "cuda"]), ("shapes_classifier", ["--dim", "batch=1,2"])):
        project = world.example(name, f"{name}_{len(flags)}", "--name", "net", *flags) if "--dim" not in flags else None
        if project is None:
            project = world.path("choices")
            model = world.path("model.onnxtxt")
            model.write_text('<ir_version: 8, opset_import: ["" : 17]>\nopen (float[batch, 8] x) => (float[batch, 8] y) '
                             '{ a = Relu (x) b = Tanh (a) y = Softmax <axis = 1> (b) }\n', encoding="utf-8")
            world.compile(model, project, "--name", "net", *flags)
        text = check_page(project / "report.html")
        told = manifest(project, "net")
        layers = told["layers"] if "layers" in told else told["schedules"][-1]["layers"]
        check(all(layer["picoseconds"] > 0 for layer in layers), f"{name}: layers without a prediction")
        for layer in layers:
            contains(text, f"<code>{layer['functions'][0]}</code>")
        contains(text, "aria-label=\"map of the arena\"", "What is alive at the peak, step", "aria-label=\"time by step\"", "aria-label=\"calls in their order\"")


def case_lanes(world: World):
    """The edges of the graph: who reads what."""
    graph = Graph("diamond")
    graph.input("x", FLOAT, [4, 8])
    graph.constant("axis", INT64, [1], [0])
    # Sums along different axes, which nothing fuses.
    graph.node("Softmax", ["x"], ["a"], "top", axis=1)
    graph.node("Softmax", ["a"], ["b"], "left", axis=0)
    graph.node("CumSum", ["a", "axis"], ["c"], "right")
    graph.node("Concat", ["b", "c"], ["y"], "joined", axis=0)
    graph.node("Softmax", ["y"], ["z"], "last", axis=0)
    graph.output("z", FLOAT, [8, 8])
    model = world.path("diamond.onnx")
    model.write_bytes(graph.model())
    project = world.path("diamond")
    world.compile(model, project)
    text = check_page(project / "report.html")
    reads = {}
    for step, row in re.findall(r'<tr id="step-run-(\d+)">(.*?)</tr>', text, re.DOTALL):
        reads[int(step)] = ([int(word) for word in re.findall(r'href="#step-run-(\d+)"', row)], re.findall("<li>(.*?)</li>", row))
    steps = {node: step for step, (_, nodes) in reads.items() for node in re.findall("'(\\w+)'", " ".join(nodes).replace("&#39;", "'"))}
    equal(reads[steps["top"]][0], [], "what the first reads")
    equal(reads[steps["left"]][0], [steps["top"]], "what the left one reads")
    equal(reads[steps["right"]][0], [steps["top"]], "what the right one reads")
    equal(sorted(reads[steps["last"]][0]), sorted([steps["left"], steps["right"]]), "what the last one reads")


def case_measured(world: World):
    """Times and sizes of a build join the page; what is not of this project is refused."""
    project = world.example("shapes_classifier", "net", "--name", "net", "--cpu", "x86-64-v3")
    layers = manifest(project, "net")["layers"]
    times = {"threads": 1, "repeat": 3, "run_min_ms": 1.5, "layers_min_ms": 1.25, "bound_ms": 0.5,
             "layers": [{"layer": i, "kernel": layer["function"], "min_ms": 0.0625 * (i + 1), "bound_ms": 0.01}
                        for i, layer in enumerate(layers)]}
    file = world.path("layers.json")
    file.write_text(json.dumps(times), encoding="utf-8")
    objects = world.library_objects(project, "net", flags=("-O1",))
    library = world.path("built") / "libnet.a"
    library.parent.mkdir()
    world.run(["ar", "qc", library, *objects])
    before = (project / "report.html").read_bytes()
    page = world.path("measured.html")
    world.run([world.gcompile, "report", project, "--layers", file, "--sizes-from", library.parent, "-o", page])
    equal((project / "report.html").read_bytes(), before, "the project's own page")
    text = check_page(page)
    contains(text, "A run took 1.50 ms at least (1 thread, 3 runs)", "62.5 us", "Code of a build")
    sizes = dict(re.findall(r'<tr><td><code>([^<]*)</code></td>\s*<td>kernel</td>\s*<td class="n" data-v="(\d+)">', text))
    check(set(sizes) <= {layer["function"] for layer in layers} and sizes, f"kernels with sizes: {sizes}")
    # binutils reads the same.
    symbols = world.run(["nm", "--print-size", "--demangle", library]).stdout
    for kernel, size in sizes.items():
        told = sum(int(line.split()[1], 16) for line in symbols.splitlines()
                   if re.search(rf"^[0-9a-f]+ [0-9a-f]+ [tTwW] .*\b{kernel}\b", line) and ".cold" not in line)
        check(0 < told <= int(size), f"{kernel}: {size} bytes, nm says {told}")
    one = world.path("one.html")
    world.run([world.gcompile, "report", project, "--sizes-from", objects[0], "-o", one])
    check_page(one)
    for words, said in (((project, "--layers", file), "no output file is given"), ((project, "-o", one), "there is nothing to add"),
                        ((world.folder, "--layers", file, "-o", one), "is no project of gcompile"),
                        ((project, "--layers", project / "README.md", "-o", one), "is not what was expected"),
                        ((project, "--sizes-from", world.folder, "-o", one), "there is no libnet.a"),
                        ((project, "--sizes-from", file, "-o", one), "it is no ELF file")):
        contains(world.run([world.gcompile, "report", *words], status=None).stderr, said)
    times["layers"][0]["kernel"] = "another"
    file.write_text(json.dumps(times), encoding="utf-8")
    contains(world.run([world.gcompile, "report", project, "--layers", file, "-o", one], status=4).stderr, "has no times of this project's layers")
    for cut in (3, 19, 63, 64, 200, library.stat().st_size // 2):
        (world.path("cut.a")).write_bytes(library.read_bytes()[:cut] if cut % 2 else objects[0].read_bytes()[:cut])
        done = world.run([world.gcompile, "report", project, "--sizes-from", world.path("cut.a"), "-o", one], status=None)
        check(done.returncode in (0, 4), f"a file cut to {cut} bytes: {done.stderr}")


def case_browser(world: World):
    """Wide and narrow, light and dark, in chromium."""
    pages = []
    for name in ("mcunet", "gtcrn_stream"):
        model = SHARED_MODELS / name / "model.onnx"
        if model.is_file():
            world.compile(model, world.path(name), "--name", name)
            pages.append(world.path(name) / "report.html")
    if not pages:
        pages.append(world.example("shapes_classifier", "classifier") / "report.html")
    pages.append(world.example("tiny_attention", "transformer", "--target", "cuda", "--name", "transformer") / "report.html")
    script = ROOT / "scripts" / "screenshots.py"
    done = subprocess.run([sys.executable, script, world.path("pictures"), *pages], capture_output=True, text=True, check=False, timeout=600)
    print(done.stdout)
    if done.returncode == SKIPPED:
        raise Skip(done.stdout.strip())
    equal(done.returncode, 0, f"findings:\n{done.stdout}{done.stderr}")
    equal(len(list(world.path("pictures").glob("*.png"))), 4 * len(pages), "pictures")
    # The look itself finds what is wrong.
    wrong = world.path("wrong.html")
    text = pages[-1].read_text(encoding="utf-8")
    wrong.write_text(text.replace("--faint: #57606a", "--faint: #c0c0c0").replace("</header>", "<p style='width: 1500px'>wide</p></header>"),
                     encoding="utf-8")
    done = subprocess.run([sys.executable, script, world.path("pictures"), wrong], capture_output=True, text=True, check=False, timeout=600)
    equal(done.returncode, 1, "exit code of a page that is wrong")
    contains(done.stdout, "contrast of", "beyond the window")
    wrong.write_text(text.replace("{ min-width: 9em; }", "{ max-width: 2em; }"), encoding="utf-8")
    done = subprocess.run([sys.executable, script, world.path("pictures"), wrong], capture_output=True, text=True, check=False, timeout=600)
    equal(done.returncode, 1, "exit code of a page with a column that is too narrow")
    contains(done.stdout, "a column of a few letters")


if __name__ == "__main__":
    run_main(globals())

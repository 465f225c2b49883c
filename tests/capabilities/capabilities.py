#!/usr/bin/env python3
"""What gcompile does of every technique that its founding documents name, and how many kernels small graphs become.

    capabilities.py --gcompile GCOMPILE [rows|graphs|page]
    capabilities.py --gcompile GCOMPILE --write

rows: each row of rows.py holds: structure of the emitted project, and the same values behind every pass.
graphs: graphs.py's graphs are as many kernels as they were, or fewer; those that are fewer want the number there changed.
page: docs/capabilities.md is what --write writes. Exit: 0 all hold, 1 something does not.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import graphs
import rows

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "capabilities.md"
STATES = {"whole": "whole", "partly": "in part", "open": "open"}


class Project:
    """A model compiled by gcompile: its steps and its text."""

    def __init__(self, gcompile, folder, text, options):
        self.model = folder / "model.onnxtxt"
        self.model.write_text(text, encoding="utf-8")
        self.gcompile, self.options, self.folder = gcompile, list(options), folder / "project"
        self.run("compile", self.model, "-o", self.folder, "--name", "m")
        self.manifest = json.loads((self.folder / "meta" / "m.json").read_text(encoding="utf-8"))
        # A project of bounds has its steps in the schedule of its sizes.
        self.layers = self.manifest.get("layers") or self.manifest["schedules"][0]["layers"]

    def run(self, command, *words):
        done = subprocess.run([str(word) for word in (self.gcompile, command, *words, "-q", *self.options)],
                              capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            raise AssertionError(f"gcompile {command}: exit {done.returncode}: {done.stderr[:400]}")
        return done.stdout

    @property
    def calls(self):
        return len(self.layers)

    def families(self):
        return [layer["family"] for layer in self.layers]

    def text(self):
        return "".join(path.read_text(encoding="utf-8") for path in sorted((self.folder / "src").iterdir())
                       if path.suffix in (".cpp", ".cu", ".h"))

    def values_hold(self):
        """The graph gives the same values behind every pass."""
        self.run("check", self.model, "--verify-passes")


def compiled(gcompile, text, options, judge):
    with tempfile.TemporaryDirectory(prefix="gcompile_capability_") as folder:
        project = Project(gcompile, pathlib.Path(folder), text, options)
        project.values_hold()
        return judge(project)


def in_parallel(function, items):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, items))


def check_rows(gcompile):
    numbers = [row.number for row in rows.ROWS]
    problems = [f"row {number} has no test" for number in range(1, 62) if numbers.count(number) != 1]

    def problem_of(pair):
        row, case = pair
        try:
            compiled(gcompile, case.text, case.options, case.holds)
        except (AssertionError, KeyError, subprocess.TimeoutExpired) as failure:
            return f"row {row.number}, {case.what}: {failure}"
        return ""

    problems += [f"row {row.number} has no test" for row in rows.ROWS if not row.cases and not row.refused]
    problems += in_parallel(problem_of, [(row, case) for row in rows.ROWS for case in row.cases])
    for row in rows.ROWS:
        for words in row.refused:
            done = subprocess.run([gcompile, *words], capture_output=True, text=True, timeout=60, check=False)
            if done.returncode != 2 or not any(told in done.stderr for told in (f"no option '{words[-2]}'", "takes one model")):
                problems.append(f"row {row.number}: `gcompile {' '.join(words)}` is known; the row is no longer open")
    return [problem for problem in problems if problem]


def count_kernels(gcompile, graph):
    return compiled(gcompile, graph.text, graph.options, lambda project: project.calls)


def check_graphs(gcompile):
    problems = []
    for kind, table in graphs.KINDS.items():
        counts = in_parallel(lambda graph: count_kernels(gcompile, graph), table)
        ideal = sum(count <= graph.ideal for count, graph in zip(counts, table))
        print(f"         {kind}: {ideal} of {len(table)} are the kernels that one would write by hand", flush=True)
        problems += [f"{kind}, {graph.name}: {count} kernels, {graph.today} before"
                     for count, graph in zip(counts, table) if count != graph.today]
    return problems


def page():
    count = {state: sum(row.state == state for row in rows.ROWS) for state in STATES}
    lines = ["# Capabilities", "",
             "The techniques that this project's founding documents name, and what gcompile does of each. Written by",
             "`tests/capabilities/capabilities.py --write`; `ctest -L capabilities` tests every row: structure of the emitted",
             f"project and values. {count['whole']} rows are whole, {count['partly']} hold in part, {count['open']} are open.",
             "", "| # | Technique | Known from | State | What gcompile does |", "|---|---|---|---|---|"]
    lines += [f"| {row.number} | {row.technique} | {row.source} | {STATES[row.state]} | {row.does} |"
              for row in sorted(rows.ROWS, key=lambda row: row.number)]
    lines += ["", "## Kernels of small graphs", "",
              "Each graph of `tests/capabilities/graphs.py`: the kernels that one would write by hand, and those that",
              "gcompile writes.", "", "| Kind | Graphs | As by hand | More |", "|---|---|---|---|"]
    for kind, table in graphs.KINDS.items():
        more = [f"{graph.name} {graph.today} for {graph.ideal}" for graph in table if graph.today > graph.ideal]
        lines.append(f"| {kind} | {len(table)} | {len(table) - len(more)} | {', '.join(more)} |")
    return "\n".join(lines) + "\n"


def check_page(_):
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return [] if written == page() else ["docs/capabilities.md is not what `capabilities.py --write` writes"]


CHECKS = {"rows": check_rows, "graphs": check_graphs, "page": check_page}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gcompile", required=True)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("checks", nargs="*", choices=[[], *CHECKS])
    arguments = parser.parse_args()
    if arguments.write:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    problems = [problem for name in arguments.checks or CHECKS for problem in CHECKS[name](arguments.gcompile)]
    print("\n".join(problems or ["all hold"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

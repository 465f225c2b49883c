#!/usr/bin/env python3
"""Slow tests take turns where all of them would take too long: a run has every fast test, and the slow ones of its turn.

    scripts/test_turns.py choose BUILD TURN   prints what `ctest -I` is given in the folder BUILD, and on standard error
                                              which tests rest
    scripts/test_turns.py update CTEST.xml    writes what `ctest --output-junit` wrote into tests/turns.txt, of tests that ran
                                              two at a time; those that did not run stay as they are there

TURN is any number; it counts modulo TURNS. Each line of tests/turns.txt is the seconds and the name of a test, the slowest
first. Turns take as long as each other. Tests of the sources always run. Exit: 0 done, 1 not.
"""

import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

LIST = pathlib.Path(__file__).resolve().parent.parent / "tests" / "turns.txt"
TURNS = 6
SLOW = 6  # seconds


def slow_tests():
    """{name: seconds}, the slowest first."""
    lines = (line.split() for line in LIST.read_text(encoding="utf-8").splitlines())
    return {name: int(seconds) for seconds, name in lines}


def deal(slow):
    """{name: turn}: each test to the turn that has the least to do so far."""
    sums, turn_of = [0] * TURNS, {}
    for name, seconds in slow.items():
        turn_of[name] = sums.index(min(sums))
        sums[turn_of[name]] += seconds
    return turn_of


def choose(build, turn):
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    names = [test["name"] for test in json.loads(shown.stdout)["tests"]]
    slow = slow_tests()
    turn_of = deal(slow)
    rests = [name for name in names if turn_of.get(name, turn % TURNS) != turn % TURNS]
    print(",0,,", ",".join(str(1 + i) for i, name in enumerate(names) if name not in set(rests)), sep="")
    print(f"turn {turn % TURNS + 1} of {TURNS}: {len(names) - len(rests)} tests run, and {len(rests)} that take "
          f"{sum(slow[name] for name in rests)} s rest until their turn:", *rests, file=sys.stderr)


def update(results):
    slow = slow_tests() if LIST.exists() else {}
    for case in xml.etree.ElementTree.parse(results).getroot().iter("testcase"):
        if case.get("status") in ("run", "fail") and not case.get("name").startswith("source."):
            slow[case.get("name")] = round(float(case.get("time")))
    lines = sorted((-seconds, name) for name, seconds in slow.items() if seconds >= SLOW)
    LIST.write_text("".join(f"{-seconds} {name}\n" for seconds, name in lines), encoding="utf-8")


def main():
    match sys.argv[1:]:
        case ["choose", build, turn] if turn.isdigit():
            choose(build, int(turn))
        case ["update", results]:
            update(results)
        case _:
            print(__doc__, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

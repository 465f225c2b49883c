#!/usr/bin/env python3
"""Slow tests take turns where all of them would take too long: a run has every fast test, and the slow ones of its turn.

    scripts/test_turns.py fast BUILD            prints what `ctest -I` is given in the folder BUILD to run all but the slow
    scripts/test_turns.py choose BUILD TURN SECONDS CTEST.xml
                                                the same of the slow tests of a turn, and on standard error which of them
                                                rest; as many turns as it takes for one of them to end within SECONDS on
                                                this machine, at most 16, of which CTEST.xml tells how fast it is: what
                                                `ctest --output-junit` wrote of the others
    scripts/test_turns.py update CTEST.xml...   writes the times of these tests into tests/turns.txt; those that did not
                                                run stay as they are there

All times are of tests that run two at a time. TURN is any number; it counts modulo the turns. Each line of tests/turns.txt
is the seconds and the name of a test, the slowest first. Turns take as long as each other. Tests of the sources always run.
Exit: 0 done, 1 not.
"""

import json
import math
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

LIST = pathlib.Path(__file__).resolve().parent.parent / "tests" / "turns.txt"
TURNS = 16  # at most
SLOW = 6  # seconds
KNOWN = 2  # seconds: shorter times tell little of a machine
AT_A_TIME = 2
OF_FIXED_TIME = {"fuzz.mutations"}  # whatever the machine


def known_times():
    """{name: seconds}, the slowest first."""
    lines = (line.split() for line in LIST.read_text(encoding="utf-8").splitlines())
    return {name: int(seconds) for seconds, name in lines}


def slow_tests():
    return {name: seconds for name, seconds in known_times().items() if seconds >= SLOW and not name.startswith("source.")}


def times_in(results):
    """{name: seconds} of the tests that ran."""
    cases = xml.etree.ElementTree.parse(results).getroot().iter("testcase")
    return {case.get("name"): float(case.get("time")) for case in cases if case.get("status") in ("run", "fail")}


def names_in(build):
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    return [test["name"] for test in json.loads(shown.stdout)["tests"]]


def print_choice(names, chosen):
    print(",0,,", ",".join(str(1 + i) for i, name in enumerate(names) if name in chosen), sep="")


def deal(slow, turns):
    """{name: turn}: each test to the turn that has the least to do so far."""
    sums, turn_of = [0] * turns, {}
    for name, seconds in slow.items():
        turn_of[name] = sums.index(min(sums))
        sums[turn_of[name]] += seconds
    return turn_of


def slowness(results):
    """How many times as long as the list says a test takes here."""
    known, took = known_times(), times_in(results)
    both = [name for name in took if name in known and name not in OF_FIXED_TIME]
    return sum(took[name] for name in both) / sum(known[name] for name in both) if both else 1


def choose(build, turn, seconds, results):
    names, slow, factor = names_in(build), slow_tests(), slowness(results)
    total = sum(slow[name] for name in names if name in slow)
    turns = min(TURNS, max(1, math.ceil(total * factor / AT_A_TIME / max(seconds, 1))))
    turn_of = deal(slow, turns)
    rests = {name for name in names if turn_of.get(name, turn % turns) != turn % turns}
    print_choice(names, {name for name in names if name in slow} - rests)
    print(f"turn {turn % turns + 1} of {turns}, where tests take {factor:.2f} times as long as tests/turns.txt says: "
          f"{len(rests)} tests of {sum(slow[name] for name in rests)} s in that list rest until their turn:", *sorted(rests),
          file=sys.stderr)


def update(files):
    known = known_times() if LIST.exists() else {}
    for results in files:
        known.update({name: round(seconds) for name, seconds in times_in(results).items()})
    lines = sorted((-seconds, name) for name, seconds in known.items() if seconds >= KNOWN)
    LIST.write_text("".join(f"{-seconds} {name}\n" for seconds, name in lines), encoding="utf-8")


def main():
    match sys.argv[1:]:
        case ["fast", build]:
            names, slow = names_in(build), slow_tests()
            print_choice(names, set(names) - set(slow))
        case ["choose", build, turn, seconds, results] if turn.isdigit():
            choose(build, int(turn), int(seconds), results)
        case ["update", *files] if files:
            update(files)
        case _:
            print(__doc__, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

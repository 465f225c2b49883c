#!/usr/bin/env python3
"""Prints what was skipped and the closing line of scripts/test.sh.

    scripts/summarise_tests.py STATUS CTEST.xml...

CTEST.xml is what `ctest --output-junit` wrote, STATUS how ctest ended, the worst of all runs. A GoogleTest case that skips itself counts as
skipped, beside the executable that passed. Exit: 0 nothing failed, 1 something did.
"""

import re
import sys
import xml.etree.ElementTree

CASE = re.compile(r"^(.*)\n\[  SKIPPED \] (\S+) \(\d+ ms\)$", re.MULTILINE)
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def cases_in(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        # Tests may print what XML does not allow.
        return xml.etree.ElementTree.fromstring(CONTROL.sub("?", file.read())).iter("testcase")


def main():
    status, *paths = sys.argv[1:]
    try:
        cases = [case for path in paths for case in cases_in(path)]
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        print(f"test: no results: {error}")
        print("0 passed, 1 failed")
        return 1
    passed, failed, skipped = 0, [], []
    for case in cases:
        name, output = case.get("name"), case.findtext("system-out") or ""
        if case.get("status") == "run":
            passed += 1
            skipped += [f"{name} {test}: {reason.split('Skipped')[-1].strip()}" for reason, test in CASE.findall(output)]
        elif case.get("status") == "disabled":
            skipped.append(f"{name}: disabled")
        elif case.find("skipped") is not None and case.get("status") == "notrun" and "SKIP" in (
                case.find("skipped").get("message") or ""):
            skipped.append(f"{name}: {last_line(output)}")
        else:
            failed.append(name)
    for line in skipped:
        print(f"skipped  {line}")
    for name in failed:
        print(f"FAILED   {name}")
    # ctest knows of failures that the file does not tell, such as a test that it could not start.
    failures = len(failed) if failed or status == "0" else 1
    print(f"{passed} passed, {failures} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

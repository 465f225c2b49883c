"""The real models of ../shared/models, and gcompile on them."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77  # CTest's SKIP_RETURN_CODE

# Foreign domains whose operators gcompile knows.
KNOWN_DOMAINS = {"", "ai.onnx", "com.microsoft"}


def models_folder():
    return pathlib.Path(os.environ.get("GCOMPILE_MODELS", ROOT / ".." / "shared" / "models"))


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def is_long():
    return os.environ.get("GCOMPILE_LONG_TESTS") == "1"


def in_turn(names, parts):
    """Every `parts`-th name, others with each commit; all in long tests. Says which ones wait."""
    if is_long():
        return names
    status, commits, _ = run(["git", "-C", str(ROOT), "rev-list", "--count", "HEAD"])
    first = int(commits) % parts if status == 0 else 0
    print(f"in turn, with other commits: {', '.join(name for i, name in enumerate(names) if i % parts != first)}")
    return names[first::parts]


def main_suite(folder):
    """Names that INDEX.md marks with a star."""
    rows = re.findall(r"^\| (\w+)\* \|", (folder / "INDEX.md").read_text(encoding="utf-8"), re.MULTILINE)
    if not rows:
        sys.exit(f"{folder}/INDEX.md marks no model with a star")
    return sorted(rows)


def all_models(folder):
    return sorted(path.parent.name for path in folder.glob("*/model.onnx"))


def chosen(names, subset, everything=main_suite):
    """The folder of models, and which of them a test takes: `names` where there are any, else `everything` in long tests and
    `subset` in others. Skips where there are none."""
    folder = models_folder()
    if not (folder / "INDEX.md").exists():
        skip(f"no models in {folder}")
    return folder, names or (everything(folder) if is_long() else subset)


def has_expected_outputs(model):
    return any(model.glob("test_data_set_*/output_0.pb")) or (model / "outputs.npz").exists()


def compiler():
    """CXX if it is set, through ccache where there is one."""
    name = os.environ.get("CXX", "c++")
    return f"ccache {name}" if shutil.which("ccache") and "ccache" not in name else name


def run(command, timeout=900):
    result = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    return result.returncode, result.stdout, result.stderr


def first_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "no message"


def verify(gcompile, model, data, options):
    """What is wrong, or an empty string, and the parsed report."""
    command = [gcompile, "verify", str(model), "--json", "-q", "--cxx", compiler(), *options]
    if data is not None:
        command += ["--data", str(data)]
    try:
        status, out, err = run(command)
    except subprocess.TimeoutExpired:
        return "took longer than 15 minutes", {}
    try:
        report = json.loads(out)
    except json.JSONDecodeError:
        return f"exit {status}: {first_line(err)}", {}
    if status == 0:
        return "", report
    if "errors" in report:
        first = report["errors"][0]["message"] if report["errors"] else first_line(err)
        more = f" (and {len(report['errors']) - 1} more)" if len(report["errors"]) > 1 else ""
        return f"exit {status}: {first}{more}", report
    problems = list(report["failures"])
    for finding in report["findings"]:
        if not finding["ok"]:
            what = finding.get("mismatch") or (
                f"{finding['wrong']} elements, worst {finding['worst_ratio']} of the tolerance at {finding['at']}: "
                f"{finding['actual']} instead of {finding['expected']}")
            problems.append(f"{finding['case']} {finding['value']}: {what}")
    return f"exit {status}: " + "; ".join(problems[:3]), report

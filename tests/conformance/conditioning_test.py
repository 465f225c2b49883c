#!/usr/bin/env python3
"""`gcompile verify` raises no false alarm on real models.

    conditioning_test.py GCOMPILE [MODEL...]

Each model is built once and verified on five random inputs. Random inputs are harder than a model's own data: they
reach cancellations that pictures do not. Without MODEL a few models; with GCOMPILE_LONG_TESTS=1 the main suite.
Exit: 0 right, 1 not, 77 there are no models.
"""

import sys

import real_models
import threads_test

SEEDS = 5
SUBSET = ["acasxu_1_1", "deeploy_cct_opset20", "dtln_2"]


def main():
    gcompile, *names = sys.argv[1:]
    folder, names = real_models.chosen(names, SUBSET)
    alarms = 0
    for name in names:
        problem, report = real_models.verify(gcompile, folder / name / "model.onnx", None,
                                             ["--cases", str(SEEDS), *threads_test.shape_options(folder / name)])
        findings = report.get("findings", [])
        doubtful = [finding for finding in findings if finding.get("ill_conditioned")]
        print(f"{name}: {problem or f'{len(findings)} outputs are right, {len(doubtful)} by their own noise'}", flush=True)
        for finding in doubtful:
            print(f"  {finding['case']} {finding['value']}: {finding['worst_ratio']} of the tolerance, noise {finding['noise_ratio']}")
        alarms += bool(problem)
    print(f"{alarms} of {len(names)} models with false alarms")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())

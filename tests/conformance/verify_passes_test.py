#!/usr/bin/env python3
"""No pass changes what real models compute: `gcompile opt --verify-passes`, with rewrites of tier reassociate and without,
at given sizes, and of some at several within bounds.

    verify_passes_test.py GCOMPILE [MODEL...]

Without MODEL a few small models; with GCOMPILE_LONG_TESTS=1 the main suite. Exit: 0 right, 1 not, 77 there are no models.
"""

import subprocess
import sys

import real_models
import threads_test

SUBSET = ["acasxu_1_1", "gesture_point_history_lstm", "mlperf_tiny_kws_dscnn_int8"]
LIMIT_S = 3600
WITHIN_BOUNDS = {"tribuo_tinybert": ["--dim", "batch=1..3", "--dim", "sequence=1..12"],
                 "tract_byte_bidi_lstm": ["--dim", "batch=1..2", "--dim", "length=1..20"]}


def main():
    gcompile, *names = sys.argv[1:]
    folder, names = real_models.chosen(names, SUBSET)
    runs = [(name, threads_test.shape_options(folder / name)) for name in names]
    runs += [(name, sizes) for name, sizes in WITHIN_BOUNDS.items() if (folder / name).exists()]
    failed = 0
    for name, sizes in runs:
        for flags in ([], ["--exact"]):
            command = [gcompile, "opt", str(folder / name / "model.onnx"), "--verify-passes", *flags, *sizes]
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
                                  timeout=LIMIT_S)
            failed += done.returncode != 0
            said = [line for line in done.stderr.splitlines() if "compared" in line or line.startswith("error")]
            print(f"{name} {' '.join(flags)}: exit {done.returncode}; {'; '.join(said)}", flush=True)
    print(f"{failed} of {2 * len(runs)} runs with a pass that differs")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

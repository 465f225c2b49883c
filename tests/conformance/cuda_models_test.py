#!/usr/bin/env python3
"""The main suite with --target cuda, run on the CPU by the emulator, compared with the expected outputs.

    cuda_models_test.py GCOMPILE [MODEL...]

The tolerances are those of the CPU. Exit: 0 right, 1 not, 77 there are no models.
"""

import sys
import time

import real_models


def main():
    gcompile, *names = sys.argv[1:]
    folder = real_models.models_folder()
    if not (folder / "INDEX.md").exists():
        real_models.skip(f"no models in {folder}")
    names = names or real_models.main_suite(folder)
    failures = 0
    for name in names:
        started = time.monotonic()
        problem, _ = real_models.verify(gcompile, folder / name / "model.onnx", folder / name / "test_data_set_0",
                                        ["--target", "cuda", "--emulate", "--name", "m"])
        failures += bool(problem)
        print(f"{name}: {problem or 'verifies'}, {time.monotonic() - started:.0f} s", flush=True)
    print(f"{len(names) - failures} of {len(names)} models verify on CUDA")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

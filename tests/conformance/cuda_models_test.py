#!/usr/bin/env python3
"""The main suite with --target cuda, run on the CPU by the emulator, compared with the expected outputs.

    cuda_models_test.py GCOMPILE [MODEL...]

Without MODEL half of them, which half the number of commits says; with GCOMPILE_LONG_TESTS=1 all. In float32 the
tolerances are those of the CPU. Then a few models in lower precisions, with the tolerances of those (docs/cuda.md).
Exit: 0 right, 1 not, 77 there are no models.
"""

import sys
import time

import real_models


# A transformer, transposed convolutions, quantised numbers as floats.
REDUCED = [("deeploy_cct_opset20", "fp16"), ("deeploy_autoencoder2d", "bf16"), ("micro_kws_m_static_qdq", "tf32")]


def main():
    gcompile, *names = sys.argv[1:]
    folder = real_models.models_folder()
    if not (folder / "INDEX.md").exists():
        real_models.skip(f"no models in {folder}")
    runs = [(name, "fp32") for name in names or real_models.in_turn(real_models.main_suite(folder), 2)]
    if not names:
        runs += REDUCED
    failures = 0
    for name, precision in runs:
        started = time.monotonic()
        problem, _ = real_models.verify(gcompile, folder / name / "model.onnx", folder / name / "test_data_set_0",
                                        ["--target", "cuda", "--emulate", "--precision", precision, "--name", "m"])
        failures += bool(problem)
        print(f"{name}, {precision}: {problem or 'verifies'}, {time.monotonic() - started:.0f} s", flush=True)
    print(f"{len(runs) - failures} of {len(runs)} models verify on CUDA")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

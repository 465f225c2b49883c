#!/usr/bin/python3
"""Trains the models of the examples with NumPy and writes them as ONNX, with sample inputs and expected outputs.

    /usr/bin/python3 examples/make_models.py [shapes_classifier] [streaming_denoiser] [tiny_attention] [storyteller] [--out DIR]

Needs Debian's python3-numpy and python3-onnx, nothing else; some minutes in all on one core, less with
libopenblas0. The training data is drawn by the script, seeds are fixed and one thread computes, so a
second run on the same machine writes the same bytes. Another version of NumPy, of the BLAS behind it, or another
processor may round sums differently and so train slightly different weights: that is why the results are committed.

The expected outputs are not a runtime's: they are the forward pass in float64, with the model's own weights.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import importlib
import pathlib
import time

MODELS = ("shapes_classifier", "streaming_denoiser", "tiny_attention", "storyteller")


def main():
    home = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help="one of " + ", ".join(MODELS) + "; all by default")
    parser.add_argument("--out", type=pathlib.Path, default=home, help="where the model folders are written")
    arguments = parser.parse_args()
    for name in arguments.models or MODELS:
        if name not in MODELS:
            parser.error(f"no model is called {name}")
        print(name, flush=True)
        start = time.process_time()
        importlib.import_module(f"training.{name}").make(arguments.out / name)
        print(f"  {time.process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()

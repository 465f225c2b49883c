#!/usr/bin/env python3
"""Times emitted projects against ONNX Runtime, interleaved in one run, one thread.

usage: compare_peers.py --gcompile BUILD/gcompile [--models DIR] [--rounds R] [--threads T] [--markdown FILE] [MODEL...]

Every model is compiled, built for this machine and run in rounds: emitted program, ONNX Runtime, emitted program, ...
Minimum and median over all runs are printed with the ratio of the minima, beside a peak-FMA calibration of the same
run. Needs onnxruntime and numpy (scripts/install_packages.sh bench). Inputs are the first test data set of a model.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAIN_SUITE = """alphazero_santorini basic_pitch_nmp blazeface_front deeploy_cct_opset20 dtln_2 gtcrn_stream
libtashkeel_tract magika_standard_v2_1 mcunet mlperf_tiny_ic_resnet8_int8 nanodet_m_320 oww_melspectrogram
ppocr_v3_det shufflenet_v2_int8 silero_vad_v6 sinet_softmax super_resolution_10 tract_byte_bidi_lstm
ultraface_rfb320 yunet_n_dynamic""".split()
CONVOLUTIONAL = set("""alphazero_santorini basic_pitch_nmp blazeface_front mcunet mlperf_tiny_ic_resnet8_int8
nanodet_m_320 oww_melspectrogram ppocr_v3_det shufflenet_v2_int8 sinet_softmax super_resolution_10 ultraface_rfb320
yunet_n_dynamic""".split())

CALIBRATION = r"""
#include <cstdio>
#include <ctime>
typedef float V __attribute__((vector_size(GC_BYTES)));
static double now() { timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
int main() {
  double best = 0;
  for (int round = 0; round < 20; ++round) {
    V a[12], m = {}, c = {};
    m += 0.999f; c += 1e-3f;
// Without the unrolling here the array stays in memory, and the loop below measures stores.
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) a[i] = m;
    const long n = 200000;
    const double t = now();
    for (long k = 0; k < n; ++k) {
#pragma GCC unroll 12
      for (int i = 0; i < 12; ++i) { a[i] = a[i] * m + c; asm volatile("" : "+v"(a[i])); }
    }
    const double gflops = n * 12.0 * 2 * (GC_BYTES / 4) / (now() - t) / 1e9;
    if (gflops > best) best = gflops;
  }
  std::printf("%.1f\n", best);
}
"""

# TensorProto data types that the models' inputs use.
DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16,
          11: np.float64}


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def read_tensor(path):
    """TensorProto -> array, without the onnx package: dims, data_type, raw_data and the packed typed fields."""
    data, at = path.read_bytes(), 0
    dims, dtype, raw, typed = [], None, None, []
    while at < len(data):
        key, at = read_varint(data, at)
        field, wire = key >> 3, key & 7
        if wire == 0:
            value, at = read_varint(data, at)
            if field == 1:
                dims.append(value)
            elif field == 2:
                dtype = DTYPES[value]
            elif field in (5, 7):
                typed.append(value)
        elif wire == 5:
            typed.append(struct.unpack_from("<f", data, at)[0])
            at += 4
        elif wire == 1:
            at += 8
        else:
            size, at = read_varint(data, at)
            blob = data[at:at + size]
            at += size
            if field == 9:
                raw = blob
            elif field == 1:
                p = 0
                while p < len(blob):
                    value, p = read_varint(blob, p)
                    dims.append(value)
            elif field == 4:
                typed += struct.unpack(f"<{len(blob) // 4}f", blob)
            elif field in (5, 7):
                p = 0
                while p < len(blob):
                    value, p = read_varint(blob, p)
                    typed.append(value - (1 << 64) if value >> 63 else value)
    array = np.frombuffer(raw, dtype) if raw is not None else np.array(typed, dtype)
    return array.reshape(dims)


def calibrate(folder):
    source = folder / "calibrate.cc"
    source.write_text(CALIBRATION)
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    width = 64 if "avx512f" in flags else 32 if "avx2" in flags else 16
    subprocess.run(["g++", "-O2", "-march=native", f"-DGC_BYTES={width}", str(source), "-o", str(folder / "calibrate")],
                   check=True)
    return lambda: float(subprocess.run([str(folder / "calibrate")], check=True, capture_output=True, text=True).stdout)


def bench_model(args, model, folder):
    model_file = args.models / model / "model.onnx"
    data = args.models / model / "test_data_set_0"
    inputs = [read_tensor(data / f"input_{k}.pb") for k in range(len(list(data.glob("input_*.pb"))))]
    options = ort.SessionOptions()
    options.intra_op_num_threads = args.threads
    options.inter_op_num_threads = 1
    session = ort.InferenceSession(str(model_file), options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    feed = dict(zip(names, inputs))
    project = folder / model
    shapes = [f for name, x in feed.items() for f in ("--shape", f"{name}:{'x'.join(map(str, x.shape))}") if x.ndim]
    subprocess.run([str(args.gcompile), str(model_file), "-o", str(project), "--name", "m", "-q", *shapes], check=True)
    build = folder / f"{model}_build"
    subprocess.run(["cmake", "-S", str(project), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release"], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(build), "-j2"], check=True, stdout=subprocess.DEVNULL)
    runner = next(p for p in build.rglob("m_run") if p.is_file())
    files = []
    for k, array in enumerate(inputs):
        files.append(str(folder / f"{model}_{k}.npy"))
        np.save(files[-1], array)

    def ours(repeat):
        text = subprocess.run([str(runner), *files, "--repeat", str(repeat), "--threads", str(args.threads), "--json"],
                              check=True, capture_output=True, text=True).stdout
        result = json.loads(text[text.index("{"):])
        return result["min_ms"], result["median_ms"]

    def theirs(repeat):
        session.run(None, feed)
        times = []
        for _ in range(repeat):
            start = time.perf_counter()
            session.run(None, feed)
            times.append((time.perf_counter() - start) * 1e3)
        return min(times), statistics.median(times)

    once = max(theirs(2)[0], 0.01)
    repeat = int(min(400, max(8, 150 / once)))
    mine, peer = [], []
    for _ in range(args.rounds):
        mine.append(ours(repeat))
        peer.append(theirs(repeat))
    best = lambda rows: min(r[0] for r in rows)
    middle = lambda rows: statistics.median(r[1] for r in rows)
    return best(mine), middle(mine), best(peer), middle(peer)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gcompile", type=pathlib.Path, required=True)
    parser.add_argument("--models", type=pathlib.Path, default=ROOT.parent / "shared" / "models")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    names = args.names or MAIN_SUITE
    rows, ratios, failed = [], {True: [], False: []}, []
    with tempfile.TemporaryDirectory(prefix="gcompile_bench_") as folder:
        folder = pathlib.Path(folder)
        peak = calibrate(folder)
        peaks = [peak()]
        for model in names:
            try:
                a_min, a_median, b_min, b_median = bench_model(args, model, folder)
            except (subprocess.CalledProcessError, StopIteration) as error:
                print(f"{model:32s} failed: {str(error)[:120]}", flush=True)
                failed.append(model)
                continue
            peaks.append(peak())
            ratio = a_min / b_min
            ratios[model in CONVOLUTIONAL].append(ratio)
            rows.append(f"| {model} | {a_min:.3f} | {a_median:.3f} | {b_min:.3f} | {b_median:.3f} | {ratio:.2f} |")
            print(f"{model:32s} gcompile {a_min:9.3f} / {a_median:9.3f} ms   onnxruntime {b_min:9.3f} / "
                  f"{b_median:9.3f} ms   ratio {ratio:5.2f}", flush=True)
    geometric = lambda values: float(np.exp(np.mean(np.log(values)))) if values else float("nan")
    summary = (f"peak FMA {min(peaks):.0f}-{max(peaks):.0f} GFLOP/s per core; geometric mean of ratios: convolutional "
               f"{geometric(ratios[True]):.2f}, others {geometric(ratios[False]):.2f}")
    print(summary)
    if args.markdown:
        cpu = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
        args.markdown.write_text(
            f"{datetime.date.today()}, {cpu}, {args.threads} thread(s), onnxruntime {ort.__version__}, "
            f"{args.rounds} interleaved rounds; {summary}.\n\n"
            "| model | gcompile min ms | median | onnxruntime min ms | median | ratio of minima |\n"
            "|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What the int8 models of MLPerf Tiny cost on cores of ARM's M profile: a row for each model, core and flag.

    microcontrollers.py --gcompile BUILD/gcompile --models DIR [--cores CORE,...] [--flags=-Os,-O2] [--functions N]
                        [--options "WORDS"] [--work DIR] [--goals] [MODEL...]

Each project is built by its own Makefile, linked with the start-up code and the script of examples/firmware, and run on a board
of QEMU, whose plugin (count_instructions.c, built here) counts what a run executes: instructions, not cycles. The columns:
instructions for each multiply-add of the model as it is, constant channels among them; bytes of code and of constants of the library as linked, without its weights; arena,
weights, and the stack that a run has taken of a painted one, beside what the header tells; and the largest differences of the
outputs from those of the project for this host, and from those that come with the model, in units of the tolerance
1e-4 |value| + 1e-5 max(1, rms). --functions lists those in which most instructions are executed. --goals prints the figures of
four of these builds beside those that they are to reach and those of onnx2c and CMSIS-NN, instead. Without the cross compiler or
QEMU nothing is measured, which a line says. Exit: 0, or 1 where an output is not the host's.
"""

import argparse
import bisect
import collections
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import tensors  # noqa: E402

TRIPLE = "arm-none-eabi"
FIRMWARE = ROOT / "examples" / "firmware"
MODELS = {
    "ic": "mlperf_tiny_ic_resnet8_int8",
    "kws": "mlperf_tiny_kws_dscnn_int8",
    "vww": "mlperf_tiny_vww_mobilenet_int8",
    "ad": "mlperf_tiny_ad_autoencoder_int8",
}
# Flags of a core, and a board of QEMU that runs its code: a Cortex-M4 executes all that a Cortex-M0+ does.
SMALL_MEMORY = {"cortex-m55"}  # half a megabyte of each
CORES = {
    "cortex-m0plus": ("-mthumb", "mps2-an386"),
    "cortex-m3": ("-mthumb", "mps2-an385"),
    "cortex-m4": ("-mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16", "mps2-an386"),
    "cortex-m7": ("-mthumb -mfloat-abi=hard -mfpu=fpv5-d16", "mps2-an500"),
    "cortex-m55": ("-mthumb -mfloat-abi=hard", "mps3-an547"),
}

# What a row is of, what it is to be at most in IC, KWS, VWW and AD, and what others need. Theirs were counted in the same way:
# CMSIS-NN with -O3, onnx2c with -O2; of emx-onnx-cgen there are no figures.
KIB = 1024
GOALS = [
    ("instructions per multiply-add, cortex-m4 -O2", "cortex-m4-O2", "instructions", (2.2, 2.8, 1.7, 2.0),
     {"CMSIS-NN": (2.39, 2.95, 3.30, 2.19), "onnx2c": (19.2, 10.2, 10.7, 12.5)}),
    ("instructions per multiply-add, cortex-m4 -Os", "cortex-m4-Os", "instructions", (3.3, 4.0, 2.8, 3.0), {}),
    ("instructions per multiply-add, cortex-m55 -O2", "cortex-m55-O2", "instructions", (0.45, 0.75, 0.6, 0.9),
     {"CMSIS-NN": (0.38, 0.67, 0.86, 1.07)}),
    ("instructions per multiply-add, cortex-m0plus -Os", "cortex-m0plus-Os", "instructions", (9, 12, 8, 8), {}),
    ("code and tables, cortex-m4 -Os", "cortex-m4-Os", "code", (16 * KIB, 16 * KIB, 18 * KIB, 8 * KIB), {}),
    ("code and weights, cortex-m4 -Os", "cortex-m4-Os", "flash", (100 * KIB, 44 * KIB, 85 * KIB, 285 * KIB), {}),
    ("arena, cortex-m4", "cortex-m4-Os", "arena", (32 * KIB, 16000, 40 * KIB, 768), {}),
    ("stack, cortex-m4 -Os", "cortex-m4-Os", "stack", (2 * KIB, 2 * KIB, 2 * KIB, KIB), {}),
]

MAIN = """#include <stdint.h>
#include <stdio.h>
#include "m/m.h"
extern const unsigned char data_in[];
extern unsigned char end[];
static _Alignas(M_ALIGN) unsigned char arena[M_ARENA_BYTES + 1], instance[M_INSTANCE_BYTES];
static _Alignas(16) unsigned char out[%(output_bytes)d];
void run_begins(void);
void run_ends(void);
__attribute__((noinline)) void run_begins(void) { __asm volatile(""); }
__attribute__((noinline)) void run_ends(void) { __asm volatile("nop"); }
int main(void) {
  const m_memory memory = {.arena = arena, .instance = instance};
  const m_inputs inputs = {(const void*)data_in};
  const m_outputs outputs = {(void*)out};
  m_status status = m_init(&memory);
  const uint32_t paint = 0xA5C3B1D7u;
  volatile uint32_t* const top = (volatile uint32_t*)__builtin_frame_address(0) - 64;
  volatile uint32_t* const bottom = top - 32768;
  for (volatile uint32_t* p = bottom; p < top; ++p) *p = paint;
  run_begins();
  if (status == M_OK) status = m_run(&memory, &inputs, &outputs);
  run_ends();
  volatile uint32_t* used = bottom;
  while (used < top && *used == paint) ++used;
  printf("%%s %%u %%u %%u %%u %%u\\n", m_status_string(status),
         (unsigned)((uintptr_t)__builtin_frame_address(0) - (uintptr_t)used), (unsigned)M_STACK_BYTES,
         (unsigned)M_ARENA_BYTES, (unsigned)M_WEIGHTS_BYTES, (unsigned)sizeof(out));
  for (unsigned i = 0; i < sizeof(out); ++i) printf("%%02x", out[i]);
  printf("\\n");
  return 0;
}
"""


def run(command, folder=None):
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


class Image:
    """A model as firmware for one core, and what is known of it."""

    def __init__(self, work, project, core, flag, inputs, output):
        self.core, self.label = core, f"{core}{flag}"
        self.board = CORES[core][1]
        options = [f"-mcpu={core}", *CORES[core][0].split()]
        library = project / self.label / "libm.a"
        run(["make", "-s", "-C", project, f"BUILD={self.label}", f"CXX={TRIPLE}-g++",
             f"CXXFLAGS={flag} {' '.join(options)} -ffunction-sections -fdata-sections", f"{self.label}/libm.a"])
        (work / "in.bin").write_bytes(inputs)
        (work / "in.S").write_text('.section .rodata\n.balign 16\n.global data_in\ndata_in:\n.incbin "in.bin"\n')
        (work / "main.c").write_text(MAIN % {"output_bytes": len(output)})
        self.elf, self.map = work / "image.elf", work / "image.map"
        run([f"{TRIPLE}-gcc", *options, "-Os", f"-I{project}/include", FIRMWARE / "startup.c", work / "main.c", work / "in.S",
             library, "-nostartfiles", "--specs=rdimon.specs", "-Wl,--gc-sections", f"-Wl,-Map={self.map}", "-T",
             self.script(work), "-lm", "-o", self.elf], work)

    def script(self, work):
        """The example's linker script, with as much memory as the board has."""
        text = (FIRMWARE / "mps2_an500.ld").read_text()
        path = work / "board.ld"
        path.write_text(text.replace("LENGTH = 4M", "LENGTH = 512K") if self.core in SMALL_MEMORY else text)
        return path

    def symbols(self):
        listed = run([f"{TRIPLE}-nm", "-C", "-n", self.elf])
        found = re.findall(r"^([0-9a-f]+) [tTwWV] (?!\$)(.*)$", listed, re.MULTILINE)
        return [(int(address, 16) & ~1, name) for address, name in found]

    def library_bytes(self):
        """Code and constants of the library, as the linker placed them, without the weights."""
        text = self.map.read_text()
        text = text[text.index("Linker script and memory map"):]
        sections = re.findall(r"^ \.(text|rodata)\S*\s+0x[0-9a-f]+\s+0x([0-9a-f]+)\s+\S*libm\.a\((?!m_weights)\S+\)$", text,
                              re.MULTILINE)
        return sum(int(size, 16) for _, size in sections)

    def executed(self, work, plugin):
        """What main prints, and how often each instruction is executed."""
        marks = {name: address for address, name in self.symbols()}
        counts = work / "counts.txt"
        said = run(["qemu-system-arm", "-M", self.board, "-nographic", "-semihosting", "-kernel", self.elf, "-plugin",
                    f"{plugin},out={counts},begin={marks['run_begins']:#x},end={marks['run_ends']:#x}"])
        lines = [line.split() for line in counts.read_text().splitlines()]
        return said, {int(address, 16): int(count) for address, count in lines}


def largest_error(name, values, expected):
    """In units of the tolerance."""
    values, expected = tensors.values_of(name, values), tensors.values_of(name, expected)
    rms = math.sqrt(sum(e * e for e in expected) / len(expected))
    return max(abs(v - e) / (1e-4 * abs(e) + 1e-5 * max(1, rms)) for v, e in zip(values, expected))


def on_host(arguments, model, work):
    """The output of the project for this machine on the shipped input, and its multiply-adds: of all channels."""
    project, data = work / f"host_{model.parent.name}", model.parent / "test_data_set_0"
    said = run([arguments.gcompile, model, "-o", project, "--name", "m", "--force", "--disable-pass", "constant-channels"])
    run(["make", "-s", "-C", project, "-j2"])
    dims, name, raw = tensors.read(data / "input_0.pb")
    tensors.write_npy(work / "in.npy", dims, name, raw)
    run([project / "build" / "m_run", work / "in.npy", "--output-dir", project / "out"])
    output = tensors.read(next((project / "out").glob("0_*.npy")))[2]
    return output, int(re.search(r" multiply_adds=(\d+)", said)[1])


def profile(counts, symbols, lines):
    addresses, sums = [address for address, _ in symbols], collections.Counter()
    for address, count in counts.items():
        sums[symbols[bisect.bisect_right(addresses, address) - 1][1]] += count
    for name, count in sums.most_common(lines):
        print(f"    {count:>12,} {100 * count / sum(counts.values()):5.1f} %  {name[:130]}")


def measure(model, core, flags, arguments, plugin, work):
    """The figures of a model on a core, by flag."""
    folder = arguments.models / MODELS.get(model, model)
    data = folder / "test_data_set_0"
    inputs, (_, name, output) = tensors.read(data / "input_0.pb")[2], tensors.read(data / "output_0.pb")
    host, multiply_adds = on_host(arguments, folder / "model.onnx", work)
    project, out = work / f"{model}_{core}", {}
    run([arguments.gcompile, folder / "model.onnx", "-o", project, "--name", "m", "--cpu", core, "--force",
         *arguments.options.split()])
    for flag in flags:
        image = Image(work, project, core, flag, inputs, output)
        said, counts = image.executed(work, plugin)
        first, values = said.splitlines()
        status, stack, told, arena, weights, _ = first.split()
        errors = [largest_error(name, bytes.fromhex(values), than) if status == "M_OK" else math.inf for than in (host, output)]
        code = image.library_bytes()
        out[flag] = {"instructions": sum(counts.values()) / multiply_adds, "code": code, "flash": code + int(weights),
                     "arena": int(arena), "weights": int(weights), "stack": int(stack), "told": int(told), "errors": errors}
        if not arguments.goals:
            row = out[flag]
            print(f"| {model} | {core} {flag} | {row['instructions']:.2f} | {code:,} | {row['arena']:,} | {row['weights']:,} | "
                  f"{row['stack']:,} of {row['told']:,} | {errors[0]:.2f} | {errors[1]:.2f} |", flush=True)
        if arguments.functions:
            profile(counts, image.symbols(), arguments.functions)
    return out


def print_goals(rows, models):
    """The figures of all builds beside what they are to be at most; what is missed is marked."""
    def text(values):
        return " | ".join(f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" for value in values)

    print(f"| | {' | '.join(models)} |\n|---|{'---|' * len(models)}")
    for title, build, figure, goals, others in GOALS:
        values = [rows[model, build][figure] for model in models]
        marked = [f"{text([value])}{' missed' if value > goal else ''}" for value, goal in zip(values, goals)]
        print(f"| {title} | {' | '.join(marked)} |\n| at most | {text(goals)} |")
        for name, figures in others.items():
            print(f"| {name} | {text(figures)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gcompile", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--cores", default="cortex-m4,cortex-m0plus")
    parser.add_argument("--flags", default="-Os,-O2")
    parser.add_argument("--functions", type=int, default=0)
    parser.add_argument("--options", default="", help="further options of gcompile")
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--goals", action="store_true")
    parser.add_argument("rows", nargs="*", metavar="MODEL", default=list(MODELS))
    arguments = parser.parse_args()
    for tool in (f"{TRIPLE}-g++", "qemu-system-arm", "cc"):
        if not shutil.which(tool):
            print(f"nothing is measured: no {tool}")
            return 0
    with tempfile.TemporaryDirectory() as temporary:
        work = (arguments.work or pathlib.Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        plugin = work / "count_instructions.so"
        run(["cc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden", "-o", plugin,
             pathlib.Path(__file__).with_name("count_instructions.c")])
        wanted = [(core, arguments.flags.split(",")) for core in arguments.cores.split(",")]
        if arguments.goals:
            arguments.rows = list(MODELS)
            wanted = [("cortex-m4", ["-Os", "-O2"]), ("cortex-m55", ["-O2"]), ("cortex-m0plus", ["-Os"])]
        else:
            print("| model | core | instructions per multiply-add | code | arena | weights | stack | to host | to shipped |")
            print("|---|---|---|---|---|---|---|---|---|")
        rows = {}
        for model in arguments.rows:
            for core, flags in wanted:
                measured = measure(model, core, flags, arguments, plugin, work)
                rows.update({(model, core + flag): row for flag, row in measured.items()})
        if arguments.goals:
            print_goals(rows, arguments.rows)
        return 0 if all(row["errors"][0] <= 1 for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What the int8 models of MLPerf Tiny cost on cores of ARM's M profile: a row for each model, core and flag.

    microcontrollers.py --gcompile BUILD/gcompile --models DIR [--cores CORE,...] [--flags=-Os,-O2] [--functions N]
                        [--options "WORDS"] [--work DIR] [MODEL...]

Each project is built by its own Makefile, linked with the start-up code and the script of examples/firmware, and run on a board
of QEMU, whose plugin (count_instructions.c, built here) counts what a run executes: instructions, not cycles. The columns:
instructions for each multiply-add of the model as it is, constant channels among them; bytes of code and of constants of the library as linked, without its weights; arena,
weights, and the stack that a run has taken of a painted one, beside what the header tells; and the largest differences of the
outputs from those of the project for this host, and from those that come with the model, in units of the tolerance
1e-4 |value| + 1e-5 max(1, rms). --functions lists those in which most instructions are executed. Without the cross compiler or
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
CORES = {
    "cortex-m0plus": ("-mthumb", "mps2-an386"),
    "cortex-m3": ("-mthumb", "mps2-an385"),
    "cortex-m4": ("-mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16", "mps2-an386"),
    "cortex-m7": ("-mthumb -mfloat-abi=hard -mfpu=fpv5-d16", "mps2-an500"),
}

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
             FIRMWARE / "mps2_an500.ld", "-lm", "-o", self.elf], work)

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


def measure(model, arguments, plugin, work):
    """Prints the rows of a model; returns whether all of them are right."""
    folder, right = arguments.models / MODELS.get(model, model), True
    data = folder / "test_data_set_0"
    inputs, (_, name, output) = tensors.read(data / "input_0.pb")[2], tensors.read(data / "output_0.pb")
    host, multiply_adds = on_host(arguments, folder / "model.onnx", work)
    for core in arguments.cores.split(","):
        project = work / f"{model}_{core}"
        run([arguments.gcompile, folder / "model.onnx", "-o", project, "--name", "m", "--cpu", core, "--force",
             *arguments.options.split()])
        for flag in arguments.flags.split(","):
            image = Image(work, project, core, flag, inputs, output)
            said, counts = image.executed(work, plugin)
            first, values = said.splitlines()
            status, stack, told, arena, weights, _ = first.split()
            errors = [largest_error(name, bytes.fromhex(values), than) if status == "M_OK" else math.inf
                      for than in (host, output)]
            right = right and errors[0] <= 1
            print(f"| {model} | {core} {flag} | {sum(counts.values()) / multiply_adds:.2f} | {image.library_bytes():,} | "
                  f"{int(arena):,} | {int(weights):,} | {int(stack):,} of {int(told):,} | {errors[0]:.2f} | "
                  f"{errors[1]:.2f} |", flush=True)
            if arguments.functions:
                profile(counts, image.symbols(), arguments.functions)
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gcompile", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--cores", default="cortex-m4,cortex-m0plus")
    parser.add_argument("--flags", default="-Os,-O2")
    parser.add_argument("--functions", type=int, default=0)
    parser.add_argument("--options", default="", help="further options of gcompile")
    parser.add_argument("--work", type=pathlib.Path)
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
        print("| model | core | instructions per multiply-add | code | arena | weights | stack | to host | to shipped |")
        print("|---|---|---|---|---|---|---|---|---|")
        return 0 if all([measure(model, arguments, plugin, work) for model in arguments.rows]) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""A project as a library in a product: results that nobody can mistake, one program text for both targets, installed packages.

    products.py --gcompile GCOMPILE [CASE...]
"""

import re
import signal

from interface import MODEL, program_of, project_of
from support import ROOT, WARNINGS, c_compiler, check, compilers, equal, manifest, run_main

CONDITIONS = """
#include "net/net.hpp"
int main() {
  net::Model model;
  const float x[6] = {1, 2, 3, 4, 5, 6}, scale = 3;
  float y[6];
  std::int64_t best[2];
  const net_inputs in{x, &scale, nullptr};
  const net_outputs out{y, best, nullptr};
  constexpr net::Status fine = NET_OK;
  static_assert(fine.ok() && fine == NET_OK && NET_WRONG_SIZE != fine);
  net_status status = model.run(in, out);
  if (status != NET_OK || NET_OK != model.status() || model.reset() != model.status() || !model.finish().ok()) return 1;
  switch (model.status().code()) {
    case NET_OK: break;
    default: return 2;
  }
  if (const auto result = model.run(in)) { if (result->y[5] != 18 || (*result).y[0] != 3) return 3; } else return 4;
  const net::Outputs kept = *model.run(in);
  if (kept.y[1] != 6) return 5;
  const auto failed = model.run({nullptr, &scale, nullptr});
  if (failed || failed.status() != NET_NULL_POINTER || model.status() != NET_NULL_POINTER) return 6;
  MISTAKE
  return status;
}
"""
# What would read a failure as success, or lose it.
WRONG = ["if (model.run(in, out)) return 9;", "if (!model.run(in, out)) return 9;", "while (model.reset()) status = NET_OK;",
         "return model.status() ? 1 : 0;", "if (model.run(in, out) && scale > 2) return 9;", "bool b = model.run(in, out); if (b) return 9;",
         "const bool b{model.finish()}; if (b) return 9;", "[](bool) {}(model.reset());", "model.run(in);", "model.run(in, out);",
         "model.status();", "model.finish();", "const net::Outputs y2 = model.run(in); if (y2.y.empty()) return 9;"]


def case_conditions(world):
    """No status and no run of the wrapper is a condition that reads a failure as success; outputs that are not there end the
    program."""
    project = project_of(world)
    for compiler in compilers():
        for standard in ("c++17", "c++20"):
            program_of(world, project, CONDITIONS.replace("MISTAKE", ""), compiler, standard)
            world.run([world.path("caller")])
        source = world.path("wrong.cpp")
        for wrong in WRONG:
            source.write_text(CONDITIONS.replace("MISTAKE", wrong), encoding="utf-8")
            refused = world.run([compiler, "-std=c++17", *WARNINGS, f"-I{project}/include", "-fsyntax-only", source], status=1)
            check("error" in refused.stderr, f"{compiler} takes {wrong}")
        program_of(world, project, CONDITIONS.replace("MISTAKE", "return static_cast<int>(failed->y[0]);"), compiler, "c++17")
        world.run([world.path("caller")], status=-signal.SIGABRT)


BOTH_TARGETS = """
#include "net/net.HEADER"
unsigned char arena[NET_ARENA_BYTES], state[NET_STATE_BYTES];
net_status step(const net_memory* memory, const net_inputs* inputs, const net_outputs* outputs);
net_status step(const net_memory* memory, const net_inputs* inputs, const net_outputs* outputs) {
  net_status status = net_run(memory, inputs, outputs);
  if (status == NET_OK) status = net_enqueue(memory, inputs, outputs);
  if (status == NET_OK) status = net_finish(memory);
  if (status == NET_DEVICE_ERROR && net_device_error(memory)[0] != 0) status = net_reset(memory);
  if (status == NET_UNSUPPORTED_PROCESSOR && net_status_text(status)[0] == 0) net_release(memory);
  return sizeof(arena) + sizeof(state) == 0 ? NET_OK : status;
}
"""
CPP_OF_BOTH_TARGETS = """
net_status of_the_wrapper(net::Model& model, const net_inputs& inputs, const net_outputs& outputs);
net_status of_the_wrapper(net::Model& model, const net_inputs& inputs, const net_outputs& outputs) {
  if (model.run(inputs, outputs) == NET_OK && model.finish().ok() && model.reset().ok()) {
    if (const auto result = model.run(inputs)) return result->y.empty() ? NET_OK : step(&model.memory(), &inputs, &outputs);
  }
  return model.status_text() == model.status_string() ? NET_OK : model.status().code();
}
"""
NO_BLOCKS = "int main(void) { net_memory memory = {0}; net_status status; memory.instance = block; status = net_init(&memory);" \
    " if (status == NET_OK) status = step(&memory, &inputs, &outputs); net_release(&memory);" \
    " return status == NET_OK && net_finish(&memory) == NET_NOT_INITIALIZED ? 0 : 1; }\n"


def case_both_targets(world):
    """One program text serves projects of both targets, in C and C++, without a warning; what one of them alone has is listed."""
    named = []
    for target in ("cpp", "cuda"):
        source = world.path("net.onnxtxt")
        source.write_text(MODEL.partition("net (")[0] + "net (float[2,3] x) => (float[2,3] y) { y = Relu(x) }", encoding="utf-8")
        project = world.path(target)
        world.compile(source, project, "--name", "net", "--target", target)
        emulator = ["-isystem", ROOT / "runtime_stub" / "emulator"] if target == "cuda" else []
        for compiler in compilers():
            for suffix, standard in (("c", "c99"), ("c", "c11"), ("cpp", "c++11"), ("cpp", "c++17"), ("cpp", "c++20")):
                caller = world.path(f"caller.{suffix}")
                wraps = standard in ("c++17", "c++20")
                text = BOTH_TARGETS.replace("HEADER", "hpp" if wraps else "h") + (CPP_OF_BOTH_TARGETS if wraps else "")
                caller.write_text(text, encoding="utf-8")
                world.run([compiler if suffix == "cpp" else c_compiler(compiler), f"-std={standard}", "-Wpedantic", *WARNINGS,
                           *emulator, f"-I{project}/include", "-fsyntax-only", caller])
        header = (project / "include/net/net.h").read_text(encoding="utf-8")
        wrapper = (project / "include/net/net.hpp").read_text(encoding="utf-8")
        named.append({f"NAME_{name}" for name in re.findall(r"\bNET_API [^;(]*?\bnet_(\w+)\(", header)} |
                     {f"NAME_{name}" for name in re.findall(r"^(?:#define |  )NET_(\w+)[ ,]", header, re.MULTILINE)} |
                     {f"NAME::{name}" for name in re.findall(r"^(?:class|struct) (?:\[\[nodiscard\]\] )?(\w+)", wrapper, re.MULTILINE)} |
                     {f"NAME::Model::{name}()" for name in re.findall(r"^  \[\[nodiscard\]\] [\w:*& ]+ (\w+)\(", wrapper, re.MULTILINE)})
    check(all(f"NAME_{name}" in named[0] & named[1] for name in ("run", "finish", "DEVICE_ERROR", "ARENA_BYTES")), f"{named}")
    page = (ROOT / "docs" / "reading_the_output.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+) \| C\+\+ \| .+ \|$", page, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(NAME[\w:()]+)`", row)} - {"NAME::Model::state()"}  # no state here
    own = {"NAME::DeviceBlock", "NAME::HostBlock", "NAME::Model::get()"}  # of what a wrapper owns, and of Threads
    equal(sorted(name for name in named[0] ^ named[1] if name not in own), sorted(listed), "what one target alone has")


def case_blocks_of_no_bytes(world):
    """Arrays as large as the macros say are arrays, and where nothing is needed there may be none."""
    source = world.path("relu.onnxtxt")
    source.write_text(MODEL.partition("net (")[0] + "net (float[2,3] x) => (float[2,3] y) { y = Relu(x) }", encoding="utf-8")
    project = world.path("relu")
    world.compile(source, project, "--name", "net")
    equal(manifest(project, "net")["arena_bytes"], 0, "the arena")
    text = BOTH_TARGETS.replace("HEADER", "h") + "static _Alignas(64) unsigned char block[NET_INSTANCE_BYTES];\n" \
        "static float x[6], y[6];\nstatic const net_inputs inputs = {x};\nstatic const net_outputs outputs = {y};\n" + NO_BLOCKS
    for compiler in compilers():
        program_of(world, project, text, compiler)
        world.run([world.path("caller")])


if __name__ == "__main__":
    run_main(globals())

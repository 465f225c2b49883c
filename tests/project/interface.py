#!/usr/bin/env python3
"""What the C and the C++ interface of a project give their caller: sizes and shapes as constants, a status for each kind
of mistake, snippets that compile.

    interface.py --gcompile GCOMPILE [CASE...]
"""

import re
import shutil

from support import (ROOT, WARNINGS, Skip, c_compiler, check, compilers, contains, equal, march_flags, run_main, turn,
                     words_of)

MODEL = """
<ir_version: 8, opset_import: ["": 17]>
net (float[2,3] x, float scale, int64[0,4] nothing) => (float[2,3] y, int64[2] best, int64[0,4] rest)
{
  y = Mul(x, scale)
  best = ArgMax<axis = 1, keepdims = 0>(y)
  rest = Add(nothing, nothing)
}
"""

C_CONSTANTS = """
#include "net/net.h"
static const int64_t shape[] = NET_INPUT_X_SHAPE;
static const int64_t rest[NET_OUTPUT_REST_RANK] = NET_OUTPUT_REST_SHAPE;
_Static_assert(NET_INPUT_X_ELEMENTS == 6 && NET_INPUT_X_RANK == 2, "of x");
_Static_assert(NET_INPUT_SCALE_ELEMENTS == 1 && NET_INPUT_SCALE_RANK == 0, "of a scalar");
_Static_assert(NET_INPUT_NOTHING_ELEMENTS == 0 && sizeof(shape) == 16, "of nothing");
_Static_assert(NET_OUTPUT_Y_ELEMENTS == 6 && NET_OUTPUT_BEST_ELEMENTS == 2, "of the outputs");
#ifdef NET_INPUT_SCALE_SHAPE
#error "a scalar has no shape"
#endif
int main(void) { return shape[0] == 2 && shape[1] == 3 && rest[0] == 0 && rest[1] == 4 ? 0 : 1; }
"""

CPP_CONSTANTS = """
#include "net/net.hpp"
static_assert(net::inputs::x::elements == 6 && net::inputs::x::rank == 2 && net::inputs::x::dims[1] == 3);
static_assert(net::inputs::scale::elements == 1 && net::inputs::scale::dims.empty());
static_assert(net::inputs::nothing::elements == 0 && net::outputs::best::dims[0] == 2);
int main() { return 0; }
"""

STATUSES = r"""
#include <stdio.h>
#include <string.h>
#include "net/net.h"
static _Alignas(NET_ALIGN) unsigned char arena[NET_ARENA_BYTES + NET_ALIGN], instance[NET_INSTANCE_BYTES + NET_ALIGN];
static float x[NET_INPUT_X_ELEMENTS + 1], y[NET_OUTPUT_Y_ELEMENTS + 1], scale = 2;
static int64_t best[NET_OUTPUT_BEST_ELEMENTS + 1];
#define EXPECT(call, status) \
  if ((call) != status) { printf("line %d: not " #status "\n", __LINE__); return 1; }

int main(void) {
  net_memory memory = {0};
  net_inputs inputs = {0};
  net_outputs outputs = {0};
  EXPECT(net_init(NULL), NET_NULL_POINTER)
  EXPECT(net_init(&memory), NET_NULL_POINTER)
  memory.instance = instance;
  if (NET_ARENA_BYTES > 1) EXPECT(net_init(&memory), NET_NULL_POINTER)
  memory.arena = arena;
  memory.instance = instance + NET_ALIGN / 2;
  EXPECT(net_init(&memory), NET_MISALIGNED)
  EXPECT(net_reset(&memory), NET_MISALIGNED)
  memory.instance = instance;
  EXPECT(net_run(&memory, NULL, &outputs), NET_NULL_POINTER)
  EXPECT(net_run(&memory, &inputs, NULL), NET_NULL_POINTER)
  EXPECT(net_run(&memory, &inputs, &outputs), NET_NULL_POINTER)
  inputs.x = x, inputs.scale = &scale, outputs.y = y, outputs.best = best;
  EXPECT(net_run(&memory, &inputs, &outputs), NET_NOT_INITIALIZED)
  EXPECT(net_init(&memory), NET_OK)
  inputs.x = (const float *)(const void *)((const char *)x + 2);
  EXPECT(net_run(&memory, &inputs, &outputs), NET_MISALIGNED)
  inputs.x = x + 1;
  outputs.best = (int64_t *)(void *)((char *)best + 4);
  EXPECT(net_run(&memory, &inputs, &outputs), NET_MISALIGNED)
  outputs.best = best + 1;
  outputs.y = NULL;
  EXPECT(net_run(&memory, &inputs, &outputs), NET_NULL_POINTER)
  outputs.y = y + 1;
  x[1] = 3, x[6] = 5;
  EXPECT(net_run(&memory, &inputs, &outputs), NET_OK)
  if (y[1] != 6 || best[1] != 0 || best[2] != 2) return 2;
STRINGS
  if (strcmp(net_status_string((net_status)99), "unknown status") != 0) return 3;
  return 0;
}
"""

SPANS = r"""
#include <array>
#include <vector>
#include "net/net.hpp"
int main() {
  net::Model model;
  std::array<float, net::inputs::x::elements> x{1, 2, 3, 6, 5, 4};
  const float scale[1] = {2};
  std::vector<float> y(net::outputs::y::elements);
  std::int64_t best[2] = {};
  if (model.run(net::InputSpans{x, scale, {}}, {y, best, {}}) != NET_OK || y[3] != 12 || best[0] != 2 || best[1] != 0) return 1;
  const auto few = std::span(y).first(5);
  y[0] = -1;
  if (model.run(net::InputSpans{x, scale, {}}, {few, best, {}}) != NET_WRONG_SIZE || y[0] != -1) return 2;
  if (model.run(net::InputSpans{.x = x, .scale = {}, .nothing = {}}, {y, best, {}}) != NET_WRONG_SIZE) return 3;
  // Braces alone are pointers, as in C++17.
  if (model.run({x.data(), scale, nullptr}, {y.data(), best, nullptr}) != NET_OK || y[0] != 2) return 4;
  return model.run({x.data(), scale, nullptr})->y == y ? 0 : 5;
}
"""


def project_of(world, model=MODEL, name="net"):
    source = world.path(f"{name}.onnxtxt")
    source.write_text(model, encoding="utf-8")
    project = world.path(f"{name}_project")
    world.compile(source, project, "--name", name)
    return project


def program_of(world, project, text, compiler="g++", standard="c11", name="net", status=0, flags=()):
    """Compiles a caller with every warning and the library; returns how the compiler ended."""
    source = world.path("caller.c" if standard.startswith("c1") or standard == "c99" else "caller.cpp")
    source.write_text(text, encoding="utf-8")
    command = c_compiler(compiler) if source.suffix == ".c" else compiler
    return world.run([command, f"-std={standard}", "-pedantic", *WARNINGS, *flags, f"-I{project}/include", source,
                      *world.library_objects(project, name, compiler), "-lm", "-o", world.path("caller")], status=status)


def case_constants(world):
    project = project_of(world)
    for compiler in compilers():
        program_of(world, project, C_CONSTANTS, compiler)
        world.run([world.path("caller")])
        program_of(world, project, CPP_CONSTANTS, compiler, "c++17")


def case_statuses(world):
    """Every kind of mistake has a status, and every status the name that C knows it by, a number and a sentence."""
    project = project_of(world)
    header = (project / "include/net/net.h").read_text(encoding="utf-8")
    listed = re.findall(r"^  NET_([A-Z_]+) = (\d+),? ", header + " ", re.MULTILINE)
    listed += re.findall(r"^  NET_(OK) = (\d+),$", header, re.MULTILINE)
    runtime = (project / "gcrt/status.h").read_text(encoding="utf-8")
    numbers = dict(re.findall(r"^  ([a-z_]+) = (\d+),", runtime, re.MULTILINE))
    check(len(listed) >= 10 and len({number for _, number in listed}) == len(listed), f"statuses: {listed}")
    for status, number in listed:
        equal(numbers.get(status.lower()), number, f"gcrt/status.h on {status}")
    strings = "\n".join(f'  if (strcmp(net_status_string(NET_{status}), "NET_{status}") != 0 || '
                        f'strstr(net_status_text(NET_{status}), "unknown") != NULL) return 3;' for status, _ in listed)
    for compiler in compilers():
        program_of(world, project, STATUSES.replace("STRINGS", strings), compiler)
        world.run([world.path("caller")])


def case_nodiscard(world):
    """A status that nobody looks at is a warning in every language that can say so."""
    project = project_of(world)
    ignored = '#include "net/net.h"\nint main(void) {\n  %snet_init(NULL);\n  return 0;\n}\n'
    wrapper = '#include "net/net.hpp"\nint main() {\n  net::Model model;\n  %smodel.reset();\n}\n'
    for line in (project / "include/net/net.h").read_text(encoding="utf-8").splitlines():
        if "NET_API " in line and not line.startswith("#"):
            check(line.startswith("NET_NODISCARD ") != line.startswith("NET_API void "), f"a result that may be dropped: {line}")
    for compiler in compilers():
        for text, standard in ((ignored, "c11"), (ignored, "c++17"), (ignored, "c++11"), (wrapper, "c++17")):
            taken = "net_status status = " if text is ignored else "const net_status status = "
            used = text.replace("%s", taken).replace(";\n  return 0", ";\n  return status == NET_OK")
            used = used.replace("model.reset();\n", "model.reset();\n  return status == NET_OK;\n")
            program_of(world, project, used, compiler, standard)
            refused = program_of(world, project, text.replace("%s", ""), compiler, standard, status=1)
            check("unused" in refused.stderr or "nodiscard" in refused.stderr, f"{compiler} {standard}: {refused.stderr}")


def case_spans(world):
    project = project_of(world)
    for compiler in compilers():
        program_of(world, project, SPANS, compiler, "c++20")
        world.run([world.path("caller")])


def snippet(readme, language):
    return readme.split(f"```{language}\n")[1].split("```")[0]


def case_snippets(world):
    """What the README shows of C and of C++ compiles without a warning and runs; the statuses are looked at."""
    for example in ("shapes_classifier", "streaming_denoiser"):
        project = world.example(example, example, "--name", "plain")
        readme = (project / "README.md").read_text(encoding="utf-8")
        header = (project / "include/plain/plain.h").read_text(encoding="utf-8")
        arrays = "".join(f"static float {name.lower()}[{macro}];\n" for macro, name in
                         re.findall(r"#define (PLAIN_(?:IN|OUT)PUT_(\w+)_ELEMENTS) ", header))
        shown = snippet(readme, "c")
        declarations, _, statements = shown.partition("plain_memory memory")
        text = f"{declarations}{arrays}int main(void) {{\nplain_memory memory{statements}return status == PLAIN_OK ? 0 : 1;\n}}\n"
        check(statements.count("status") >= 4, f"{example}: the snippet does not look at its statuses: {shown}")
        for compiler in compilers():
            program_of(world, project, text, compiler, name="plain")
            world.run([world.path("caller")])
        include, _, body = snippet(readme, "cpp").partition("\n\n")
        text = f"{include}\n{arrays}int main() {{\n{body}return model.status() == PLAIN_OK ? 0 : 1;\n}}\n"
        program_of(world, project, "#include <cstdio>\n" + text, "g++", "c++17", "plain", flags=("-Wno-unused-variable",))
        world.run([world.path("caller")])


PRODUCT = """
cmake_minimum_required(VERSION 3.16)
project(product LANGUAGES C CXX ASM)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_FLAGS "-fno-exceptions -fno-rtti -O1")
add_subdirectory(${NET} net)
add_executable(product main.cpp)
target_link_libraries(product PRIVATE net::net net::threads)
"""
PRODUCT_MAIN = """
#include "net/net.hpp"
int main() {
  net::Threads threads(3);
  if (threads.get() == nullptr) return 1;
  net::Model model(threads.get());
  const float x[6] = {1, 2, 3, 4, 5, 6}, scale = 3;
  const net::Result outputs = model.run({x, &scale, nullptr});
  return model.status() == NET_OK && outputs->y[5] == 18 ? 0 : 2;
}
"""


def case_without_exceptions(world):
    """A product without exceptions and without types at run time, with the thread pool."""
    project = project_of(world)
    product = world.path("product")
    product.mkdir()
    (product / "CMakeLists.txt").write_text(PRODUCT, encoding="utf-8")
    (product / "main.cpp").write_text(PRODUCT_MAIN, encoding="utf-8")
    for compiler in compilers():
        build = product / compiler
        world.run(["cmake", "-S", product, "-B", build, "-G", "Unix Makefiles", f"-DNET={project}", "-DNET_ARCH=x86-64",
                   f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_C_COMPILER={c_compiler(compiler)}"])
        built = world.run(["cmake", "--build", build, "-j2", "--verbose"]).stdout
        pool = [line for line in built.splitlines() if "net_threads.cpp" in line and " -c " in line]
        check(len(pool) == 1 and "-fno-exceptions" in pool[0], f"how the pool was compiled: {pool}")
        world.run([build / "product"])


STACK_MAIN = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net/net.h"
#define PAINTED (512u << 10)
static net_memory memory;
static net_inputs inputs;
static net_outputs outputs;
static net_status status;

static void *run(void *unused) {
  status = net_init(&memory);
  if (status == NET_OK) status = net_run(&memory, &inputs, &outputs);
  return unused;
}
static void *nothing(void *unused) { return unused; }

static void *block(size_t bytes) {
  void *const data = aligned_alloc(4096, (bytes / 4096 + 1) * 4096);
  if (data == NULL) exit(3);
  memset(data, 0, bytes);
  return data;
}

/* Bytes of a painted stack that the function leaves another colour. */
static size_t used_by(void *(*function)(void *)) {
  unsigned char *const stack = block(PAINTED);
  pthread_attr_t attributes;
  pthread_t thread;
  size_t clean = 0;
  memset(stack, 0xa5, PAINTED);
  pthread_attr_init(&attributes);
  if (pthread_attr_setstack(&attributes, stack, PAINTED) != 0 || pthread_create(&thread, &attributes, function, NULL) != 0)
    exit(4);
  pthread_join(thread, NULL);
  while (clean < PAINTED && stack[clean] == 0xa5) ++clean;
  return PAINTED - clean;
}

int main(void) {
  const net_description *const model = net_describe();
  void *pointers[64];
  memory.arena = block(NET_ARENA_BYTES);
  memory.state = block(NET_STATE_BYTES);
  memory.instance = block(NET_INSTANCE_BYTES);
  for (int i = 0; i < model->input_count; ++i) pointers[i] = block(model->inputs[i].bytes);
  memcpy(&inputs, pointers, sizeof(inputs));
  for (int i = 0; i < model->output_count; ++i) pointers[i] = block(model->outputs[i].bytes);
  memcpy(&outputs, pointers, sizeof(outputs));
  const size_t idle = used_by(nothing);
  const size_t busy = used_by(run);
  printf("%zu %u\n", busy - idle, NET_STACK_BYTES);
  return status == NET_OK ? 0 : 1;
}
"""


def case_stack(world):
    """A run takes no more of the stack than the header says, and it says no ten times what is taken."""
    products = 'net (float[40,256] x) => (float[40,512] y) { w = Constant<value = float[1] {0.5}>() s = Constant<value = ' \
        'int64[2] {256,512}>() e = Expand(w, s) y = MatMul(x, e) }'
    up = 'net (float[1,5,9,9] x) => (float[1,6,19,19] y) { w = Constant<value = float[1] {0.5}>() s = Constant<value = ' \
        'int64[4] {5,6,3,3}>() e = Expand(w, s) y = ConvTranspose<strides = [2,2]>(x, e) }'
    head = MODEL.partition("net (")[0]
    text = {"plain": MODEL, "up": head + up, "bits_4": head + products, "bits_8": head + products}
    examples = ("shapes_classifier", "streaming_denoiser", "tiny_attention")
    # The widest vectors that this machine has, and one of the others, each in a project for no wider ones.
    flags = march_flags()
    for march in (flags[turn() % (len(flags) - 1)], flags[-1]):
        cpu = march.removeprefix("-march=") or "native"
        for case in (*text, *examples):
            project, name = world.path(f"{case}_{cpu}"), "up" if case == "up" else "net"
            options = ("--name", name, "--cpu", cpu, *(("--weight-bits", case[-1]) if "bits" in case else ()))
            if case in examples:
                world.example(case, project, *options)
            else:
                world.path("stack.onnxtxt").write_text(text[case], encoding="utf-8")
                world.compile(world.path("stack.onnxtxt"), project, *options)
            for compiler in compilers():
                source = world.path("stack.c")
                source.write_text(STACK_MAIN.replace("NET_", f"{name.upper()}_").replace("net", name), encoding="utf-8")
                objects = world.library_objects(project, name, compiler, [flag for flag in ("-O2", march) if flag])
                world.run([c_compiler(compiler), "-std=gnu11", *WARNINGS, f"-I{project}/include", source, *objects, "-pthread",
                           "-lm", "-o", world.path("stack")])
                taken, stated = map(int, world.run([world.path("stack")]).stdout.split())
                print(f"{project.name} {compiler}: {taken} of {stated}")
                check(taken <= stated <= max(10 * taken, 12 << 10), f"{project.name} {compiler}: {taken} of {stated}")


def case_least_compilers(world):
    """The least versions that config.h names compile everything without a warning; README says the same ones."""
    config = (ROOT / "runtime_stub/gcrt/config.h").read_text(encoding="utf-8")
    least = dict(re.findall(r'#error "(GCC|Clang) (\d+) or later', config))
    project = world.example("shapes_classifier", "project", "--name", "net")
    contains(words_of(project / "README.md"), f"GCC {least['GCC']} or Clang {least['Clang']}, or later")
    tools = [tool for tool in (f"g++-{least['GCC']}", f"clang++-{least['Clang']}") if shutil.which(tool)]
    for tool in tools:
        for march in march_flags():
            world.library_objects(project, "net", tool, [*WARNINGS, "-O2", *([march] if march else [])])
    if len(tools) < 2:
        raise Skip(f"only {tools} here: scripts/install_packages.sh test installs both")


def case_old_compilers(world):
    """A compiler that is too old is refused with a sentence, not with a page of errors."""
    project = project_of(world)
    old = {("g++", "-U__GNUC__", "-D__GNUC__=11"): "GCC 12 or later", ("g++", "-std=c++14"): "C++17 is needed",
           (compilers()[-1], "-D__CUDACC__", "-D__CUDA__"): "Clang 19 or later is needed to compile CUDA",
           (compilers()[-1], "-U__clang_major__", "-D__clang_major__=12"): "Clang 13 or later",
           ("g++", "-D__CUDACC__", "-D__CUDACC_VER_MAJOR__=12"): "nvcc 13 or later"}
    for (compiler, *how), sentence in old.items():
        source = world.path("old.cpp")
        source.write_text('#include "gcrt/config.h"\n', encoding="utf-8")
        standard = [] if "-std=c++14" in how else ["-std=c++17"]
        refused = world.run([compiler, *standard, *how, f"-I{project}", "-E", source, "-o", "/dev/null"], status=1)
        errors = [line for line in refused.stderr.splitlines() if "error" in line and "#" in line]
        check(errors and sentence in errors[0], f"{compiler} {how}: {refused.stderr}")
    wrapper = world.path("wrapper.cpp")
    wrapper.write_text('#include "net/net.hpp"\n', encoding="utf-8")
    refused = world.run(["g++", "-std=c++11", f"-I{project}/include", "-fsyntax-only", wrapper], status=1)
    contains(refused.stderr, "net.hpp needs C++17; net.h needs C99 or C++11")


if __name__ == "__main__":
    run_main(globals())

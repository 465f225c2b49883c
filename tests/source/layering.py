#!/usr/bin/env python3
"""Who may include whom, over every #include of the rooms (docs/design.md, "Rooms").

    layering.py SOURCE_DIR

First tries its own rules on includes that must be refused. Exit: 0 clean, 1 not.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")', re.MULTILINE)
ROOMS = {
    "base": {"base"},
    "ir": {"ir", "base"},
    "frontend": {"frontend", "ir", "base"},
    "passes": {"passes", "ir", "base"},
    "jinja": {"jinja", "base"},
    "codegen": {"codegen", "ir", "jinja", "base"},
    "driver": {"driver", "frontend", "passes", "codegen", "jinja", "ir", "base"},
    "runtime_stub": {"gcrt"},
}
# The storeys of a room, lowest first: a folder may include itself, what is below it and what lies in the room itself.
STOREYS = {
    "ir": ["sizes", "tensors", "loops", "forms", "graph", "ops"],
    "frontend": ["files", "sizes", "import", "export"],
    "passes": ["engine", "graph", "rules", "forms"],
    "codegen": ["memory", "loops", "packing", "choice", "calls", "kinds", "families", "order", "schedule", "program", "report", "emit"],
    "driver": ["machine", "command_line", "data", "publish", "verify", "projects", "commands"],
}
# Lies in its room itself, and sees all of it.
ON_TOP = {"driver/main.cc"}
MOST_FILES_OF_A_FOLDER = 25
# One file a record, in a folder of records and of what they share.
FOLDERS_OF_RECORDS = {"ir/ops", "codegen/families"}
# Libraries by the first words of a header, and the rooms that may know them.
LIBRARIES = {
    "fmt/": {"base", "ir", "frontend", "passes", "codegen", "jinja", "driver"},
    "nlohmann/": {"codegen", "jinja", "driver"},
    "onnx/": {"frontend"},
    "google/protobuf/": {"frontend"},
    "zlib.h": {"driver"},
}
# The compiler's own logic sees no machine: files and processes are the business of frontend and driver.
MACHINE = {"sys/", "linux/", "unistd.h", "fcntl.h", "dirent.h", "spawn.h", "signal.h", "errno.h", "filesystem",
           "fstream", "iostream", "thread", "mutex", "atomic"}
# Memory is asked for where it is needed; pages that are fresh the C++ library cannot give.
PAGES = ("base/zeroed_memory.cc", "sys/mman.h")
# Their order differs from run to run, or they are another thing on another day.
UNSTEADY = {"unordered_map", "unordered_set", "ctime", "time.h", "random"}
# Headers of the runtime that belong to the programs, not to the library that is emitted, which may not include them.
HOST_HEADERS = re.compile(r"gcrt/(app/[a-z_]+|npy|thread_pool)\.h")
LIBRARY_MAY_INCLUDE = {"arm_neon.h", "sys/auxv.h", "cpuid.h", "immintrin.h", "cmath", "cstddef", "cstdint", "cstring", "limits", "type_traits",
                       "utility", "algorithm", "atomic"}
DEVICE_MAY_INCLUDE = LIBRARY_MAY_INCLUDE | {"cuda_runtime.h"}
OPT_IN = {("gcrt/cuda/product/hopper.h", "cuda.h"), ("gcrt/cuda/product/cublaslt.h", "cublasLt.h")}

# Stands for the CUDA runtime where there is no GPU. A process of its own: it knows the machine, but neither the headers
# that it runs nor the compiler.
EMULATOR = "emulator/"

# The folders of the runtime, and which each may include beside itself. What both targets share knows neither of them; within a
# target whole kernels see the parts, and programs see all.
SHARED = {"gcrt", "gcrt/isa", "gcrt/scalar"}
PRODUCTS = {"gcrt/cuda/device", "gcrt/cuda/product"}
FOLDERS_OF_RUNTIME = {
    "gcrt": SHARED, "gcrt/isa": {"gcrt"}, "gcrt/scalar": {"gcrt"},
    "gcrt/cpu/product": SHARED, "gcrt/cpu/image": SHARED | {"gcrt/cpu/product"}, "gcrt/cpu": SHARED | {"gcrt/cpu/product", "gcrt/cpu/image"},
    "gcrt/cuda/device": SHARED, "gcrt/cuda/product": SHARED | {"gcrt/cuda/device"}, "gcrt/cuda/image": SHARED | PRODUCTS,
    "gcrt/cuda/attention": SHARED | PRODUCTS, "gcrt/cuda": SHARED | PRODUCTS | {"gcrt/cuda/image", "gcrt/cuda/attention"},
    "gcrt/app": SHARED | {"gcrt/cpu", "gcrt/cuda", "gcrt/cuda/device"},
}

# Pure arithmetic that the emitted code and the compiler share: tiles and the sizes of packed weights.
SHARED_PLANS = re.compile(r"gcrt/(precision|(cpu|cuda)/([a-z]+/)?[a-z]+_(plan|model))\.h")


def is_one_of(header, prefixes):
    return any(header == prefix or (prefix.endswith("/") and header.startswith(prefix)) for prefix in prefixes)


def storey_of(room, file):
    """Position of the folder that a file of the room lies in; -1 for the room itself."""
    return STOREYS[room].index(file.split("/")[0]) if "/" in file else -1


def storey_complaint(room, file, header):
    if f"{room}/{file}" in ON_TOP or storey_of(room, header) <= storey_of(room, file):
        return ""
    return f"{room}/{file.split('/')[0]} is below {room}/{header.split('/')[0]}"


def runtime_complaint(file, header):
    """Why one header of the runtime may not include another."""
    above, below = file.rsplit("/", 1)[0], header.rsplit("/", 1)[0]
    if HOST_HEADERS.fullmatch(header) and not HOST_HEADERS.fullmatch(file):
        return "the emitted library includes this header"
    return "" if below == above or below in FOLDERS_OF_RUNTIME.get(above, ()) else f"{above} must not know {below}"


def complaint(room, file, header):
    """Why `file` of `room` may not include `header`, or an empty string. `file` is relative to the room."""
    first = header.split("/")[0]
    if first == room and room in STOREYS:
        return storey_complaint(room, file, header.removeprefix(f"{room}/"))
    if room == "codegen" and SHARED_PLANS.fullmatch(header):
        return ""
    if room == "runtime_stub" and file.startswith(EMULATOR):
        return "the emulator knows nobody" if first in ROOMS or first in ("gcrt", "tests") else ""
    if room == "runtime_stub" and first == "gcrt":
        return runtime_complaint(file, header)
    if first in ROOMS or first == "gcrt" or first == "tests":
        return "" if first in ROOMS[room] else f"{room} must not know {first}"
    if room == "runtime_stub":
        allowed = DEVICE_MAY_INCLUDE if file.startswith("gcrt/cuda/") else LIBRARY_MAY_INCLUDE
        if not HOST_HEADERS.fullmatch(file) and header not in allowed and (file, header) not in OPT_IN:
            return "the emitted library includes this header"
        return ""
    for prefix, rooms in LIBRARIES.items():
        if is_one_of(header, {prefix}) and room not in rooms:
            return f"only {', '.join(sorted(rooms))} may know {prefix.rstrip('/')}"
    if (f"{room}/{file}", header) == PAGES:
        return ""
    if room in ("base", "ir", "passes", "codegen", "jinja") and is_one_of(header, MACHINE):
        return f"{room} must not touch the machine"
    if header in UNSTEADY:
        return "same input, same bytes"
    return ""


def try_rules():
    refused = [("ir", "graph/graph.h", "passes/engine/rule.h"), ("passes", "graph/cse.cc", "jinja/text.h"), ("jinja", "text.cc", "ir/graph/graph.h"),
               ("base", "sha256.h", "ir/graph/graph.h"), ("ir", "sizes/dim.h", "ir/graph/graph.h"), ("driver", "data/npy.cc", "driver/commands/compile.h"),
               ("codegen", "memory/plan.cc", "codegen/loops/loop_nest.h"), ("codegen", "target.h", "codegen/memory/plan.h"),
               ("codegen", "packing/weights.cc", "codegen/emit/emit.h"), ("codegen", "calls/epilogue.cc", "codegen/families/families.def"),
               ("codegen", "emit/emit.cc", "passes/engine/passes.h"), ("frontend", "sizes/dims.cc", "driver/data/npy.h"),
               ("driver", "main.cc", "onnx/onnx_pb.h"), ("driver", "main.cc", "google/protobuf/message.h"),
               ("runtime_stub", "gcrt/pack.h", "ir/graph/graph.h"), ("runtime_stub", "gcrt/pack.h", "vector"), ("runtime_stub", "gcrt/pack.h", "gcrt/app/run.h"),
               ("runtime_stub", "gcrt/cuda/device/pack.h", "vector"), ("runtime_stub", "gcrt/pack.h", "gcrt/cpu/level.h"),
               ("runtime_stub", "gcrt/cpu/product/dot.h", "gcrt/cpu/image/conv.h"), ("runtime_stub", "gcrt/cuda/image/conv.h", "gcrt/cpu/image/conv.h"),
               ("runtime_stub", "gcrt/cuda/product/gemm.h", "cublasLt.h"), ("runtime_stub", "gcrt/pack.h", "cuda_runtime.h"),
               ("runtime_stub", "emulator/warp.cc", "gcrt/pack.h"), ("runtime_stub", "emulator/warp.cc", "ir/graph/graph.h"),
               ("ir", "graph/graph.h", "sys/stat.h"), ("codegen", "emit/emit.cc", "unordered_map"),
               ("ir", "graph/graph.h", "nlohmann/json.hpp"), ("codegen", "emit/emit.cc", "gcrt/pack.h")]
    allowed = [("ir", "graph/graph.h", "ir/tensors/tensor.h"), ("runtime_stub", "gcrt/cuda/device/launch.h", "cuda_runtime.h"), ("runtime_stub", "gcrt/cpu/image/conv_dot.h", "gcrt/cpu/product/tile.h"),
               ("driver", "main.cc", "passes/engine/passes.h"), ("codegen", "memory/plan.cc", "codegen/target.h"), ("codegen", "emit/emit.cc", "codegen/memory/plan.h"),
               ("codegen", "calls/cuda_shape.h", "gcrt/cuda/image/conv_plan.h"),
               ("frontend", "import/import.cc", "onnx/onnx_pb.h"), ("runtime_stub", "gcrt/npy.h", "vector"), ("runtime_stub", "gcrt/app/run.h", "gcrt/app/measure.h"),
               ("codegen", "emit/emit.cc", "nlohmann/json.hpp"), ("driver", "machine/terminal.cc", "unistd.h"), ("driver", "main.cc", "driver/commands/compile.h"),
               ("runtime_stub", "emulator/fiber.cc", "sys/mman.h")]
    for example in refused:
        assert complaint(*example), f"the rules allow {example}"
    for example in allowed:
        assert not complaint(*example), f"the rules refuse {example}"


def main():
    try_rules()
    root = pathlib.Path(sys.argv[1])
    complaints, includes = [], 0
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.suffix not in (".h", ".cc", ".cuh", ".def"):
                continue
            file = path.relative_to(root / room).as_posix()
            text = path.read_text(encoding="utf-8")
            for match in INCLUDE.finditer(text):
                includes += 1
                reason = complaint(room, file, match[1] or match[2])
                if reason:
                    line = text.count("\n", 0, match.start(match.lastindex)) + 1
                    complaints.append(f"{room}/{file}:{line}: {match[1] or match[2]}: {reason}")
    tidy = [root / room for room in (*ROOMS, "templates", "tests/unit")]
    for folder in sorted({path.parent for room in tidy for path in room.rglob("*.*")}):
        files = len(list(folder.glob("*.*")))
        if files > MOST_FILES_OF_A_FOLDER and folder.relative_to(root).as_posix() not in FOLDERS_OF_RECORDS:
            complaints.append(f"{folder.relative_to(root)}: {files} files, more than {MOST_FILES_OF_A_FOLDER}")
    assert includes > 500, f"only {includes} includes found"
    print("\n".join(complaints) or f"{includes} includes, none that the rooms may not have")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())

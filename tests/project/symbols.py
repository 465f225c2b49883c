#!/usr/bin/env python3
"""The library part of an emitted project brings nothing along: no allocation, no exceptions, no output, no state, and
no name that another library could have.

    symbols.py --gcompile GCOMPILE [CASE...]
"""

import re

from onnx_bytes import shape_flags
from support import (HERE, SHARED_MODELS, World, check, compilers, library_sources, main_suite, run_main, shared_model)

# Everything that the library may take from elsewhere: what compilers themselves insert for copies, position-independent
# code, and arithmetic that an instruction set lacks (half precision, wide integers); and the mathematical library.
ALLOWED = re.compile(r"_GLOBAL_OFFSET_TABLE_|memcpy|memmove|memset|memcmp|__[a-z]*(hf|bf|sf|df|ti)[a-z]*[0-9]?|"
                     r"a?(sin|cos|tan)h?f?|(exp|exp2|expm1|log|log1p|log2|log10|pow|erf|fmod|sqrt|cbrt)f?|"
                     r"(floor|ceil|trunc|rint|nearbyint|round|roundeven|fma|fmin|fmax)f?")
# Guards of local statics, virtual tables and type information, initialisers before main.
FORBIDDEN = re.compile(r"_ZG[VR]|_ZT[VTIS]|_GLOBAL__")
# Data that changes, or that an initialiser fills before main.
MUTABLE_SECTION = re.compile(r"\.(data|bss|tdata|tbss|init_array|fini_array|ctors|dtors)(\.|$)")
# Constants that hold addresses: writable to the loader only.
RELOCATED_CONSTANTS = re.compile(r"\.data\.rel\.ro(\.|$)")


def symbols_of(world, objects):
    """(name, type letter) of every symbol, and the set of those defined anywhere."""
    listing = world.run(["nm", "--format=posix", *objects]).stdout
    found = []
    for line in listing.splitlines():
        words = line.split()
        if len(words) >= 2 and not line.endswith(":"):
            found.append((words[0], words[1]))
    check(found, "nm lists no symbol")
    return found


def check_symbols(world, objects, name):
    found = symbols_of(world, objects)
    # Upper case is global, W and V weak, u unique; B, C and D global data would also show in the sections.
    defined = {symbol for symbol, kind in found if kind not in "Uwv" and (kind.isupper() or kind == "u")}
    for symbol in sorted(defined):
        holds_name = symbol.startswith(f"{name}_") or (symbol.startswith("_Z") and f"{name}_" in symbol)
        check(holds_name, f"{symbol} is defined for everyone and does not carry the prefix {name}_")
    for symbol, _ in found:
        check(symbol == "_GLOBAL_OFFSET_TABLE_" or not FORBIDDEN.match(symbol), f"{symbol} in the library")
    wanted = {symbol for symbol, kind in found if kind in "Uwv"} - {symbol for symbol, kind in found if kind not in "Uwv"}
    for symbol in sorted(wanted):
        check(ALLOWED.fullmatch(symbol), f"the library needs {symbol}")


def check_sections(world, objects):
    sections = 0
    for line in world.run(["objdump", "-h", *objects]).stdout.splitlines():
        words = line.split()
        if len(words) < 7 or not words[0].isdigit():
            continue
        sections += 1
        section, size = words[1], int(words[2], 16)
        mutable = MUTABLE_SECTION.match(section) and not RELOCATED_CONSTANTS.match(section)
        check(size == 0 or not mutable, f"section {section} holds {size} bytes")
    check(sections, "objdump lists no section")


def check_project(world, project, name, variants):
    for compiler, flags in variants:
        objects = world.library_objects(project, name, compiler, flags)
        check(len(objects) == len(library_sources(project, name)), "an object file is missing")
        check_symbols(world, objects, name)
        check_sections(world, objects)


def variants():
    """Without optimisation every inline function stands in the object file, with it the compiler's own calls do."""
    return [(compiler, flags) for compiler in compilers() for flags in (["-O0"], ["-O3", "-march=native"])]


def case_classifier(world):
    check_project(world, world.example("shapes_classifier", "project", "--name", "zebra"), "zebra", variants())


def case_denoiser(world):
    check_project(world, world.example("streaming_denoiser", "project", "--name", "zebra"), "zebra", variants())


def case_attention(world):
    check_project(world, world.example("tiny_attention", "project", "--name", "zebra"), "zebra", variants())


def case_operators(world):
    """Many operators at once: sorts, selections, run-time indices, loops in other element types, an If."""
    project = world.path("project")
    world.compile(HERE / "models" / "many_operators.onnxtxt", project, "--name", "zebra")
    check_project(world, project, "zebra", variants())


def case_weights(world):
    """Each way to bring the weights."""
    for kind in ("array", "file", "extern"):
        project = world.example("shapes_classifier", f"project_{kind}", "--name", "zebra", "--weights", kind)
        check_project(world, project, "zebra", [("g++", ["-O1"])])


def case_detects(world: World):
    """This test itself sees what it looks for."""
    bad = {
        "allocation": "extern \"C\" void* malloc(unsigned long); void* zebra_f() { return malloc(1); }",
        "other name": "int other() { return 1; }",
        "guard": "struct S { S(); }; S& zebra_f() { static S s; return s; }",
        "data": "int zebra_counter = 1;",
        "bss": "namespace { int zebra_counter; } int& zebra_f() { return zebra_counter; }",
        "throw": "void zebra_f() { throw 1; }",
    }
    for title, text in bad.items():
        source = world.path("bad.cpp")
        source.write_text(text + "\n", encoding="utf-8")
        world.run(["g++", "-O0", "-c", source, "-o", world.path("bad.o")])
        objects = [world.path("bad.o")]
        try:
            check_symbols(world, objects, "zebra")
            check_sections(world, objects)
        except Exception:  # pylint: disable=broad-except
            continue
        check(False, f"an object file with {title} passes")


def case_main_suite(world):
    """Long: every model of the main suite, as the product would build it."""
    for model in main_suite():
        project = world.path(model)
        world.compile(shared_model(model), project, "--name", "zebra", *shape_flags(SHARED_MODELS / model))
        check_project(world, project, "zebra", [("g++", ["-O1", "-march=native"])])
        print(f"         {model}", flush=True)


if __name__ == "__main__":
    run_main(globals())

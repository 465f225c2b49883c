#!/usr/bin/env python3
"""--pack: what build systems for microcontrollers are given builds, alone, and computes the same.

    packs.py --gcompile GCOMPILE [CASE...]

The systems themselves are not here: ESP-IDF and Zephyr are a few CMake functions that do as their documentation says, and
Arduino and PlatformIO are a compiler that sees one folder.
"""

import json
import re

from support import check, contains, equal, manifest, run_main

CALLER = """#include <stdio.h>
#include "net/net.h"
static _Alignas(NET_ALIGN) unsigned char arena[NET_ARENA_BYTES], instance[NET_INSTANCE_BYTES];
static float image[NET_INPUT_IMAGE_ELEMENTS], out[NET_OUTPUT_PROBABILITIES_ELEMENTS];
int main(void) {
  const net_memory memory = {.arena = arena, .instance = instance};
  for (int i = 0; i < NET_INPUT_IMAGE_ELEMENTS; ++i) image[i] = (float)(i % 7) / 7.0f;
  if (net_init(&memory) != NET_OK || net_run(&memory, &(const net_inputs){image}, &(const net_outputs){out}) != NET_OK) return 1;
  for (int i = 0; i < NET_OUTPUT_PROBABILITIES_ELEMENTS; ++i) printf("%.4f ", (double)out[i]);
  return 0;
}
"""
ESP_IDF = """cmake_minimum_required(VERSION 3.16)
project(product LANGUAGES C CXX ASM)
# https://docs.espressif.com/projects/esp-idf/en/latest/esp32/api-guides/build-system.html
function(idf_component_register)
  cmake_parse_arguments(PARSE_ARGV 0 THE "" "" "SRCS;INCLUDE_DIRS;PRIV_INCLUDE_DIRS")
  get_filename_component(COMPONENT ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  add_library(${COMPONENT} STATIC ${THE_SRCS})
  target_include_directories(${COMPONENT} PUBLIC ${THE_INCLUDE_DIRS} PRIVATE ${THE_PRIV_INCLUDE_DIRS})
  set(COMPONENT_LIB ${COMPONENT} PARENT_SCOPE)
endfunction()
add_subdirectory(FOLDER/net net)
add_executable(product main.c)
target_link_libraries(product PRIVATE net)
"""
ZEPHYR = """cmake_minimum_required(VERSION 3.20)
project(product LANGUAGES C CXX ASM)
set(CMAKE_CXX_STANDARD 17)  # CONFIG_STD_CPP17
set(CONFIG_NET y)
# https://docs.zephyrproject.org/latest/build/cmake/index.html
macro(zephyr_library_named NAME)
  add_library(${NAME} STATIC)
  set(ZEPHYR_CURRENT_LIBRARY ${NAME})
endmacro()
macro(zephyr_library_sources)
  target_sources(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endmacro()
function(zephyr_include_directories)
  foreach(FOLDER ${ARGN})
    get_filename_component(FOLDER ${FOLDER} ABSOLUTE)
    set_property(GLOBAL APPEND PROPERTY ALL_INCLUDES ${FOLDER})
    target_include_directories(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${FOLDER})
  endforeach()
endfunction()
macro(zephyr_library_include_directories)
  target_include_directories(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endmacro()
macro(zephyr_library_compile_options)
  target_compile_options(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endmacro()
add_subdirectory(FOLDER net)
get_property(FOLDERS GLOBAL PROPERTY ALL_INCLUDES)
add_executable(product main.c)
target_include_directories(product PRIVATE ${FOLDERS})
target_link_libraries(product PRIVATE net)
"""


def reference(world, project):
    """What the library prints, built as the project itself does."""
    objects = world.library_objects(project, "net")
    return world.run([program(world, project, [f"-I{project}/include"], objects)]).stdout


def program(world, project, includes, objects):
    main = world.path("main.c")
    main.write_text(CALLER, encoding="utf-8")
    target = world.path(f"caller_of_{project.name}")
    world.run(["gcc", "-std=c11", *includes, "-c", main, "-o", f"{target}.o"])
    world.run(["g++", f"{target}.o", *objects, "-o", target])
    return target


def case_component_systems(world):
    project = world.example("shapes_classifier", "net", "--name", "net", "--pack", "zephyr", "--pack", "esp-idf")
    contains(manifest(project, "net")["options"], "--pack esp-idf --pack zephyr")
    expected = reference(world, project)
    for pack, text in (("esp-idf", ESP_IDF), ("zephyr", ZEPHYR)):
        product = world.path(pack)
        product.mkdir()
        (product / "CMakeLists.txt").write_text(text.replace("FOLDER", str(project / "pack" / pack), 1) if pack == "esp-idf" else
                                                text.replace("add_subdirectory(FOLDER", f"add_subdirectory({project / 'pack' / pack}"),
                                                encoding="utf-8")
        (product / "main.c").write_text(CALLER, encoding="utf-8")
        world.run(["cmake", "-S", product, "-B", product / "build", "-DCMAKE_BUILD_TYPE=Debug"])
        world.run(["cmake", "--build", product / "build", "-j2"])
        equal(world.run([product / "build" / "product"]).stdout, expected, f"answers of {pack}")
    contains((project / "pack/zephyr/Kconfig").read_text(), "config NET\n", "STD_CPP17")
    contains((project / "pack/zephyr/zephyr/module.yml").read_text(), "name: net")


def case_folders(world):
    """One folder, its own root as the only place of headers, every source by the flags of the board alone."""
    project = world.example("shapes_classifier", "net", "--name", "net", "--weights", "array", "--pack", "platformio", "--pack", "arduino")
    expected = reference(world, project)
    json.loads((project / "pack/platformio/net/library.json").read_text())
    contains((project / "pack/arduino/net/library.properties").read_text(), "name=net\n", "includes=net/net.h")
    for pack in ("platformio", "arduino"):
        source = project / "pack" / pack / "net" / "src"
        objects = []
        for path in sorted(source.rglob("*")):
            if path.suffix in (".cpp", ".c", ".S"):
                objects.append(world.path(f"{pack}_{path.name}.o"))
                language = ["g++", "-std=gnu++17"] if path.suffix == ".cpp" else ["gcc"]
                world.run([*language, "-O1", f"-I{source}", "-c", path, "-o", objects[-1]])
        check(len(objects) >= 4, f"sources of {pack}: {objects}")
        said = world.run([program(world, source.parent, [f"-I{source}"], objects)]).stdout
        pairs = list(zip(re.findall(r"[0-9.]+", said), re.findall(r"[0-9.]+", expected)))
        check(len(pairs) == 5 and all(abs(float(a) - float(b)) <= 2e-4 for a, b in pairs), f"{pack}: {said}, expected {expected}")
        missing = [path for path in source.rglob("*") if path.is_file() and "_threads" in path.name]
        equal(missing, [], "threads in a pack")


if __name__ == "__main__":
    run_main(globals())

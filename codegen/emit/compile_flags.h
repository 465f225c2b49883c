#pragma once
// The flags that the emitted library is compiled with, whoever builds it: its CMakeLists.txt, its Makefile,
// verify, tests. They stand in runtime_stub/flags.

#include <string>
#include <string_view>
#include <vector>

#include "codegen/target.h"

namespace gcompile {

/// The flags that keep a product and a sum two roundings, for the compiler of the target.
std::string_view arithmetic_flags(Target target);

/// What a library that throws nothing can do without: "-fno-exceptions -fno-rtti -fvisibility=hidden".
std::string_view library_flags();

/// What clang needs to keep vectors of 64 bytes whole.
std::string_view clang_flags();

/// What GCC for Windows needs: it aligns the stack to 16 bytes and moves larger vectors as if
/// they were aligned.
std::string_view mingw_flags();

/// What a program is linked with besides the library, in its pkg-config file.
std::string link_flags(Target target, bool uses_cublaslt);

/// A set of instructions that a library for every processor of an architecture holds its kernels for (x86-64
/// psABI, micro-architecture levels; Arm Architecture Reference Manual, A2.3).
struct LevelFlags {
  std::string name;   // "x86_64_v3", an identifier
  std::string flags;  // "-march=x86-64-v3"
  bool has_tile_unit = false;
};

/// The levels of an architecture of 64 bits.
struct LevelSet {
  std::string
      architecture;  // "x86_64": the first word of what a compiler calls its target, __x86_64__ its macro
  std::vector<LevelFlags> levels;  // the best first: a processor takes the first whose instructions it has
};
std::vector<LevelSet> library_levels();

}  // namespace gcompile

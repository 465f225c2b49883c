#pragma once
// What the code of a built library takes, read from its object files.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gcompile {

/// A function, or a constant or variable, of a library.
struct CodeSymbol {
  std::string name;  // demangled
  std::int64_t bytes = 0;
  bool is_function = false;
};

/// The sizes of all object files together. Functions that several files hold, and of which a linker keeps
/// one, count once.
struct CodeSizes {
  std::vector<CodeSymbol> symbols;  // sorted by name
  std::int64_t code = 0;            // sections that are executed
  std::int64_t constants = 0;       // that are read only, code apart
  std::int64_t device = 0;          // among these: code for a GPU (.nv_fatbin)
  std::int64_t variables = 0;       // that begin with values
  std::int64_t zeros = 0;           // that begin with zeros: RAM alone
};

/// Reads an ELF file of either width, little-endian, or an archive of such (System V ABI, "Object Files";
/// ar(5)). Throws std::invalid_argument with the reason.
CodeSizes read_code_sizes(std::string_view bytes);

}  // namespace gcompile

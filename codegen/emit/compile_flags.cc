#include "codegen/emit/compile_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "base/diagnostics.h"
#include "codegen/emit/embedded.h"

namespace gcompile {
namespace {

std::string_view text_of(std::string_view name) {
  const EmbeddedFile* const file = find_embedded_file(fmt::format("runtime_stub/flags/{}.txt", name));
  GC_CHECK(file != nullptr);
  return file->contents;
}

/// The one line of runtime_stub/flags/NAME.txt.
std::string_view line_of(std::string_view name) {
  const std::string_view text = text_of(name);
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::string_view arithmetic_flags(Target target) { return line_of(info_of(target).name); }
std::string_view library_flags() { return line_of("library"); }
std::string_view clang_flags() { return line_of("clang"); }
std::string_view mingw_flags() { return line_of("mingw"); }

std::string link_flags(Target target, bool uses_cublaslt) {
  if (!info_of(target).has_device_memory) return "-lm";
  return fmt::format("{}-lcudart_static -lstdc++ -lm -ldl -lrt -pthread", uses_cublaslt ? "-lcublasLt " : "");
}

std::vector<LevelSet> library_levels() {
  std::vector<LevelSet> sets;
  std::istringstream text{std::string(text_of("levels"))};
  std::string architecture;
  LevelFlags level;
  while (text >> architecture >> level.name && std::getline(text >> std::ws, level.flags)) {
    if (sets.empty() || sets.back().architecture != architecture) sets.push_back({architecture, {}});
    std::istringstream words(level.flags);
    const std::istream_iterator<std::string> first(words), last;
    level.has_tile_unit = std::find(first, last, "-mamx-tile") != last;
    sets.back().levels.push_back(level);
  }
  GC_CHECK(!sets.empty());
  return sets;
}

}  // namespace gcompile

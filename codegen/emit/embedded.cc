#include "codegen/emit/embedded.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

// Defined by what cmake/embed_files.cmake writes. A row of the table is where a path begins, where the file does,
// and where that ends, counted from the first byte.
extern "C" const char gcompile_embedded_bytes[];
extern "C" const std::uint32_t gcompile_embedded_table[][3];
extern "C" const std::uint32_t gcompile_embedded_count;

namespace gcompile {
namespace {

std::vector<EmbeddedFile> files_of_table() {
  const auto text = [](std::uint32_t begin, std::uint32_t end) {
    return std::string_view(gcompile_embedded_bytes + begin, end - begin);
  };
  std::vector<EmbeddedFile> files;
  for (std::size_t i = 0; i < gcompile_embedded_count; ++i) {
    const auto& [path, contents, end] = gcompile_embedded_table[i];
    files.push_back({text(path, contents), text(contents, end)});
  }
  return files;
}

}  // namespace

std::span<const EmbeddedFile> embedded_files() {
  static const std::vector<EmbeddedFile> files = files_of_table();
  return files;
}

const EmbeddedFile* find_embedded_file(std::string_view path) {
  const std::span<const EmbeddedFile> files = embedded_files();
  const auto found =
      std::lower_bound(files.begin(), files.end(), path,
                       [](const EmbeddedFile& file, std::string_view wanted) { return file.path < wanted; });
  return found != files.end() && found->path == path ? &*found : nullptr;
}

}  // namespace gcompile

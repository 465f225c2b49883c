#include "codegen/emit/embedded.h"

#include <algorithm>

namespace gcompile {

const EmbeddedFile* find_embedded_file(std::string_view path) {
  const std::span<const EmbeddedFile> files = embedded_files();
  const auto found =
      std::lower_bound(files.begin(), files.end(), path,
                       [](const EmbeddedFile& file, std::string_view wanted) { return file.path < wanted; });
  return found != files.end() && found->path == path ? &*found : nullptr;
}

}  // namespace gcompile

#pragma once

#include <span>
#include <string_view>

namespace gcompile {

/// A file of templates/ or runtime_stub/, or docs/errors/, as it was when the tool was built.
struct EmbeddedFile {
  std::string_view path;      ///< relative to the source tree: "templates/x.j2", "runtime_stub/gcrt/pack.h"
  std::string_view contents;  ///< the bytes of the file, unchanged
};

/// All embedded files, sorted by path (byte order). Their bytes are what cmake/embed.cmake gives the assembler.
std::span<const EmbeddedFile> embedded_files();

/// The embedded file at `path`, or nullptr.
const EmbeddedFile* find_embedded_file(std::string_view path);

}  // namespace gcompile

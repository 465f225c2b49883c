#include "codegen/emit/compile_flags.h"

#include <fmt/format.h>

#include "codegen/emit/embedded.h"
#include "ir/diagnostics.h"

namespace gcompile {
namespace {

/// The one line of runtime_stub/flags/NAME.txt.
std::string_view line_of(std::string_view name) {
  const EmbeddedFile* const file = find_embedded_file(fmt::format("runtime_stub/flags/{}.txt", name));
  GC_CHECK(file != nullptr);
  return file->contents.substr(0, file->contents.find('\n'));
}

}  // namespace

std::string_view arithmetic_flags(Target target) { return line_of(info_of(target).name); }
std::string_view library_flags() { return line_of("library"); }
std::string_view clang_flags() { return line_of("clang"); }

}  // namespace gcompile

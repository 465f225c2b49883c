#include "base/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace gcompile {

std::string to_string(const Diagnostic& diagnostic) {
  std::string text =
      fmt::format("{}{}: {}", diagnostic.severity == Severity::kError ? "error" : "warning",
                  diagnostic.code.empty() ? "" : "[" + diagnostic.code + "]", diagnostic.message);
  if (!diagnostic.location.empty()) text += "\n  --> " + diagnostic.location;
  for (const std::string& detail : diagnostic.details) text += "\n   |  " + detail;
  if (!diagnostic.help.empty()) text += "\n   = help: " + diagnostic.help;
  return text;
}

CompileError::CompileError(ExitCode code, std::string message, std::string help) : code_(code) {
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  diagnostic.help = std::move(help);
  text_ = to_string(diagnostic);
  diagnostics_.push_back(std::move(diagnostic));
}

CompileError::CompileError(ExitCode code, std::vector<Diagnostic> diagnostics)
    : code_(code), diagnostics_(std::move(diagnostics)) {
  for (const Diagnostic& diagnostic : diagnostics_) {
    if (!text_.empty()) text_ += '\n';
    text_ += to_string(diagnostic);
  }
}

void Diagnostics::add(Diagnostic diagnostic) { all_.push_back(std::move(diagnostic)); }

bool Diagnostics::has_errors() const {
  return std::any_of(all_.begin(), all_.end(),
                     [](const Diagnostic& d) { return d.severity == Severity::kError; });
}

void Diagnostics::throw_if_errors() const {
  if (!has_errors()) return;
  std::vector<Diagnostic> errors;
  std::copy_if(all_.begin(), all_.end(), std::back_inserter(errors),
               [](const Diagnostic& d) { return d.severity == Severity::kError; });
  throw CompileError(ExitCode::kModel, std::move(errors));
}

std::string printable(std::string_view name, std::size_t limit) {
  std::string out;
  for (const char c : name) {
    if (out.size() >= limit) return out + "...";
    if (c >= 0x20 && c < 0x7f) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

void internal_error(const char* file, int line, const char* condition) {
  const char* slash = std::strrchr(file, '/');
  throw CompileError(ExitCode::kInternal, fmt::format("internal compiler error: {}:{}: {} does not hold",
                                                      slash ? slash + 1 : file, line, condition));
}

}  // namespace gcompile

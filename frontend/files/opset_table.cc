#include "frontend/files/opset_table.h"

#include <fmt/format.h>

#include <limits>

namespace gcompile::frontend {
namespace {

void add(Diagnostics& diagnostics, Severity severity, std::string code, std::string message,
         std::string help = {}) {
  diagnostics.add({severity, std::move(code), std::move(message), {}, {}, std::move(help)});
}

/// ONNX makes two or three opsets a year:
/// so far ahead of this compiler there is none, and the file is damaged.
constexpr std::int64_t kOpsetsAhead = 30;

std::string shown(const std::string& domain) { return domain.empty() ? "ai.onnx" : printable(domain); }

}  // namespace

std::string canonical_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string() : std::string(domain);
}

OpsetTable::OpsetTable(const Imports& imports, const std::string& where, const OpsetTable* outer,
                       Diagnostics& diagnostics) {
  for (const onnx::OperatorSetIdProto& import : imports) {
    const std::string domain = canonical_domain(import.domain());
    const auto [at, added] = versions_.emplace(domain, import.version());
    if (added) continue;
    if (at->second != import.version()) {
      add(diagnostics, Severity::kWarning, "W0110",
          fmt::format("{} imports opset {} of {} and later {}; the last one counts", where, at->second,
                      shown(domain), import.version()));
    } else {
      add(diagnostics, Severity::kWarning, "W0110",
          fmt::format("{} imports opset {} of {} twice", where, import.version(), shown(domain)));
    }
    at->second = import.version();
  }
  for (const auto& [domain, version] : versions_) {
    if (!domain.empty()) {
      if (version < 0 || version > std::numeric_limits<int>::max()) {
        add(diagnostics, Severity::kError, "E0111",
            fmt::format("{} imports opset {} of {}, which is no version", where, version, shown(domain)));
      }
      continue;
    }
    if (version < kOldestOpset || version > kNewestOpset + kOpsetsAhead) {
      add(diagnostics, Severity::kError, "E0111",
          fmt::format("{} imports opset {}, which is no version", where, version));
    } else if (version > kNewestOpset) {
      add(diagnostics, Severity::kWarning, "W0112",
          fmt::format(
              "{} imports opset {}; this compiler knows opsets up to {} and reads newer ones like that",
              where, version, kNewestOpset));
    }
  }
  if (outer) versions_.insert(outer->versions_.begin(), outer->versions_.end());
}

std::optional<int> OpsetTable::version(std::string_view domain) const {
  const auto at = versions_.find(canonical_domain(domain));
  return at == versions_.end() ? std::nullopt : std::optional(static_cast<int>(at->second));
}

}  // namespace gcompile::frontend

// The operators that there are.

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/diagnostics.h"
#include "ir/graph/operator.h"

namespace gcompile::ir {

// Every record is a function `operator_NAME()` defined in one of ir/ops/*.cc: one that is listed but not
// defined is a link error that names it, and no static initialisation order is involved.
#define GC_OPERATOR(identifier) const Operator& operator_##identifier();
#include "ir/ops/operators.def"
#undef GC_OPERATOR

namespace {

std::string_view canonical_domain(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

bool before(const Operator* a, std::string_view domain, std::string_view name) {
  return std::pair(a->domain, a->name) < std::pair(domain, name);
}

const std::vector<const Operator*>& table() {
  static const std::vector<const Operator*> sorted = [] {
    std::vector<const Operator*> all = {
#define GC_OPERATOR(identifier) &operator_##identifier(),
#include "ir/ops/operators.def"
#undef GC_OPERATOR
    };
    std::sort(all.begin(), all.end(),
              [](const Operator* a, const Operator* b) { return before(a, b->domain, b->name); });
    return all;
  }();
  return sorted;
}

}  // namespace

const Operator* find_operator(std::string_view domain, std::string_view name) {
  const std::string_view wanted = canonical_domain(domain);
  const auto at = std::lower_bound(table().begin(), table().end(), 0,
                                   [&](const Operator* a, int) { return before(a, wanted, name); });
  return at != table().end() && (*at)->domain == wanted && (*at)->name == name ? *at : nullptr;
}

const Operator& operator_named(std::string_view name) {
  for (const std::string_view domain : {"", "gcompile"}) {
    if (const Operator* op = find_operator(domain, name)) return *op;
  }
  internal_error(__FILE__, __LINE__, fmt::format("operator {} exists", name).c_str());
}

std::span<const Operator* const> all_operators() { return table(); }

}  // namespace gcompile::ir

#include "ir/sizes/solve_sizes.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ir/sizes/sizes.h"

namespace gcompile::ir {
namespace {

/// The formula as factor * symbol + rest.
std::optional<SolvedSymbol> as_linear(Dim formula, int symbol) {
  const auto with = [&](Dim value) {
    return formula.replaced([&](int other) { return other == symbol ? value : Dim::symbol(other); });
  };
  SolvedSymbol out{symbol, std::nullopt, with(1) - with(0), with(0)};
  const bool is_even = out.factor * Dim::symbol(symbol) + out.rest == formula;
  if (!is_even || out.factor == 0 || !always_less_equal(0, out.factor)) return std::nullopt;
  return out;
}

}  // namespace

SolvedSymbols solve_symbols(std::span<const Dim> formulas, int count) {
  SolvedSymbols out;
  std::set<int> unknown;
  for (int symbol = 0; symbol < count; ++symbol) unknown.insert(symbol);
  const auto solve_one = [&] {
    for (std::size_t i = 0; i < formulas.size(); ++i) {
      std::vector<int> mentioned;
      for (const int symbol : unknown) {
        if (formulas[i].mentions(symbol)) mentioned.push_back(symbol);
      }
      if (mentioned.size() != 1) continue;
      std::optional<SolvedSymbol> found = as_linear(formulas[i], mentioned[0]);
      if (!found) continue;
      found->formula = i;
      out.solved.push_back(*found);
      unknown.erase(mentioned[0]);
      return true;
    }
    return false;
  };
  const Sizes* sizes = SizesScope::in_force();
  const auto equate_one = [&] {
    for (const int symbol : unknown) {
      const Bounds& bounds = sizes->symbols()[symbol].bounds;
      const Dim value = sizes->resolved(Dim::symbol(symbol));
      const auto is_mentioned = [&](int other) { return value.mentions(other); };
      if (bounds.low == bounds.high || std::any_of(unknown.begin(), unknown.end(), is_mentioned)) continue;
      out.solved.push_back({symbol, std::nullopt, 1, value});
      unknown.erase(symbol);
      return true;
    }
    return false;
  };
  while (!unknown.empty()) {
    if (solve_one() || (sizes && equate_one())) continue;
    out.told.push_back(*unknown.begin());
    unknown.erase(unknown.begin());
  }
  return out;
}

}  // namespace gcompile::ir

#include "driver/verify/judged_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/diagnostics.h"
#include "driver/data/random_inputs.h"

namespace gcompile {
namespace {

constexpr std::size_t kMostCornerSymbols = 3;
constexpr int kBetween = 3;
/// Elements of all values of the graph together.
constexpr double kManyElements = 4e6;

std::int64_t value_at(ir::Dim dim, const SymbolValues& values) {
  return dim.at([&](int symbol) { return values[static_cast<std::size_t>(symbol)]; });
}

/// What equalities say of the symbols that they were solved for.
void solve(const ir::Sizes& sizes, SymbolValues& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ir::Dim symbol = ir::Dim::symbol(static_cast<int>(i));
    const ir::Dim resolved = sizes.resolved(symbol);
    if (resolved != symbol) values[i] = value_at(resolved, values);
  }
}

double elements(const ir::Graph& graph, const SymbolValues& values) {
  double sum = 0;
  for (const ir::ValueId id : graph.values()) {
    double count = 1;
    for (const ir::Dim size : graph.value(id).type.shape)
      count *= static_cast<double>(value_at(size, values));
    sum += count;
  }
  return sum;
}

/// From low to high; half of the way each time.
std::int64_t nearer(std::int64_t low, std::int64_t value) { return low + (value - low) / 2; }

}  // namespace

bool are_allowed(const ir::Sizes& sizes, const SymbolValues& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!sizes.symbols()[i].bounds.contains(values[i])) return false;
    if (value_at(sizes.resolved(ir::Dim::symbol(static_cast<int>(i))), values) != values[i]) return false;
  }
  return std::all_of(sizes.checks().begin(), sizes.checks().end(),
                     [&](const ir::SizeCheck& check) {
                       return value_at(check.a, values) == value_at(check.b, values);
                     }) &&
         std::all_of(sizes.facts().begin(), sizes.facts().end(), [&](const ir::SizeFact& fact) {
           return fact.bounds.contains(value_at(fact.formula, values));
         });
}

std::vector<SymbolValues> judged_sizes(const ir::Sizes& sizes, const ir::Graph& graph) {
  const std::vector<ir::SizeSymbol>& symbols = sizes.symbols();
  std::vector<SymbolValues> found;
  const auto add = [&](const std::function<std::int64_t(std::size_t, const ir::Bounds&)>& choose) {
    SymbolValues values;
    for (std::size_t i = 0; i < symbols.size(); ++i) values.push_back(choose(i, symbols[i].bounds));
    solve(sizes, values);
    while (elements(graph, values) > kManyElements) {
      const SymbolValues before = values;
      for (std::size_t i = 0; i < symbols.size(); ++i) values[i] = nearer(symbols[i].bounds.low, values[i]);
      solve(sizes, values);
      if (values == before) break;
    }
    const bool is_known = std::find(found.begin(), found.end(), values) != found.end();
    if (!is_known && are_allowed(sizes, values)) found.push_back(values);
  };
  const std::size_t axes = std::min(symbols.size(), kMostCornerSymbols);
  for (std::size_t corner = 0; corner < std::size_t{1} << axes; ++corner) {
    add([&](std::size_t i, const ir::Bounds& bounds) {
      const bool is_high = (corner >> std::min(i, kMostCornerSymbols - 1) & 1) != 0;
      return is_high ? bounds.high : bounds.low;
    });
  }
  add([&](std::size_t i, const ir::Bounds&) { return symbols[i].typical; });
  RandomInputs random(1);
  for (int i = 0; i < kBetween; ++i) {
    add([&](std::size_t, const ir::Bounds& bounds) {
      const auto span = static_cast<std::uint64_t>(bounds.high - bounds.low) + 1;
      return bounds.low + static_cast<std::int64_t>(random.next() % span);
    });
  }
  return found;
}

std::string to_string(const ir::Sizes& sizes, const SymbolValues& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ir::SizeSymbol& symbol = sizes.symbols()[i];
    text += fmt::format("{}{}={}", i > 0 ? ", " : "", printable(symbol.name), values[i] * symbol.unit);
  }
  return text;
}

}  // namespace gcompile

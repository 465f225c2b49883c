#include "frontend/sizes/narrowed_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace gcompile::frontend {
namespace {

/// Combinations that are tried one by one.
constexpr std::int64_t kMostTried = 20'000;

using Values = std::vector<std::int64_t>;

std::int64_t value_of(ir::Dim formula, const Values& values) {
  return formula.at([&](int symbol) { return values[symbol]; });
}

bool holds(const ir::Sizes& sizes, const Values& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!sizes.symbols()[i].bounds.contains(values[i])) return false;
  }
  const auto is_met = [&](const ir::SizeFact& fact) {
    return fact.bounds.contains(value_of(fact.formula, values));
  };
  const auto is_equal = [&](const ir::SizeCheck& check) {
    return value_of(check.a, values) == value_of(check.b, values);
  };
  return std::all_of(sizes.facts().begin(), sizes.facts().end(), is_met) &&
         std::all_of(sizes.checks().begin(), sizes.checks().end(), is_equal);
}

/// How many combinations of values the sizes allow; -1: too many to count. Those of symbols that an equality
/// gives follow from the others.
std::int64_t combinations(const ir::Sizes& sizes) {
  std::vector<int> free;
  std::int64_t count = 1;
  const int symbols = static_cast<int>(sizes.symbols().size());
  Values values;
  for (int symbol = 0; symbol < symbols; ++symbol) {
    const ir::Bounds& bounds = sizes.symbols()[symbol].bounds;
    values.push_back(bounds.low);
    if (sizes.resolved(ir::Dim::symbol(symbol)) != ir::Dim::symbol(symbol)) continue;
    free.push_back(symbol);
    if (bounds.high - bounds.low >= kMostTried) return -1;
    count *= bounds.high - bounds.low + 1;
    if (count > kMostTried) return -1;
  }
  std::int64_t allowed = 0;
  for (std::int64_t number = 0; number < count; ++number) {
    std::int64_t rest = number;
    for (const int symbol : free) {
      const ir::Bounds& bounds = sizes.symbols()[symbol].bounds;
      const std::int64_t extent = bounds.high - bounds.low + 1;
      values[symbol] = bounds.low + rest % extent;
      rest /= extent;
    }
    Values all = values;
    for (int symbol = 0; symbol < symbols; ++symbol) {
      const ir::Dim solved = sizes.resolved(ir::Dim::symbol(symbol));
      if (solved != ir::Dim::symbol(symbol)) all[symbol] = value_of(solved, values);
    }
    allowed += holds(sizes, all) ? 1 : 0;
  }
  return allowed;
}

/// How many combinations the bounds leave; a fact of the user's that is not counted makes it an upper bound.
double combinations_asked(const ir::Sizes& asked) {
  const std::int64_t counted = combinations(asked);
  if (counted >= 0) return static_cast<double>(counted);
  double count = 1;
  for (const ir::SizeSymbol& symbol : asked.symbols())
    count *= static_cast<double>(symbol.bounds.high - symbol.bounds.low + 1);
  return count;
}

/// "past + rows = joined"; "rows <= all" where the larger of both is to be the second.
std::string text_of(const ir::SizeCheck& check) {
  const ir::Dim constant = check.a.constant();
  const std::vector<ir::DimTerm>& terms = check.a.terms();
  const bool is_atom = terms.size() == 1 && terms[0].coefficient == 1 && terms[0].atoms.size() == 1;
  if (is_atom && terms[0].atoms[0].kind == ir::DimAtom::Kind::kMax) {
    const ir::Dim a = terms[0].atoms[0].a + constant, b = terms[0].atoms[0].b + constant;
    if (a == check.b || b == check.b)
      return fmt::format("{} <= {}", to_string(a == check.b ? b : a), to_string(check.b));
  }
  return fmt::format("{} = {}", to_string(check.a), to_string(check.b));
}

/// What says the same with --dim, so that no size is narrowed; empty: nothing so short does.
std::string option_of(const ir::SizeCheck& check) {
  ir::Dim symbol = check.a, formula = check.b;
  if (!symbol.as_symbol()) std::swap(symbol, formula);
  if (!symbol.as_symbol()) return "";
  const std::string name = to_string(symbol);
  const ir::Dim most = ir::highest(formula);
  if (formula == min(symbol, most))
    return fmt::format("give {0} an upper bound of {1}: the model has {1} of what it meets", name,
                       to_string(most));
  std::string sum = to_string(formula);
  if (formula.is_constant() || sum.find_first_of("*/()-") != std::string::npos) return "";
  sum.erase(std::remove(sum.begin(), sum.end(), ' '), sum.end());
  return fmt::format("--dim {}={} where it is always that", name, sum);
}

}  // namespace

std::optional<Diagnostic> narrowed_sizes(const ir::Sizes& asked, const ir::Sizes& left,
                                         const std::vector<std::string>& places) {
  std::vector<std::string> needs, options;
  for (std::size_t i = 0; i < left.checks().size() && i < places.size(); ++i) {
    const ir::SizeCheck& check = left.checks()[i];
    if (places[i].empty()) continue;
    needs.push_back(fmt::format("{} needs {}", places[i], text_of(check)));
    if (std::string option = option_of(check); !option.empty()) options.push_back(std::move(option));
  }
  if (needs.empty()) return std::nullopt;
  const double before = combinations_asked(asked);
  const std::int64_t after = combinations(left);
  if (after >= 0 && static_cast<double>(after) == before) return std::nullopt;
  Diagnostic diagnostic;
  diagnostic.severity = Severity::kWarning;
  diagnostic.code = "W0408";
  const std::string of = fmt::format("{:.0f} combinations of sizes", before);
  diagnostic.message = fmt::format("the model runs at {} of the {}: {}",
                                   after >= 0 ? fmt::format("{}", after) : "fewer", of, needs.front());
  diagnostic.details.assign(needs.begin() + 1, needs.end());
  diagnostic.help = after == 1 ? "give --dim that one size: memory is planned for the largest"
                               : "runs at other sizes return a status; memory is planned for the largest";
  for (const std::string& option : options) diagnostic.help += "; " + option;
  return diagnostic;
}

}  // namespace gcompile::frontend

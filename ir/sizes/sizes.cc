#include "ir/sizes/sizes.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

namespace gcompile::ir {
namespace {

std::int64_t clamped(__int128 number) {
  return static_cast<std::int64_t>(std::clamp<__int128>(number, -kDimLimit, kDimLimit));
}

Bounds operator+(const Bounds& a, const Bounds& b) {
  return {clamped(static_cast<__int128>(a.low) + b.low), clamped(static_cast<__int128>(a.high) + b.high)};
}

Bounds operator*(const Bounds& a, const Bounds& b) {
  const std::initializer_list<__int128> ends = {
      static_cast<__int128>(a.low) * b.low, static_cast<__int128>(a.low) * b.high,
      static_cast<__int128>(a.high) * b.low, static_cast<__int128>(a.high) * b.high};
  return {clamped(std::min(ends)), clamped(std::max(ends))};
}

/// Quotients within quotients whose remainders are looked at: each looks at all of the next level.
constexpr int kRemainderLevels = 2;

Bounds enclosure_by_remainders(Dim dim, const std::vector<SizeSymbol>& symbols, int levels);

/// By interval arithmetic, from the symbols alone.
Bounds enclosure(Dim dim, const std::vector<SizeSymbol>& symbols, int levels) {
  const auto of = [&](const DimAtom& atom) -> Bounds {
    if (atom.kind == DimAtom::Kind::kSymbol) return symbols[static_cast<std::size_t>(atom.symbol)].bounds;
    const Bounds a = enclosure_by_remainders(atom.a, symbols, levels - 1);
    if (atom.kind == DimAtom::Kind::kFloorDiv) {
      return {floor_div(a.low, atom.divisor).constant(), floor_div(a.high, atom.divisor).constant()};
    }
    const Bounds b = enclosure_by_remainders(atom.b, symbols, levels - 1);
    if (atom.kind == DimAtom::Kind::kMin) return {std::min(a.low, b.low), std::min(a.high, b.high)};
    return {std::max(a.low, b.low), std::max(a.high, b.high)};
  };
  Bounds sum{dim.constant(), dim.constant()};
  for (const DimTerm& term : dim.terms()) {
    Bounds product{term.coefficient, term.coefficient};
    for (const DimAtom& atom : term.atoms) product = product * of(atom);
    sum = sum + product;
  }
  return sum;
}

/// The same where a quotient and what it is of partly cancel: floor(a / c) is (a - r) / c, with a remainder r
/// from 0 to c - 1. 2 s - 8 floor(s / 4) is 2 r.
Bounds enclosure_by_remainders(Dim dim, const std::vector<SizeSymbol>& symbols, int levels) {
  Bounds best = enclosure(dim, symbols, levels);
  if (levels <= 0) return best;
  for (const DimTerm& term : dim.terms()) {
    if (term.atoms.size() != 1 || term.atoms[0].kind != DimAtom::Kind::kFloorDiv) continue;
    const DimAtom& quotient = term.atoms[0];
    const std::int64_t c = quotient.divisor, b = term.coefficient;
    // c times the form, with b (a - r) in place of b c floor(a / c).
    const Dim rest = (dim - floor_div(quotient.a, c) * b) * c + quotient.a * b;
    const Bounds times = enclosure(rest, symbols, levels) + Bounds{0, c - 1} * Bounds{-b, -b};
    best = {std::max(best.low, ceil_div(times.low, c).constant()),
            std::min(best.high, floor_div(times.high, c).constant())};
  }
  return best;
}

/// A symbol that a difference of zero gives, and what it is: of a term of its own with coefficient 1 or -1,
/// and nowhere else.
struct Solution {
  int symbol;
  Dim value;
};
std::optional<Solution> solve(Dim difference) {
  for (auto term = difference.terms().rbegin(); term != difference.terms().rend(); ++term) {
    const bool is_bare = term->atoms.size() == 1 && term->atoms[0].kind == DimAtom::Kind::kSymbol;
    if (!is_bare || (term->coefficient != 1 && term->coefficient != -1)) continue;
    const int symbol = term->atoms[0].symbol;
    const Dim rest = difference - Dim::symbol(symbol) * term->coefficient;
    if (rest.mentions(symbol)) continue;
    return Solution{symbol, rest * -term->coefficient};
  }
  return std::nullopt;
}

}  // namespace

std::size_t Sizes::solved_count() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < solved_.size(); ++i)
    count += solved_[i] == Dim::symbol(static_cast<int>(i)) ? 0 : 1;
  return count;
}

int Sizes::add_symbol(SizeSymbol symbol) {
  const int number = static_cast<int>(symbols_.size());
  solved_.push_back(symbol.bounds.low == symbol.bounds.high ? Dim(symbol.bounds.low) : Dim::symbol(number));
  symbols_.push_back(std::move(symbol));
  return number;
}

void Sizes::add_fact(Dim form, Bounds bounds) { facts_.push_back({resolved(form), bounds}); }

Dim Sizes::resolved(Dim dim) const {
  return dim.is_constant()
             ? dim
             : dim.replaced([&](int symbol) { return solved_[static_cast<std::size_t>(symbol)]; });
}

Bounds Sizes::bounds(Dim dim) const {
  if (dim.is_constant()) return {dim.constant(), dim.constant()};
  const Dim form = resolved(dim);
  Bounds best = enclosure_by_remainders(form, symbols_, kRemainderLevels);
  for (const SizeFact& fact : facts_) {
    for (const std::int64_t factor : {-2, -1, 1, 2}) {
      const Bounds other = enclosure(form - fact.form * factor, symbols_, kRemainderLevels) +
                           fact.bounds * Bounds{factor, factor};
      best = {std::max(best.low, other.low), std::min(best.high, other.high)};
    }
  }
  return best;
}

std::int64_t Sizes::at_typical(Dim dim) const {
  return resolved(dim).at([&](int symbol) { return symbols_[static_cast<std::size_t>(symbol)].typical; });
}

Truth Sizes::equal(Dim a, Dim b) const {
  const Dim difference = resolved(a) - resolved(b);
  if (difference.is_constant()) return difference.constant() == 0 ? Truth::kYes : Truth::kNo;
  const Bounds range = bounds(difference);
  if (range == Bounds{0, 0}) return Truth::kYes;
  if (!range.contains(0)) return Truth::kNo;
  // Never equal either if a number divides everything but the constant.
  const std::int64_t divisor = content(difference - difference.constant());
  return difference.constant() % divisor != 0 ? Truth::kNo : Truth::kUnknown;
}

Truth Sizes::less_equal(Dim a, Dim b) const {
  const Bounds range = bounds(b - a);
  return range.low >= 0 ? Truth::kYes : range.high < 0 ? Truth::kNo : Truth::kUnknown;
}

bool Sizes::assume_equal(Dim a, Dim b) {
  switch (equal(a, b)) {
    case Truth::kYes:
      return true;
    case Truth::kNo:
      return false;
    case Truth::kUnknown:
      break;
  }
  const auto is_known = [&](const SizeCheck& check) { return check.a == a && check.b == b; };
  if (std::none_of(checks_.begin(), checks_.end(), is_known)) checks_.push_back({a, b});
  const auto solution = solve(resolved(a) - resolved(b));
  if (!solution) return true;
  const auto by = [&](int symbol) {
    return symbol == solution->symbol ? solution->value : Dim::symbol(symbol);
  };
  for (Dim& value : solved_) value = value.replaced(by);
  // What was known of the symbol is known of what it is.
  for (SizeFact& fact : facts_) fact.form = fact.form.replaced(by);
  facts_.push_back({solution->value, symbols_[static_cast<std::size_t>(solution->symbol)].bounds});
  return true;
}

Truth are_equal(Dim a, Dim b) {
  if (a == b) return Truth::kYes;
  const Sizes* sizes = SizesScope::in_force();
  if (sizes) return sizes->equal(a, b);
  return (a - b).is_constant() ? Truth::kNo : Truth::kUnknown;
}

bool assume_equal(Dim a, Dim b) {
  Sizes* sizes = SizesScope::in_force();
  return sizes ? sizes->assume_equal(a, b) : a == b;
}

bool assume_equal_shapes(std::span<const Dim> a, std::span<const Dim> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), assume_equal);
}

std::int64_t typical(Dim dim) {
  const Sizes* sizes = SizesScope::in_force();
  return sizes ? sizes->at_typical(dim) : static_cast<std::int64_t>(dim);
}

std::int64_t highest(Dim dim) {
  const Sizes* sizes = SizesScope::in_force();
  return sizes ? sizes->bounds(dim).high : static_cast<std::int64_t>(dim);
}

std::int64_t lowest(Dim dim) {
  const Sizes* sizes = SizesScope::in_force();
  return sizes ? sizes->bounds(dim).low : static_cast<std::int64_t>(dim);
}

}  // namespace gcompile::ir

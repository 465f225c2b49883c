#include "ir/sizes/sizes.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <type_traits>

#include "base/operator_error.h"
#include "ir/sizes/dim_parts.h"

namespace gcompile::ir {
namespace {

/// A formula that only a proof needs. Where it is too large or too long, the proof goes on without it: no model
/// is refused for what somebody wanted to know of it.
template <class Make>
std::optional<std::invoke_result_t<Make>> tried(const Make& make) {
  try {
    return make();
  } catch (const OperatorError&) {
    return std::nullopt;
  }
}

std::int64_t clamped(__int128 number) {
  return static_cast<std::int64_t>(std::clamp<__int128>(number, -kDimLimit, kDimLimit));
}

/// A bound beyond kDimLimit is none, and a sum with it neither.
Bounds operator+(const Bounds& a, const Bounds& b) {
  const bool is_open_below = a.low <= -kDimLimit || b.low <= -kDimLimit;
  const bool is_open_above = a.high >= kDimLimit || b.high >= kDimLimit;
  return {is_open_below ? -kDimLimit : clamped(static_cast<__int128>(a.low) + b.low),
          is_open_above ? kDimLimit : clamped(static_cast<__int128>(a.high) + b.high)};
}

Bounds operator*(const Bounds& a, const Bounds& b) {
  const std::initializer_list<__int128> ends = {
      static_cast<__int128>(a.low) * b.low, static_cast<__int128>(a.low) * b.high,
      static_cast<__int128>(a.high) * b.low, static_cast<__int128>(a.high) * b.high};
  return {clamped(std::min(ends)), clamped(std::max(ends))};
}

/// Rounded down.
Bounds divided(const Bounds& a, std::int64_t divisor) {
  return {a.low <= -kDimLimit ? -kDimLimit : floor_div(a.low, divisor).constant(),
          a.high >= kDimLimit ? kDimLimit : floor_div(a.high, divisor).constant()};
}

/// Quotients and extremes within others that are looked at by their cases: each looks at all of the next level.
constexpr int kCaseLevels = 2;

Bounds enclosure_by_cases(Dim dim, const std::vector<SizeSymbol>& symbols, int levels);

/// Atoms whose ends are tried one by one: each doubles the work.
constexpr std::size_t kMostCornerAtoms = 6;

/// An atom of a polynomial, and what is known of its values.
struct BoundedAtom {
  const DimAtom* atom;
  Bounds bounds;
  int terms;        // in how many of them it is
  bool is_squared;  // several times in one of them
};

/// Bounds of an atom by itself.
Bounds bounds_of(const DimAtom& atom, const std::vector<SizeSymbol>& symbols, int levels) {
  if (atom.kind == DimAtom::Kind::kSymbol) return symbols[atom.symbol].bounds;
  const Bounds a = enclosure_by_cases(atom.a, symbols, levels - 1);
  if (atom.kind == DimAtom::Kind::kFloorDiv) return divided(a, atom.divisor);
  const Bounds b = enclosure_by_cases(atom.b, symbols, levels - 1);
  if (atom.kind == DimAtom::Kind::kMin) return {std::min(a.low, b.low), std::min(a.high, b.high)};
  return {std::max(a.low, b.low), std::max(a.high, b.high)};
}

/// A polynomial over atoms that take any of their values independently.
class Polynomial {
 public:
  Polynomial(Dim dim, const std::vector<SizeSymbol>& symbols, int levels) : constant_(dim.constant()) {
    for (const DimTerm& term : dim.terms()) {
      std::vector<std::size_t> factors;
      for (const DimAtom& atom : term.atoms) factors.push_back(number_of(atom, symbols, levels));
      add(term.coefficient, std::move(factors));
    }
  }

  /// Interval arithmetic takes two terms of a square for independent: 2 s^2 - s may be negative for it. Counted
  /// from the least value of s, s = 1 + t, it is 1 + 3 t + 2 t^2.
  Bounds bounds() const {
    const Bounds plain = by_corners();
    const std::optional<Polynomial> counted = from_least_values();
    if (!counted) return plain;
    const Bounds other = counted->by_corners();
    return {std::max(plain.low, other.low), std::min(plain.high, other.high)};
  }

 private:
  struct Term {
    std::int64_t coefficient;
    std::vector<std::size_t> factors;  // numbers of atoms, equal ones beside each other
  };

  using Sums = std::map<std::vector<std::size_t>, __int128>;  // coefficients by factors

  Polynomial() = default;

  void add(std::int64_t coefficient, std::vector<std::size_t> factors) {
    for (std::size_t i = 0; i < factors.size(); ++i) {
      BoundedAtom& known = atoms_[factors[i]];
      const bool is_again = i > 0 && factors[i - 1] == factors[i];  // atoms of a term are sorted
      known.is_squared |= is_again;
      known.terms += is_again ? 0 : 1;
    }
    terms_.push_back({coefficient, std::move(factors)});
  }

  /// A polynomial is affine in an atom that no term has twice, and an affine function is least and greatest
  /// at ends. Those of atoms that several terms share are tried, all combinations of them; everything else is
  /// interval arithmetic, which is exact for an atom of one term.
  Bounds by_corners() const {
    std::vector<std::size_t> shared;
    for (std::size_t i = 0; i < atoms_.size(); ++i) {
      const bool has_ends = atoms_[i].bounds.low > -kDimLimit && atoms_[i].bounds.high < kDimLimit;
      if (atoms_[i].terms > 1 && !atoms_[i].is_squared && has_ends) shared.push_back(i);
    }
    if (shared.size() > kMostCornerAtoms) shared.resize(kMostCornerAtoms);
    std::vector<Bounds> ends;
    for (const BoundedAtom& atom : atoms_) ends.push_back(atom.bounds);
    std::int64_t low = kDimLimit, high = -kDimLimit;
    for (std::size_t corner = 0; corner < std::size_t{1} << shared.size(); ++corner) {
      for (std::size_t i = 0; i < shared.size(); ++i) {
        const Bounds& both = atoms_[shared[i]].bounds;
        const std::int64_t end = corner >> i & 1 ? both.high : both.low;
        ends[shared[i]] = {end, end};
      }
      const Bounds here = sum_of_terms(ends);
      low = std::min(low, here.low);
      high = std::max(high, here.high);
    }
    return {low, high};
  }

  /// The polynomial with low + t in place of each atom that a term has several times; nullopt: there is none, or
  /// the numbers become too large.
  std::optional<Polynomial> from_least_values() const {
    Sums sums;
    for (const Term& term : terms_) sums[term.factors] += term.coefficient;
    sums[{}] += constant_;
    Polynomial out;
    out.atoms_ = atoms_;
    bool changes = false;
    for (std::size_t i = 0; i < atoms_.size(); ++i) {
      const Bounds& all = atoms_[i].bounds;
      out.atoms_[i].terms = 0;
      out.atoms_[i].is_squared = false;
      if (!atoms_[i].is_squared || all.low == 0 || all.low <= -kDimLimit) continue;
      changes = true;
      out.atoms_[i].bounds = {0, all.high >= kDimLimit ? kDimLimit : all.high - all.low};
      const std::optional<Sums> next = with_sum_in_place(sums, i, all.low);
      if (!next) return std::nullopt;
      sums = *next;
    }
    if (!changes) return std::nullopt;
    for (const auto& [factors, sum] : sums) {
      if (sum >= kDimLimit || sum <= -kDimLimit) return std::nullopt;
      if (factors.empty()) {
        out.constant_ = static_cast<std::int64_t>(sum);
      } else if (sum != 0) {
        out.add(static_cast<std::int64_t>(sum), factors);
      }
    }
    return out;
  }

  /// The sums with low + t in place of an atom, by binomial coefficients; nullopt: the numbers become too large.
  static std::optional<Sums> with_sum_in_place(const Sums& sums, std::size_t atom, std::int64_t low) {
    Sums out;
    for (const auto& [factors, sum] : sums) {
      const auto first = std::find(factors.begin(), factors.end(), atom) - factors.begin();
      const auto power = std::count(factors.begin(), factors.end(), atom);
      std::vector<std::size_t> term = factors;
      __int128 coefficient = sum;  // of t to the power less j
      for (std::ptrdiff_t j = 0; j <= power; ++j) {
        if (coefficient > kDimLimit || coefficient < -kDimLimit) return std::nullopt;
        out[term] += coefficient;
        if (j == power) break;
        coefficient = coefficient * low * (power - j) / (j + 1);
        term.erase(term.begin() + first);
      }
    }
    return out;
  }

  std::size_t number_of(const DimAtom& atom, const std::vector<SizeSymbol>& symbols, int levels) {
    for (std::size_t i = 0; i < atoms_.size(); ++i) {
      if (compare(*atoms_[i].atom, atom) == 0) return i;
    }
    atoms_.push_back({&atom, bounds_of(atom, symbols, levels), 0, false});
    return atoms_.size() - 1;
  }

  Bounds sum_of_terms(const std::vector<Bounds>& ends) const {
    Bounds sum{constant_, constant_};
    for (const Term& term : terms_) {
      Bounds product{term.coefficient, term.coefficient};
      for (const std::size_t factor : term.factors) product = product * ends[factor];
      sum = sum + product;
    }
    return sum;
  }

  std::int64_t constant_ = 0;
  std::vector<BoundedAtom> atoms_;
  std::vector<Term> terms_;
};

/// From the symbols alone.
Bounds enclosure(Dim dim, const std::vector<SizeSymbol>& symbols, int levels) {
  return Polynomial(dim, symbols, levels).bounds();
}

/// Bounds that hold both.
Bounds both(const Bounds& a, const Bounds& b) { return {std::max(a.low, b.low), std::min(a.high, b.high)}; }

/// The same where a quotient and what it is of partly cancel: floor(a / c) is (a - r) / c, with a remainder r
/// from 0 to c - 1. 2 s - 8 floor(s / 4) is 2 r.
Bounds by_remainders(Dim dim, const std::vector<SizeSymbol>& symbols, int levels) {
  Bounds best{-kDimLimit, kDimLimit};
  for (const DimTerm& term : dim.terms()) {
    if (term.atoms.size() != 1 || term.atoms[0].kind != DimAtom::Kind::kFloorDiv) continue;
    const DimAtom& quotient = term.atoms[0];
    const std::int64_t c = quotient.divisor, b = term.coefficient;
    // c times the formula, with b (a - r) in place of b c floor(a / c).
    const auto rest = tried([&] { return (dim - floor_div(quotient.a, c) * b) * c + quotient.a * b; });
    if (!rest) continue;
    const Bounds times = enclosure(*rest, symbols, levels) + Bounds{0, c - 1} * Bounds{-b, -b};
    best = both(best, {divided(times + Bounds{c - 1, c - 1}, c).low, divided(times, c).high});
  }
  return best;
}

/// The same where a minimum or a maximum and one of its two partly cancel: it is always one or the other, and never
/// above either, or never below. n - min(n, 20) is at least n - n.
Bounds by_extremes(Dim dim, const std::vector<SizeSymbol>& symbols, int levels) {
  for (const DimTerm& term : dim.terms()) {
    for (const DimAtom& atom : term.atoms) {
      if (atom.kind != DimAtom::Kind::kMin && atom.kind != DimAtom::Kind::kMax) continue;
      const Bounds a = enclosure_by_cases(with_in_place(dim, atom, atom.a), symbols, levels - 1);
      const Bounds b = enclosure_by_cases(with_in_place(dim, atom, atom.b), symbols, levels - 1);
      Bounds best{std::min(a.low, b.low), std::max(a.high, b.high)};
      const auto mentions = [&](const DimTerm& other) {
        return std::any_of(other.atoms.begin(), other.atoms.end(),
                           [&](const DimAtom& factor) { return compare(factor, atom) == 0; });
      };
      // As a factor once, beside others that are never below 0.
      const auto keeps_sign = [&](const DimAtom& factor) {
        return compare(factor, atom) == 0 || bounds_of(factor, symbols, levels).low >= 0;
      };
      const auto is_atom = [&](const DimAtom& factor) { return compare(factor, atom) == 0; };
      const bool is_alone = std::count_if(term.atoms.begin(), term.atoms.end(), is_atom) == 1 &&
                            std::all_of(term.atoms.begin(), term.atoms.end(), keeps_sign) &&
                            std::count_if(dim.terms().begin(), dim.terms().end(), mentions) == 1;
      if (!is_alone) return best;
      const bool is_least = (atom.kind == DimAtom::Kind::kMin) == (term.coefficient > 0);  // of both formulas
      return is_least ? both(best, {-kDimLimit, std::min(a.high, b.high)})
                      : both(best, {std::max(a.low, b.low), kDimLimit});
    }
  }
  return {-kDimLimit, kDimLimit};
}

/// What two extremes of one kind are of beside the operand that they share.
std::optional<std::pair<Dim, Dim>> unshared(const DimAtom& x, const DimAtom& y) {
  if (x.kind != y.kind || (x.kind != DimAtom::Kind::kMin && x.kind != DimAtom::Kind::kMax))
    return std::nullopt;
  if (x.a == y.a) return std::pair(x.b, y.b);
  if (x.b == y.b) return std::pair(x.a, y.a);
  if (x.a == y.b) return std::pair(x.b, y.a);
  if (x.b == y.a) return std::pair(x.a, y.b);
  return std::nullopt;
}

/// The same where two extremes that share an operand partly cancel: min(n, a) - min(n, b) lies between 0 and a - b.
Bounds by_pairs_of_extremes(Dim dim, const std::vector<SizeSymbol>& symbols, int levels) {
  Bounds best{-kDimLimit, kDimLimit};
  const std::vector<DimTerm>& terms = dim.terms();
  for (std::size_t i = 0; i < terms.size(); ++i) {
    for (std::size_t j = i + 1; j < terms.size(); ++j) {
      if (terms[i].atoms.size() != 1 || terms[j].atoms.size() != 1) continue;
      if (terms[i].coefficient != -terms[j].coefficient) continue;
      const DimAtom &x = terms[i].atoms[0], &y = terms[j].atoms[0];
      const auto others = unshared(x, y);
      if (!others) continue;
      const Bounds apart = enclosure_by_cases(others->first - others->second, symbols, levels - 1);
      const Bounds between{std::min<std::int64_t>(0, apart.low), std::max<std::int64_t>(0, apart.high)};
      const std::int64_t factor = terms[i].coefficient;
      const Dim rest = with_in_place(with_in_place(dim, x, 0), y, 0);
      best = both(best, enclosure(rest, symbols, levels) + between * Bounds{factor, factor});
    }
  }
  return best;
}

Bounds enclosure_by_cases(Dim dim, const std::vector<SizeSymbol>& symbols, int levels) {
  const Bounds best = enclosure(dim, symbols, levels);
  if (levels <= 0 || dim.is_constant()) return best;
  constexpr Bounds kNothing{-kDimLimit, kDimLimit};
  const auto extremes = tried([&] { return by_extremes(dim, symbols, levels); });
  const auto pairs = tried([&] { return by_pairs_of_extremes(dim, symbols, levels); });
  const Bounds proven = both(extremes.value_or(kNothing), pairs.value_or(kNothing));
  return both(both(best, by_remainders(dim, symbols, levels)), proven);
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

/// The bounds of a - b, also where that is too long a formula.
Bounds bounds_of_difference(const Sizes& sizes, Dim a, Dim b) {
  if (const auto difference = tried([&] { return a - b; })) return sizes.bounds(*difference);
  return sizes.bounds(a) + sizes.bounds(b) * Bounds{-1, -1};
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

void Sizes::add_fact(Dim formula, Bounds bounds) { facts_.push_back({resolved(formula), bounds}); }

Dim Sizes::resolved(Dim dim) const {
  return dim.is_constant() ? dim : dim.replaced([&](int symbol) { return solved_[symbol]; });
}

Bounds Sizes::bounds(Dim dim) const {
  if (dim.is_constant()) return {dim.constant(), dim.constant()};
  const Dim formula = tried([&] { return resolved(dim); }).value_or(dim);
  Bounds best = enclosure_by_cases(formula, symbols_, kCaseLevels);
  for (const SizeFact& fact : facts_) {
    for (const std::int64_t factor : {-2, -1, 1, 2}) {
      const auto rest = tried([&] { return formula - fact.formula * factor; });
      if (!rest) continue;
      const Bounds other = enclosure(*rest, symbols_, kCaseLevels) + fact.bounds * Bounds{factor, factor};
      best = {std::max(best.low, other.low), std::min(best.high, other.high)};
    }
  }
  return best;
}

std::int64_t Sizes::at_typical(Dim dim) const {
  return resolved(dim).at([&](int symbol) { return symbols_[symbol].typical; });
}

Truth Sizes::equal(Dim a, Dim b) const {
  const auto difference = tried([&] { return resolved(a) - resolved(b); });
  const Bounds range = difference ? bounds(*difference) : bounds_of_difference(*this, a, b);
  if (range == Bounds{0, 0}) return Truth::kYes;
  if (!range.contains(0)) return Truth::kNo;
  if (!difference) return Truth::kUnknown;
  // Never equal either if a number divides everything but the constant.
  const std::int64_t divisor = content(*difference - difference->constant());
  return difference->constant() % divisor != 0 ? Truth::kNo : Truth::kUnknown;
}

Truth Sizes::less_equal(Dim a, Dim b) const {
  const Bounds range = bounds_of_difference(*this, b, a);
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
  const auto difference = tried([&] { return resolved(a) - resolved(b); });
  const auto solution = difference ? solve(*difference) : std::nullopt;
  if (!solution) return true;
  const auto by = [&](int symbol) {
    return symbol == solution->symbol ? solution->value : Dim::symbol(symbol);
  };
  for (Dim& value : solved_) value = value.replaced(by);
  // What was known of the symbol is known of what it is.
  for (SizeFact& fact : facts_) fact.formula = fact.formula.replaced(by);
  facts_.push_back({solution->value, symbols_[solution->symbol].bounds});
  return true;
}

bool Sizes::assume_less_equal(Dim a, Dim b) {
  const Truth is_less = less_equal(a, b);
  if (is_less != Truth::kUnknown) return is_less == Truth::kYes;
  const SizeCheck check{max(a, b), b};
  const auto is_known = [&](const SizeCheck& other) { return other.a == check.a && other.b == check.b; };
  if (std::any_of(checks_.begin(), checks_.end(), is_known)) return true;
  checks_.push_back(check);
  add_fact(b - a, {0, bounds(b - a).high});
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

bool assume_less_equal(Dim a, Dim b) {
  Sizes* sizes = SizesScope::in_force();
  return sizes ? sizes->assume_less_equal(a, b) : a <= b;
}

bool assume_multiple(Dim a, std::int64_t divisor) {
  return a.is_constant() ? a.constant() % divisor == 0 : assume_equal(floor_div(a, divisor) * divisor, a);
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

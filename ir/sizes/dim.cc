#include "ir/sizes/dim.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/operator_error.h"
#include "ir/sizes/dim_parts.h"
#include "ir/sizes/sizes.h"

namespace gcompile::ir {
namespace {

constexpr std::size_t kMostTerms = 64, kMostAtoms = 8;
constexpr int kMostLevels = 8;

[[noreturn]] void too_large() {
  operator_error("a size that follows from the model's dimensions is too large or too long a formula",
                 "give some of the dimensions as numbers with --dim");
}

std::int64_t limited(std::int64_t number) {
  if (number <= -kDimLimit || number >= kDimLimit) too_large();
  return number;
}
std::int64_t plus(std::int64_t a, std::int64_t b) { return limited(a + b); }
std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) too_large();
  return limited(product);
}
std::int64_t floor_of(std::int64_t a, std::int64_t divisor) {
  return a / divisor - (a % divisor < 0 ? 1 : 0);
}

int levels_of(Dim dim) {
  int levels = 0;
  for (const DimTerm& term : dim.terms()) {
    for (const DimAtom& atom : term.atoms) {
      if (atom.kind == DimAtom::Kind::kSymbol) continue;
      levels = std::max(levels, 1 + std::max(levels_of(atom.a), levels_of(atom.b)));
    }
  }
  return levels;
}

/// Products of more atoms first, then by the atoms: the order of terms, and of polynomial division.
std::strong_ordering compare_products(const std::vector<DimAtom>& a, const std::vector<DimAtom>& b) {
  if (a.size() != b.size()) return b.size() <=> a.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (const auto order = compare(a[i], b[i]); order != 0) return order;
  }
  return std::strong_ordering::equal;
}

std::vector<DimAtom> joined(const std::vector<DimAtom>& a, const std::vector<DimAtom>& b) {
  if (a.size() + b.size() > kMostAtoms) too_large();
  std::vector<DimAtom> out;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out),
             [](const DimAtom& x, const DimAtom& y) { return compare(x, y) < 0; });
  return out;
}

/// What is left of the product `a` without the atoms of `b`; nullopt: not all of them are there.
std::optional<std::vector<DimAtom>> without(const std::vector<DimAtom>& a, const std::vector<DimAtom>& b) {
  std::vector<DimAtom> out;
  std::size_t next = 0;
  for (const DimAtom& atom : a) {
    if (next < b.size() && compare(atom, b[next]) == 0) {
      ++next;
    } else {
      out.push_back(atom);
    }
  }
  if (next < b.size()) return std::nullopt;
  return out;
}

struct DimFormula {
  std::int64_t constant = 0;
  std::vector<DimTerm> terms;  // sorted, of distinct products, at least one
};

std::strong_ordering compare_formulas(const DimFormula& a, const DimFormula& b) {
  const std::vector<DimTerm>&x = a.terms, &y = b.terms;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (const auto order = compare_products(x[i].atoms, y[i].atoms); order != 0) return order;
    if (x[i].coefficient != y[i].coefficient) return x[i].coefficient <=> y[i].coefficient;
  }
  if (x.size() != y.size()) return x.size() <=> y.size();
  return a.constant <=> b.constant;
}

}  // namespace

/// Sums terms into the canonical formula.
class DimBuilder {
 public:
  static const DimFormula& formula(Dim dim) {
    return formulas()[static_cast<std::size_t>(dim.word_ - Dim::kFirstFormula)]->first;
  }
  void add(std::int64_t constant) { constant_ = plus(constant_, constant); }
  void add(std::int64_t coefficient, std::vector<DimAtom> atoms) {
    if (atoms.empty()) return add(coefficient);
    terms_.push_back({coefficient, std::move(atoms)});
  }
  void add(Dim dim, std::int64_t factor = 1) {
    add(times(dim.constant(), factor));
    for (const DimTerm& term : dim.terms()) add(times(term.coefficient, factor), term.atoms);
  }
  Dim finish() {
    std::stable_sort(terms_.begin(), terms_.end(), [](const DimTerm& a, const DimTerm& b) {
      return compare_products(a.atoms, b.atoms) < 0;
    });
    std::vector<DimTerm> distinct;
    for (DimTerm& term : terms_) {
      if (!distinct.empty() && compare_products(distinct.back().atoms, term.atoms) == 0) {
        distinct.back().coefficient = plus(distinct.back().coefficient, term.coefficient);
      } else {
        distinct.push_back(std::move(term));
      }
    }
    std::erase_if(distinct, [](const DimTerm& term) { return term.coefficient == 0; });
    if (distinct.size() > kMostTerms) too_large();
    return distinct.empty() ? Dim(constant_) : kept({constant_, std::move(distinct)});
  }
  static Dim of(DimAtom atom) {
    DimBuilder builder;
    builder.add(1, {std::move(atom)});
    Dim out = builder.finish();
    if (levels_of(out) > kMostLevels) too_large();
    return out;
  }

 private:
  struct Before {
    bool operator()(const DimFormula& a, const DimFormula& b) const { return compare_formulas(a, b) < 0; }
  };
  using Numbers = std::map<DimFormula, std::int64_t, Before>;
  static std::vector<Numbers::const_iterator>& formulas() {
    static std::vector<Numbers::const_iterator> kept;
    return kept;
  }
  static Dim kept(DimFormula formula) {
    static Numbers numbers;
    const auto [at, is_new] =
        numbers.emplace(std::move(formula), static_cast<std::int64_t>(formulas().size()));
    if (is_new) formulas().push_back(at);
    Dim dim;
    dim.word_ = Dim::kFirstFormula + at->second;
    return dim;
  }
  std::int64_t constant_ = 0;
  std::vector<DimTerm> terms_;
};

Dim Dim::symbol(int number) {
  DimAtom atom;
  atom.symbol = number;
  return DimBuilder::of(std::move(atom));
}

std::optional<std::int64_t> Dim::as_constant() const {
  return is_constant() ? std::optional(word_) : std::nullopt;
}

std::int64_t Dim::constant() const { return is_constant() ? word_ : DimBuilder::formula(*this).constant; }

const std::vector<DimTerm>& Dim::terms() const {
  static const std::vector<DimTerm> kNone;
  return is_constant() ? kNone : DimBuilder::formula(*this).terms;
}

void Dim::refuse_number() { too_large(); }

void Dim::refuse_formula() {
  operator_error("sizes that are known only when the model runs are not supported here",
                 "give the dimensions numbers with --dim or --shape");
}

std::optional<int> Dim::as_symbol() const {
  if (constant() != 0 || terms().size() != 1) return std::nullopt;
  const DimTerm& term = terms().front();
  const bool is_one = term.coefficient == 1 && term.atoms.size() == 1;
  return is_one && term.atoms[0].kind == DimAtom::Kind::kSymbol ? std::optional(term.atoms[0].symbol)
                                                                : std::nullopt;
}

bool Dim::mentions(int symbol) const {
  return std::any_of(terms().begin(), terms().end(), [&](const DimTerm& term) {
    return std::any_of(term.atoms.begin(), term.atoms.end(), [&](const DimAtom& atom) {
      if (atom.kind == DimAtom::Kind::kSymbol) return atom.symbol == symbol;
      return atom.a.mentions(symbol) || atom.b.mentions(symbol);
    });
  });
}

std::int64_t Dim::at(const std::function<std::int64_t(int)>& value_of) const {
  std::int64_t sum = constant();
  for (const DimTerm& term : terms()) {
    std::int64_t value = term.coefficient;
    for (const DimAtom& atom : term.atoms) {
      switch (atom.kind) {
        case DimAtom::Kind::kSymbol:
          value = times(value, value_of(atom.symbol));
          break;
        case DimAtom::Kind::kFloorDiv:
          value = times(value, floor_of(atom.a.at(value_of), atom.divisor));
          break;
        case DimAtom::Kind::kMin:
          value = times(value, std::min(atom.a.at(value_of), atom.b.at(value_of)));
          break;
        case DimAtom::Kind::kMax:
          value = times(value, std::max(atom.a.at(value_of), atom.b.at(value_of)));
          break;
      }
    }
    sum = plus(sum, value);
  }
  return sum;
}

Dim Dim::replaced(const std::function<Dim(int)>& by) const {
  Dim sum = constant();
  for (const DimTerm& term : terms()) {
    Dim value(term.coefficient);
    for (const DimAtom& atom : term.atoms) {
      switch (atom.kind) {
        case DimAtom::Kind::kSymbol:
          value = value * by(atom.symbol);
          break;
        case DimAtom::Kind::kFloorDiv:
          value = value * floor_div(atom.a.replaced(by), atom.divisor);
          break;
        case DimAtom::Kind::kMin:
          value = value * min(atom.a.replaced(by), atom.b.replaced(by));
          break;
        case DimAtom::Kind::kMax:
          value = value * max(atom.a.replaced(by), atom.b.replaced(by));
          break;
      }
    }
    sum = sum + value;
  }
  return sum;
}

Dim with_in_place(Dim dim, const DimAtom& atom, Dim value) {
  Dim sum = dim.constant();
  for (const DimTerm& term : dim.terms()) {
    DimBuilder others;
    std::vector<DimAtom> kept;
    Dim product(1);
    for (const DimAtom& factor : term.atoms) {
      if (compare(factor, atom) == 0) {
        product = product * value;
      } else {
        kept.push_back(factor);
      }
    }
    others.add(term.coefficient, std::move(kept));
    sum = sum + others.finish() * product;
  }
  return sum;
}

std::strong_ordering compare(const DimAtom& a, const DimAtom& b) {
  if (a.kind != b.kind) return a.kind <=> b.kind;
  if (a.kind == DimAtom::Kind::kSymbol) return a.symbol <=> b.symbol;
  if (a.divisor != b.divisor) return a.divisor <=> b.divisor;
  if (const auto order = Dim::compare(a.a, b.a); order != 0) return order;
  return Dim::compare(a.b, b.b);
}

std::strong_ordering Dim::compare(Dim a, Dim b) {
  if (are_constant(a, b)) return a.word_ <=> b.word_;
  if (is_same(a, b)) return std::strong_ordering::equal;
  if (a.is_constant()) return std::strong_ordering::less;
  if (b.is_constant()) return std::strong_ordering::greater;
  return compare_formulas(DimBuilder::formula(a), DimBuilder::formula(b));
}

Dim Dim::sum_of_formulas(Dim a, Dim b) {
  DimBuilder builder;
  builder.add(a);
  builder.add(b);
  return builder.finish();
}

Dim Dim::difference_of_formulas(Dim a, Dim b) {
  DimBuilder builder;
  builder.add(a);
  builder.add(b, -1);
  return builder.finish();
}

Dim Dim::product_of_formulas(Dim a, Dim b) {
  DimBuilder builder;
  builder.add(a, b.constant());
  for (const DimTerm& y : b.terms()) {
    builder.add(times(a.constant(), y.coefficient), y.atoms);
    for (const DimTerm& x : a.terms())
      builder.add(times(x.coefficient, y.coefficient), joined(x.atoms, y.atoms));
  }
  return builder.finish();
}

Dim Dim::quotient(Dim a, Dim b) {
  if (are_constant(a, b)) return a.word_ / b.word_;
  if (const auto exact = exact_quotient(a, b)) return *exact;
  if (!b.is_constant() || b.word_ <= 0 || is_less(a, 0)) refuse_formula();
  return floor_div(a, b.word_);
}

Dim Dim::remainder(Dim a, Dim b) {
  if (are_constant(a, b)) return a.word_ % b.word_;
  return difference(a, product(quotient(a, b), b));
}

bool Dim::is_less_formula(Dim a, Dim b) {
  const bool is_less = always_less(a, b);
  if (!is_less && !always_less_equal(b, a)) refuse_formula();
  return is_less;
}

bool always_less_equal(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) return a.constant() <= b.constant();
  if (const Sizes* sizes = SizesScope::in_force()) return sizes->less_equal(a, b) == Truth::kYes;
  const Dim left = b - a;
  return left.is_constant() && left.constant() >= 0;
}

bool always_less(Dim a, Dim b) {
  return a.is_constant() && b.is_constant() ? a.constant() < b.constant() : always_less_equal(a + 1, b);
}

Dim floor_div(Dim a, std::int64_t divisor) {
  if (divisor == 1) return a;
  if (a.is_constant()) return floor_of(a.constant(), divisor);
  // Whole multiples leave; of what remains, terms and divisor may have a common factor.
  DimBuilder whole, rest;
  std::int64_t common = divisor;
  for (const DimTerm& term : a.terms()) {
    const std::int64_t multiple = floor_of(term.coefficient, divisor);
    const std::int64_t left = term.coefficient - times(multiple, divisor);
    if (multiple != 0) whole.add(multiple, term.atoms);
    if (left != 0) rest.add(left, term.atoms);
    common = std::gcd(common, left);
  }
  const std::int64_t multiple = floor_of(a.constant(), divisor);
  whole.add(multiple);
  const std::int64_t constant = a.constant() - times(multiple, divisor);
  Dim inner = rest.finish();
  if (inner.is_constant()) return whole.finish();
  DimBuilder reduced;
  for (const DimTerm& term : inner.terms()) reduced.add(term.coefficient / common, term.atoms);
  reduced.add(constant / common);
  inner = reduced.finish();
  divisor /= common;
  if (divisor == 1) {
    whole.add(inner);
    return whole.finish();
  }
  // floor((x + floor(y / d)) / divisor) = floor((x * d + y) / (divisor * d))
  for (const DimTerm& term : inner.terms()) {
    if (term.coefficient != 1 || term.atoms.size() != 1) continue;
    const DimAtom& nested = term.atoms[0];
    if (nested.kind != DimAtom::Kind::kFloorDiv) continue;
    const Dim others = inner - DimBuilder::of(nested);
    whole.add(floor_div(others * nested.divisor + nested.a, times(divisor, nested.divisor)));
    return whole.finish();
  }
  DimAtom atom;
  atom.kind = DimAtom::Kind::kFloorDiv;
  atom.divisor = divisor;
  atom.a = inner;
  whole.add(DimBuilder::of(std::move(atom)));
  return whole.finish();
}

Dim ceil_div(Dim a, std::int64_t divisor) { return floor_div(a + (divisor - 1), divisor); }

namespace {

/// The smaller or the larger, with the common constant outside.
Dim extremum(DimAtom::Kind kind, Dim a, Dim b) {
  if (a.is_constant() && b.is_constant())
    return (a.constant() < b.constant()) == (kind == DimAtom::Kind::kMin) ? a : b;
  const Dim difference = a - b;
  if (difference.is_constant()) {
    const bool takes_a = (difference.constant() < 0) == (kind == DimAtom::Kind::kMin);
    return takes_a ? a : b;
  }
  if (always_less_equal(a, b)) return kind == DimAtom::Kind::kMin ? a : b;
  if (always_less_equal(b, a)) return kind == DimAtom::Kind::kMin ? b : a;
  DimAtom atom;
  atom.kind = kind;
  const std::int64_t outside = std::min(a.constant(), b.constant());
  atom.a = a - outside;
  atom.b = b - outside;
  if (Dim::compare(atom.b, atom.a) < 0) std::swap(atom.a, atom.b);
  return DimBuilder::of(std::move(atom)) + outside;
}

}  // namespace

Dim min(Dim a, Dim b) { return extremum(DimAtom::Kind::kMin, a, b); }
Dim max(Dim a, Dim b) { return extremum(DimAtom::Kind::kMax, a, b); }

std::optional<Dim> exact_quotient(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant() && b.constant() != 0) {
    return a.constant() % b.constant() == 0 ? std::optional<Dim>(a.constant() / b.constant()) : std::nullopt;
  }
  if (b.is_constant() && b.constant() == 0) return std::nullopt;
  // Division of polynomials in one order of their terms: the first of the divisor has to divide the first of
  // what is left.
  const auto first = [](Dim dim) {
    return dim.is_constant() ? DimTerm{dim.constant(), {}} : dim.terms().front();
  };
  const DimTerm leading = first(b);
  DimBuilder out;
  Dim rest = a;
  for (std::size_t step = 0; step < 2 * kMostTerms; ++step) {
    if (rest.is_constant() && rest.constant() == 0) return out.finish();
    const DimTerm term = first(rest);
    const auto atoms = without(term.atoms, leading.atoms);
    if (!atoms || term.coefficient % leading.coefficient != 0) return std::nullopt;
    DimBuilder part;
    part.add(term.coefficient / leading.coefficient, *atoms);
    const Dim factor = part.finish();
    out.add(factor);
    rest = rest - factor * b;
  }
  return std::nullopt;
}

std::int64_t content(Dim a) {
  std::int64_t common = a.constant();
  for (const DimTerm& term : a.terms()) common = std::gcd(common, term.coefficient);
  // The lowest number has no opposite; half of it divides it as well.
  if (common == std::numeric_limits<std::int64_t>::min()) return std::int64_t{1} << 62;
  return std::abs(common);
}

Shape shape_of(std::span<const std::int64_t> numbers) { return {numbers.begin(), numbers.end()}; }

std::vector<std::int64_t> numbers_of(std::span<const Dim> dims) { return {dims.begin(), dims.end()}; }

bool are_constant(std::span<const Dim> dims) {
  return std::all_of(dims.begin(), dims.end(), [](Dim dim) { return dim.is_constant(); });
}

}  // namespace gcompile::ir

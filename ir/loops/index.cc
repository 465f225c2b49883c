#include "ir/loops/index.h"

#include <algorithm>
#include <numeric>

#include "base/diagnostics.h"

namespace gcompile::ir {
namespace {

int compare_atoms(const IndexAtom& a, const IndexAtom& b) {
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (a.axis != b.axis) return a.axis < b.axis ? -1 : 1;
  if (a.divisor != b.divisor) return Dim::compare(a.divisor, b.divisor) < 0 ? -1 : 1;
  if (!a.inner && !b.inner) return 0;
  return a.inner->compare(*b.inner);
}

}  // namespace

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return quotient * b > a ? quotient - 1 : quotient;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }

std::vector<Range> full_ranges(std::span<const Dim> extents) {
  std::vector<Range> ranges;
  for (const Dim extent : extents) ranges.push_back({0, extent});
  return ranges;
}

Index Index::axis(int axis) {
  Index index;
  IndexAtom atom;
  atom.axis = axis;
  index.terms_.push_back({1, atom});
  return index;
}

Index Index::loaded(int scalar, Range range) {
  Index index;
  IndexAtom atom;
  atom.kind = IndexAtom::Kind::kLoaded;
  atom.axis = scalar;
  atom.range = range;
  index.terms_.push_back({1, atom});
  return index;
}

void Index::add(Dim coefficient, const IndexAtom& atom) {
  auto at = std::lower_bound(terms_.begin(), terms_.end(), atom,
                             [](const Term& t, const IndexAtom& a) { return compare_atoms(t.atom, a) < 0; });
  if (at != terms_.end() && compare_atoms(at->atom, atom) == 0) {
    at->coefficient += coefficient;
    if (at->coefficient == 0) terms_.erase(at);
  } else if (coefficient != 0) {
    terms_.insert(at, {coefficient, atom});
  }
}

bool Index::is_affine() const {
  return std::all_of(terms_.begin(), terms_.end(),
                     [](const Term& t) { return t.atom.kind == IndexAtom::Kind::kAxis; });
}

std::optional<int> Index::as_axis() const {
  if (constant_ != 0 || terms_.size() != 1 || terms_[0].coefficient != 1) return std::nullopt;
  if (terms_[0].atom.kind != IndexAtom::Kind::kAxis) return std::nullopt;
  return terms_[0].atom.axis;
}

Dim Index::coefficient_of(int axis) const {
  for (const Term& t : terms_) {
    if (t.atom.kind == IndexAtom::Kind::kAxis && t.atom.axis == axis) return t.coefficient;
  }
  return 0;
}

bool Index::mentions(int axis) const {
  for (const Term& t : terms_) {
    if (t.atom.kind == IndexAtom::Kind::kAxis ? t.atom.axis == axis
                                              : t.atom.inner && t.atom.inner->mentions(axis)) {
      return true;
    }
  }
  return false;
}

bool Index::has_loaded() const {
  return std::any_of(terms_.begin(), terms_.end(), [](const Term& t) {
    return t.atom.kind == IndexAtom::Kind::kLoaded || (t.atom.inner && t.atom.inner->has_loaded());
  });
}

Index Index::operator+(const Index& other) const {
  Index sum = *this;
  sum.constant_ += other.constant_;
  for (const Term& t : other.terms_) sum.add(t.coefficient, t.atom);
  return sum;
}

Index Index::operator-(const Index& other) const { return *this + other * -1; }

Index Index::operator*(Dim factor) const {
  if (factor == 0) return {};
  Index product = *this;
  product.constant_ *= factor;
  for (Term& t : product.terms_) t.coefficient *= factor;
  return product;
}

int Index::compare(const Index& other) const {
  if (terms_.size() != other.terms_.size()) return terms_.size() < other.terms_.size() ? -1 : 1;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    if (const int order = compare_atoms(terms_[i].atom, other.terms_[i].atom)) return order;
    if (terms_[i].coefficient != other.terms_[i].coefficient) {
      return Dim::compare(terms_[i].coefficient, other.terms_[i].coefficient) < 0 ? -1 : 1;
    }
  }
  const std::strong_ordering order = Dim::compare(constant_, other.constant_);
  return order == 0 ? 0 : order < 0 ? -1 : 1;
}

namespace {

/// floor(a / divisor) where that is a size; nullopt: no form is known.
std::optional<Dim> floor_quotient(Dim a, Dim divisor) {
  if (divisor.is_constant()) return floor_div(a, divisor.constant());
  if (always_less_equal(0, a) && always_less(a, divisor)) return 0;
  return exact_quotient(a, divisor);
}

/// What all values of a range give; nullopt: not one for all, or it has no values.
std::optional<Dim> common_quotient(const Range& range, Dim divisor) {
  if (!always_less(range.low, range.high)) return std::nullopt;
  const std::optional<Dim> low = floor_quotient(range.low, divisor);
  return low && low == floor_quotient(range.high - 1, divisor) ? low : std::nullopt;
}

/// Where there is no formula for a bound, it is as far as sizes go, and so is that of all sums with it.
const Range kNowhere = {-kDimLimit / 2, kDimLimit / 2};

Range range_of_atom(const IndexAtom& atom, std::span<const Range> axes) {
  switch (atom.kind) {
    case IndexAtom::Kind::kAxis:
      GC_CHECK(atom.axis >= 0 && atom.axis < static_cast<int>(axes.size()));
      return axes[atom.axis];
    case IndexAtom::Kind::kLoaded:
      return atom.range;
    case IndexAtom::Kind::kFloorDiv: {
      const Range inner = range_of(*atom.inner, axes);
      const std::optional<Dim> low = floor_quotient(inner.low, atom.divisor);
      const std::optional<Dim> last = floor_quotient(inner.high - 1, atom.divisor);
      return {low.value_or(kNowhere.low), last ? *last + 1 : kNowhere.high};
    }
    case IndexAtom::Kind::kMod: {
      const Range inner = range_of(*atom.inner, axes);
      if (const std::optional<Dim> low = common_quotient(inner, atom.divisor)) {
        return {inner.low - *low * atom.divisor, inner.high - *low * atom.divisor};
      }
      return {0, atom.divisor};
    }
  }
  return {};
}

Index of_atom(IndexAtom::Kind kind, const Index& inner, Dim divisor) {
  IndexAtom atom;
  atom.kind = kind;
  atom.divisor = divisor;
  atom.inner = std::make_shared<const Index>(inner);
  return Index::of(atom);
}

/// Splits into (multiples of divisor, rest): index == divisor * first + second.
std::pair<Index, Index> split_multiples(const Index& index, Dim divisor) {
  const Dim whole = floor_quotient(index.constant(), divisor).value_or(0);
  Index quotient(whole);
  Index rest(index.constant() - whole * divisor);
  for (const Index::Term& t : index.terms()) {
    const Index atom = Index::of(t.atom);
    if (const std::optional<Dim> multiple = exact_quotient(t.coefficient, divisor)) {
      quotient = quotient + atom * *multiple;
    } else {
      rest = rest + atom * t.coefficient;
    }
  }
  return {quotient, rest};
}

/// The greatest size found that divides both; positive.
Dim common_factor(Dim a, Dim b) {
  const std::int64_t number = std::gcd(content(a), content(b));
  if (number == 0 || (a.is_constant() && b.is_constant())) return number;
  for (const Dim whole : {a, b}) {
    const std::optional<Dim> factor = exact_quotient(whole, content(whole) / number);
    if (factor && always_less(0, *factor) && exact_quotient(a, *factor) && exact_quotient(b, *factor))
      return *factor;
  }
  return number;
}

/// What the divisor has in common with coefficients, one or several of them: formulas first, then from the
/// greatest number down.
std::vector<Dim> factors_of_terms(const Index& index, Dim divisor) {
  constexpr std::size_t kMost = 24;
  std::vector<Dim> factors;
  const auto add = [&](Dim factor) {
    if (factor != 1 && std::find(factors.begin(), factors.end(), factor) == factors.end())
      factors.push_back(factor);
  };
  for (const Index::Term& t : index.terms()) {
    if (factors.size() < kMost) add(common_factor(t.coefficient, divisor));
  }
  for (std::size_t i = 1; i < factors.size(); ++i) {
    for (std::size_t k = 0; k < i && factors.size() < kMost; ++k) add(common_factor(factors[i], factors[k]));
  }
  std::stable_sort(factors.begin(), factors.end(), [](Dim a, Dim b) {
    return a.is_constant() ? b.is_constant() && a.constant() > b.constant() : b.is_constant();
  });
  return factors;
}

/// index == factor * multiple + rest with rest in [0, factor), and factor * quotient == divisor.
struct Factored {
  Dim factor, quotient;
  Index multiple, rest;
};

/// nullopt: of no factor that divisor and coefficients share is the rest proven to lie below it.
std::optional<Factored> factored(const Index& index, Dim divisor, std::span<const Range> axes) {
  for (const Dim factor : factors_of_terms(index, divisor)) {
    const std::optional<Dim> quotient = exact_quotient(divisor, factor);
    if (!quotient || !always_less(0, *quotient)) continue;
    auto [multiple, rest] = split_multiples(index, factor);
    const std::optional<Dim> whole = common_quotient(range_of(rest, axes), factor);
    if (whole) return Factored{factor, *quotient, multiple + Index(*whole), rest - Index(*whole * factor)};
  }
  return std::nullopt;
}

}  // namespace

Index Index::of(const IndexAtom& atom) {
  Index index;
  index.terms_.push_back({1, atom});
  return index;
}

Range range_of(const Index& index, std::span<const Range> axes) {
  Dim low = index.constant();
  Dim high = index.constant();  // inclusive while summing
  for (const Index::Term& t : index.terms()) {
    const Range r = range_of_atom(t.atom, axes);
    if (always_less_equal(r.high, r.low)) return {0, 0};
    if (r.low == kNowhere.low || r.high == kNowhere.high) return kNowhere;
    const Dim a = t.coefficient * r.low;
    const Dim b = t.coefficient * (r.high - 1);
    const bool rises = always_less_equal(0, t.coefficient), falls = always_less_equal(t.coefficient, 0);
    low += rises ? a : falls ? b : min(a, b);
    high += rises ? b : falls ? a : max(a, b);
  }
  return {low, high + 1};
}

Index floor_div(const Index& index, Dim divisor, std::span<const Range> axes) {
  GC_CHECK(always_less(0, divisor));
  if (divisor == 1) return index;
  // floor((d*q + r) / d) == q + floor(r / d)
  auto [quotient, rest] = split_multiples(index, divisor);
  const Range r = range_of(rest, axes);
  if (const std::optional<Dim> common = common_quotient(r, divisor)) return quotient + Index(*common);
  // floor(floor(x / a) / b) == floor(x / (a*b))
  if (rest.constant() == 0 && rest.terms().size() == 1 && rest.terms()[0].coefficient == 1 &&
      rest.terms()[0].atom.kind == IndexAtom::Kind::kFloorDiv) {
    const IndexAtom& atom = rest.terms()[0].atom;
    return quotient + floor_div(*atom.inner, atom.divisor * divisor, axes);
  }
  // A common factor g of divisor and of all coefficients: floor((g*x + c) / (g*e)) == floor((x + floor(c/g))
  // / e).
  std::int64_t common = content(divisor);
  for (const Index::Term& t : rest.terms()) common = std::gcd(common, content(t.coefficient));
  if (common > 1) {
    Index reduced(floor_div(rest.constant(), common));
    for (const Index::Term& t : rest.terms())
      reduced = reduced + Index::of(t.atom) * (t.coefficient / common);
    return quotient + floor_div(reduced, divisor / common, axes);
  }
  // floor((g*x + s) / (g*e)) == floor(x / e) for s in [0, g)
  if (const std::optional<Factored> part = factored(rest, divisor, axes))
    return quotient + floor_div(part->multiple, part->quotient, axes);
  return quotient + of_atom(IndexAtom::Kind::kFloorDiv, rest, divisor);
}

Index modulo(const Index& index, Dim divisor, std::span<const Range> axes) {
  GC_CHECK(always_less(0, divisor));
  if (divisor == 1) return {};
  const auto [quotient, rest] = split_multiples(index, divisor);
  const Range r = range_of(rest, axes);
  if (const std::optional<Dim> common = common_quotient(r, divisor)) return rest - Index(*common * divisor);
  // (x mod (d*e)) mod d == x mod d
  if (rest.constant() == 0 && rest.terms().size() == 1 && rest.terms()[0].coefficient == 1 &&
      rest.terms()[0].atom.kind == IndexAtom::Kind::kMod &&
      exact_quotient(rest.terms()[0].atom.divisor, divisor)) {
    return modulo(*rest.terms()[0].atom.inner, divisor, axes);
  }
  // (g*x) mod (g*e) == g * (x mod e)
  std::int64_t common = std::gcd(content(divisor), content(rest.constant()));
  for (const Index::Term& t : rest.terms()) common = std::gcd(common, content(t.coefficient));
  if (common > 1) {
    Index reduced(rest.constant() / common);
    for (const Index::Term& t : rest.terms())
      reduced = reduced + Index::of(t.atom) * (t.coefficient / common);
    return modulo(reduced, divisor / common, axes) * common;
  }
  // (g*x + s) mod (g*e) == g * (x mod e) + s for s in [0, g)
  if (const std::optional<Factored> part = factored(rest, divisor, axes))
    return modulo(part->multiple, part->quotient, axes) * part->factor + part->rest;
  return of_atom(IndexAtom::Kind::kMod, rest, divisor);
}

Index substitute(const Index& index, std::span<const Index> axes, std::span<const Range> ranges,
                 const std::function<int(int)>& scalar) {
  if (const std::optional<int> axis = index.as_axis()) return axes[*axis];
  Index out(index.constant());
  for (const Index::Term& t : index.terms()) {
    Index atom;
    switch (t.atom.kind) {
      case IndexAtom::Kind::kAxis:
        atom = axes[t.atom.axis];
        break;
      case IndexAtom::Kind::kLoaded:
        atom = Index::loaded(scalar(t.atom.axis), t.atom.range);
        break;
      case IndexAtom::Kind::kFloorDiv:
        atom = floor_div(substitute(*t.atom.inner, axes, ranges, scalar), t.atom.divisor, ranges);
        break;
      case IndexAtom::Kind::kMod:
        atom = modulo(substitute(*t.atom.inner, axes, ranges, scalar), t.atom.divisor, ranges);
        break;
    }
    out = out + atom * t.coefficient;
  }
  return out;
}

namespace {

/// Quotients and remainders, those inside others included.
int divisions_of(const Index& index) {
  int count = 0;
  for (const Index::Term& t : index.terms()) {
    if (t.atom.inner) count += 1 + divisions_of(*t.atom.inner);
  }
  return count;
}

}  // namespace

Index recombine(const Index& index, std::span<const Range> ranges) {
  Index out = index;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Index::Term& t : out.terms()) {
      if (t.atom.kind != IndexAtom::Kind::kMod) continue;
      const Index quotient =
          floor_div(*t.atom.inner, t.atom.divisor, ranges) * (t.coefficient * t.atom.divisor);
      const Index merged = out - Index::of(t.atom) * t.coefficient - quotient + *t.atom.inner * t.coefficient;
      const bool both_vanish = divisions_of(merged) + 2 <= divisions_of(out);
      if (!both_vanish && merged.terms().size() >= out.terms().size()) continue;
      out = merged;
      changed = true;
      break;
    }
  }
  return out;
}

Index address_of(std::span<const Index> index, std::span<const Dim> strides) {
  GC_CHECK(index.size() == strides.size());
  Index address;
  for (std::size_t i = 0; i < index.size(); ++i) address = address + index[i] * strides[i];
  return address;
}

Index linearise(std::span<const Index> index, std::span<const Dim> shape) {
  GC_CHECK(index.size() == shape.size());
  Index position;
  Dim stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    position = position + index[i] * stride;
    stride *= shape[i];
  }
  return position;
}

namespace {

/// The coordinate along an axis of that stride, where splitting multiples off tells it: also of sizes that
/// may be zero, for then there is no position. No extent: the position is inside the shape.
std::optional<Index> coordinate(const Index& position, Dim stride, std::optional<Dim> extent,
                                std::span<const Range> axes) {
  const auto lies_in = [&](const Index& rest, Dim divisor) {
    const Range range = range_of(rest, axes);
    return always_less_equal(0, range.low) && always_less_equal(range.high, divisor);
  };
  if (position.constant() != 0 || stride == 0 || extent == Dim(0)) return std::nullopt;
  const auto [quotient, inside] = split_multiples(position, stride);
  if (!lies_in(inside, stride)) return std::nullopt;
  if (!extent) return quotient;
  Index rest = split_multiples(quotient, *extent).second;
  return lies_in(rest, *extent) ? std::optional(std::move(rest)) : std::nullopt;
}

}  // namespace

std::vector<Index> delinearise(const Index& position, std::span<const Dim> shape,
                               std::span<const Range> axes) {
  std::vector<Index> out(shape.size());
  Dim stride = 1, as_given = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    const Dim extent = max(shape[i], 1);
    // The outermost coordinate needs no remainder: the position is inside the shape.
    std::optional<Index> found;
    if (as_given != stride || extent != shape[i])
      found = coordinate(position, as_given, i == 0 ? std::nullopt : std::optional(shape[i]), axes);
    if (!found) {
      // Sizes of 1 and more have a product of 1 and more, which bounds do not always prove of its formula.
      const Index quotient = floor_div(position, max(stride, 1), axes);
      found = i == 0 ? quotient : modulo(quotient, extent, axes);
    }
    out[i] = *std::move(found);
    stride *= extent;
    as_given *= shape[i];
  }
  return out;
}

}  // namespace gcompile::ir

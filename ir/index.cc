#include "ir/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/diagnostics.h"

namespace gcompile::ir {
namespace {

int compare_atoms(const IndexAtom& a, const IndexAtom& b) {
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (a.axis != b.axis) return a.axis < b.axis ? -1 : 1;
  if (a.divisor != b.divisor) return a.divisor < b.divisor ? -1 : 1;
  if (!a.inner && !b.inner) return 0;
  return a.inner->compare(*b.inner);
}

}  // namespace

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return quotient * b > a ? quotient - 1 : quotient;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }

std::vector<Range> full_ranges(std::span<const std::int64_t> extents) {
  std::vector<Range> ranges;
  for (const std::int64_t extent : extents) ranges.push_back({0, extent});
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

void Index::add(std::int64_t coefficient, const IndexAtom& atom) {
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

std::int64_t Index::coefficient_of(int axis) const {
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

Index Index::operator*(std::int64_t factor) const {
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
      return terms_[i].coefficient < other.terms_[i].coefficient ? -1 : 1;
    }
  }
  return constant_ == other.constant_ ? 0 : constant_ < other.constant_ ? -1 : 1;
}

namespace {

Range range_of_atom(const IndexAtom& atom, std::span<const Range> axes) {
  switch (atom.kind) {
    case IndexAtom::Kind::kAxis:
      GC_CHECK(atom.axis >= 0 && atom.axis < static_cast<int>(axes.size()));
      return axes[static_cast<std::size_t>(atom.axis)];
    case IndexAtom::Kind::kLoaded:
      return atom.range;
    case IndexAtom::Kind::kFloorDiv: {
      const Range inner = range_of(*atom.inner, axes);
      return {floor_div(inner.low, atom.divisor), floor_div(inner.high - 1, atom.divisor) + 1};
    }
    case IndexAtom::Kind::kMod: {
      const Range inner = range_of(*atom.inner, axes);
      const std::int64_t low = floor_div(inner.low, atom.divisor);
      if (inner.high > inner.low && floor_div(inner.high - 1, atom.divisor) == low) {
        return {inner.low - low * atom.divisor, inner.high - low * atom.divisor};
      }
      return {0, atom.divisor};
    }
  }
  return {};
}

Index of_atom(IndexAtom::Kind kind, const Index& inner, std::int64_t divisor) {
  IndexAtom atom;
  atom.kind = kind;
  atom.divisor = divisor;
  atom.inner = std::make_shared<const Index>(inner);
  return Index::of(atom);
}

/// Splits into (multiples of divisor, rest): index == divisor * first + second.
std::pair<Index, Index> split_multiples(const Index& index, std::int64_t divisor) {
  Index quotient(floor_div(index.constant(), divisor));
  Index rest(index.constant() - floor_div(index.constant(), divisor) * divisor);
  for (const Index::Term& t : index.terms()) {
    const Index atom = Index::of(t.atom);
    if (t.coefficient % divisor == 0) {
      quotient = quotient + atom * (t.coefficient / divisor);
    } else {
      rest = rest + atom * t.coefficient;
    }
  }
  return {quotient, rest};
}

}  // namespace

Index Index::of(const IndexAtom& atom) {
  Index index;
  index.terms_.push_back({1, atom});
  return index;
}

Range range_of(const Index& index, std::span<const Range> axes) {
  std::int64_t low = index.constant();
  std::int64_t high = index.constant();  // inclusive while summing
  for (const Index::Term& t : index.terms()) {
    const Range r = range_of_atom(t.atom, axes);
    if (r.high <= r.low) return {0, 0};
    const std::int64_t a = t.coefficient * r.low;
    const std::int64_t b = t.coefficient * (r.high - 1);
    low += std::min(a, b);
    high += std::max(a, b);
  }
  return {low, high + 1};
}

Index floor_div(const Index& index, std::int64_t divisor, std::span<const Range> axes) {
  GC_CHECK(divisor > 0);
  if (divisor == 1) return index;
  // floor((d*q + r) / d) == q + floor(r / d)
  auto [quotient, rest] = split_multiples(index, divisor);
  const Range r = range_of(rest, axes);
  if (r.high > r.low && floor_div(r.low, divisor) == floor_div(r.high - 1, divisor)) {
    return quotient + Index(floor_div(r.low, divisor));
  }
  // floor(floor(x / a) / b) == floor(x / (a*b))
  if (rest.constant() == 0 && rest.terms().size() == 1 && rest.terms()[0].coefficient == 1 &&
      rest.terms()[0].atom.kind == IndexAtom::Kind::kFloorDiv) {
    const IndexAtom& atom = rest.terms()[0].atom;
    return quotient + floor_div(*atom.inner, atom.divisor * divisor, axes);
  }
  // A common factor g of divisor and of all coefficients: floor((g*x + c) / (g*e)) == floor((x + floor(c/g))
  // / e).
  std::int64_t common = divisor;
  for (const Index::Term& t : rest.terms()) common = std::gcd(common, t.coefficient);
  if (common > 1) {
    Index reduced(floor_div(rest.constant(), common));
    for (const Index::Term& t : rest.terms())
      reduced = reduced + Index::of(t.atom) * (t.coefficient / common);
    return quotient + floor_div(reduced, divisor / common, axes);
  }
  return quotient + of_atom(IndexAtom::Kind::kFloorDiv, rest, divisor);
}

Index modulo(const Index& index, std::int64_t divisor, std::span<const Range> axes) {
  GC_CHECK(divisor > 0);
  if (divisor == 1) return {};
  const auto [quotient, rest] = split_multiples(index, divisor);
  const Range r = range_of(rest, axes);
  if (r.high > r.low && floor_div(r.low, divisor) == floor_div(r.high - 1, divisor)) {
    return rest - Index(floor_div(r.low, divisor) * divisor);
  }
  // (x mod (d*e)) mod d == x mod d
  if (rest.constant() == 0 && rest.terms().size() == 1 && rest.terms()[0].coefficient == 1 &&
      rest.terms()[0].atom.kind == IndexAtom::Kind::kMod && rest.terms()[0].atom.divisor % divisor == 0) {
    return modulo(*rest.terms()[0].atom.inner, divisor, axes);
  }
  // (g*x) mod (g*e) == g * (x mod e)
  std::int64_t common = std::gcd(divisor, rest.constant());
  for (const Index::Term& t : rest.terms()) common = std::gcd(common, t.coefficient);
  if (common > 1) {
    Index reduced(rest.constant() / common);
    for (const Index::Term& t : rest.terms())
      reduced = reduced + Index::of(t.atom) * (t.coefficient / common);
    return modulo(reduced, divisor / common, axes) * common;
  }
  return of_atom(IndexAtom::Kind::kMod, rest, divisor);
}

Index substitute(const Index& index, std::span<const Index> axes, std::span<const Range> ranges,
                 const std::function<int(int)>& scalar) {
  if (const std::optional<int> axis = index.as_axis()) return axes[static_cast<std::size_t>(*axis)];
  Index out(index.constant());
  for (const Index::Term& t : index.terms()) {
    Index atom;
    switch (t.atom.kind) {
      case IndexAtom::Kind::kAxis:
        atom = axes[static_cast<std::size_t>(t.atom.axis)];
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

Index address_of(std::span<const Index> index, std::span<const std::int64_t> strides) {
  GC_CHECK(index.size() == strides.size());
  Index address;
  for (std::size_t i = 0; i < index.size(); ++i) address = address + index[i] * strides[i];
  return address;
}

Index linearise(std::span<const Index> index, std::span<const std::int64_t> shape) {
  GC_CHECK(index.size() == shape.size());
  Index position;
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    position = position + index[i] * stride;
    stride *= shape[i];
  }
  return position;
}

std::vector<Index> delinearise(const Index& position, std::span<const std::int64_t> shape,
                               std::span<const Range> axes) {
  std::vector<Index> out(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    const std::int64_t extent = std::max<std::int64_t>(shape[i], 1);
    // The outermost coordinate needs no remainder: the position is inside the shape.
    const Index quotient = floor_div(position, stride, axes);
    out[i] = i == 0 ? quotient : modulo(quotient, extent, axes);
    stride *= extent;
  }
  return out;
}

std::string to_string(const Index& index) {
  return to_string(
      index, [](int axis) { return fmt::format("i{}", axis); },
      [](int id) { return fmt::format("%{}", id); });
}

std::string to_string(const Index& index, const std::function<std::string(int)>& axis_name,
                      const std::function<std::string(int)>& scalar_name) {
  std::string out;
  for (const Index::Term& t : index.terms()) {
    std::string atom;
    switch (t.atom.kind) {
      case IndexAtom::Kind::kAxis:
        atom = axis_name(t.atom.axis);
        break;
      case IndexAtom::Kind::kLoaded:
        atom = scalar_name(t.atom.axis);
        break;
      case IndexAtom::Kind::kFloorDiv:
      case IndexAtom::Kind::kMod: {
        std::string inner = to_string(*t.atom.inner, axis_name, scalar_name);
        const bool single = t.atom.inner->terms().size() == 1 && t.atom.inner->constant() == 0 &&
                            t.atom.inner->terms()[0].coefficient == 1;
        if (!single) inner = "(" + inner + ")";
        atom =
            fmt::format("{} {} {}", inner, t.atom.kind == IndexAtom::Kind::kMod ? "%" : "/", t.atom.divisor);
        if (t.coefficient != 1 && t.coefficient != -1) atom = "(" + atom + ")";
      }
    }
    const std::int64_t magnitude = std::abs(t.coefficient);
    if (out.empty()) {
      if (t.coefficient < 0) out += "-";
    } else {
      out += t.coefficient < 0 ? " - " : " + ";
    }
    out += magnitude == 1 ? (t.coefficient < 0 && t.atom.kind >= IndexAtom::Kind::kFloorDiv &&
                                     t.atom.kind <= IndexAtom::Kind::kMod
                                 ? "(" + atom + ")"
                                 : atom)
                          : fmt::format("{} * {}", magnitude, atom);
  }
  if (index.constant() != 0 || out.empty()) {
    if (out.empty()) return fmt::format("{}", index.constant());
    out += fmt::format(" {} {}", index.constant() < 0 ? '-' : '+', std::abs(index.constant()));
  }
  return out;
}

}  // namespace gcompile::ir

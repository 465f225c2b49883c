// Sizes in words and in code.

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "ir/sizes/dim.h"
#include "ir/sizes/sizes.h"

namespace gcompile::ir {
namespace {

/// "4 * height * width / 16": a unit of several is left out of the coefficient, and divides what remains.
std::string text_of(const DimTerm& term, std::int64_t coefficient, const DimSpelling& spelling) {
  std::string factors;
  std::int64_t units = 1;
  for (const DimAtom& atom : term.atoms) {
    if (!factors.empty()) factors += spelling.times;
    switch (atom.kind) {
      case DimAtom::Kind::kSymbol: {
        const DimSpelling::Name name = spelling.name(atom.symbol);
        factors += name.text;
        units *= name.unit;
        break;
      }
      case DimAtom::Kind::kFloorDiv:
        factors += spelling.quotient(atom.a, atom.divisor);
        break;
      case DimAtom::Kind::kMin:
      case DimAtom::Kind::kMax:
        factors += spelling.extreme(atom.kind == DimAtom::Kind::kMin, to_string(atom.a, spelling),
                                    to_string(atom.b, spelling));
        break;
    }
  }
  const std::int64_t common = std::gcd(coefficient, units);
  if (coefficient != common) factors = fmt::format("{}{}{}", coefficient / common, spelling.times, factors);
  if (units != common) factors += fmt::format(" / {}", units / common);
  return factors;
}

}  // namespace

std::string to_string(Dim a, const DimSpelling& spelling) {
  std::string text;
  const auto sign = [&](bool is_negative) {
    text += text.empty() ? (is_negative ? "-" : "") : (is_negative ? " - " : " + ");
  };
  for (const DimTerm& term : a.terms()) {
    sign(term.coefficient < 0);
    text += text_of(term, std::abs(term.coefficient), spelling);  // numbers in formulas have opposites
  }
  if (a.constant() == 0 && !text.empty()) return text;
  sign(a.constant() < 0);
  // -INT64_MIN overflows.
  const auto number = static_cast<std::uint64_t>(a.constant());
  return text + fmt::format("{}", a.constant() < 0 ? 0 - number : number);
}

DimSpelling plain_spelling(std::function<DimSpelling::Name(int symbol)> name) {
  DimSpelling out{std::move(name), " x ", nullptr,
                  [](bool is_min, const std::string& a, const std::string& b) {
                    return fmt::format("{}({}, {})", is_min ? "min" : "max", a, b);
                  }};
  // A copy of its own names, for it is part of what it spells.
  out.quotient = [name_of = out.name](Dim a, std::int64_t divisor) {
    const bool is_single = a.constant() == 0 && a.terms().size() == 1;
    const std::string inner = to_string(a, plain_spelling(name_of));
    return fmt::format("floor({} / {})", is_single ? inner : "(" + inner + ")", divisor);
  };
  return out;
}

std::string to_string(Dim a) {
  const Sizes* sizes = SizesScope::in_force();
  std::string text = to_string(a, plain_spelling([&](int symbol) -> DimSpelling::Name {
                                 if (sizes == nullptr) return {fmt::format("s{}", symbol)};
                                 const SizeSymbol& known = sizes->symbols()[symbol];
                                 return {known.name, known.unit};
                               }));
  // It stands in comments of emitted code, which an asterisk in a name might end.
  std::replace(text.begin(), text.end(), '*', 'x');
  return text;
}

std::string to_string(const Shape& shape) {
  std::vector<std::string> texts;
  for (const Dim dim : shape) texts.push_back(to_string(dim));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

}  // namespace gcompile::ir

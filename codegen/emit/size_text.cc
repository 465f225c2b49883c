#include "codegen/emit/size_text.h"

#include <fmt/format.h>

#include "ir/operator.h"

namespace gcompile {
namespace {

std::string atom_text(const Program& program, const ir::DimAtom& atom) {
  switch (atom.kind) {
    case ir::DimAtom::Kind::kSymbol: {
      const Size& size = program.sizes.at(static_cast<std::size_t>(atom.symbol));
      return size.multiple == 1 ? "sizes->" + size.c_name
                                : fmt::format("(sizes->{} / {})", size.c_name, size.multiple);
    }
    case ir::DimAtom::Kind::kFloorDiv: {
      // C++ rounds towards zero.
      if (!ir::always_less_equal(0, atom.a))
        ir::operator_error("a size is a quotient of what may be negative");
      return fmt::format("(({}) / {})", size_text(program, atom.a), atom.divisor);
    }
    case ir::DimAtom::Kind::kMin:
    case ir::DimAtom::Kind::kMax: {
      const std::string a = size_text(program, atom.a), b = size_text(program, atom.b);
      return fmt::format("({0} {1} {2} ? {0} : {2})", a, atom.kind == ir::DimAtom::Kind::kMin ? "<" : ">", b);
    }
  }
  return {};
}

}  // namespace

std::string size_text(const Program& program, ir::Dim size) {
  std::string text;
  const auto append = [&](std::int64_t coefficient, const std::string& factors) {
    const bool is_negative = coefficient < 0;
    text += text.empty() ? (is_negative ? "-" : "") : (is_negative ? " - " : " + ");
    const std::int64_t number = is_negative ? -coefficient : coefficient;
    text += factors.empty() ? fmt::format("{}", number)
            : number == 1   ? factors
                            : fmt::format("{} * {}", number, factors);
  };
  for (const ir::DimTerm& term : size.terms()) {
    std::string factors;
    for (const ir::DimAtom& atom : term.atoms) {
      factors += (factors.empty() ? "" : " * ") + atom_text(program, atom);
    }
    append(term.coefficient, factors);
  }
  if (size.constant() != 0 || text.empty()) append(size.constant(), "");
  return text;
}

}  // namespace gcompile

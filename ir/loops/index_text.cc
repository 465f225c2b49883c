// Indices as text.
#include <fmt/format.h>

#include "ir/loops/index.h"

namespace gcompile::ir {

std::string name_of_size(Dim size) {
  const bool is_single = size.is_constant() || size.as_symbol();
  return is_single ? to_string(size) : "(" + to_string(size) + ")";
}

std::string to_string(const Index& index) {
  return to_string(
      index, [](int axis) { return fmt::format("i{}", axis); }, [](int id) { return fmt::format("%{}", id); },
      name_of_size);
}

std::string to_string(const Index& index, const std::function<std::string(int)>& axis_name,
                      const std::function<std::string(int)>& scalar_name,
                      const std::function<std::string(Dim)>& size_name) {
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
        std::string inner = to_string(*t.atom.inner, axis_name, scalar_name, size_name);
        const bool single = t.atom.inner->terms().size() == 1 && t.atom.inner->constant() == 0 &&
                            t.atom.inner->terms()[0].coefficient == 1;
        if (!single) inner = "(" + inner + ")";
        atom = fmt::format("{} {} {}", inner, t.atom.kind == IndexAtom::Kind::kMod ? "%" : "/",
                           size_name(t.atom.divisor));
        if (t.coefficient != 1 && t.coefficient != -1) atom = "(" + atom + ")";
      }
    }
    const bool is_negative = t.coefficient.is_constant() && t.coefficient < 0;
    const Dim magnitude = is_negative ? -t.coefficient : t.coefficient;
    if (out.empty()) {
      if (is_negative) out += "-";
    } else {
      out += is_negative ? " - " : " + ";
    }
    out += magnitude == 1 ? (is_negative && t.atom.kind >= IndexAtom::Kind::kFloorDiv &&
                                     t.atom.kind <= IndexAtom::Kind::kMod
                                 ? "(" + atom + ")"
                                 : atom)
                          : fmt::format("{} * {}", size_name(magnitude), atom);
  }
  if (index.constant() != 0 || out.empty()) {
    if (out.empty()) return size_name(index.constant());
    const bool is_negative = index.constant().is_constant() && index.constant() < 0;
    out += fmt::format(" {} {}", is_negative ? '-' : '+',
                       size_name(is_negative ? -index.constant() : index.constant()));
  }
  return out;
}

}  // namespace gcompile::ir

#pragma once
// What an index is at a point, by the definitions of floor and remainder alone.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/loops/index.h"

namespace gcompile::testing {

/// The number that an index without loaded parts is where its axes are `axes`.
inline std::int64_t value_at(const ir::Index& index, std::span<const std::int64_t> axes) {
  std::int64_t value = index.constant();
  for (const ir::Index::Term& term : index.terms()) {
    std::int64_t part = 0;
    if (term.atom.inner) {
      const std::int64_t inner = value_at(*term.atom.inner, axes), divisor = term.atom.divisor;
      const std::int64_t rest = (inner % divisor + divisor) % divisor;
      part = term.atom.kind == ir::IndexAtom::Kind::kMod ? rest : (inner - rest) / divisor;
    } else {
      part = axes[static_cast<std::size_t>(term.atom.axis)];
    }
    value += term.coefficient * part;
  }
  return value;
}

/// The place of an element in memory with these strides.
inline std::int64_t address_at(std::span<const ir::Index> index, std::span<const ir::Dim> strides,
                               std::span<const std::int64_t> axes) {
  std::int64_t address = 0;
  for (std::size_t i = 0; i < index.size(); ++i) address += strides[i] * value_at(index[i], axes);
  return address;
}

/// Visits every point of the ranges, the last axis fastest.
inline void for_each_point(std::span<const ir::Range> ranges,
                           const std::function<void(std::span<const std::int64_t>)>& visit) {
  std::vector<std::int64_t> at;
  for (const ir::Range& range : ranges) {
    if (ir::always_less_equal(range.high, range.low)) return;
    at.push_back(range.low);
  }
  for (bool more = true; more;) {
    visit(at);
    std::size_t axis = at.size();
    while (axis-- > 0 && ++at[axis] == ranges[axis].high) at[axis] = ranges[axis].low;
    more = axis != static_cast<std::size_t>(-1);
  }
}

}  // namespace gcompile::testing

#include "ir/ops/known_indices.h"

namespace gcompile::ir {

Index AffineIndices::at(const std::vector<Index>& position) const {
  Index sum(first);
  for (std::size_t axis = 0; axis < steps.size(); ++axis) sum = sum + position[axis] * steps[axis];
  return sum;
}

std::optional<AffineIndices> affine_indices(const Tensor& indices, const Shape& positions,
                                            std::int64_t component, Dim extent) {
  const std::int64_t count = element_count(positions);
  if (count == 0) return std::nullopt;
  const std::int64_t components = indices.count() / count;
  std::vector<std::int64_t> at(positions.size(), 0);
  AffineIndices out{0, Shape(positions.size(), 0)};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t given = indices.int_at(i * components + component);
    const Dim index = given < 0 ? given + extent : Dim(given);
    if (!always_less_equal(0, index) || !always_less(index, extent)) return std::nullopt;
    if (i == 0) out.first = index;
    Dim expected = out.first;
    std::int64_t distance = 0;
    std::size_t moved = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      expected += at[axis] * out.steps[axis];
      distance += at[axis];
      if (at[axis] != 0) moved = axis;
    }
    if (distance == 1) {
      out.steps[moved] = index - out.first;  // a neighbour of the first says the step along its axis
    } else if (index != expected) {
      return std::nullopt;
    }
    for (std::size_t axis = at.size(); axis-- > 0 && ++at[axis] == positions[axis];) at[axis] = 0;
  }
  return out;
}

void add_shell(LoopForm& form, const std::vector<Range>& box, int root) {
  std::vector<Range> rest = form.ranges();
  for (std::size_t axis = 0; axis < box.size(); ++axis) {
    for (const Range slab : {Range{0, box[axis].low}, Range{box[axis].high, form.extents[axis]}}) {
      if (always_less_equal(slab.high, slab.low)) continue;
      Region region{rest, root};
      region.box[axis] = slab;
      form.regions.push_back(std::move(region));
    }
    rest[axis] = box[axis];
    if (always_less_equal(rest[axis].high, rest[axis].low)) return;
  }
}

}  // namespace gcompile::ir

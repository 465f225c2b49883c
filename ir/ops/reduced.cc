#include "ir/ops/reduced.h"

#include <algorithm>

namespace gcompile::ir {

Shape reduced_shape(const Shape& shape, const std::vector<int>& axes, bool keep) {
  Shape out;
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), i)) {
      out.push_back(shape[static_cast<std::size_t>(i)]);
    } else if (keep) {
      out.push_back(1);
    }
  }
  return out;
}

ReducedAxes::ReducedAxes(const Shape& shape, const std::vector<int>& axes, bool keep) : index(shape.size()) {
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (std::binary_search(axes.begin(), axes.end(), i)) {
      if (keep) form.store.emplace_back(0);
      elements *= static_cast<double>(shape[at]);
      continue;
    }
    index[at] = Index::axis(static_cast<int>(form.extents.size()));
    form.store.push_back(index[at]);
    form.extents.push_back(shape[at]);
  }
  form.parallel = static_cast<int>(form.extents.size());
  for (const int axis : axes) {
    index[static_cast<std::size_t>(axis)] = Index::axis(static_cast<int>(form.extents.size()));
    form.extents.push_back(shape[static_cast<std::size_t>(axis)]);
  }
}

void ReducedAxes::keep_shape() {
  form.final_over_reduced = true;
  form.store = index;
}

}  // namespace gcompile::ir

#include "codegen/memory/storage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "ir/sizes/sizes.h"

namespace gcompile {

std::string layout_text(const ir::TensorType& type, const ir::Shape& strides) {
  const std::size_t rank = type.shape.size();
  if (strides.size() != rank) return to_string(type);
  // Axes of one element lie anywhere: each stays behind the axis before it.
  std::vector<std::size_t> order;
  std::vector<std::size_t> wide;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (type.shape[axis] != 1) wide.push_back(axis);
  }
  order = wide;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return ir::typical(strides[a]) > ir::typical(strides[b]);
  });
  if (order == wide) return to_string(type);
  const bool are_last = wide.size() > 1 && rank > 2 && wide.front() <= 1 && order.back() == 1;
  std::vector<std::size_t> others = order;
  std::erase(others, std::size_t{1});
  const bool is_channels_last = are_last && std::is_sorted(others.begin(), others.end());
  std::vector<std::size_t> axes;
  if (is_channels_last) {
    axes.push_back(0);
    for (std::size_t axis = 2; axis < rank; ++axis) axes.push_back(axis);
    axes.push_back(1);
  } else {
    for (std::size_t axis = 0; axis < rank; ++axis) {
      if (type.shape[axis] == 1) axes.push_back(axis);
    }
    axes.insert(axes.end(), order.begin(), order.end());
  }
  ir::TensorType lying = type;
  for (std::size_t i = 0; i < rank; ++i) lying.shape[i] = type.shape[axes[i]];
  return is_channels_last ? to_string(lying) + " channels last"
                          : fmt::format("{} of axes {}", to_string(lying), fmt::join(axes, ", "));
}

}  // namespace gcompile

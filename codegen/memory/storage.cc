#include "codegen/memory/storage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/sizes/sizes.h"

namespace gcompile {

const std::string& name_in_code(const StorageBuffer& buffer) {
  static const std::string kValue = "value";
  return !buffer.name.empty() ? buffer.name : !buffer.maker.empty() ? buffer.maker : kValue;
}

std::vector<std::size_t> axes_in_memory(const ir::Shape& shape, const ir::Shape& strides) {
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] != 1) axes.push_back(axis);
  }
  std::stable_sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) {
    return ir::typical(strides[a]) > ir::typical(strides[b]);
  });
  return axes;
}

std::string layout_text(const ir::TensorType& type, const ir::Shape& strides) {
  const std::size_t rank = type.shape.size();
  if (strides.size() != rank) return to_string(type);
  const std::vector<std::size_t> order = axes_in_memory(type.shape, strides);
  if (std::is_sorted(order.begin(), order.end())) return to_string(type);
  std::vector<std::size_t> axes;  // all of them, those of one element first
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (type.shape[axis] == 1) axes.push_back(axis);
  }
  axes.insert(axes.end(), order.begin(), order.end());
  const bool is_channels_last =
      rank > 2 && order.back() == 1 && std::is_sorted(order.begin(), order.end() - 1);
  if (is_channels_last) std::sort(axes.begin(), axes.end() - 1);
  ir::TensorType lying = type;
  for (std::size_t i = 0; i < rank; ++i) lying.shape[i] = type.shape[axes[i]];
  return is_channels_last ? to_string(lying) + " channels last"
                          : fmt::format("{} of axes {}", to_string(lying), fmt::join(axes, ", "));
}

std::string layout_text(const std::string& name, const ir::TensorType& type, const ir::Shape& strides) {
  return (name.empty() ? "" : name + " ") + layout_text(type, strides);
}

}  // namespace gcompile

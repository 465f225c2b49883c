#include "codegen/calls/head_coordinates.h"

#include <fmt/format.h>

#include "ir/tensors/tensor.h"

namespace gcompile {

HeadOffset moved(const ir::Shape& strides, const ir::Shape& heads, SizeParameters& sizes) {
  HeadOffset out;
  for (std::size_t axis = 0; axis < heads.size(); ++axis) {
    if (heads[axis] == 1 || strides[axis] == 0) continue;
    out.text += fmt::format(" + {} * b{}", sizes(strides[axis]), axis);
    out.axes.insert(static_cast<int>(axis));
  }
  return out;
}

void declare_coordinates(CodeText& code, const std::string& name, const std::set<int>& axes,
                         const ir::Shape& heads, SizeParameters& sizes) {
  std::vector<std::string> lines;
  ir::Dim below = 1;
  const ir::Dim count = ir::element_count(heads);
  for (std::size_t axis = heads.size(); axis-- > 0; below *= heads[axis]) {
    if (axes.count(static_cast<int>(axis)) == 0) continue;
    std::string value = below == 1 ? name : fmt::format("{} / {}", name, sizes(below));
    if (below * heads[axis] != count) value += fmt::format(" % {}", sizes(heads[axis]));
    lines.push_back(fmt::format("const std::ptrdiff_t b{} = {};", axis, value));
  }
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) code.line(*line);
}

}  // namespace gcompile

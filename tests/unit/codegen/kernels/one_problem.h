#pragma once
// Problems of single nodes, for tests of kernel families.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/forms/form.h"
#include "ir/graph/problem.h"
#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {

inline ir::Attributes attributes(std::vector<std::pair<std::string, ir::AttributeValue>> list) {
  ir::Attributes out;
  for (auto& [name, value] : list) out.set(name, value);
  return out;
}

/// Values that are neither symmetric nor all different.
inline ir::Tensor awkward(ir::ElementType type, ir::Shape shape) {
  ir::Tensor tensor(ir::TensorType{type, std::move(shape)});
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const auto value = static_cast<double>(i * 37 % 23 - (is_float(type)                   ? 11
                                                          : type == ir::ElementType::kInt8 ? 12
                                                                                           : 0));
    tensor.set(i, is_float(type) ? ir::Scalar::of_real(type, value / 8)
                                 : ir::Scalar::of_integer(type, static_cast<std::int64_t>(value)));
  }
  return tensor;
}

inline ir::Problem problem_of_node(const ir::Graph& graph) {
  const ir::NodeId id = graph.nodes()[0];
  const ir::Form form = ir::form_of(graph, id);
  const auto strides = [&](ir::ValueId value) {
    return ir::row_major_strides(graph.value(value).type.shape);
  };
  return *ir::problem_of(graph, id, form, strides, true);
}

/// A product by packed weights; `block` rows share a scale.
inline OneNode blocks(const ir::Tensor& a, const ir::Tensor& b, const ir::Tensor& scales,
                      const ir::Tensor* zeros, std::int64_t block,
                      ir::RowRounding rounding = ir::RowRounding::kNone) {
  OneNode node{
      .op = "MatMulBlocks",
      .attributes = attributes({{"block_size", block}, {"rounding", static_cast<std::int64_t>(rounding)}}),
      .operands = {&a, &b, &scales},
      .domain = "gcompile"};
  if (zeros) node.operands.push_back(zeros);
  return node;
}

}  // namespace gcompile::testing

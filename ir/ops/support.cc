#include "ir/ops/support.h"

#include <fmt/format.h>

#include <algorithm>

namespace gcompile::ir {

Shape broadcast(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape out(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t x = i < rank - a.size() ? 1 : a[i - (rank - a.size())];
    const std::int64_t y = i < rank - b.size() ? 1 : b[i - (rank - b.size())];
    if (x != y && x != 1 && y != 1) {
      operator_error(fmt::format("shapes {} and {} do not broadcast", to_string(a), to_string(b)));
    }
    out[i] = x == 1 ? y : x;
  }
  return out;
}

int normalise_axis(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) operator_error(fmt::format("axis {} is outside rank {}", axis, rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int> normalise_axes(const std::vector<std::int64_t>& axes, int rank) {
  std::vector<int> out;
  for (const std::int64_t axis : axes) out.push_back(normalise_axis(axis, rank));
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) operator_error("an axis is named twice");
  return out;
}

int load_broadcast(Dag& dag, const NodeView& node, int i, const Shape& result) {
  const TensorType& type = node.operand(i);
  const std::size_t lead = result.size() - type.shape.size();
  std::vector<Index> index;
  for (std::size_t axis = 0; axis < type.shape.size(); ++axis) {
    index.push_back(type.shape[axis] == 1 ? Index(0) : Index::axis(static_cast<int>(axis + lead)));
  }
  return dag.load(i, type.element, std::move(index));
}

int load_compute(Dag& dag, const NodeView& node, int i, const Shape& result) {
  return dag.cast(load_broadcast(dag, node, i, result), compute_type(node.element(i)));
}

LoopForm elementwise(const NodeView& node, const std::function<int(Dag&, const std::vector<int>&)>& body) {
  const TensorType& result = node.result(0);
  LoopForm form = LoopForm::over(result.shape);
  std::vector<int> arguments;
  for (int i = 0; i < node.operand_count(); ++i) {
    arguments.push_back(node.has_operand(i) ? load_compute(form.dag, node, i, result.shape) : -1);
  }
  form.set_root(form.dag.cast(body(form.dag, arguments), result.element));
  return form;
}

void infer_elementwise(InferContext& context, ElementType result) {
  Shape shape;
  for (int i = 0; i < context.operand_count(); ++i) {
    if (!context.has_operand(i)) continue;
    require_computable(context, i);
    shape = broadcast(shape, context.shape(i));
  }
  context.set_result(0, result, std::move(shape));
}

ElementType same_type(const NodeView& node, int first) {
  const ElementType type = node.element(first);
  for (int i = first + 1; i < node.operand_count(); ++i) {
    if (node.has_operand(i) && node.element(i) != type) {
      operator_error(fmt::format("inputs {} and {} have different types, {} and {}", first, i, name_of(type),
                                 name_of(node.element(i))));
    }
  }
  return type;
}

void require_float(const NodeView& node, int i) {
  require_computable(node, i);
  if (!is_float(node.element(i))) {
    operator_error(fmt::format("input {} must be floating point, not {}", i, name_of(node.element(i))));
  }
}

void require_computable(const NodeView& node, int i) {
  if (!is_computable(node.element(i))) {
    operator_error(
        fmt::format("input {} has type {}, in which nothing computes", i, name_of(node.element(i))));
  }
}

}  // namespace gcompile::ir

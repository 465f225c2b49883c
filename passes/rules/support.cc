#include "passes/rules/support.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace gcompile::passes {

using ir::Shape;
using ir::Tensor;

std::optional<std::vector<double>> along_axis(const Tensor& tensor, const Shape& shape, int axis) {
  const Shape& dims = tensor.shape();
  if (dims.size() > shape.size()) return std::nullopt;
  const std::size_t lead = shape.size() - dims.size();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool here = static_cast<int>(i + lead) == axis;
    if (dims[i] != 1 && (!here || dims[i] != shape[i + lead])) return std::nullopt;
  }
  const std::int64_t extent = shape[axis];
  std::vector<double> values(static_cast<std::size_t>(extent));
  for (std::int64_t i = 0; i < extent; ++i) {
    values[i] = tensor.real_at(tensor.count() == 1 ? 0 : i);
  }
  return values;
}

bool all_equal(const Tensor& tensor, double number) {
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    if (tensor.real_at(i) != number) return false;
  }
  return true;
}

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

bool keeps_type(const Match& match, std::string_view name) { return match.type(name) == match.result_type(); }

std::string unless_type_is_kept(const Match& match) {
  return keeps_type(match, "x") ? "" : "the result has another type or shape than the operand";
}

namespace {

enum class Reader { kFollow, kDecides, kEnds };

Reader reader_of(const ir::Graph& graph, const ir::Node& node, int slot) {
  const ir::Traits& traits = node.op->traits;
  // Subgraphs are not looked into.
  if (traits.decides || !node.subgraphs.empty()) return Reader::kDecides;
  if (traits.reads_types_only) return Reader::kEnds;
  // A float of 8 bits or less jumps like an integer.
  const auto is_real = [&](ir::ValueId id) {
    const ir::ElementType type = graph.value(id).type.element;
    return ir::is_float(type) && !ir::is_small_float(type);
  };
  if (!is_real(node.operands[slot])) return Reader::kEnds;
  for (const ir::ValueId result : node.results) {
    if (result.valid() && !is_real(result)) return Reader::kDecides;
  }
  const bool sums = node.op->accuracy == ir::Accuracy::kSum || !node.op->lower;
  return sums ? Reader::kEnds : Reader::kFollow;
}

}  // namespace

bool feeds_integer_decision(const ir::Graph& graph, ir::ValueId value) {
  constexpr std::size_t kLimit = 64;
  std::set<ir::ValueId> seen = {value};
  std::vector<ir::ValueId> open = {value};
  while (!open.empty()) {
    const ir::ValueId next = open.back();
    open.pop_back();
    for (const ir::Use& use : graph.value(next).uses) {
      if (!use.node.valid()) continue;
      const ir::Node& node = graph.node(use.node);
      const Reader reader = reader_of(graph, node, use.slot);
      if (reader == Reader::kDecides) return true;
      if (reader == Reader::kEnds) continue;
      for (const ir::ValueId result : node.results) {
        if (result.valid() && seen.insert(result).second) open.push_back(result);
      }
      if (seen.size() > kLimit) return true;
    }
  }
  return false;
}

std::int64_t position_under(const Shape& tensor, const Shape& shape, std::int64_t i) {
  std::int64_t position = 0, stride = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const std::int64_t extent = shape[shape.size() - 1 - axis], at = i % extent;
    i /= extent;
    if (axis >= tensor.size()) break;
    const std::int64_t own = tensor[tensor.size() - 1 - axis];
    if (own != 1) position += at * stride;
    stride *= own;
  }
  return position;
}

std::string unless_decisions_stay(const Match& match) {
  return feeds_integer_decision(match.graph(), match.result())
             ? "an integer, a comparison or a rounding is decided by the result"
             : "";
}

std::vector<std::int64_t> ints_of(const Match& match, std::string_view name) {
  return match.constant(name).ints();
}

std::vector<std::int64_t> normalised(std::vector<std::int64_t> axes, int rank) {
  for (std::int64_t& axis : axes) axis = axis < 0 ? axis + rank : axis;
  return axes;
}

ir::ValueId reshaped(Rewriter& rewriter, ir::ValueId value, const ir::Shape& shape) {
  if (rewriter.type_of(value).shape == shape) return value;
  ir::Attributes attributes;
  attributes.set("allowzero", std::int64_t{1});
  return rewriter.emit("Reshape", {value, rewriter.add_ints(shape)}, std::move(attributes));
}

}  // namespace gcompile::passes

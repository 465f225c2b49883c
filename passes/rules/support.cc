#include "passes/rules/support.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/interrupt.h"
#include "ir/ops/support.h"
#include "ir/tensors/constant_range.h"

namespace gcompile::passes {

using ir::Shape;
using ir::Tensor;

namespace {

/// Axes in [0, rank) of an operand that lists them, or the first ones, as many as there are entries.
std::vector<std::int64_t> listed_axes(const Tensor* axes, std::size_t count, int rank) {
  if (axes) return normalised(axes->ints(), rank);
  std::vector<std::int64_t> first(count);
  for (std::size_t i = 0; i < count; ++i) first[i] = static_cast<std::int64_t>(i);
  return first;
}

const Tensor* constant_operand(const ir::Graph& graph, const ir::Node& node, std::size_t slot) {
  const bool given = slot < node.operands.size() && node.operands[slot].valid();
  return given ? graph.constant(node.operands[slot]) : nullptr;
}

bool is_omitted(const ir::Node& node, std::size_t slot) {
  return slot >= node.operands.size() || !node.operands[slot].valid();
}

}  // namespace

std::optional<Strided> strided(const ir::Graph& graph, const ir::Node& slice) {
  const Shape& in = graph.value(slice.operands[0]).type.shape;
  const Shape& out = graph.value(slice.results[0]).type.shape;
  const Tensor* starts = constant_operand(graph, slice, 1);
  const Tensor* axes = constant_operand(graph, slice, 3);
  const Tensor* steps = constant_operand(graph, slice, 4);
  if (!starts || (!axes && !is_omitted(slice, 3)) || (!steps && !is_omitted(slice, 4))) return std::nullopt;
  Strided strided{std::vector<std::int64_t>(in.size(), 0), std::vector<std::int64_t>(in.size(), 1)};
  const std::vector<std::int64_t> from = starts->ints();
  const std::vector<std::int64_t> at = listed_axes(axes, from.size(), static_cast<int>(in.size()));
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto axis = static_cast<std::size_t>(at[i]);
    const std::int64_t step = steps ? steps->int_at(static_cast<std::int64_t>(i)) : 1;
    if (step <= 0 || !in[axis].is_constant() || !out[axis].is_constant()) return std::nullopt;
    const std::int64_t start = from[i] < 0 ? from[i] + in[axis] : ir::Dim(from[i]);
    strided.start[axis] = std::clamp<std::int64_t>(start, 0, in[axis]);
    strided.step[axis] = out[axis] <= 1 ? 1 : step;
  }
  return strided;
}

ir::ValueId emit_slice(Rewriter& rewriter, ir::ValueId value, const Strided& slice, const Shape& counts) {
  const Shape in = rewriter.type_of(value).shape;
  std::vector<std::int64_t> starts, ends, axes, steps;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (slice.start[i] == 0 && slice.step[i] == 1 && counts[i] == in[i]) continue;
    const std::int64_t count = counts[i];
    starts.push_back(slice.start[i]);
    ends.push_back(count == 0 ? slice.start[i] : slice.start[i] + (count - 1) * slice.step[i] + 1);
    axes.push_back(static_cast<std::int64_t>(i));
    steps.push_back(slice.step[i]);
  }
  if (axes.empty()) return value;
  return rewriter.emit("Slice", {value, rewriter.add_ints(starts), rewriter.add_ints(ends),
                                 rewriter.add_ints(axes), rewriter.add_ints(steps)});
}

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

bool all_finite(const Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    if (!std::isfinite(tensor.real_at(i))) return false;
  }
  return true;
}

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

Tensor negated(const Tensor& tensor) {
  Tensor out(tensor.type());
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const ir::Scalar value = tensor.at(i);
    const auto wrapped = static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(value.integer));
    out.set(i, ir::is_float(value.type) ? ir::Scalar::of_real(value.type, -value.real)
                                        : ir::Scalar::of_integer(value.type, wrapped));
  }
  return out;
}

bool is_small_addend(const Tensor& tensor) {
  const ir::ElementType type = tensor.element();
  const bool half = type == ir::ElementType::kFloat16;
  const double largest = half ? 65504.0 : type == ir::ElementType::kFloat64 ? 0x1p1023 : 0x1p127;
  const double epsilon = half ? 0x1p-11 : type == ir::ElementType::kFloat64 ? 0x1p-53 : 0x1p-24;
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    if (!(std::abs(tensor.real_at(i)) <= largest * epsilon)) return false;
  }
  return true;
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

std::size_t axis_of(const ir::Attributes& attributes, int rank) {
  return static_cast<std::size_t>(ir::normalise_axis(attributes.int_of("axis"), rank));
}

// Products and sums of weights ------------------------------------------------------------------------------

namespace {

std::vector<double> numbers_of(const Tensor& tensor) {
  std::vector<double> out(static_cast<std::size_t>(tensor.count()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = tensor.real_at(static_cast<std::int64_t>(i));
  return out;
}

/// The largest magnitude in each column.
std::vector<double> column_maxima(const Tensor& matrix) {
  std::vector<double> out(static_cast<std::size_t>(matrix.shape()[1]), 0.0);
  for (std::int64_t i = 0; i < matrix.count(); ++i) {
    double& largest = out[static_cast<std::size_t>(i) % out.size()];
    largest = std::max(largest, std::abs(matrix.real_at(i)));
  }
  return out;
}

}  // namespace

bool is_affordable(std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  constexpr double kMost = 1 << 29;
  return static_cast<double>(rows) * static_cast<double>(depth) * static_cast<double>(columns) <= kMost;
}

Tensor product_of(const Tensor& a, const Tensor& b) {
  const std::int64_t rows = a.shape()[0], depth = a.shape()[1], columns = b.shape()[1];
  const std::vector<double> left = numbers_of(a), right = numbers_of(b);
  std::vector<double> sums(static_cast<std::size_t>(rows * columns), 0.0);
  for (std::int64_t m = 0; m < rows; ++m) {
    poll_interrupt();
    double* const to = sums.data() + m * columns;
    for (std::int64_t k = 0; k < depth; ++k) {
      const double factor = left[static_cast<std::size_t>(m * depth + k)];
      const double* const from = right.data() + k * columns;
      for (std::int64_t n = 0; n < columns; ++n) to[n] += factor * from[n];
    }
  }
  return computed({a.element(), {rows, columns}},
                  [&](std::int64_t i) { return sums[static_cast<std::size_t>(i)]; });
}

bool keeps_columns(const Tensor& product, const Tensor& a, const Tensor& b) {
  if (!all_finite(product) || !all_finite(a) || !all_finite(b)) return false;
  const std::vector<double> largest = column_maxima(product), factors = column_maxima(b);
  for (std::size_t i = 0; i < largest.size(); ++i) {
    if (largest[i] < ir::least_normal(product.element()) && factors[i] != 0) return false;
  }
  return true;
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  return computed(a.type(), [&](std::int64_t i) { return a.real_at(i) + b.real_at(i); });
}

std::optional<std::vector<double>> column_bias(const Match& match, std::string_view name,
                                               std::string_view of) {
  const ir::Shape& shape = match.shape(of);
  return along_axis(match.constant(name), shape, static_cast<int>(shape.size()) - 1);
}

Tensor row_times(const std::vector<double>& row, const Tensor& matrix) {
  const std::int64_t columns = matrix.shape()[1];
  std::vector<double> sums(static_cast<std::size_t>(columns), 0.0);
  for (std::int64_t i = 0; i < matrix.count(); ++i)
    sums[static_cast<std::size_t>(i % columns)] +=
        row[static_cast<std::size_t>(i / columns)] * matrix.real_at(i);
  return computed({matrix.element(), {columns}},
                  [&](std::int64_t i) { return sums[static_cast<std::size_t>(i)]; });
}

}  // namespace gcompile::passes

// Calls of kernels with their own control: recurrences, TopK, scatters, running sums.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/kernels/kernel_call.h"
#include "codegen/kernels/recurrent_call.h"
#include "codegen/loops/c_types.h"
#include "codegen/loops/loop_printer.h"
#include "ir/ops/support.h"

namespace gcompile {

using ir::ElementType;
using ir::NodeId;
using ir::Shape;

namespace {

std::string int64_array(const std::string& name, const Shape& values) {
  // An array of no elements is not C++; its length is never read.
  return fmt::format("constexpr std::int64_t {}[] = {{{}}};", name,
                     values.empty() ? "0" : fmt::format("{}", fmt::join(values, ", ")));
}

}  // namespace

namespace {

/// Steps whose X * W is one product. Rows beyond 96 gain nothing; the sums wait in scratch, which stays below
/// the size of the result unless that holds less than a few steps.
std::int64_t steps_per_block(const ir::Recurrence& r, int gates, std::int64_t units, bool smallest) {
  if (smallest) return 1;
  const std::int64_t batch = std::max<std::int64_t>(1, r.batch);
  const std::int64_t result = r.steps * r.directions * batch * r.hidden;
  const std::int64_t fits = result / std::max<std::int64_t>(1, units * batch * gates) - 1;
  constexpr std::int64_t kFewSteps = 4;
  return std::max<std::int64_t>(1, std::min({r.steps, 96 / batch, std::max(kFewSteps, fits)}));
}

}  // namespace

KernelCall KernelBuilder::recurrent(NodeId id) {
  KernelCall call;
  call.headers = {"gcrt/cpu/rnn.h"};
  RecurrentCall recurrent(*this, call, id);
  const ir::Recurrence& r = recurrent.sizes();
  const int gates = recurrent.gates();
  const std::int64_t units = (r.hidden + 15) / 16 * 16;
  // [D][gates * H][depth] -> [D][gates][P / 16][depth][16]
  const auto pack = [&](const ir::Tensor& tensor, std::int64_t depth) {
    MatrixView view;
    view.matrices = r.directions * gates;
    view.matrix_step = r.hidden * depth;
    view.columns = r.hidden;
    view.column_step = depth;
    view.inner = depth;
    return pack_panels(tensor, view);
  };
  recurrent.weights(pack(recurrent.input_weights(), r.inputs), pack(recurrent.state_weights(), r.hidden));
  recurrent.rest(units);
  const std::int64_t block = steps_per_block(r, gates, units, smallest_scratch_);
  scratch_parameter(call, units * r.batch * (gates * (block + 1) + 3) * 4, "scratch", "float");

  CodeText code(1);
  code.line(recurrent.shape_line());
  code.line(fmt::format("static_assert(rnn_scratch_floats(shape, {}, {}) * 4 <= {});", gates, block,
                        call.arguments.back().scratch_bytes));
  code.line(recurrent.options_line());
  code.line(
      fmt::format("{}(shape, {}, options, /*steps at once*/ {});", call.family, recurrent.operands(), block));
  call.body = code.text();
  return call;
}

KernelCall KernelBuilder::top_k(NodeId id) {
  const ir::Node& n = node(id);
  const ir::TensorType& type = graph_.value(n.operands[0]).type;
  if (compute_type(type.element) != type.element)
    ir::operator_error("TopK has no kernel for 16-bit floats yet");
  const int axis = ir::normalise_axis(n.attributes.int_of("axis"), type.rank());
  const ir::Tensor* k = graph_.constant(n.operands[1]);
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t inner = ir::row_major_strides(type.shape)[at];
  const std::int64_t lines = type.count() / std::max<std::int64_t>(1, type.shape[at]);
  KernelCall call;
  call.family = "topk";
  call.headers = {target_ == Target::kCuda ? "gcrt/cuda/library.h" : "gcrt/cpu/library.h"};
  operand_parameter(call, id, 0, "x");
  const auto result = [&](std::size_t i, const char* parameter, ElementType element) {
    if (i < n.results.size() && n.results[i].valid()) {
      result_parameter(call, id, static_cast<int>(i), parameter);
    } else {
      const std::int64_t count = lines * k->int_at(0);
      scratch_parameter(call, bytes_of(element, count), parameter, kernel_type(element));
    }
  };
  result(0, "values", type.element);
  result(1, "positions", ElementType::kInt64);
  if (target_ == Target::kCuda && (type.shape[at] >= 1 << 30 || lines > INT32_MAX))
    ir::operator_error("TopK has no CUDA kernel for lines of 2^30 elements, or for 2^31 lines");
  call.body = fmt::format(
      "  top_k<{}>({}/*outer, extent, inner, k*/ {}, {}, {}, {}, x, values, positions);\n",
      n.attributes.flag("largest"), queue_argument(),
      type.count() / std::max<std::int64_t>(1, inner * type.shape[at]), type.shape[at], inner, k->int_at(0));
  return call;
}

KernelCall KernelBuilder::scatter(NodeId id) {
  const ir::Node& n = node(id);
  const ir::TensorType& data = graph_.value(n.operands[0]).type;
  const ir::TensorType& indices = graph_.value(n.operands[1]).type;
  const std::string& reduction = n.attributes.string_of("reduction");
  const bool half = compute_type(data.element) != data.element;
  if (half && reduction != "none")
    ir::operator_error("scatter reductions have no kernel for 16-bit floats yet");
  const char* combine = reduction == "add"   ? "ScatterAdd"
                        : reduction == "mul" ? "ScatterMul"
                        : reduction == "max" ? "ScatterMax"
                        : reduction == "min" ? "ScatterMin"
                                             : "ScatterReplace";
  const bool on_device = target_ == Target::kCuda;
  KernelCall call;
  call.headers = {on_device ? "gcrt/cuda/scatter.h" : "gcrt/cpu/library.h"};
  call.checked = !on_device;
  operand_parameter(call, id, 0, "data");
  operand_parameter(call, id, 1, "indices");
  operand_parameter(call, id, 2, "updates");
  result_parameter(call, id, 0, "y");
  CodeText code(1);
  const Shape strides = ir::row_major_strides(data.shape);
  const std::string begin = on_device ? "" : "return ", end = on_device ? "y, scratch" : "y";
  if (n.op->name == "ScatterND") {
    call.family = "scatter_nd";
    const std::int64_t depth = indices.shape.back();
    const Shape places(data.shape.begin(), data.shape.begin() + depth);
    const std::int64_t slice = ir::element_count(Shape(data.shape.begin() + depth, data.shape.end()));
    const std::int64_t tuples = ir::element_count(Shape(indices.shape.begin(), indices.shape.end() - 1));
    if (on_device) scatter_on_device(call, reduction == "none", ir::element_count(places), tuples);
    code.line(int64_array("extents", places));
    if (!on_device) code.line(int64_array("strides", Shape(strides.begin(), strides.begin() + depth)));
    code.line(fmt::format(
        "{}scatter_nd<{}>({}/*count, tuples, depth, slice*/ {}, {}, {}, {}, extents, {}data, indices, "
        "updates, {});",
        begin, combine, queue_argument(), data.count(), tuples, depth, slice, on_device ? "" : "strides, ",
        end));
  } else {
    call.family = "scatter_elements";
    const int axis = ir::normalise_axis(n.attributes.int_of("axis"), data.rank());
    if (on_device) scatter_on_device(call, reduction == "none", data.count(), indices.count());
    code.line(int64_array("extents", data.shape));
    code.line(int64_array("strides", strides));
    code.line(int64_array("box", indices.shape));
    code.line(fmt::format(
        "{}scatter_elements<{}>({}/*count, rank, axis*/ {}, {}, {}, extents, strides, box, data, indices, "
        "updates, {});",
        begin, combine, queue_argument(), data.count(), data.rank(), axis, end));
  }
  call.body = code.text();
  return call;
}

KernelCall KernelBuilder::cumulative_sum(NodeId id) {
  const ir::Node& n = node(id);
  const ir::TensorType& type = graph_.value(n.operands[0]).type;
  if (compute_type(type.element) != type.element)
    ir::operator_error("CumSum has no kernel for 16-bit floats yet");
  const ir::Tensor* axis_tensor = graph_.constant(n.operands[1]);
  if (!axis_tensor) ir::operator_error("the axis must be known at compile time");
  const auto axis = static_cast<std::size_t>(ir::normalise_axis(axis_tensor->int_at(0), type.rank()));
  const std::int64_t inner = ir::row_major_strides(type.shape)[axis];
  KernelCall call;
  call.family = "cumsum";
  call.headers = {target_ == Target::kCuda ? "gcrt/cuda/scan.h" : "gcrt/cpu/library.h"};
  operand_parameter(call, id, 0, "x");
  result_parameter(call, id, 0, "y");
  call.body = fmt::format(
      "  cumulative_sum({}/*outer, extent, inner*/ {}, {}, {}, /*exclusive*/ {}, /*reverse*/ {}, x, y);\n",
      queue_argument(), type.count() / std::max<std::int64_t>(1, inner * type.shape[axis]), type.shape[axis],
      inner, n.attributes.flag("exclusive"), n.attributes.flag("reverse"));
  return call;
}

}  // namespace gcompile

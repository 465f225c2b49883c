#include "codegen/kernels/integer_kernels.h"

#include <fmt/format.h>

#include "codegen/kernels/image_shape.h"
#include "codegen/kernels/kernel_call.h"
#include "codegen/loops/c_types.h"
#include "codegen/loops/loop_printer.h"

namespace gcompile {

using ir::ElementType;
using ir::NodeId;
using ir::Shape;

IntegerWeights depthwise_weights(const ir::Tensor& weights, const ZeroPoints& zero) {
  IntegerWeights out;
  out.narrow = false;
  MatrixView channels = depthwise_rows(weights.shape());
  out.packing = pack_integer_depthwise(weights, channels, zero.w);
  std::swap(channels.columns, channels.inner);
  std::swap(channels.column_step, channels.inner_step);
  out.set_offsets(zero.x, integer_facts(weights, channels, zero.w).sums);
  return out;
}

ZeroPoints zero_points(const ir::NodeView& view) {
  ZeroPoints zero;
  zero.w = {0};
  if (view.has_operand(2)) {
    const ir::Tensor* x = view.constant(2);
    if (!x || x->count() != 1) ir::operator_error("the input's zero point must be one constant");
    zero.x = x->int_at(0);
  }
  if (view.has_operand(3)) {
    const ir::Tensor* w = view.constant(3);
    if (!w) ir::operator_error("the weights' zero point must be a constant");
    zero.w = w->ints();
  }
  return zero;
}

std::vector<std::uint8_t> as_bytes(const std::vector<std::int32_t>& values) {
  std::vector<std::uint8_t> bytes;
  for (const std::int32_t v : values) {
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint32_t>(v) >> shift & 255u));
    }
  }
  return bytes;
}

namespace {

/// What the kernel subtracts from x, where it reads signed x as x + 128 to multiply it by int8 weights.
std::int64_t read_zero_point(std::int64_t zero_point, ElementType x, bool narrow) {
  return zero_point + (narrow && x == ElementType::kInt8 ? 128 : 0);
}

IntegerWeights panel_weights(const ir::Tensor& weights, const MatrixView& view, const ZeroPoints& zero,
                             ElementType x) {
  const IntegerFacts facts = integer_facts(weights, view, zero.w);
  IntegerWeights out;
  out.narrow = facts.narrow;
  out.packing = pack_integer_panels(weights, view, zero.w, facts.narrow);
  out.set_offsets(read_zero_point(zero.x, x, facts.narrow), facts.sums);
  return out;
}

}  // namespace

KernelCall KernelBuilder::conv_integer(NodeId id, const ir::ContractForm& form) {
  const ir::Node& n = node(id);
  const ir::NodeView view(graph_, id);
  const ir::Tensor& weights = constant_weights(id);
  const ZeroPoints zero = zero_points(view);
  const Shape& x = view.shape(0);
  const Shape& w = weights.shape();
  const std::int64_t groups = n.attributes.int_of("group");
  const ir::Window window = ir::window_of(n.attributes);
  const std::int64_t group_inputs = w[1];
  std::int64_t taps = 1;
  for (const std::int64_t k : window.kernel) taps *= k;
  const bool depthwise = group_inputs == 1 && groups > 1;
  const std::string x_type = kernel_type(view.element(0));

  KernelCall call;
  call.family = depthwise ? "depthwise2d_integer" : "conv2d_integer";
  call.headers = {"gcrt/cpu/conv_int8.h"};
  call.threaded = true;
  call.multiply_adds = ir::element_count(form.epilogue.extents) * group_inputs * taps;
  const KernelTensor input = operand_parameter(call, id, 0, "x");
  const std::string& name = graph_.value(n.operands[1]).name;
  IntegerWeights packed;
  if (depthwise) {
    packed = depthwise_weights(weights, zero);
  } else {
    packed = panel_weights(weights, conv_matrices(w, groups), zero, view.element(0));
  }
  weights_parameter(call,
                    weights_.add(packed.packing, name,
                                 fmt::format("{} packed for {}", to_string(weights.type()), call.family)),
                    "w", packed.narrow ? "std::int8_t" : "std::int16_t");
  weights_parameter(call, weights_.add(as_bytes(packed.offsets), name, "zero point times column sums"),
                    "offsets", "std::int32_t");
  if (!depthwise) {
    const std::vector<std::uint8_t> border(static_cast<std::size_t>(group_inputs + 64),
                                           static_cast<std::uint8_t>(zero.x & 255));
    weights_parameter(call, weights_.add(border, "zero_point", "read at image borders"), "border", x_type);
  }
  const EpilogueWriter epilogue(*this, call, id, form, pixel_axes(x.size()), 1);
  call.body = image_shape(x, input.strides, form.epilogue.extents, window, groups).text("shape");
  call.body += fmt::format(
      "  {}\n"
      "  parallel_for(threads, {}_work_items(shape), [&](std::ptrdiff_t begin, std::ptrdiff_t end) {{\n"
      "    {}(shape, x, w, offsets, {}, epilogue, begin, end);\n"
      "  }});\n",
      epilogue.declaration(), call.family, call.family,
      depthwise ? fmt::format("{}{{{}}}", x_type, zero.x) : "border");
  return call;
}

KernelCall KernelBuilder::matmul_integer(NodeId id, const ir::ContractForm& form) {
  const ir::Node& n = node(id);
  const ir::NodeView view(graph_, id);
  const ir::Tensor* b = view.constant(1);
  GC_CHECK(b && b->shape().size() == 2);  // others are loops
  const ZeroPoints zero = zero_points(view);
  const Shape& as = view.shape(0);
  const Shape& out = form.epilogue.extents;
  const std::size_t rank = out.size();
  const std::int64_t depth = b->shape()[0], columns = b->shape()[1];
  KernelCall call;
  call.family = "gemm_integer";
  call.headers = {"gcrt/cpu/gemm_int8.h"};
  call.threaded = true;
  call.multiply_adds = ir::element_count(out) * depth;
  const KernelTensor a = operand_parameter(call, id, 0, "a");
  const IntegerWeights packed = panel_weights(*b, product_matrices(b->shape()), zero, view.element(0));
  const std::string& name = graph_.value(n.operands[1]).name;
  weights_parameter(
      call, weights_.add(packed.packing, name, fmt::format("{} packed for gemm", to_string(b->type()))), "b",
      packed.narrow ? "std::int8_t" : "std::int16_t");
  weights_parameter(call, weights_.add(as_bytes(packed.offsets), name, "zero point times column sums"),
                    "offsets", "std::int32_t");
  std::vector<int> rows = {static_cast<int>(rank) - 2};
  CodeText code(1);
  std::string pointer = "a";
  const EpilogueWriter epilogue(*this, call, id, form, rows, static_cast<int>(rank) - 1);
  for (std::size_t axis = 0; axis + 2 < rank; ++axis) {
    code.open(fmt::format("for (std::ptrdiff_t b{0} = 0; b{0} < {1}; ++b{0}) {{", axis, out[axis]));
    const std::size_t lead = rank - as.size();
    if (axis >= lead && as[axis - lead] != 1)
      pointer += fmt::format(" + {} * b{}", a.strides[axis - lead], axis);
  }
  code.line(epilogue.declaration());
  code.open(
      fmt::format("parallel_for(threads, gemm_integer_work_items({}, {}), [&](std::ptrdiff_t begin, "
                  "std::ptrdiff_t end) {{",
                  out[rank - 2], columns));
  code.line(fmt::format("gemm_integer({}, {}, {}, {}, {}, b, offsets, epilogue, begin, end);", out[rank - 2],
                        columns, depth, pointer, a.strides[as.size() - 2]));
  code.close("});");
  for (std::size_t axis = 0; axis + 2 < rank; ++axis) code.close();
  call.body = code.text();
  return call;
}

}  // namespace gcompile

// Calls of the integer contractions on CUDA: exact sums in int32 over 8-bit operands.

#include <fmt/format.h>

#include "codegen/kernels/cuda_shape.h"
#include "codegen/kernels/integer_kernels.h"
#include "codegen/loops/c_types.h"

namespace gcompile {

using ir::NodeId;
using ir::Shape;

namespace {

/// Rows of one output channel each, `stride` elements apart, k contiguous.
IntegerWeights weight_rows(const ir::Tensor& weights, const MatrixView& view, std::int64_t stride,
                           const ZeroPoints& zero) {
  const IntegerFacts facts = integer_facts(weights, view, zero.w);
  IntegerWeights out;
  out.narrow = facts.narrow;
  out.packing = pack_integer_rows(weights, view, zero.w, facts.narrow, stride);
  out.set_offsets(zero.x, facts.sums);
  return out;
}

const char* weight_type(const IntegerWeights& rows) { return rows.narrow ? "std::int8_t" : "std::int16_t"; }

}  // namespace

KernelCall KernelBuilder::cuda_conv_integer(NodeId id, const ir::ContractForm& form) {
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
  call.headers = {depthwise ? "gcrt/cuda/depthwise_integer.h" : "gcrt/cuda/conv_integer.h"};
  call.multiply_adds = ir::element_count(form.epilogue.extents) * group_inputs * taps;
  const KernelTensor input = operand_parameter(call, id, 0, "x");
  const ImageShape image = image_shape(x, input.strides, form.epilogue.extents, window, groups);
  const gcrt::ConvShape shape = conv_shape(image);
  IntegerWeights packed;
  if (depthwise) {
    packed = depthwise_weights(weights, zero);
  } else {
    packed = weight_rows(weights, conv_matrices(w, groups), gcrt::conv_integer_weight_stride(shape), zero);
  }
  const std::string& name = graph_.value(n.operands[1]).name;
  weights_parameter(call,
                    weights_.add(packed.packing, name,
                                 fmt::format("{} packed for {}", to_string(weights.type()), call.family)),
                    "w", weight_type(packed));
  weights_parameter(call, weights_.add(as_bytes(packed.offsets), name, "zero point times sums of rows"),
                    "offsets", "std::int32_t");
  const EpilogueWriter epilogue(*this, call, id, form, pixel_axes(x.size()), 1);
  call.body = image.text("shape") + "  " + epilogue.declaration() + "\n";
  const std::string border = fmt::format("{}{{{}}}", x_type, zero.x);
  if (depthwise) {
    call.body += fmt::format(
        "  depthwise2d_integer<DepthwiseWindow::{}>(queue, shape, x, w, offsets, {}, epilogue);\n",
        window_name(shape), border);
    return call;
  }
  const gcrt::Plan plan = gcrt::plan_conv2d(device_, Precision::kInt8, shape);
  const std::string split =
      split_argument(call, plan.splits, gcrt::conv2d_workspace_size(shape, plan.splits));
  note_plan(call, plan, Precision::kInt8, 1, shape.groups);
  const bool pointwise = gcrt::is_pointwise(shape);
  call.body +=
      fmt::format("  conv2d_integer{}<Tile::{}>(queue, shape, x, w, offsets, {}{}, epilogue);\n",
                  pointwise ? "_pointwise" : "", tile_name(plan.tile), pointwise ? "" : border + ", ", split);
  return call;
}

KernelCall KernelBuilder::cuda_matmul_integer(NodeId id, const ir::ContractForm& form) {
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
  call.headers = {"gcrt/cuda/gemm_integer.h"};
  call.multiply_adds = ir::element_count(out) * depth;
  const KernelTensor a = operand_parameter(call, id, 0, "a");
  const std::int64_t stride = gcrt::integer_weight_stride(depth);
  const IntegerWeights packed = weight_rows(*b, product_matrices(b->shape()), stride, zero);
  const std::string& name = graph_.value(n.operands[1]).name;
  weights_parameter(
      call, weights_.add(packed.packing, name, fmt::format("{} packed for gemm", to_string(b->type()))), "b",
      weight_type(packed));
  weights_parameter(call, weights_.add(as_bytes(packed.offsets), name, "zero point times sums of rows"),
                    "offsets", "std::int32_t");
  const EpilogueWriter epilogue(*this, call, id, form, {static_cast<int>(rank) - 2},
                                static_cast<int>(rank) - 1);
  std::int64_t entries = 1;
  CodeText code(1);
  std::string pointer = "a";
  for (std::size_t axis = 0; axis + 2 < rank; ++axis) {
    code.open(fmt::format("for (std::ptrdiff_t b{0} = 0; b{0} < {1}; ++b{0}) {{", axis, out[axis]));
    entries *= out[axis];
    const std::size_t lead = rank - as.size();
    if (axis >= lead && as[axis - lead] != 1)
      pointer += fmt::format(" + {} * b{}", a.strides[axis - lead], axis);
  }
  const gcrt::Plan plan = gcrt::plan_gemm(device_, Precision::kInt8, out[rank - 2], columns, depth, 1, true);
  const std::string split =
      split_argument(call, plan.splits, gcrt::gemm_workspace_size(out[rank - 2], columns, 1, plan.splits));
  note_plan(call, plan, Precision::kInt8, entries);
  code.append("  " + epilogue.declaration() + "\n", static_cast<int>(rank) - 2);
  code.line(fmt::format(
      "gemm_integer<Tile::{}>(queue, /*rows, columns, depth*/ {}, {}, {}, {}, {}, b, {}, offsets, {},",
      tile_name(plan.tile), out[rank - 2], columns, depth, pointer, a.strides[as.size() - 2], stride, split));
  code.line("    epilogue);");
  for (std::size_t axis = 0; axis + 2 < rank; ++axis) code.close();
  call.body = code.text();
  return call;
}

}  // namespace gcompile

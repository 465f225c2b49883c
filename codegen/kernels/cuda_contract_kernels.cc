// Calls of the contractions on CUDA: the kernels of gcrt/cuda with weights in their layouts, and tiles from
// the model of the device.

#include <fmt/format.h>

#include "codegen/kernels/cuda_shape.h"
#include "codegen/kernels/image_shape.h"
#include "codegen/kernels/kernel_call.h"
#include "codegen/kernels/matrix_product.h"
#include "codegen/loops/c_types.h"

namespace gcompile {

using ir::NodeId;
using ir::Shape;

namespace {

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

std::int64_t taps_of(const ir::Window& window) {
  std::int64_t taps = 1;
  for (const std::int64_t k : window.kernel) taps *= k;
  return taps;
}

}  // namespace

/// Adds the workspace of split sums, and returns the argument: "{4, workspace}" or "{}".
std::string KernelBuilder::split_argument(KernelCall& call, int splits, std::int64_t floats) {
  if (splits <= 1) return "SplitDepth{}";
  scratch_parameter(call, floats * 4, "workspace", "float");
  return fmt::format("SplitDepth{{{}, workspace}}", splits);
}

Precision KernelBuilder::precision_of(KernelCall& call, NodeId id, std::size_t factors) const {
  if (precision_ != Precision::kFp16) return precision_;
  for (std::size_t i = 0; i < factors; ++i) {
    const ir::ValueId operand = node(id).operands[i];
    const ir::Tensor* constant = graph_.constant(operand);
    if (!constant || fits_float16(*constant)) continue;
    call.warning = fmt::format("the constant '{}' is out of the range of float16: multiplied in TF32",
                               ir::printable(graph_.value(operand).name));
    return Precision::kTf32;
  }
  return precision_;
}

void KernelBuilder::packed_parameter(KernelCall& call, NodeId id, Packing packing,
                                     const std::string& parameter, Precision precision) {
  const ir::Value& value = graph_.value(node(id).operands[1]);
  const ir::ElementType stored = facts_of(precision).weight;
  std::string what = fmt::format("{} packed for {}", to_string(value.type), call.family);
  if (stored != ir::ElementType::kFloat32) what += fmt::format(" as {}", name_of(stored));
  weights_parameter(call, weights_.add(std::move(packing), value.name, what), parameter, kernel_type(stored));
}

KernelCall KernelBuilder::cuda_conv(NodeId id, const ir::ContractForm& form) {
  const ir::Node& n = node(id);
  require_float32(id);
  const ir::Tensor& weights = constant_weights(id);
  const Shape& x = graph_.value(n.operands[0]).type.shape;
  const Shape& w = weights.shape();
  const std::int64_t groups = n.attributes.int_of("group");
  const ir::Window window = ir::window_of(n.attributes);
  const std::int64_t group_inputs = w[1], taps = taps_of(window);
  const bool depthwise = group_inputs == 1 && groups > 1;

  KernelCall call;
  call.family = depthwise ? "depthwise2d" : "conv2d";
  call.headers = {depthwise ? "gcrt/cuda/depthwise.h" : "gcrt/cuda/conv.h"};
  call.multiply_adds = ir::element_count(form.epilogue.extents) * group_inputs * taps;
  const KernelTensor input = operand_parameter(call, id, 0, "x");
  const ImageShape image = image_shape(x, input.strides, form.epilogue.extents, window, groups);
  const gcrt::ConvShape shape = conv_shape(image);
  // The depthwise kernel has no tensor cores to feed, and its weights are few: float32 in every mode.
  const Precision precision = depthwise ? Precision::kFp32 : precision_of(call, id);
  packed_parameter(call, id,
                   depthwise ? pack_rows(weights, depthwise_rows(w), w[0])
                             : pack_rows(weights, conv_matrices(w, groups), gcrt::conv_weight_stride(shape),
                                         facts_of(precision).weight),
                   "w", precision);
  const EpilogueWriter epilogue(*this, call, id, form, pixel_axes(x.size()), 1);
  call.body = image.text("shape") + "  " + epilogue.declaration() + "\n";
  if (depthwise) {
    call.body += fmt::format("  depthwise2d<DepthwiseWindow::{}>(queue, shape, x, w, epilogue);\n",
                             window_name(shape));
    return call;
  }
  const gcrt::Plan plan = gcrt::plan_conv2d(device_, precision, shape);
  const std::string split =
      split_argument(call, plan.splits, gcrt::conv2d_workspace_size(shape, plan.splits));
  note_plan(call, plan, precision, 1, shape.groups);
  call.body += fmt::format("  {}<{}, Tile::{}>(queue, shape, x, w, {}, epilogue);\n",
                           gcrt::is_pointwise(shape) ? "conv2d_pointwise" : "conv2d",
                           precision_argument(precision), tile_name(plan.tile), split);
  return call;
}

KernelCall KernelBuilder::cuda_conv_transpose(NodeId id, const ir::ContractForm& form) {
  const ir::Node& n = node(id);
  require_float32(id);
  const ir::Tensor& weights = constant_weights(id);
  const Shape& x = graph_.value(n.operands[0]).type.shape;
  const Shape& w = weights.shape();  // (C, M / group, kernel...)
  const std::int64_t groups = n.attributes.int_of("group");
  const ir::Window window = ir::window_of(n.attributes);
  const std::int64_t group_outputs = w[1], taps = taps_of(window);

  KernelCall call;
  call.family = "conv_transpose2d";
  call.headers = {"gcrt/cuda/conv_transpose.h"};
  call.multiply_adds = ir::element_count(x) * group_outputs * taps;
  const KernelTensor input = operand_parameter(call, id, 0, "x");
  const ImageShape image = image_shape(x, input.strides, form.epilogue.extents, window, groups);
  const gcrt::ConvShape shape = conv_shape(image);
  const Precision precision = precision_of(call, id);
  std::vector<Packing> phases;
  for (int row = 0; row < shape.stride_h; ++row) {
    for (int column = 0; column < shape.stride_w; ++column) {
      const gcrt::TransposePhase phase = gcrt::transpose_phase(shape, row, column);
      MatrixView view = conv_transpose_matrices(w, groups);
      view.taps.clear();
      for (int i = 0; i < phase.shape.kernel_h; ++i) {
        for (int j = 0; j < phase.shape.kernel_w; ++j) {
          view.taps.push_back((phase.rows.first + i * phase.rows.step) * image.kernel_w +
                              phase.columns.first + j * phase.columns.step);
        }
      }
      phases.push_back(
          pack_rows(weights, view, gcrt::conv_weight_stride(phase.shape), facts_of(precision).weight));
    }
  }
  packed_parameter(call, id, pack_together(std::move(phases)), "w", precision);
  const EpilogueWriter epilogue(*this, call, id, form, pixel_axes(x.size()), 1);
  const gcrt::Plan plan = gcrt::plan_conv_transpose2d(device_, precision, shape);
  note_plan(call, plan, precision, shape.stride_h * shape.stride_w, shape.groups);
  call.body = image.text("shape") + "  " + epilogue.declaration() + "\n";
  call.body += fmt::format("  conv_transpose2d<{}, Tile::{}>(queue, shape, x, w, epilogue);\n",
                           precision_argument(precision), tile_name(plan.tile));
  return call;
}

KernelCall KernelBuilder::cuda_pool(NodeId id, const ir::ContractForm& form) {
  const ir::Node& n = node(id);
  const bool max = n.op->name == "MaxPool";
  const ir::TensorType& type = graph_.value(n.operands[0]).type;
  if (compute_type(type.element) != type.element) require_float32(id);
  const ir::Window window = ir::window_of(n.attributes);
  KernelCall call;
  call.family = max ? "max_pool2d" : "average_pool2d";
  call.headers = {"gcrt/cuda/pool.h"};
  const KernelTensor input = operand_parameter(call, id, 0, "x");
  const EpilogueWriter epilogue(*this, call, id, form, pixel_axes(type.shape.size()), 1);
  call.body = image_shape(type.shape, input.strides, form.epilogue.extents, window, 1).text("shape") + "  " +
              epilogue.declaration() + "\n";
  std::string options;
  if (!max) {
    const bool flat = window.spatial() == 1;
    options = fmt::format("/*count_include_pad*/ {}, /*pad bottom, right*/ {}, {}, ",
                          n.attributes.flag("count_include_pad"), flat ? 0 : window.end(0),
                          window.end(flat ? 0 : 1));
  }
  call.body += fmt::format("  {}(queue, shape, x, {}epilogue);\n", call.family, options);
  return call;
}

KernelCall KernelBuilder::cuda_matmul(NodeId id, const ir::ContractForm& form) {
  const ir::Node& n = node(id);
  require_float32(id);
  const Shape& as = graph_.value(n.operands[0]).type.shape;
  const Shape& bs = graph_.value(n.operands[1]).type.shape;
  const Shape& out = form.epilogue.extents;
  const std::size_t rank = out.size();
  const std::int64_t depth = as.back(), columns = out[rank - 1];
  const ir::Tensor* b_constant = graph_.constant(n.operands[1]);

  KernelCall call;
  call.family = "gemm";
  call.headers = {"gcrt/cuda/gemm.h"};
  call.multiply_adds = ir::element_count(out) * depth;
  const KernelTensor a = operand_parameter(call, id, 0, "a");
  const ProductAxes axes = product_axes(out, as, a.strides, bs);
  const auto along = [&](const Shape& shape, const std::vector<std::int64_t>& strides, std::size_t axis) {
    return stride_along(rank, shape, strides, axis);
  };
  // The grid walks the two innermost batch axes that are longer than one; the host walks the others.
  std::vector<int> grid_axes, host_axes;
  for (std::size_t axis = axes.batch; axis-- > 0;) {
    if (out[axis] == 1) continue;
    std::vector<int>& list = grid_axes.size() < 2 ? grid_axes : host_axes;
    list.insert(list.begin(), static_cast<int>(axis));
  }
  std::int64_t entries = 1, host_entries = 1;
  for (const int axis : grid_axes) entries *= out[static_cast<std::size_t>(axis)];
  for (const int axis : host_axes) host_entries *= out[static_cast<std::size_t>(axis)];
  const Precision precision = precision_of(call, id);
  const gcrt::Plan plan =
      b_constant ? gcrt::plan_gemm(device_, precision, axes.row_count, columns, depth, entries, true)
                 : gcrt::plan_tiles(device_, precision, axes.row_count, columns, depth, entries, true);
  // The library takes matrices with one contiguous axis whose columns do not overlap, and weights of 32 bits.
  bool by_library = cublaslt_ && !gcrt::is_gemv(plan.tile) && axes.row_count * columns * depth > 0 &&
                    axes.row_stride >= depth;
  const std::int64_t ldb = round_up(depth, 16);
  std::vector<std::int64_t> b_strides;
  if (b_constant) {
    const Precision stored = by_library ? Precision::kFp32 : precision;
    packed_parameter(call, id, pack_rows(*b_constant, product_matrices(bs), ldb, facts_of(stored).weight),
                     "b", stored);
    b_strides = ir::row_major_strides(bs);
    for (std::size_t i = 0; i + 2 < bs.size(); ++i)
      b_strides[i] = b_strides[i] / (depth * columns) * (columns * ldb);
  } else {
    b_strides = operand_parameter(call, id, 1, "b").strides;
  }
  const EpilogueWriter epilogue(*this, call, id, form, axes.rows, static_cast<int>(rank) - 1, grid_axes);
  const std::int64_t stride_k = b_constant ? 1 : b_strides[bs.size() - 2];
  const std::int64_t stride_n = b_constant ? ldb : b_strides[bs.size() - 1];
  by_library = by_library && ((stride_k == 1 && stride_n >= depth) || (stride_n == 1 && stride_k >= columns));
  const std::string split =
      by_library ? "workspace"
                 : split_argument(call, plan.splits,
                                  gcrt::gemm_workspace_size(axes.row_count, columns, entries, plan.splits));
  if (by_library) {
    call.headers = {"gcrt/cuda/cublaslt.h"};
    call.is_fixed = true;
    scratch_parameter(call, gcrt::cublaslt_workspace_size(axes.row_count, columns, entries) * 4, "workspace",
                      "float");
    const std::int64_t calls = grid_axes.size() == 2 ? out[static_cast<std::size_t>(grid_axes[0])] : 1;
    call.launches = narrow(host_entries * (calls + gcrt::ceil_div(entries, gcrt::kMaxGridZ)));
    call.choice = "cuBLASLt";
    call.products_per_clock = gcrt::products_per_clock(device_, precision);
  } else {
    note_plan(call, plan, precision, host_entries, entries);
  }

  CodeText code(1);
  std::string a_pointer = "a", b_pointer = "b";
  for (const int axis : host_axes) {
    const auto at = static_cast<std::size_t>(axis);
    code.open(fmt::format("for (std::ptrdiff_t b{0} = 0; b{0} < {1}; ++b{0}) {{", axis, out[at]));
    if (const std::int64_t step = along(as, a.strides, at))
      a_pointer += fmt::format(" + {} * b{}", step, axis);
    if (const std::int64_t step = along(bs, b_strides, at))
      b_pointer += fmt::format(" + {} * b{}", step, axis);
  }
  code.line(epilogue.declaration());
  std::string batch = "GemmBatch{}";
  if (entries > 1) {
    const bool two = grid_axes.size() == 2;
    const auto inner = static_cast<std::size_t>(grid_axes.back());
    const auto outer = static_cast<std::size_t>(grid_axes.front());
    batch =
        fmt::format("GemmBatch{{/*count, inner*/ {}, {}, /*steps of a*/ {}, {}, /*steps of b*/ {}, {}}}",
                    entries, out[inner], two ? along(as, a.strides, outer) : 0, along(as, a.strides, inner),
                    two ? along(bs, b_strides, outer) : 0, along(bs, b_strides, inner));
  }
  const bool is_dense = !by_library && (b_constant || stride_k == 1 || depth == 1);
  const std::string b_steps =
      is_dense ? fmt::format("{}", stride_n) : fmt::format("/*strides of k, n*/ {}, {}", stride_k, stride_n);
  const std::string kernel = by_library ? fmt::format("gemm_cublaslt<{}>", precision_argument(precision))
                                        : fmt::format("gemm{}<{}, Tile::{}>", is_dense ? "" : "_strided",
                                                      precision_argument(precision), tile_name(plan.tile));
  code.line(fmt::format("{}(queue, /*rows, columns, depth*/ {}, {}, {}, {}, {}, {}, {},", kernel,
                        axes.row_count, columns, depth, a_pointer, axes.row_stride, b_pointer, b_steps));
  code.line(fmt::format("    {}, {}, epilogue);", batch, split));
  for (std::size_t i = 0; i < host_axes.size(); ++i) code.close();
  call.body = code.text();
  return call;
}

KernelCall KernelBuilder::cuda_contract(NodeId id, const ir::ContractForm& form) {
  const std::string_view name = node(id).op->name;
  if (name == "Conv") return cuda_conv(id, form);
  if (name == "ConvTranspose") return cuda_conv_transpose(id, form);
  if (name == "MatMul") return cuda_matmul(id, form);
  if (name == "FusedAttention") return cuda_attention(id, form);
  if (name == "MaxPool" || name == "AveragePool") return cuda_pool(id, form);
  if (name == "ConvInteger") return cuda_conv_integer(id, form);
  if (name == "MatMulInteger") return cuda_matmul_integer(id, form);
  ir::operator_error(fmt::format("{} has no kernel for --target cuda yet", name));
}

}  // namespace gcompile

// Calls of the float contractions: convolutions, matrix products, pools.

#include <fmt/format.h>

#include "codegen/kernels/image_shape.h"
#include "codegen/kernels/kernel_call.h"
#include "codegen/kernels/matrix_product.h"
#include "codegen/loops/c_types.h"
#include "codegen/loops/loop_printer.h"

namespace gcompile {

using ir::NodeId;
using ir::Shape;

std::optional<std::vector<int>> KernelBuilder::needed_order(NodeId id, const ir::Form& form, int i) const {
  const ir::Node& n = node(id);
  const ir::ValueId value = n.operands[static_cast<std::size_t>(i)];
  if (!value.valid() || graph_.constant(value)) return std::nullopt;
  const Shape& shape = graph_.value(value).type.shape;
  const std::vector<std::int64_t>& strides = stored(value).strides;
  if (std::holds_alternative<ir::LibraryForm>(form)) {
    // Library kernels read dense row-major tensors.
    const std::vector<std::int64_t> dense = ir::row_major_strides(shape);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] > 1 && strides[axis] != dense[axis]) return std::vector<int>{};
    }
    return std::nullopt;
  }
  const auto* contract = std::get_if<ir::ContractForm>(&form);
  if (!contract || i >= contract->base_operands) return std::nullopt;
  const std::string_view name = n.op->name;
  if (name == "MatMul" || name == "MatMulInteger") {
    const std::size_t last = shape.size() - 1;
    const bool rows = i == 0;
    if (rows && shape[last] > 1 && strides[last] != 1) return std::vector<int>{};
    return std::nullopt;
  }
  if (name == "FusedAttention") {
    // K and V are packed from any strides; rows of Q are read as they are, masks along the columns.
    const std::size_t last = shape.size() - 1;
    const bool any = shape.empty() || shape[last] == 1 || strides[last] == 1;
    return any || i == 1 || i == 2 ? std::nullopt : std::optional(std::vector<int>{});
  }
  if (i != 0) return std::nullopt;  // weights are constants or refused by the kernel
  if (shape[1] == 1 || strides[1] == 1) return std::nullopt;
  std::vector<int> channels_last = {0};
  for (std::size_t axis = 2; axis < shape.size(); ++axis) channels_last.push_back(static_cast<int>(axis));
  channels_last.push_back(1);
  return channels_last;
}

KernelCall KernelBuilder::conv(NodeId id, const ir::ContractForm& form) {
  const ir::Node& n = node(id);
  require_float32(id);
  const ir::Tensor& weights = constant_weights(id);
  const Shape& x = graph_.value(n.operands[0]).type.shape;
  const Shape& w = weights.shape();
  const std::int64_t groups = n.attributes.int_of("group");
  const ir::Window window = ir::window_of(n.attributes);
  const std::int64_t group_inputs = w[1];
  std::int64_t taps = 1;
  for (const std::int64_t k : window.kernel) taps *= k;
  const bool depthwise = group_inputs == 1 && groups > 1;

  KernelCall call;
  call.threaded = true;
  call.multiply_adds = ir::element_count(form.epilogue.extents) * group_inputs * taps;
  const KernelTensor input = operand_parameter(call, id, 0, "x");
  const ImageShape shape = image_shape(x, input.strides, form.epilogue.extents, window, groups);
  call.family = depthwise ? "depthwise2d" : "conv2d";
  call.headers = {depthwise ? "gcrt/cpu/depthwise.h" : "gcrt/cpu/conv.h"};
  weights_parameter(call,
                    weights_.add(depthwise ? pack_rows(weights, depthwise_rows(w), w[0])
                                           : pack_panels(weights, conv_matrices(w, groups)),
                                 graph_.value(n.operands[1]).name,
                                 fmt::format("{} packed for {}", to_string(weights.type()), call.family)),
                    "w", "float");
  if (!depthwise) {
    weights_parameter(call, weights_.zeros((group_inputs + 16) * 4), "zeros", "float");
  }
  const EpilogueWriter epilogue(*this, call, id, form, pixel_axes(x.size()), 1);
  call.body = shape.text("shape");
  call.body += "  " + epilogue.declaration() + "\n";
  std::string function = "conv2d";
  std::string extra = ", zeros";
  if (depthwise) {
    extra.clear();
    const bool multiplied = shape.out_c != shape.in_c;
    const bool square = shape.kernel_h == shape.kernel_w && shape.dilation_w == 1 && !multiplied;
    const std::int64_t k = square && ((shape.kernel_w == 3 && shape.stride_w <= 2) ||
                                      (shape.kernel_w == 5 && shape.stride_w == 1))
                               ? shape.kernel_w
                               : 0;
    function = fmt::format("depthwise2d_fixed<{}, {}, {}>", k, k ? shape.stride_w : 0, multiplied);
  }
  call.body += fmt::format(
      "  parallel_for(threads, {}_work_items(shape), [&](std::ptrdiff_t begin, std::ptrdiff_t end) {{\n"
      "    {}(shape, x, w{}, epilogue, begin, end);\n"
      "  }});\n",
      call.family, function, extra);
  return call;
}

KernelCall KernelBuilder::matmul(NodeId id, const ir::ContractForm& form) {
  const ir::Node& n = node(id);
  const ir::TensorType& a_type = graph_.value(n.operands[0]).type;
  const ir::TensorType& b_type = graph_.value(n.operands[1]).type;
  require_float32(id);
  const Shape& out = form.epilogue.extents;
  const std::size_t rank = out.size();
  const Shape& as = a_type.shape;
  const Shape& bs = b_type.shape;
  const std::int64_t depth = as.back(), columns = out[rank - 1];
  const ir::Tensor* b_constant = graph_.constant(n.operands[1]);

  KernelCall call;
  call.family = "gemm";
  call.headers = {"gcrt/cpu/gemm.h"};
  call.threaded = true;
  call.multiply_adds = ir::element_count(out) * depth;
  const KernelTensor a = operand_parameter(call, id, 0, "a");

  const ProductAxes axes = product_axes(out, as, a.strides, bs);
  const auto along = [&](const Shape& shape, const std::vector<std::int64_t>& strides, std::size_t axis) {
    return stride_along(rank, shape, strides, axis);
  };
  std::string a_pointer = "a", b_pointer = "b";
  const std::int64_t panel_floats = (columns + 15) / 16 * 16 * depth;
  std::vector<std::int64_t> b_strides;
  if (b_constant) {
    // One packed matrix per batch entry of the constant.
    weights_parameter(
        call,
        weights_.add(pack_panels(*b_constant, product_matrices(bs)), graph_.value(n.operands[1]).name,
                     fmt::format("{} packed for gemm", to_string(b_type))),
        "b", "float");
    b_strides = ir::row_major_strides(bs);
    for (std::size_t i = 0; i + 2 < bs.size(); ++i)
      b_strides[i] = b_strides[i] / (depth * columns) * panel_floats;
  } else {
    const KernelTensor b = operand_parameter(call, id, 1, "b");
    b_strides = b.strides;
    scratch_parameter(call, panel_floats * 4, "packed", "float");
    b_pointer = "packed";
  }
  const EpilogueWriter epilogue(*this, call, id, form, axes.rows, static_cast<int>(rank) - 1);
  std::string b_source = "b";
  CodeText code(1);
  for (std::size_t axis = 0; axis < axes.batch; ++axis) {
    if (out[axis] == 1) continue;
    code.open(fmt::format("for (std::ptrdiff_t b{0} = 0; b{0} < {1}; ++b{0}) {{", axis, out[axis]));
    if (const std::int64_t step = along(as, a.strides, axis))
      a_pointer += fmt::format(" + {} * b{}", step, axis);
    if (const std::int64_t step = along(bs, b_strides, axis))
      b_source += fmt::format(" + {} * b{}", step, axis);
  }
  if (b_constant) {
    b_pointer = b_source;
  } else {
    const std::size_t last = bs.size() - 1;
    code.line(fmt::format("pack_b({}, {}, {}, {}, {}, packed);", depth, columns, b_source,
                          b_strides[last - 1], b_strides[last]));
  }
  code.line(epilogue.declaration());
  code.open(
      fmt::format("parallel_for(threads, gemm_work_items<float>({}, {}), [&](std::ptrdiff_t begin, "
                  "std::ptrdiff_t end) {{",
                  axes.row_count, columns));
  code.line(fmt::format("gemm({}, {}, {}, {}, {}, {}, epilogue, begin, end);", axes.row_count, columns, depth,
                        a_pointer, axes.row_stride, b_pointer));
  code.close("});");
  for (std::size_t axis = 0; axis < axes.batch; ++axis) {
    if (out[axis] != 1) code.close();
  }
  call.body = code.text();
  return call;
}

KernelCall KernelBuilder::conv_transpose(NodeId id, const ir::ContractForm& form) {
  const ir::Node& n = node(id);
  require_float32(id);
  const ir::Tensor& weights = constant_weights(id);
  const Shape& x = graph_.value(n.operands[0]).type.shape;
  const Shape& w = weights.shape();  // (C, M / group, kernel...)
  const std::int64_t groups = n.attributes.int_of("group");
  const ir::Window window = ir::window_of(n.attributes);
  const std::int64_t group_inputs = w[0] / groups, group_outputs = w[1];
  std::int64_t taps = 1;
  for (const std::int64_t k : window.kernel) taps *= k;

  KernelCall call;
  call.family = "conv_transpose2d";
  call.headers = {"gcrt/cpu/conv_transpose.h"};
  call.threaded = true;
  call.multiply_adds = ir::element_count(x) * group_outputs * taps;
  const KernelTensor input = operand_parameter(call, id, 0, "x");
  weights_parameter(
      call,
      weights_.add(pack_panels(weights, conv_transpose_matrices(w, groups)), graph_.value(n.operands[1]).name,
                   fmt::format("{} packed for {}", to_string(weights.type()), call.family)),
      "w", "float");
  weights_parameter(call, weights_.zeros((group_inputs + 16) * 4), "zeros", "float");
  const EpilogueWriter epilogue(*this, call, id, form, pixel_axes(x.size()), 1);
  call.body = image_shape(x, input.strides, form.epilogue.extents, window, groups).text("shape");
  call.body += fmt::format(
      "  {}\n"
      "  parallel_for(threads, conv_transpose2d_work_items(shape), [&](std::ptrdiff_t begin, std::ptrdiff_t "
      "end) {{\n"
      "    conv_transpose2d(shape, x, w, zeros, epilogue, begin, end);\n"
      "  }});\n",
      epilogue.declaration());
  return call;
}

KernelCall KernelBuilder::pool(NodeId id, const ir::ContractForm& form) {
  const ir::Node& n = node(id);
  const bool max = n.op->name == "MaxPool";
  const ir::TensorType& type = graph_.value(n.operands[0]).type;
  if (compute_type(type.element) != type.element) require_float32(id);
  const ir::Window window = ir::window_of(n.attributes);
  KernelCall call;
  call.family = max ? "max_pool2d" : "average_pool2d";
  call.headers = {"gcrt/cpu/pool.h"};
  call.threaded = true;
  const KernelTensor input = operand_parameter(call, id, 0, "x");
  const EpilogueWriter epilogue(*this, call, id, form, pixel_axes(type.shape.size()), 1);
  call.body = image_shape(type.shape, input.strides, form.epilogue.extents, window, 1).text("shape");
  std::string options;
  if (!max) {
    const bool flat = window.spatial() == 1;
    options = fmt::format("/*count_include_pad*/ {}, /*pad bottom, right*/ {}, {}, ",
                          n.attributes.flag("count_include_pad"), flat ? 0 : window.end(0),
                          window.end(flat ? 0 : 1));
  }
  call.body += fmt::format(
      "  {}\n"
      "  parallel_for(threads, pool2d_work_items(shape), [&](std::ptrdiff_t begin, std::ptrdiff_t end) {{\n"
      "    {}(shape, x, {}epilogue, begin, end);\n"
      "  }});\n",
      epilogue.declaration(), call.family, options);
  return call;
}

}  // namespace gcompile

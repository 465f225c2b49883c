// conv.direct: an implicit product of a window's taps and input channels with panels of weights. Source: the
// micro-kernels of BLIS (Van Zee and van de Geijn, 2015), over pixels that are read where they lie.

#include <fmt/format.h>

#include <cstring>

#include "codegen/calls/cuda_precision.h"
#include "codegen/calls/cuda_shapes.h"
#include "codegen/calls/cuda_tiles.h"
#include "codegen/kinds/conv_call.h"
#include "codegen/kinds/dense_plan.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) { return refuse_image(problem, true); }

Refusal refuses_elements(const ir::Problem& problem, const Machine& machine) {
  return refuse_unless_factors(problem, machine, 2, {0});
}

/// The kernel for few pixels reads them as floats, and no asynchronous copy moves one element of 16 bits.
Refusal cuda_refuses(const ir::Problem& problem, const Machine& machine) {
  if (Refusal elements = refuses_elements(problem, machine)) return elements;
  if (Refusal large = refuse_image_beyond_32_bits(problem, machine)) return large;
  const bool is_short = element_bytes(problem, 0) != 4;
  const gcrt::ConvShape shape = conv_shape(conv_image(problem));
  if (is_short && (shape.in_c / shape.groups % 2 != 0 || shape.in_pixel_stride % 2 != 0)) {
    return "an odd number of channels of 16 bits";
  }
  const KernelPlan plan = tiled_conv_plans(problem, machine, precision_of(problem, machine)).front().plan;
  if (gcrt::is_gemv(tile_of(plan)) && is_short) return "few pixels of 16 bits";
  return std::nullopt;
}

/// How many groups are multiplied as one, whose weights between channels of different groups are zeros: runs of
/// channels are longer and fewer, and the tiles fuller, for as many bytes of panels. Up to two vectors of columns
/// that gains more than it costs. As by algebra that reassociates, numbers of another group that are not finite
/// are seen.
std::int64_t joined_groups(const ir::Problem& problem, const Machine& machine) {
  const std::int64_t groups = std::get<ir::ConvWork>(problem.work).groups;
  const std::int64_t columns = problem.shape(1)[0] / groups;
  const std::int64_t most = std::min<std::int64_t>(kPanelColumns, 2 * machine.level.vector_bytes / 4);
  std::int64_t joined = 1;
  if (!problem.reassociates || columns == 0) return joined;
  while (2 * joined * columns <= most && groups % (2 * joined) == 0) joined *= 2;
  return joined;
}

/// The problem with so many groups as one.
ir::Problem with_joined_groups(ir::Problem problem, std::int64_t joined) {
  std::get<ir::ConvWork>(problem.work).groups /= joined;
  problem.operands[1].shape[1] *= joined;
  problem.operands[1].strides = ir::row_major_strides(problem.operands[1].shape);
  return problem;
}

/// Its weights (M, joined * C / group, kernel...).
ir::Tensor with_joined_groups(const ir::Tensor& weights, std::int64_t groups, std::int64_t joined) {
  if (joined == 1) return weights;
  ir::Shape shape = weights.shape();
  const std::int64_t bytes = weights.count() / shape[0] * 4, columns = shape[0] / groups;
  shape[1] *= joined;
  std::vector<std::byte> out(static_cast<std::size_t>(shape[0] * joined * bytes));
  for (std::int64_t m = 0; m < shape[0]; ++m) {
    const std::int64_t place = (m * joined + m / columns % joined) * bytes;
    std::memcpy(out.data() + place, weights.bytes().data() + m * bytes, static_cast<std::size_t>(bytes));
  }
  return ir::Tensor(ir::TensorType{weights.element(), shape}, std::move(out));
}

/// The share of a panel's 16 columns that holds output channels.
double used_columns(const ir::Problem& problem) {
  const std::int64_t columns = problem.shape(1)[0] / std::get<ir::ConvWork>(problem.work).groups;
  const std::int64_t panels = (columns + kPanelColumns - 1) / kPanelColumns;
  return static_cast<double>(columns) / static_cast<double>(panels * kPanelColumns);
}

std::vector<PlannedCost> plans(const ir::Problem& given, const Machine& machine) {
  const ir::Problem problem = with_joined_groups(given, joined_groups(given, machine));
  const double rate = float_rate(dense_conv_work(problem), machine);
  return dense_conv_plans(problem, machine, 0.7 * rate * used_columns(problem), "conv2d");
}

void call(const ir::Problem& given, const KernelPlan& plan, CallWriter& writer) {
  const std::int64_t joined = joined_groups(given, writer.machine());
  const ir::Problem problem = with_joined_groups(given, joined);
  const ImageShape image = conv_image(problem);
  writer.call().headers = {"gcrt/cpu/image/conv.h"};
  writer.operand(0, "x");
  const ir::Tensor weights = with_joined_groups(*writer.constant(1), conv_image(given).groups, joined);
  writer.packed(1, pack_panels(weights, conv_matrices(weights.shape(), image.groups)), "packed for conv2d",
                "w");
  writer.weights(writer.blob().zeros((problem.shape(1)[1] + 16) * 4), "zeros", "float");
  if (joined > 1) {
    CodeText code(1);
    code.line(
        fmt::format("// Each of the groups here is {} of the model's, with zeros between them.", joined));
    writer.call().body = code.text();
  }
  write_dense_conv(problem, plan, writer, "conv2d", "", "x, w, zeros");
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  return tiled_conv_plans(problem, machine, precision_of(problem, machine));
}

void cuda_call(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  const gcrt::ConvShape shape =
      conv_shape(conv_image(ir::at_typical(problem)));  // of which weights know no size
  const KernelTensor x = writer.operand(0, "x");
  const Precision precision = precision_of(problem, writer.machine());
  warn_of_precision(problem, writer);
  packed_conv_weights(writer, shape, precision);
  write_direct_conv(problem, plan, x, writer, precision);
}

}  // namespace

const KernelFamily& family_conv_direct() {
  static const KernelFamily family = {"conv.direct", ir::Kind::kConv, refuses,
                                      for_channels_last({.refuses = refuses_elements,
                                                         .takes_formulas = takes_open_images,
                                                         .fields = dense_fields(),
                                                         .plans = plans,
                                                         .call = call,
                                                         .makes_rows = true},
                                                        {.refuses = cuda_refuses,
                                                         .takes_formulas = takes_open_images_of_32_bits,
                                                         .fields = tile_fields(),
                                                         .plans = cuda_plans,
                                                         .call = cuda_call})};
  return family;
}

}  // namespace gcompile

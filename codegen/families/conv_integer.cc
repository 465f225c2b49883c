// conv.integer: exact sums in int32 over operands of 8, on the CPU of 16 bits; zero points are taken out by
// offsets (DESIGN law 7).

#include <fmt/format.h>

#include "codegen/calls/cuda_shapes.h"
#include "codegen/calls/cuda_tiles.h"
#include "codegen/choice/refusals.h"
#include "codegen/kinds/conv_call.h"
#include "codegen/kinds/integer_weights.h"
#include "codegen/loops/c_types.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, true)) return image;
  if (Refusal operands = refuse_unless_short_integer(problem)) return operands;
  if (is_depthwise(problem)) return "one input channel in a group";
  return std::nullopt;
}

/// Weights are packed with the taps of a window together where windows are, at all sizes or at none: those of
/// one row without padding may be framed at some sizes alone (gcrt's gathers_windows).
bool takes_formulas(const ir::Problem& problem) {
  if (!takes_open_images(problem)) return false;
  const gcrt::ConvShape shape = conv_shape(conv_image(ir::at_typical(problem)));
  const std::int64_t taps = std::int64_t{shape.kernel_h} * shape.kernel_w;
  const bool may_frame = shape.groups == 1 && shape.kernel_h == 1 && shape.pad_top == 0 &&
                         shape.pad_left == 0 && shape.dilation_w == 1;
  return !may_frame || taps == 1 || shape.in_c % 4 == 0 || taps * shape.in_c <= gcrt::kGatheredDepth;
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  const DenseWork work = dense_conv_work(problem);
  const KernelPlan plan = dense_plan(work, machine);
  const double rate =
      is_in_tiles(plan) ? byte_rate(work, plan, machine) : integer_rate(problem, machine.level);
  std::vector<PlannedCost> plans = conv_plans(problem, machine, 0.7 * rate, "conv2d_integer");
  plans.front().plan = plan;
  // What a register tile costs: to begin and end it, and to find the rows of a tap. Fitted as the costs of
  // conv.winograd4; those of the tile unit are parts of larger tasks.
  const bool in_unit = is_in_tiles(plan) && machine.level.tile_unit_rate > 0;
  constexpr std::int64_t kTile = 20'000, kTap = 4'000;
  const std::int64_t tile_rows = in_unit ? 16 : 4, tile_columns = in_unit ? 32 : 16;
  const ImageShape image = conv_image(problem);
  const std::int64_t pixels = image.batch * image.out_h * image.out_w, taps = image.kernel_h * image.kernel_w;
  const std::int64_t column_tiles = (image.out_c / image.groups + tile_columns - 1) / tile_columns;
  plans.front().cost.picoseconds += (pixels + tile_rows - 1) / tile_rows * column_tiles * image.groups *
                                    (kTile + (taps > 1 ? taps * kTap : 0));
  return plans;
}

void call(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  const ImageShape image = conv_image(problem);
  const ZeroPoints zero = zero_points(writer);
  writer.call().headers = {"gcrt/cpu/image/conv_int8.h"};
  writer.operand(0, "x");
  const ir::Tensor& weights = *writer.constant(1);
  MatrixView view = conv_matrices(weights.shape(), image.groups);
  view.joins_taps = gcrt::gathers_windows(conv_shape(conv_image(ir::at_typical(problem))));
  const IntegerWeights packed = integer_panels(weights, view, zero, problem.operands[0].element);
  integer_parameters(writer, packed, "conv2d_integer", "w", "zero point times column sums");
  const std::string split = split_parameter(writer, packed);
  border_row(writer, problem, problem.shape(1)[1], zero);
  write_dense_conv(problem, plan, writer, "conv2d_integer", in_tiles(plan, packed.narrow, writer),
                   fmt::format("x, w, offsets, {}, border", split));
}

Refusal cuda_refuses(const ir::Problem& problem, const Machine& machine) {
  if (Refusal elements = refuse_unless_bytes(problem)) return elements;
  return refuse_image_beyond_32_bits(problem, machine);
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  return tiled_conv_plans(problem, machine, Precision::kInt8);
}

void cuda_call(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  const gcrt::ConvShape shape =
      conv_shape(conv_image(ir::at_typical(problem)));  // of which weights know no size
  const ZeroPoints zero = zero_points(writer);
  writer.call().headers = {"gcrt/cuda/image/conv_integer.h"};
  const KernelTensor x = writer.operand(0, "x");
  const ir::Tensor& weights = *writer.constant(1);
  const IntegerWeights packed = integer_rows(weights, conv_matrices(weights.shape(), shape.groups), zero,
                                             gcrt::conv_integer_weight_stride(shape));
  integer_parameters(writer, packed, "conv2d_integer", "w", "zero point times sums of rows");
  write_tiled_conv(problem, plan, writer, Precision::kInt8,
                   {"conv2d_integer", "", x, "w, offsets",
                    fmt::format(", {}{{{}}}", kernel_type(problem.operands[0].element), zero.x)});
}

}  // namespace

const KernelFamily& family_conv_integer() {
  static const KernelFamily family = {"conv.integer", ir::Kind::kConv, refuses,
                                      for_channels_last({.takes_formulas = takes_formulas,
                                                         .fields = integer_fields(),
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

// conv.scalar_integer: bytes by constant weights, exact sums in int32, on a core without vectors; one copy of its
// code serves all layers. On the CPU alone.

#include <fmt/format.h>

#include "codegen/choice/refusals.h"
#include "codegen/kinds/conv_call.h"
#include "codegen/kinds/integer_weights.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, true)) return image;
  if (Refusal operands = refuse_unless_bytes_by_constants(problem)) return operands;
  if (is_depthwise(problem)) return "one input channel in a group";
  return std::nullopt;
}

/// The windows of two pixels as int16, in whole words.
std::int64_t line_bytes(const ir::Problem& problem) {
  return 4 * ((dense_conv_work(problem).depth + 3) / 4 * 4);
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  const DenseWork work = dense_conv_work(problem);
  PlannedCost only;
  const std::int64_t tiles = (work.rows + 1) / 2 * ((work.columns + 1) / 2) * work.groups;
  only.cost.picoseconds = scalar_picoseconds(problem, machine, 0.8 * machine.level.byte_rate, tiles);
  only.cost.code_key = "conv2d_scalar_integer";
  only.cost.scratch = line_bytes(problem);
  return {only};
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const ImageShape image = conv_image(problem);
  writer.call().headers = {"gcrt/cpu/image/conv_scalar_int8.h"};
  writer.operand(0, "x");
  scalar_weights(writer, conv_matrices(writer.constant(1)->shape(), image.groups));
  writer.scratch(line_bytes(ir::at_typical(problem)), "lines", "std::int32_t");
  write_parallel(problem, image, writer, "conv2d_scalar",
                 fmt::format("x, {}, w, lines", zero_of_left(problem, writer)));
}

}  // namespace

const KernelFamily& family_conv_scalar_integer() {
  static const KernelFamily family = {
      "conv.scalar_integer", ir::Kind::kConv, refuses,
      for_channels_last(
          {.takes_formulas = takes_open_images, .plans = plans, .call = call, .makes_rows = true},
          {.refuses = refuse_gpu})};
  return family;
}

}  // namespace gcompile

// conv.scalar: floats by constant weights on a core without vectors, with as many sums as it has registers for;
// one copy of its code serves all layers. On the CPU alone.

#include <fmt/format.h>

#include "codegen/choice/refusals.h"
#include "codegen/kinds/conv_call.h"
#include "codegen/kinds/integer_weights.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, true)) return image;
  if (Refusal element = refuse_unless_float32(problem)) return element;
  if (is_depthwise(problem)) return "one input channel in a group";
  return std::nullopt;
}

/// Weights of an output channel, in whole words of four.
std::int64_t row_length(const ir::Problem& problem) { return (dense_conv_work(problem).depth + 3) / 4 * 4; }

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  const DenseWork work = dense_conv_work(problem);
  PlannedCost only;
  const std::int64_t tiles = (work.rows + 1) / 2 * ((work.columns + 3) / 4) * work.groups;
  only.cost.picoseconds =
      scalar_picoseconds(problem, machine, machine.level.has_vectors() ? 0.1 : 0.8, tiles);
  only.cost.code_key = "conv2d_scalar";
  only.cost.scratch = 8 * row_length(problem);
  return {only};
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const ImageShape image = conv_image(problem);
  writer.call().headers = {"gcrt/cpu/image/conv_scalar.h"};
  writer.operand(0, "x");
  const ir::Tensor& weights = *writer.constant(1);
  const std::int64_t row = row_length(ir::at_typical(problem));
  writer.packed(1, pack_rows(weights, conv_matrices(weights.shape(), image.groups), row), "in rows of words",
                "w");
  writer.scratch(8 * row, "lines", "float");
  write_parallel(problem, image, writer, "conv2d_scalar", "x, w, lines");
}

}  // namespace

const KernelFamily& family_conv_scalar() {
  static const KernelFamily family = {
      "conv.scalar", ir::Kind::kConv, refuses,
      for_channels_last(
          {.takes_formulas = takes_open_images, .plans = plans, .call = call, .makes_rows = true},
          {.refuses = refuse_gpu})};
  return family;
}

}  // namespace gcompile

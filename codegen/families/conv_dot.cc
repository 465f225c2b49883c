// conv.dot: each output a dot product of its window with the weights of its channel; for few channels, which
// would leave lanes of conv.direct without work.

#include <fmt/format.h>

#include "codegen/calls/cuda_tiles.h"
#include "codegen/choice/refusals.h"
#include "codegen/kinds/conv_call.h"

namespace gcompile {
namespace {

constexpr std::int64_t kMostChannels = 8;
/// Elements of a kernel row that fill the vectors of every level.
constexpr std::int64_t kLeastRun = 16;

Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, true)) return image;
  if (Refusal element = refuse_unless_float32(problem)) return element;
  if (problem.shape(1)[0] > kMostChannels) return fmt::format("more than {} output channels", kMostChannels);
  const ImageShape image = conv_image(problem);
  if (image.groups != 1) return "several groups";
  if (image.dilation_w != 1) return "dilated kernel rows";
  if (image.kernel_w * image.in_c < kLeastRun)
    return fmt::format("kernel rows of fewer than {} elements", kLeastRun);
  return std::nullopt;
}

Refusal refuses_on_cuda(const ir::Problem&, const Machine&) {
  return "images on the GPU, whose tensor cores the families for all windows use";
}

/// Channels-last with no gaps between the pixels of a row, so that kernel rows are runs.
NeededOrder needs(const ir::Problem& problem, std::size_t i) {
  if (i != 0) return std::nullopt;
  const ImageShape image = conv_image(problem);
  const bool is_channels_last = image.in_c == 1 || problem.operands[0].strides[1] == 1;
  if (is_channels_last && image.pixel == image.in_c) return std::nullopt;
  return ir::channels_last(problem.shape(0).size());
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  // To begin a window, and to add the lanes of a sum: by count of instructions, not fitted.
  constexpr std::int64_t kWindow = 2'000, kSum = 2'500;
  constexpr double kEfficiency = 0.45;
  const ImageShape image = conv_image(problem);
  std::vector<PlannedCost> plans = conv_plans(problem, machine, kEfficiency, "conv2d_dot");
  plans.front().cost.picoseconds += image.batch * image.out_h * image.out_w * (kWindow + image.out_c * kSum);
  // Another family might read as it lies what has to be copied here.
  if (needs(problem, 0)) {
    const std::int64_t elements = ir::element_count(problem.shape(0));
    plans.front().cost.picoseconds += machine.picoseconds(0, 2 * 4 * elements);
  }
  return plans;
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const ImageShape image = conv_image(problem);
  writer.call().headers = {"gcrt/cpu/image/conv_dot.h"};
  writer.operand(0, "x");
  const ir::Tensor& weights = *writer.constant(1);
  const std::int64_t window = image.kernel_h * image.kernel_w * image.in_c;
  writer.packed(1, pack_rows(weights, conv_matrices(weights.shape(), 1), window), "packed for conv2d_dot",
                "w");
  // A single channel leaves its axis to the pixels of a row.
  std::vector<int> rows = pixel_axes(problem.shape(0).size());
  int column = 1;
  if (image.out_c == 1) {
    column = rows.back();
    rows.pop_back();
  }
  const EpilogueWriter epilogue(writer, rows, column);
  CodeText code(1);
  call_with_threads(writer.call(), code, fmt::format("conv2d_dot<{}>", image.out_c),
                    "shape, x, w, " + epilogue.value());
  writer.call().body = Text(image.text("shape", writer.call().sizes)) + code.text();
}

std::array<Recipe, 2> recipes() {
  std::array<Recipe, 2> targets =
      for_channels_last({.takes_formulas = takes_open_images, .plans = plans, .call = call}, {});
  targets[0].needs = needs;
  targets[1] = {.refuses = refuses_on_cuda};
  return targets;
}

}  // namespace

const KernelFamily& family_conv_dot() {
  static const KernelFamily family = {"conv.dot", ir::Kind::kConv, refuses, recipes()};
  return family;
}

}  // namespace gcompile

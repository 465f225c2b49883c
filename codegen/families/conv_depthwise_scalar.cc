// conv.depthwise_scalar: every channel of an image of bytes by itself, exact sums in int32, on a core without
// vectors; one copy of its code serves all windows. On the CPU alone.

#include <fmt/format.h>

#include "codegen/choice/refusals.h"
#include "codegen/kinds/conv_call.h"
#include "codegen/kinds/integer_weights.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, true)) return image;
  if (!is_depthwise(problem)) return "several input channels in a group";
  return refuse_unless_bytes_by_constants(problem);
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  const ImageShape image = conv_image(problem);
  const std::int64_t sums = image.batch * image.out_h * image.out_w * image.out_c;
  PlannedCost only;
  only.cost.picoseconds =
      scalar_picoseconds(problem, machine, machine.level.has_vectors() ? 0.25 : 0.4, (sums + 3) / 4);
  only.cost.code_key = "depthwise2d_scalar";
  return {only};
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  writer.call().headers = {"gcrt/cpu/image/depthwise_scalar_int8.h"};
  writer.operand(0, "x");
  scalar_taps(writer);
  write_parallel(problem, conv_image(problem), writer, "depthwise2d_scalar",
                 fmt::format("x, {}, w", zero_of_left(problem, writer)));
}

}  // namespace

const KernelFamily& family_conv_depthwise_scalar() {
  static const KernelFamily family = {
      "conv.depthwise_scalar", ir::Kind::kConv, refuses,
      for_channels_last(
          {.takes_formulas = takes_open_images, .plans = plans, .call = call, .makes_rows = true},
          {.refuses = refuse_gpu})};
  return family;
}

}  // namespace gcompile

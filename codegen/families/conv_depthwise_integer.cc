// conv.depthwise_integer: every channel by itself, exact sums in int32 over operands of 8, on
// the CPU of 16 bits.

#include <fmt/format.h>

#include "codegen/choice/refusals.h"
#include "codegen/kinds/conv_call.h"
#include "codegen/kinds/integer_weights.h"
#include "codegen/loops/c_types.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, true)) return image;
  if (!is_depthwise(problem)) return "several input channels in a group";
  return refuse_unless_short_integer(problem);
}

/// Adds parameters x, w and offsets; returns all arguments: "x, w, offsets, std::uint8_t{128}".
std::string parameters(const ir::Problem& problem, CallWriter& writer, const char* offsets) {
  const ZeroPoints zero = zero_points(writer);
  writer.operand(0, "x");
  const IntegerWeights packed = depthwise_weights(*writer.constant(1), zero, problem.operands[0].element);
  integer_parameters(writer, packed, "depthwise2d_integer", "w", offsets);
  return fmt::format("x, w, offsets, {}{{{}}}", kernel_type(problem.operands[0].element), zero.x);
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  return conv_plans(problem, machine, 0.3, "depthwise2d_integer");
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const ImageShape image = conv_image(problem);
  writer.call().headers = {"gcrt/cpu/image/depthwise_int8.h"};
  const std::string arguments = parameters(problem, writer, "zero point times column sums");
  const ImageShape typical = conv_image(ir::at_typical(problem));
  write_parallel(problem, image, writer,
                 fmt::format("depthwise2d_integer_fixed<{}>", depthwise_arguments(typical)), arguments);
}

void cuda_call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  writer.call().headers = {"gcrt/cuda/image/depthwise_integer.h"};
  const std::string arguments = parameters(problem, writer, "zero point times sums of rows");
  write_depthwise_cuda(problem, writer, "depthwise2d_integer", arguments);
}

}  // namespace

const KernelFamily& family_conv_depthwise_integer() {
  static const KernelFamily family = {
      "conv.depthwise_integer", ir::Kind::kConv, refuses,
      for_channels_last(
          {.takes_formulas = takes_open_images, .plans = plans, .call = call, .makes_rows = true},
          {.refuses = cuda_refuse_unless_bytes,
           .takes_formulas = takes_open_images,
           .plans = depthwise_cuda_plans,
           .call = cuda_call,
           .device = {.overlaps = true}})};
  return family;
}

}  // namespace gcompile

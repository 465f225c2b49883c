// conv.depthwise: every channel by itself, a vector of channels at a time, the window's taps in registers.

#include <fmt/format.h>

#include "codegen/calls/cuda_precision.h"
#include "codegen/calls/cuda_shapes.h"
#include "codegen/choice/refusals.h"
#include "codegen/kinds/conv_call.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, true)) return image;
  if (!is_depthwise(problem)) return "several input channels in a group";
  return refuse_unless_float32(problem);
}

/// [taps][channels]
Packing pack(const ir::Tensor& weights) {
  return pack_rows(weights, depthwise_rows(weights.shape()), weights.shape()[0]);
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  // Windows that are not known when the kernel is compiled keep no weights in registers.
  const bool is_known = gcrt::has_known_window(conv_shape(conv_image(problem)));
  return conv_plans(problem, machine, is_known ? 0.5 : 0.25, "depthwise2d");
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const ImageShape image = conv_image(problem);
  writer.call().headers = {"gcrt/cpu/image/depthwise.h"};
  writer.operand(0, "x");
  writer.packed(1, pack(*writer.constant(1)), "packed for depthwise2d", "w");
  const ImageShape typical = conv_image(ir::at_typical(problem));
  write_parallel(problem, image, writer, fmt::format("depthwise2d_fixed<{}>", depthwise_arguments(typical)),
                 "x, w");
}

void cuda_call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  writer.call().headers = {"gcrt/cuda/image/depthwise.h"};
  writer.operand(0, "x");
  // It has no tensor cores to feed, and its weights are few: float32 in every mode.
  weights_in_format(writer, pack(*writer.constant(1)), "depthwise2d", "w", Precision::kFp32);
  write_depthwise_cuda(problem, writer, "depthwise2d", "x, w");
}

}  // namespace

const KernelFamily& family_conv_depthwise() {
  static const KernelFamily family = {
      "conv.depthwise", ir::Kind::kConv, refuses,
      for_channels_last(
          {.takes_formulas = takes_open_images, .plans = plans, .call = call, .makes_rows = true},
          {.takes_formulas = takes_open_images,
           .plans = depthwise_cuda_plans,
           .call = cuda_call,
           .device = {.overlaps = true}})};
  return family;
}

}  // namespace gcompile

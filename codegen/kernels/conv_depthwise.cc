// conv.depthwise: every channel by itself, a vector of channels at a time, the window's taps in registers.

#include <fmt/format.h>

#include "codegen/kernels/cuda_call.h"
#include "codegen/kernels/image_weights.h"

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
  PlannedCost only;
  only.cost.picoseconds = machine.picoseconds(problem.multiply_adds(), problem.bytes(), 0.3);
  only.cost.code_key = "depthwise2d";
  return {only};
}

void call(const ir::Problem& problem, const Plan&, CallWriter& writer) {
  const auto& work = std::get<ir::ConvWork>(problem.work);
  const ImageShape shape = image_of(problem, work.window, work.groups);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cpu/depthwise.h"};
  out.threaded = true;
  writer.operand(0, "x");
  writer.packed(1, pack(*writer.constant(1)), "packed for depthwise2d", "w");
  const EpilogueWriter epilogue(writer, pixel_axes(problem.shape(0).size()), 1);
  const bool multiplied = shape.out_c != shape.in_c;
  const bool square = shape.kernel_h == shape.kernel_w && shape.dilation_w == 1 && !multiplied;
  const bool fixed = square && ((shape.kernel_w == 3 && shape.stride_w <= 2) ||
                                (shape.kernel_w == 5 && shape.stride_w == 1));
  out.body = Text(shape.text("shape")) + "  " + epilogue.declaration() + "\n" +
             parallel_lines("depthwise2d_work_items(shape)",
                            fmt::format("depthwise2d_fixed<{}, {}, {}>(shape, x, w, epilogue, begin, end)",
                                        fixed ? shape.kernel_w : 0, fixed ? shape.stride_w : 0, multiplied));
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  only.cost.picoseconds = streaming_picoseconds(problem, machine);
  return {only};
}

void cuda_call(const ir::Problem& problem, const Plan&, CallWriter& writer) {
  const auto& work = std::get<ir::ConvWork>(problem.work);
  const ImageShape image = image_of(problem, work.window, work.groups);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cuda/depthwise.h"};
  writer.operand(0, "x");
  // It has no tensor cores to feed, and its weights are few: float32 in every mode.
  packed_weights(writer, pack(*writer.constant(1)), "depthwise2d", "w", Precision::kFp32);
  const EpilogueWriter epilogue(writer, pixel_axes(problem.shape(0).size()), 1);
  out.body = Text(image.text("shape")) + "  " + epilogue.declaration() + "\n" +
             fmt::format("  depthwise2d<DepthwiseWindow::{}>(queue, shape, x, w, epilogue);\n",
                         window_name(conv_shape(image)));
}

}  // namespace

const KernelFamily& family_conv_depthwise() {
  static const KernelFamily family = {
      "conv.depthwise", ir::Kind::kConv, refuses,
      for_channels_last({.plans = plans, .call = call}, {.plans = cuda_plans, .call = cuda_call})};
  return family;
}

}  // namespace gcompile

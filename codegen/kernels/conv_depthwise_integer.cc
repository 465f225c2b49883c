// conv.depthwise_integer: every channel by itself, exact sums in int32 over 8-bit operands.

#include <fmt/format.h>

#include "codegen/kernels/cuda_call.h"
#include "codegen/kernels/image_weights.h"
#include "codegen/kernels/integer_weights.h"
#include "codegen/loops/c_types.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, true)) return image;
  if (!is_depthwise(problem)) return "several input channels in a group";
  return refuse_unless_integer(problem);
}

/// Parameters x, w and offsets; returns "std::uint8_t{128}": the zero point as the kernel takes it.
std::string parameters(const ir::Problem& problem, CallWriter& writer, const char* offsets) {
  const ZeroPoints zero = zero_points(writer);
  writer.operand(0, "x");
  const IntegerWeights packed = depthwise_weights(*writer.constant(1), zero);
  integer_parameters(writer, packed, "depthwise2d_integer", "w", offsets);
  return fmt::format("{}{{{}}}", kernel_type(problem.operands[0].element), zero.x);
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  only.cost.picoseconds = machine.picoseconds(problem.multiply_adds(), problem.bytes(), 0.3);
  only.cost.code_key = "depthwise2d_integer";
  return {only};
}

void call(const ir::Problem& problem, const Plan&, CallWriter& writer) {
  const auto& work = std::get<ir::ConvWork>(problem.work);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cpu/conv_int8.h"};
  out.threaded = true;
  const std::string zero = parameters(problem, writer, "zero point times column sums");
  const EpilogueWriter epilogue(writer, pixel_axes(problem.shape(0).size()), 1);
  out.body = Text(image_of(problem, work.window, work.groups).text("shape")) + "  " + epilogue.declaration() +
             "\n" +
             parallel_lines(
                 "depthwise2d_integer_work_items(shape)",
                 fmt::format("depthwise2d_integer(shape, x, w, offsets, {}, epilogue, begin, end)", zero));
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
  out.headers = {"gcrt/cuda/depthwise_integer.h"};
  const std::string zero = parameters(problem, writer, "zero point times sums of rows");
  const EpilogueWriter epilogue(writer, pixel_axes(problem.shape(0).size()), 1);
  out.body =
      Text(image.text("shape")) + "  " + epilogue.declaration() + "\n" +
      fmt::format("  depthwise2d_integer<DepthwiseWindow::{}>(queue, shape, x, w, offsets, {}, epilogue);\n",
                  window_name(conv_shape(image)), zero);
}

}  // namespace

const KernelFamily& family_conv_depthwise_integer() {
  static const KernelFamily family = {
      "conv.depthwise_integer", ir::Kind::kConv, refuses,
      for_channels_last({.plans = plans, .call = call}, {.plans = cuda_plans, .call = cuda_call})};
  return family;
}

}  // namespace gcompile

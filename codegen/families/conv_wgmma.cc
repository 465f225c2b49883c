// conv.wgmma: convolutions of many pixels by the warpgroup instructions of sm_90a. A tensor map of the image
// copies, for each tap of the kernel, the box of pixels that a patch of the output sees. The weights are
// those of conv.direct.

#include <fmt/format.h>

#include <array>

#include "codegen/calls/cuda_precision.h"
#include "codegen/calls/cuda_shapes.h"
#include "codegen/calls/cuda_tiles.h"
#include "codegen/choice/refusals.h"
#include "codegen/kinds/conv_call.h"

namespace gcompile {
namespace {

constexpr std::int64_t kLeastPixels = 33;  // as rows of product.wgmma

Refusal refuses(const ir::Problem& problem) { return refuse_image(problem, true); }

Refusal refuses_on_cpu(const ir::Problem&, const Machine&) { return "warpgroups of sm_90a"; }

Refusal cuda_refuses(const ir::Problem& problem, const Machine& machine) {
  if (Refusal missing = refuse_wgmma(machine)) return missing;
  if (Refusal elements = refuse_unless_factors(problem, machine, 2, {0})) return elements;
  if (Refusal large = refuse_beyond_32_bits(problem, machine)) return large;
  const gcrt::ConvShape s = conv_shape(conv_image(problem));
  if (s.groups != 1) return "groups";
  if (s.stride_h != 1 || s.stride_w != 1) return "strides";
  if (gcrt::output_pixels(s) < kLeastPixels) return "fewer than 33 pixels";
  if (s.out_c * s.in_c == 0 || s.out_c > gcrt::kMaxGridZ * std::int64_t{64}) {
    return "no channels, or more than a grid has";
  }
  const int bytes = element_bytes(problem, 0);
  for (const std::ptrdiff_t stride : {s.in_pixel_stride, s.in_row_stride, s.in_image_stride}) {
    if (stride * bytes % kTensorMapAlignment != 0) return "pixels that are no multiple of 16 bytes apart";
  }
  if (!gcrt::is_pointwise(s) && s.in_c % gcrt::wgmma_depth(precision_of(problem, machine)) != 0) {
    return "channels that are no whole steps of 128 bytes of weights";
  }
  return std::nullopt;
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  return {planned(gcrt::plan_conv2d_wgmma(machine.gpu, precision_of(problem, machine),
                                          conv_shape(conv_image(problem)), element_bytes(problem, 0)),
                  1)};
}

void cuda_call(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  const ImageShape image = conv_image(problem);
  const gcrt::ConvShape shape = conv_shape(image);
  const KernelTensor x = writer.operand(0, "x");
  const Precision precision = precision_of(problem, writer.machine());
  warn_of_precision(problem, writer);
  packed_conv_weights(writer, shape, precision);
  if (x.alignment < kTensorMapAlignment) {
    // Where the image begins is known only here. The weights are the same.
    return write_direct_conv(problem, tiled_conv_plans(problem, writer.machine(), precision).front().plan, x,
                             writer, precision);
  }
  writer.call().headers = {"gcrt/cuda/image/hopper_conv.h"};
  writer.call().body =
      shape_and_epilogue(problem, image, writer) +
      fmt::format("  conv2d_wgmma{}<{}>(queue, shape, x, w, epilogue);\n",
                  gcrt::is_pointwise(shape) ? "_pointwise" : "", wgmma_arguments(writer, plan, precision));
}

}  // namespace

const KernelFamily& family_conv_wgmma() {
  static const KernelFamily family = {
      "conv.wgmma", ir::Kind::kConv, refuses,
      for_channels_last(
          {.refuses = refuses_on_cpu},
          {.refuses = cuda_refuses, .fields = wgmma_fields(), .plans = cuda_plans, .call = cuda_call})};
  return family;
}

}  // namespace gcompile

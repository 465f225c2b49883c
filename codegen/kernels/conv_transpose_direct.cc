// conv_transpose.direct: for every phase of the strides, a convolution with the taps that reach it.

#include <fmt/format.h>

#include "codegen/kernels/cuda_call.h"
#include "codegen/kernels/image_weights.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, true)) return image;
  return refuse_unless_float32(problem);
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  only.cost.picoseconds = machine.picoseconds(problem.multiply_adds(), problem.bytes(), 0.5);
  only.cost.code_key = "conv_transpose2d";
  return {only};
}

void call(const ir::Problem& problem, const Plan&, CallWriter& writer) {
  const auto& work = std::get<ir::ConvTransposeWork>(problem.work);
  const ir::Tensor& weights = *writer.constant(1);
  const std::int64_t group_inputs = problem.shape(1)[0] / work.groups, group_outputs = problem.shape(1)[1],
                     taps = work.window.taps();
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cpu/conv_transpose.h"};
  out.threaded = true;
  writer.operand(0, "x");
  std::vector<float> packed;
  for (std::int64_t g = 0; g < work.groups; ++g) {
    const std::vector<float> part =
        pack_panels(taps * group_inputs, group_outputs, [&](std::int64_t k, std::int64_t oc) {
          const std::int64_t ic = g * group_inputs + k % group_inputs;
          return static_cast<float>(weights.real_at((ic * group_outputs + oc) * taps + k / group_inputs));
        });
    packed.insert(packed.end(), part.begin(), part.end());
  }
  writer.packed(1, packed, "packed for conv_transpose2d", "w");
  writer.weights(writer.blob().zeros((group_inputs + 16) * 4), "zeros", "float");
  const EpilogueWriter epilogue(writer, pixel_axes(problem.shape(0).size()), 1);
  out.body = Text(image_of(problem, work.window, work.groups).text("shape")) + "  " + epilogue.declaration() +
             "\n" +
             parallel_lines("conv_transpose2d_work_items(shape)",
                            "conv_transpose2d(shape, x, w, zeros, epilogue, begin, end)");
}

/// Rows of every phase after the other: [phase][group][output][tap of the phase][input], rows padded.
std::vector<float> pack_phases(const ir::Tensor& weights, const ir::ConvTransposeWork& work,
                               const gcrt::ConvShape& shape) {
  const std::int64_t group_inputs = weights.shape()[0] / work.groups, group_outputs = weights.shape()[1],
                     taps = work.window.taps();
  std::vector<float> packed;
  for (int phase_index = 0; phase_index < shape.stride_h * shape.stride_w; ++phase_index) {
    const gcrt::TransposePhase phase =
        gcrt::transpose_phase(shape, phase_index / shape.stride_w, phase_index % shape.stride_w);
    const std::int64_t stride = gcrt::conv_weight_stride(phase.shape);
    std::size_t at = packed.size();
    packed.resize(at + static_cast<std::size_t>(shape.out_c * stride), 0.0f);
    for (std::int64_t output = 0; output < shape.out_c; ++output, at += static_cast<std::size_t>(stride)) {
      const std::int64_t g = output / group_outputs, oc = output % group_outputs;
      std::size_t k = at;
      for (int tap_index = 0; tap_index < phase.shape.kernel_h * phase.shape.kernel_w; ++tap_index) {
        const int i = tap_index / phase.shape.kernel_w, j = tap_index % phase.shape.kernel_w;
        const std::int64_t tap = (phase.rows.first + i * phase.rows.step) * shape.kernel_w +
                                 phase.columns.first + j * phase.columns.step;
        for (std::int64_t ic = 0; ic < group_inputs; ++ic) {
          packed[k++] = static_cast<float>(
              weights.real_at(((g * group_inputs + ic) * group_outputs + oc) * taps + tap));
        }
      }
    }
  }
  return packed;
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  const auto& work = std::get<ir::ConvTransposeWork>(problem.work);
  const gcrt::ConvShape shape = conv_shape(image_of(problem, work.window, work.groups));
  return {planned(gcrt::plan_conv_transpose2d(machine.gpu, precision_of(problem, machine), shape),
                  shape.stride_h * shape.stride_w, shape.groups)};
}

void cuda_call(const ir::Problem& problem, const Plan& plan, CallWriter& writer) {
  const auto& work = std::get<ir::ConvTransposeWork>(problem.work);
  const ImageShape image = image_of(problem, work.window, work.groups);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cuda/conv_transpose.h"};
  writer.operand(0, "x");
  const Precision precision = precision_of(problem, writer.machine());
  warn_of_precision(problem, writer);
  packed_weights(writer, pack_phases(*writer.constant(1), work, conv_shape(image)), "conv_transpose2d", "w",
                 precision);
  const EpilogueWriter epilogue(writer, pixel_axes(problem.shape(0).size()), 1);
  note_plan(out, plan, precision);
  out.body = Text(image.text("shape")) + "  " + epilogue.declaration() + "\n" +
             fmt::format("  conv_transpose2d<{}, Tile::{}>(queue, shape, x, w, epilogue);\n",
                         precision_argument(precision), tile_name(tile_of(plan)));
}

}  // namespace

const KernelFamily& family_conv_transpose_direct() {
  static const KernelFamily family = {
      "conv_transpose.direct",
      ir::Kind::kConvTranspose,
      refuses,
      {{{nullptr, needs_channels_last, {}, plans, call},
        {refuse_beyond_32_bits, needs_channels_last, tile_fields(), cuda_plans, cuda_call}}}};
  return family;
}

}  // namespace gcompile

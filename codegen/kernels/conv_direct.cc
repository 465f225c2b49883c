// conv.direct: an implicit product of a window's taps and input channels with panels of weights. Source: the
// micro-kernels of BLIS (Van Zee and van de Geijn, 2015), over pixels that are read where they lie.

#include <fmt/format.h>

#include "codegen/kernels/cuda_call.h"
#include "codegen/kernels/image_weights.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, true)) return image;
  return refuse_unless_float32(problem);
}

/// Of a panel's 16 columns, those that hold output channels.
double used_columns(const ir::Problem& problem) {
  const std::int64_t columns = problem.shape(1)[0] / std::get<ir::ConvWork>(problem.work).groups;
  return static_cast<double>(columns) / static_cast<double>((columns + 15) / 16 * 16);
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  only.cost.picoseconds =
      machine.picoseconds(problem.multiply_adds(), problem.bytes(), 0.7 * used_columns(problem));
  only.cost.code_key = "conv2d";
  return {only};
}

void call(const ir::Problem& problem, const Plan&, CallWriter& writer) {
  const ConvWeights w = conv_weights(problem, writer);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cpu/conv.h"};
  out.threaded = true;
  writer.operand(0, "x");
  std::vector<float> packed;
  for (std::int64_t g = 0; g < w.groups; ++g) {
    const std::vector<float> part =
        pack_panels(w.taps * w.group_inputs, w.group_outputs(), [&](std::int64_t k, std::int64_t oc) {
          return w.real(g * w.group_outputs() + oc, k % w.group_inputs, k / w.group_inputs);
        });
    packed.insert(packed.end(), part.begin(), part.end());
  }
  writer.packed(1, packed, "packed for conv2d", "w");
  writer.weights(writer.blob().zeros((w.group_inputs + 16) * 4), "zeros", "float");
  const EpilogueWriter epilogue(writer, pixel_axes(problem.shape(0).size()), 1);
  const auto& work = std::get<ir::ConvWork>(problem.work);
  out.body = Text(image_of(problem, work.window, work.groups).text("shape")) + "  " + epilogue.declaration() +
             "\n" +
             parallel_lines("conv2d_work_items(shape)", "conv2d(shape, x, w, zeros, epilogue, begin, end)");
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  const auto& work = std::get<ir::ConvWork>(problem.work);
  const gcrt::ConvShape shape = conv_shape(image_of(problem, work.window, work.groups));
  return {planned(gcrt::plan_conv2d(machine.gpu, precision_of(problem, machine), shape), 1, shape.groups)};
}

void cuda_call(const ir::Problem& problem, const Plan& plan, CallWriter& writer) {
  const auto& work = std::get<ir::ConvWork>(problem.work);
  const ConvWeights w = conv_weights(problem, writer);
  const ImageShape image = image_of(problem, work.window, work.groups);
  const gcrt::ConvShape shape = conv_shape(image);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cuda/conv.h"};
  writer.operand(0, "x");
  const std::int64_t stride = gcrt::conv_weight_stride(shape);
  std::vector<float> packed(static_cast<std::size_t>(w.outputs * stride), 0.0f);
  for (std::int64_t oc = 0; oc < w.outputs; ++oc) {
    for (std::int64_t tap = 0; tap < w.taps; ++tap) {
      for (std::int64_t ic = 0; ic < w.group_inputs; ++ic) {
        packed[static_cast<std::size_t>(oc * stride + tap * w.group_inputs + ic)] = w.real(oc, ic, tap);
      }
    }
  }
  const Precision precision = precision_of(problem, writer.machine());
  warn_of_precision(problem, writer);
  packed_weights(writer, packed, "conv2d", "w", precision);
  const EpilogueWriter epilogue(writer, pixel_axes(problem.shape(0).size()), 1);
  const std::string split =
      split_argument(writer, splits_of(plan), gcrt::conv2d_workspace_size(shape, splits_of(plan)));
  note_plan(out, plan, precision);
  out.body = Text(image.text("shape")) + "  " + epilogue.declaration() + "\n" +
             fmt::format("  {}<{}, Tile::{}>(queue, shape, x, w, {}, epilogue);\n",
                         gcrt::is_pointwise(shape) ? "conv2d_pointwise" : "conv2d",
                         precision_argument(precision), tile_name(tile_of(plan)), split);
}

}  // namespace

const KernelFamily& family_conv_direct() {
  static const KernelFamily family = {
      "conv.direct",
      ir::Kind::kConv,
      refuses,
      {{{nullptr, needs_channels_last, {}, plans, call},
        {refuse_beyond_32_bits, needs_channels_last, tile_fields(), cuda_plans, cuda_call}}}};
  return family;
}

}  // namespace gcompile

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
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cpu/conv.h"};
  out.threaded = true;
  writer.operand(0, "x");
  const auto& work = std::get<ir::ConvWork>(problem.work);
  const ir::Tensor& weights = *writer.constant(1);
  writer.packed(1, pack_panels(weights, conv_matrices(weights.shape(), work.groups)), "packed for conv2d",
                "w");
  writer.weights(writer.blob().zeros((problem.shape(1)[1] + 16) * 4), "zeros", "float");
  const EpilogueWriter epilogue(writer, pixel_axes(problem.shape(0).size()), 1);
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
  const ImageShape image = image_of(problem, work.window, work.groups);
  const gcrt::ConvShape shape = conv_shape(image);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cuda/conv.h"};
  writer.operand(0, "x");
  const Precision precision = precision_of(problem, writer.machine());
  warn_of_precision(problem, writer);
  const ir::Tensor& weights = *writer.constant(1);
  packed_weights(writer,
                 pack_rows(weights, conv_matrices(weights.shape(), work.groups),
                           gcrt::conv_weight_stride(shape), facts_of(precision).weight),
                 "conv2d", "w", precision);
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
      "conv.direct", ir::Kind::kConv, refuses,
      for_channels_last({.plans = plans, .call = call},
                        {.fields = tile_fields(), .plans = cuda_plans, .call = cuda_call})};
  return family;
}

}  // namespace gcompile

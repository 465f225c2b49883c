// conv_transpose.direct: for every phase of the strides, a convolution with the taps that reach it.

#include <fmt/format.h>

#include "codegen/calls/cuda_precision.h"
#include "codegen/calls/cuda_shapes.h"
#include "codegen/calls/cuda_tiles.h"
#include "codegen/kinds/conv_call.h"
#include "codegen/kinds/image_windows.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, true)) return image;
  return std::nullopt;
}

Refusal refuses_elements(const ir::Problem& problem, const Machine& machine) {
  return refuse_unless_factors(problem, machine, 2, {0});
}

Refusal cuda_refuses(const ir::Problem& problem, const Machine& machine) {
  if (Refusal elements = refuses_elements(problem, machine)) return elements;
  return refuse_image_beyond_32_bits(problem, machine);
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  only.cost.picoseconds = machine.picoseconds(problem.multiply_adds(), problem.bytes(), 0.5);
  only.cost.code_key = "conv_transpose2d";
  return {only};
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const auto& work = std::get<ir::ConvTransposeWork>(problem.work);
  const ir::Tensor& weights = *writer.constant(1);
  writer.call().headers = {"gcrt/cpu/image/conv_transpose.h"};
  writer.operand(0, "x");
  writer.packed(1, pack_panels(weights, conv_transpose_matrices(weights.shape(), work.groups)),
                "packed for conv_transpose2d", "w");
  writer.weights(writer.blob().zeros((problem.shape(1)[0] / work.groups + 16) * 4), "zeros", "float");
  write_parallel(problem, image_of(problem, work.window, work.groups), writer, "conv_transpose2d",
                 "x, w, zeros");
}

/// Rows of every phase after the other: [phase][output][tap of the phase][input], rows padded.
Packing pack_phases(const ir::Tensor& weights, const ir::ConvTransposeWork& work,
                    const gcrt::ConvShape& shape, ir::ElementType stored) {
  std::vector<Packing> phases;
  for (int index = 0; index < shape.stride_h * shape.stride_w; ++index) {
    const gcrt::TransposePhase phase =
        gcrt::transpose_phase(shape, index / shape.stride_w, index % shape.stride_w);
    MatrixView view = conv_transpose_matrices(weights.shape(), work.groups);
    view.taps.clear();
    for (int i = 0; i < phase.shape.kernel_h; ++i) {
      for (int j = 0; j < phase.shape.kernel_w; ++j) {
        view.taps.push_back((phase.rows.first + i * phase.rows.step) * shape.kernel_w + phase.columns.first +
                            j * phase.columns.step);
      }
    }
    phases.push_back(pack_rows(weights, view, gcrt::conv_weight_stride(phase.shape), stored));
  }
  return pack_together(std::move(phases));
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  const auto& work = std::get<ir::ConvTransposeWork>(problem.work);
  const gcrt::ConvShape shape = conv_shape(image_of(problem, work.window, work.groups));
  const Precision precision = precision_of(problem, machine);
  const gcrt::OperandBytes bytes = {element_bytes(problem, 0), gcrt::weight_bytes(precision)};
  return {planned(gcrt::plan_conv_transpose2d(machine.gpu, precision, shape, bytes), machine,
                  shape.stride_h * shape.stride_w, shape.groups)};
}

void cuda_call(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  const auto& work = std::get<ir::ConvTransposeWork>(problem.work);
  const ImageShape image = image_of(problem, work.window, work.groups);
  // Weights know no size of the images.
  const gcrt::ConvShape shape = conv_shape(image_of(ir::at_typical(problem), work.window, work.groups));
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cuda/image/conv_transpose.h"};
  const KernelTensor x = writer.operand(0, "x");
  const Precision precision = precision_of(problem, writer.machine());
  warn_of_precision(problem, writer);
  weights_in_format(writer, pack_phases(*writer.constant(1), work, shape, facts_of(precision).weight),
                    "conv_transpose2d", "w", precision);
  note_plan(writer, plan, precision);
  out.body = shape_and_epilogue(problem, image, writer) +
             fmt::format("  conv_transpose2d<{}, Tile::{}>(queue, shape, {}, w, epilogue);\n",
                         precision_argument(precision), tile_name(tile_of(plan)), copied_image(image, x));
}

}  // namespace

const KernelFamily& family_conv_transpose_direct() {
  static const KernelFamily family = {
      "conv_transpose.direct", ir::Kind::kConvTranspose, refuses,
      for_channels_last(
          {.refuses = refuses_elements, .takes_formulas = takes_open_images, .plans = plans, .call = call},
          {.refuses = cuda_refuses,
           .takes_formulas = takes_open_images_of_32_bits,
           .fields = tile_fields(),
           .plans = cuda_plans,
           .call = cuda_call})};
  return family;
}

}  // namespace gcompile

// conv_transpose.integer: exact sums in int32 over operands of 8 and of 16 bits, phase by phase as
// conv_transpose.direct. What takes out the zero point of x differs from phase to phase, because each sees
// other taps (DESIGN law 7).

#include <fmt/format.h>

#include <algorithm>

#include "codegen/calls/cuda_shapes.h"
#include "codegen/choice/refusals.h"
#include "codegen/kinds/image_windows.h"
#include "codegen/kinds/integer_weights.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, true)) return image;
  return refuse_unless_short_integer(problem);
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  // Words that the channels do not fill, of which the last is put together from its bytes.
  const std::int64_t channels =
      std::max<std::int64_t>(1, problem.shape(0)[1] / std::get<ir::ConvTransposeWork>(problem.work).groups);
  const std::int64_t depth = bits_of(problem.operands[0].element) == 16 ? 2 : 4;
  const std::int64_t words = (channels + depth - 1) / depth + (channels % depth == 0 ? 0 : 1);
  PlannedCost only;
  only.cost.picoseconds = machine.picoseconds(problem.multiply_adds() * depth * words / channels,
                                              problem.bytes(), 0.5 * integer_rate(problem, machine.level));
  only.cost.code_key = "conv_transpose2d_integer";
  return {only};
}

/// The taps of one phase of the strides.
MatrixView phase_of(MatrixView view, const gcrt::ConvShape& s, int row_phase, int column_phase) {
  const gcrt::PhaseTaps rows = gcrt::phase_taps(row_phase, s.pad_top, s.stride_h, s.dilation_h, s.kernel_h);
  const gcrt::PhaseTaps columns =
      gcrt::phase_taps(column_phase, s.pad_left, s.stride_w, s.dilation_w, s.kernel_w);
  view.taps.clear();
  for (int i = 0; i < rows.count; ++i) {
    for (int j = 0; j < columns.count; ++j) {
      view.taps.push_back((rows.first + i * rows.step) * s.kernel_w + columns.first + j * columns.step);
    }
  }
  return view;
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const auto& work = std::get<ir::ConvTransposeWork>(problem.work);
  const ImageShape image = image_of(problem, work.window, work.groups);
  // The shape of phases, which know no size of the images.
  const gcrt::ConvShape shape = conv_shape(image_of(ir::at_typical(problem), work.window, work.groups));
  const ir::ElementType x = problem.operands[0].element;
  const ZeroPoints zero = zero_points(writer);
  const ir::Tensor& weights = *writer.constant(1);
  const MatrixView view = conv_transpose_matrices(weights.shape(), work.groups);
  writer.call().headers = {"gcrt/cpu/image/conv_transpose_int8.h"};
  writer.operand(0, "x");
  IntegerWeights packed = integer_panels(weights, view, zero, x);
  packed.offsets.clear();
  for (int phase = 0; phase < shape.stride_h * shape.stride_w; ++phase) {
    const MatrixView seen = phase_of(view, shape, phase / shape.stride_w, phase % shape.stride_w);
    packed.add_panel_offsets(zero.x, integer_facts(weights, seen, zero.w).sums, x);
  }
  integer_parameters(writer, packed, "conv_transpose2d_integer", "w",
                     "zero point times column sums of each phase");
  const std::string split = split_parameter(writer, packed);
  border_row(writer, problem, problem.shape(0)[1] / work.groups, zero);
  write_parallel(problem, image, writer, "conv_transpose2d_integer",
                 fmt::format("x, w, offsets, {}, border", split));
}

Refusal cuda_refuses(const ir::Problem&, const Machine&) {
  return "on CUDA transposed convolutions are of floats";
}

}  // namespace

const KernelFamily& family_conv_transpose_integer() {
  static const KernelFamily family = {
      "conv_transpose.integer",
      ir::Kind::kConvTranspose,
      refuses,
      {{for_channels_last({.takes_formulas = takes_open_images, .plans = plans, .call = call}, {})[0],
        {.refuses = cuda_refuses}}}};
  return family;
}

}  // namespace gcompile

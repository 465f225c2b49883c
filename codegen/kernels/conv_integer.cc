// conv.integer: exact sums in int32 over 8-bit operands; zero points are taken out by offsets (DESIGN law 7).

#include <fmt/format.h>

#include "codegen/kernels/cuda_call.h"
#include "codegen/kernels/image_weights.h"
#include "codegen/kernels/integer_weights.h"
#include "codegen/loops/c_types.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, true)) return image;
  if (Refusal operands = refuse_unless_integer(problem)) return operands;
  if (is_depthwise(problem)) return "one input channel in a group";
  return std::nullopt;
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  only.cost.picoseconds = machine.picoseconds(problem.multiply_adds(), problem.bytes(), 0.7);
  only.cost.code_key = "conv2d_integer";
  return {only};
}

void call(const ir::Problem& problem, const Plan&, CallWriter& writer) {
  const auto& work = std::get<ir::ConvWork>(problem.work);
  const ZeroPoints zero = zero_points(writer);
  const ir::ElementType element = problem.operands[0].element;
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cpu/conv_int8.h"};
  out.threaded = true;
  writer.operand(0, "x");
  const ir::Tensor& weights = *writer.constant(1);
  const IntegerWeights packed =
      integer_panels(weights, conv_matrices(weights.shape(), work.groups), zero, element);
  integer_parameters(writer, packed, "conv2d_integer", "w", "zero point times column sums");
  const std::vector<std::uint8_t> border(static_cast<std::size_t>(problem.shape(1)[1] + 64),
                                         static_cast<std::uint8_t>(zero.x & 255));
  writer.weights(writer.blob().add(border, "zero_point", "read at image borders"), "border",
                 kernel_type(element));
  const EpilogueWriter epilogue(writer, pixel_axes(problem.shape(0).size()), 1);
  out.body = Text(image_of(problem, work.window, work.groups).text("shape")) + "  " + epilogue.declaration() +
             "\n" +
             parallel_lines("conv2d_integer_work_items(shape)",
                            "conv2d_integer(shape, x, w, offsets, border, epilogue, begin, end)");
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  const auto& work = std::get<ir::ConvWork>(problem.work);
  const gcrt::ConvShape shape = conv_shape(image_of(problem, work.window, work.groups));
  return {planned(gcrt::plan_conv2d(machine.gpu, Precision::kInt8, shape), 1, shape.groups)};
}

void cuda_call(const ir::Problem& problem, const Plan& plan, CallWriter& writer) {
  const auto& work = std::get<ir::ConvWork>(problem.work);
  const ZeroPoints zero = zero_points(writer);
  const ImageShape image = image_of(problem, work.window, work.groups);
  const gcrt::ConvShape shape = conv_shape(image);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cuda/conv_integer.h"};
  writer.operand(0, "x");
  const ir::Tensor& weights = *writer.constant(1);
  const IntegerWeights packed = integer_rows(weights, conv_matrices(weights.shape(), work.groups), zero,
                                             gcrt::conv_integer_weight_stride(shape));
  integer_parameters(writer, packed, "conv2d_integer", "w", "zero point times sums of rows");
  const EpilogueWriter epilogue(writer, pixel_axes(problem.shape(0).size()), 1);
  const std::string split =
      split_argument(writer, splits_of(plan), gcrt::conv2d_workspace_size(shape, splits_of(plan)));
  note_plan(out, plan, Precision::kInt8);
  const bool pointwise = gcrt::is_pointwise(shape);
  const std::string border =
      pointwise ? "" : fmt::format("{}{{{}}}, ", kernel_type(problem.operands[0].element), zero.x);
  out.body = Text(image.text("shape")) + "  " + epilogue.declaration() + "\n" +
             fmt::format("  conv2d_integer{}<Tile::{}>(queue, shape, x, w, offsets, {}{}, epilogue);\n",
                         pointwise ? "_pointwise" : "", tile_name(tile_of(plan)), border, split);
}

}  // namespace

const KernelFamily& family_conv_integer() {
  static const KernelFamily family = {
      "conv.integer", ir::Kind::kConv, refuses,
      for_channels_last({.plans = plans, .call = call},
                        {.fields = tile_fields(), .plans = cuda_plans, .call = cuda_call})};
  return family;
}

}  // namespace gcompile

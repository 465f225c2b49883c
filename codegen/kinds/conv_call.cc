#include "codegen/kinds/conv_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/calls/cuda_precision.h"
#include "codegen/calls/cuda_shapes.h"
#include "codegen/calls/cuda_tiles.h"
#include "codegen/calls/cuda_time.h"
#include "codegen/choice/refusals.h"

namespace gcompile {

ImageShape conv_image(const ir::Problem& problem) {
  const auto& work = std::get<ir::ConvWork>(problem.work);
  return image_of(problem, work.window, work.groups);
}

std::vector<PlannedCost> conv_plans(const ir::Problem& problem, const Machine& machine, double efficiency,
                                    const char* function) {
  PlannedCost only;
  only.cost.picoseconds = machine.picoseconds(problem.multiply_adds(), problem.bytes(), efficiency);
  only.cost.code_key = function;
  return {only};
}

DenseWork dense_conv_work(const ir::Problem& problem) {
  const ImageShape image = conv_image(problem);
  const std::int64_t bytes = bits_of(problem.operands[0].element) / 8;
  const std::int64_t columns = image.out_c / image.groups, channels = image.in_c / image.groups;
  const std::int64_t taps = image.kernel_h * image.kernel_w;
  DenseWork work;
  work.rows = image.batch * image.out_h * image.out_w;
  work.columns = columns;
  work.depth = taps * channels;
  work.groups = image.groups;
  work.is_interleaved = image.groups > 1;
  // Rows and columns of pixels between the windows are not read.
  work.left_bytes = work.rows * channels * bytes * std::min(image.stride_h, image.kernel_h) *
                    std::min(image.stride_w, image.kernel_w);
  work.right_bytes = (columns + 15) / 16 * 16 * work.depth * bytes;
  work.taps = taps * image.stride_h * image.stride_w == 1 || gcrt::is_framing(conv_shape(image)) ? 0 : taps;
  work.has_tile = problem.operands[0].element == ir::ElementType::kFloat32;
  if (are_bytes(problem)) {
    const gcrt::ConvShape shape = conv_shape(image);
    const bool joins_taps = gcrt::gathers_windows(shape) || gcrt::is_framing(shape);
    const bool joins_rows = channels % 4 == 0 && image.pixel == channels && image.dilation_w == 1;
    work.run_bytes = joins_taps ? work.depth : joins_rows ? image.kernel_w * channels : channels;
  }
  return work;
}

std::vector<PlannedCost> dense_conv_plans(const ir::Problem& problem, const Machine& machine,
                                          double efficiency, const char* function) {
  std::vector<PlannedCost> plans = conv_plans(problem, machine, efficiency, function);
  plans.front().plan = dense_plan(dense_conv_work(problem), machine);
  return plans;
}

void write_dense_conv(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer,
                      const std::string& name, const std::string& options, const std::string& arguments) {
  CodeText code(1);
  const std::string tile = dense_tile(plan, in_bfloat16(dense_conv_work(ir::at_typical(problem)), writer));
  write_blocking(plan, code);
  writer.call().body += code.text();
  write_parallel(problem, conv_image(problem), writer,
                 fmt::format("{}{}{}", name, writer.call().by_rows ? "_rows" : "",
                             tile.empty() ? options : "<" + tile + ">"),
                 arguments + ", blocking");
}

std::string depthwise_arguments(const ImageShape& image) {
  constexpr std::int64_t kManyChannels = 16;  // gcrt/cpu/image/depthwise.h
  const bool is_known = gcrt::has_known_window(conv_shape(image));
  const char* channels = image.out_c != image.in_c      ? "multiplied"
                         : image.out_c >= kManyChannels ? "many"
                                                        : "few";
  return fmt::format("{}, {}, DepthwiseChannels::{}", is_known ? image.kernel_w : 0,
                     is_known ? image.stride_w : 0, channels);
}

std::vector<PlannedCost> depthwise_cuda_plans(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  only.cost.picoseconds = streaming_picoseconds(problem, machine);
  return {only};
}

void write_depthwise_cuda(const ir::Problem& problem, CallWriter& writer, const std::string& function,
                          const std::string& arguments) {
  const ImageShape image = conv_image(problem);
  writer.call().body = shape_and_epilogue(problem, image, writer) +
                       fmt::format("  {}<DepthwiseWindow::{}>(queue, shape, {}, epilogue);\n", function,
                                   window_name(conv_shape(conv_image(ir::at_typical(problem)))), arguments);
}

namespace {

/// gcrt's is_pointwise, for all sizes.
bool is_pointwise(const ImageShape& s) {
  return s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 &&
         s.pad_left == 0 && s.out_h == s.in_h && s.out_w == s.in_w &&
         (s.out_h == 1 || s.row == s.in_w * s.pixel) &&
         (s.batch == 1 || s.image == s.in_h * s.in_w * s.pixel);
}

}  // namespace

std::string copied_image(const ImageShape& image, const KernelTensor& x) {
  const ir::Dim steps[] = {ir::floor_div(image.in_c, image.groups), image.pixel, image.row, image.image};
  return copied(copied_in(x, steps), x.pointer);
}

std::vector<PlannedCost> tiled_conv_plans(const ir::Problem& problem, const Machine& machine,
                                          Precision precision) {
  const gcrt::ConvShape shape = conv_shape(conv_image(problem));
  const gcrt::OperandBytes bytes = {element_bytes(problem, 0), gcrt::weight_bytes(precision)};
  const bool takes_vectors = !problem.stands_for_formulas;
  return {planned(gcrt::plan_conv2d(machine.gpu, precision, shape, bytes, true, takes_vectors), machine, 1,
                  shape.groups)};
}

void write_tiled_conv(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer,
                      Precision precision, const TiledConv& conv) {
  const ImageShape image = conv_image(problem);
  const bool pointwise = is_pointwise(image);
  const Text definitions = shape_and_epilogue(problem, image, writer);
  const ir::Dim pixels = image.batch * image.out_h * image.out_w;
  const std::int64_t channels = image.out_c / image.groups;
  const std::string split = split_argument(
      writer, plan, image.groups * pixels * ((channels + 3) / 4 * 4),
      gcrt::gemm_counters(tile_of(plan), ir::highest(pixels), channels, image.groups, splits_of(plan)));
  note_plan(writer, plan, precision);
  writer.call().body =
      definitions + fmt::format("  {}{}<{}Tile::{}>(queue, shape, {}, {}{}, {}, epilogue);\n", conv.function,
                                pointwise ? "_pointwise" : "", conv.precision, tile_name(tile_of(plan)),
                                copied_image(image, conv.x), conv.arguments,
                                pointwise ? "" : conv.border_argument, split);
}

void packed_conv_weights(CallWriter& writer, const gcrt::ConvShape& shape, Precision precision) {
  const ir::Tensor& weights = *writer.constant(1);
  weights_in_format(writer,
                    pack_rows(weights, conv_matrices(weights.shape(), shape.groups),
                              gcrt::conv_weight_stride(shape), facts_of(precision).weight),
                    "conv2d", "w", precision);
}

void write_direct_conv(const ir::Problem& problem, const KernelPlan& plan, const KernelTensor& x,
                       CallWriter& writer, Precision precision) {
  writer.call().headers = {"gcrt/cuda/image/conv.h"};
  write_tiled_conv(problem, plan, writer, precision,
                   {"conv2d", precision_argument(precision) + ", ", x, "w", ""});
}

}  // namespace gcompile

// conv.planes: each channel by itself, a vector of neighbouring pixels at a time; for groups of few channels, which would
// leave lanes of conv.direct without work, and for large windows of single channels.

#include <fmt/format.h>

#include <numeric>

#include "codegen/choice/refusals.h"
#include "codegen/kinds/conv_call.h"
#include "gcrt/cpu/image/planes_plan.h"

namespace gcompile {
namespace {

constexpr std::int64_t kMostChannels = 4;  // of the input, in a group
constexpr std::int64_t kWidestLanes = 16;  // of any level

/// Output channels of a tile: they divide those of a group.
int channels_of(const ImageShape& image) {
  const std::int64_t outputs = image.out_c.constant() / image.groups;
  int channels = gcrt::kMostPlaneChannels;
  while (outputs % channels != 0) --channels;
  return channels;
}

Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, true)) return image;
  if (Refusal element = refuse_unless_float32(problem)) return element;
  if (problem.shape(0).back() == 1) return "images of one column";
  const ImageShape image = conv_image(problem);
  const std::int64_t channels = image.in_c.constant() / image.groups;
  if (channels > kMostChannels) return fmt::format("more than {} channels in a group", kMostChannels);
  if (image.stride_w != 1) return "strides along a row";
  const std::int64_t reach = (image.kernel_w - 1) * image.dilation_w;
  if (reach > gcrt::kPlaneReach)
    return fmt::format("kernel rows that reach more than {} pixels", gcrt::kPlaneReach);
  const int tile_rows = gcrt::plane_rows(channels_of(image));
  if (ir::highest(image.out_h) < tile_rows) return fmt::format("fewer than {} rows", tile_rows);
  const std::int64_t rows = gcrt::plane_inputs(tile_rows, image.stride_h, image.kernel_h, image.dilation_h);
  if (rows * (gcrt::kPlaneVectors * kWidestLanes + reach) * channels > gcrt::kPlanePatch)
    return fmt::format("windows that reach more than {} elements", gcrt::kPlanePatch);
  return std::nullopt;
}

Refusal refuses_on_cuda(const ir::Problem&, const Machine&) {
  return "images on the GPU, whose tensor cores the families for all windows use";
}

std::vector<int> planes_order(const ir::Problem& problem) {
  std::vector<int> order(problem.shape(0).size());  // in so many words: no view of something else
  std::iota(order.begin(), order.end(), 0);
  return order;
}

NeededOrder needs(const ir::Problem& problem, std::size_t i) {
  if (i != 0 || problem.operands[0].strides.back() == 1) return std::nullopt;
  return planes_order(problem);
}

ir::LayoutOffer layout(const ir::Problem& problem) {
  ir::LayoutOffer offer;
  offer.operands.assign(problem.operands.size(), std::nullopt);
  offer.operands[0] = offer.result = planes_order(problem);
  return offer;
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  const ImageShape image = conv_image(problem);
  const std::int64_t terms = image.kernel_h * image.kernel_w * (image.in_c.constant() / image.groups);
  const std::int64_t lanes = machine.level.vector_bytes / 4;
  const std::int64_t columns = std::max<std::int64_t>(1, ir::highest(image.out_w));
  // One load for each product where a tile has one channel; to begin a tile and to hand on its sums takes as long as
  // some terms. As measured with AVX2.
  constexpr double kHandedOn = 18;
  const double in_loop = channels_of(image) == 1 ? 0.6 : 0.75;
  const double filled =
      static_cast<double>(columns) / static_cast<double>((columns + lanes - 1) / lanes * lanes);
  const double efficiency =
      in_loop * filled * static_cast<double>(terms) / (static_cast<double>(terms) + kHandedOn);
  std::vector<PlannedCost> plans = conv_plans(problem, machine, efficiency, "conv2d_planes");
  // Another family might read and write as they lie what has to be turned here.
  const auto turned = [&](const ir::Shape& shape) {
    plans.front().cost.picoseconds += machine.picoseconds(0, 2 * 4 * ir::highest(ir::element_count(shape)));
  };
  if (needs(problem, 0)) turned(problem.shape(0));
  if (problem.results[0].strides.back() != 1) turned(problem.results[0].shape);
  return plans;
}

/// [out_c / channels][in_c / groups][kernel_h][kernel_w][channels]
Packing pack(const ir::Tensor& weights, std::int64_t channels) {
  const std::int64_t outputs = weights.shape()[0].constant();
  MatrixView view;
  view.matrices = outputs / channels;
  view.columns = view.inner_step = weights.count() / outputs;
  view.matrix_step = channels * view.columns;
  view.inner = channels;
  return pack_rows(weights, view, channels);
}

/// The sides of the kernel where the runtime has its taps one behind the other, which takes 2 KB more of code; else 0.
std::int64_t known_kernel(const ImageShape& image, const Machine& machine) {
  const bool is_dense = image.stride_h == 1 && image.dilation_h == 1 && image.dilation_w == 1;
  const bool is_known = image.kernel_h == image.kernel_w && (image.kernel_h == 3 || image.kernel_h == 5);
  return is_dense && is_known && !machine.smallest_scratch ? image.kernel_h : 0;
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const ImageShape image = conv_image(problem);
  const int channels = channels_of(image);
  writer.call().headers = {"gcrt/cpu/image/conv_planes.h"};
  writer.operand(0, "x");
  writer.packed(1, pack(*writer.constant(1), channels), "packed for conv2d_planes", "w");
  const std::size_t rank = problem.shape(0).size();
  std::vector<int> rows(rank - 1);
  std::iota(rows.begin(), rows.end(), 0);
  const EpilogueWriter epilogue(writer, rows, static_cast<int>(rank) - 1);
  const std::string plane = writer.call().sizes(problem.operands[0].strides[1]);
  CodeText code(1);
  call_with_threads(writer.call(), code,
                    fmt::format("conv2d_planes<{}, {}>", channels, known_kernel(image, writer.machine())),
                    Text(fmt::format("shape, {}, x, w, ", plane)) + epilogue.value());
  writer.call().body = Text(image.text("shape", writer.call().sizes)) + code.text();
}

}  // namespace

const KernelFamily& family_conv_planes() {
  static const KernelFamily family = {"conv.planes",
                                      ir::Kind::kConv,
                                      refuses,
                                      {Recipe{.takes_formulas = takes_open_images,
                                              .needs = needs,
                                              .layout = layout,
                                              .plans = plans,
                                              .call = call},
                                       Recipe{.refuses = refuses_on_cuda}}};
  return family;
}

}  // namespace gcompile

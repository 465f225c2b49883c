#include "codegen/kernels/winograd_conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "codegen/kernels/conv_call.h"
#include "gcrt/cpu/winograd_plan.h"

namespace gcompile {
namespace {

gcrt::ConvShape geometry(const ir::Problem& problem) { return conv_shape(conv_image(problem)); }

Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, true)) return image;
  if (Refusal element = refuse_unless_float32(problem)) return element;
  const auto& work = std::get<ir::ConvWork>(problem.work);
  const auto all = [](const std::vector<std::int64_t>& values, std::int64_t wanted) {
    return std::all_of(values.begin(), values.end(), [=](std::int64_t value) { return value == wanted; });
  };
  const ir::Window& window = work.window;
  if (window.spatial() != 2 || !all(window.kernel, 3)) return "a window other than 3x3";
  if (!all(window.strides, 1) || !all(window.dilations, 1)) return "strides or dilations";
  if (work.groups != 1) return "several groups";
  if (!problem.reassociates) return "sums whose last bit may decide something, or that --exact keeps";
  return std::nullopt;
}

Refusal refuses_on_cuda(const ir::Problem&, const Machine&) {
  return "images on the GPU, whose tensor cores conv.direct uses";
}

constexpr std::array<const char*, 2> kFields = {"strip", "block"};

/// Rows of a block: whole register tiles of 4, 6, 8 and 12 rows, enough to use each panel of weights often.
constexpr std::int64_t kBlockTiles = 24;
/// Beside its products, in multiply-adds: what an element of a transform costs, and a tile. Fitted to what
/// layers of 4 to 512 channels take on one core.
constexpr std::int64_t kElementWork = 10, kTileWork = 5000;
/// Weights are cold, and about half of their way from memory is not hidden behind products.
constexpr double kExposedStream = 0.5;

std::int64_t tiles_of(int T, const gcrt::ConvShape& shape) {
  return static_cast<std::int64_t>(gcrt::winograd_tiles(T, shape));
}

/// Strips of equal size whose transformed inputs fill half of the second-level cache, in equal blocks; the
/// other half is for their sums and the weights.
gcrt::WinogradPlan plan_of(int T, const gcrt::ConvShape& shape, const Machine& machine) {
  const std::int64_t tiles = tiles_of(T, shape);
  const std::int64_t tile_bytes = std::int64_t{gcrt::winograd_positions(T)} * shape.in_c * 4;
  const std::int64_t most = std::max(kBlockTiles, machine.l2 / 2 / tile_bytes);
  const auto parts = [](std::int64_t whole, std::int64_t count) { return (whole + count - 1) / count; };
  const std::int64_t strip = parts(tiles, parts(tiles, most));
  const std::int64_t blocks = std::max<std::int64_t>(1, (strip + kBlockTiles / 2) / kBlockTiles);
  return {narrow(strip), narrow(parts(strip, blocks))};
}

gcrt::WinogradPlan plan_of(const Plan& plan) { return {narrow(plan.fields[0]), narrow(plan.fields[1])}; }

std::int64_t weight_bytes(int T, const gcrt::ConvShape& shape) {
  return static_cast<std::int64_t>(gcrt::winograd_weights_size(T, shape.in_c, shape.out_c)) * 4;
}

template <int T>
std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  const gcrt::ConvShape shape = geometry(problem);
  const gcrt::WinogradPlan plan = plan_of(T, shape, machine);
  const std::int64_t positions = gcrt::winograd_positions(T), columns = (shape.out_c + 15) / 16 * 16;
  const std::int64_t products = positions * shape.in_c * columns;
  const std::int64_t transforms = positions * (shape.in_c + shape.out_c) * kElementWork;
  const std::int64_t weights = weight_bytes(T, shape);
  PlannedCost only;
  only.plan.fields = {plan.strip, plan.block};
  only.cost.picoseconds =
      machine.picoseconds(tiles_of(T, shape) * (products + transforms + kTileWork), problem.bytes(), 0.7) +
      machine.picoseconds(0, static_cast<std::int64_t>(kExposedStream * static_cast<double>(weights)));
  only.cost.scratch = static_cast<std::int64_t>(gcrt::winograd_scratch(T, shape, plan)) * 4;
  only.cost.extra_weights = weights - ir::element_count(problem.shape(1)) * 4;
  only.cost.code_key = fmt::format("winograd{}", T);
  return {only};
}

/// Weights (M, C, 3, 3) as winograd_plan.h lays them out, computed in double and rounded once.
template <int T>
Packing pack(const ir::Tensor& weights) {
  const std::int64_t out_c = weights.shape()[0], in_c = weights.shape()[1];
  Packing packing;
  packing.source = weights;
  packing.format = fmt::format("Winograd F({0}x{0}, 3x3)", T);
  packing.bytes = static_cast<std::int64_t>(gcrt::winograd_weights_size(T, in_c, out_c)) * 4;
  packing.write = [in_c, out_c](const ir::Tensor& source, std::span<std::byte> out) {
    for (std::int64_t n = 0; n < out_c; ++n) {
      for (std::int64_t c = 0; c < in_c; ++c) {
        float w[9];
        std::memcpy(w, source.bytes().data() + (n * in_c + c) * 36, sizeof w);
        double taps[9], transformed[gcrt::winograd_positions(T)];
        std::copy(std::begin(w), std::end(w), taps);
        gcrt::winograd_weights<T>(taps, transformed);
        for (int p = 0; p < gcrt::winograd_positions(T); ++p) {
          const float value = without_denormals(static_cast<float>(transformed[p]));
          std::memcpy(out.data() + gcrt::winograd_weights_place(T, in_c, out_c, p, c, n) * 4, &value, 4);
        }
      }
    }
  };
  return packing;
}

template <int T>
void call(const ir::Problem& problem, const Plan& plan, CallWriter& writer) {
  const ImageShape image = conv_image(problem);
  const gcrt::ConvShape shape = conv_shape(image);
  writer.call().headers = {"gcrt/cpu/winograd.h"};
  writer.call().threaded = true;
  writer.operand(0, "x");
  writer.packed(1, pack<T>(*writer.constant(1)), fmt::format("transformed for winograd<{}>", T), "w");
  writer.weights(writer.blob().zeros((problem.shape(1)[1] + 16) * 4), "zeros", "float");
  writer.scratch(static_cast<std::int64_t>(gcrt::winograd_scratch(T, shape, plan_of(plan))) * 4, "scratch",
                 "float");
  writer.call().body = shape_and_epilogue(problem, image, writer) +
                       fmt::format(
                           "  constexpr WinogradPlan plan{{/*strip*/ {}, /*block*/ {}}};\n"
                           "  winograd<{}>(threads, shape, plan, x, w, zeros, scratch, epilogue);\n",
                           plan.fields[0], plan.fields[1], T);
}

}  // namespace

template <int T>
KernelFamily winograd_family(std::string_view name) {
  std::array<Recipe, 2> targets = for_channels_last(
      {.refuses = refuse_beyond_32_bits, .fields = kFields, .plans = plans<T>, .call = call<T>}, {});
  targets[1] = {.refuses = refuses_on_cuda};
  return {name, ir::Kind::kConv, refuses, targets};
}

template KernelFamily winograd_family<2>(std::string_view);
template KernelFamily winograd_family<4>(std::string_view);

}  // namespace gcompile

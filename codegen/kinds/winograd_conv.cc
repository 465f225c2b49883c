#include "codegen/kinds/winograd_conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "codegen/calls/cuda_shapes.h"
#include "codegen/choice/refusals.h"
#include "codegen/kinds/conv_call.h"
#include "codegen/kinds/integer_weights.h"
#include "codegen/loops/c_types.h"
#include "gcrt/cpu/image/winograd_plan.h"

namespace gcompile {
namespace {

template <class V>
constexpr bool kIsInteger = std::is_integral_v<V>;
/// Input channels in a word of 32 bits.
template <class V>
constexpr std::int64_t kWord = 4 / static_cast<std::int64_t>(sizeof(V));

gcrt::ConvShape geometry(const ir::Problem& problem) { return conv_shape(conv_image(problem)); }

/// Refuses integer products whose sums or factors may be too large, from the constants' facts.
Refusal refuse_sums(int T, const ir::Problem& problem) {
  const ir::ConstantFacts weights = *problem.operands[1].constant;
  ir::ConstantFacts zero;
  if (problem.operands.size() > 3 && problem.operands[3].present) zero = *problem.operands[3].constant;
  if (weights.low - zero.high < -128 || weights.high - zero.low > 127) return "weights beyond int8";
  const bool is_signed = problem.operands[0].element == ir::ElementType::kInt8;
  const std::int64_t taps = 9 * problem.shape(1)[1], farthest = std::max(zero.high, -zero.low);
  if ((is_signed ? 128 : 255) * (weights.largest_sum + taps * farthest) > gcrt::winograd_largest_sum(T))
    return "weights whose sums may leave the range that it is exact in";
  return std::nullopt;
}

template <int T, class V>
Refusal refuses(const ir::Problem& problem) {
  if (Refusal image = refuse_image(problem, true)) return image;
  if (Refusal element = kIsInteger<V> ? refuse_unless_integer(problem) : refuse_unless_float32(problem))
    return element;
  const auto& work = std::get<ir::ConvWork>(problem.work);
  const auto all = [](const std::vector<std::int64_t>& values, std::int64_t wanted) {
    return std::all_of(values.begin(), values.end(), [=](std::int64_t value) { return value == wanted; });
  };
  const ir::Window& window = work.window;
  if (window.spatial() != 2 || !all(window.kernel, 3)) return "a window other than 3x3";
  if (!all(window.strides, 1) || !all(window.dilations, 1)) return "strides or dilations";
  if (work.groups != 1) return "several groups";
  if (problem.shape(1)[1] % kWord<V> != 0) return "an odd number of channels";
  if constexpr (kIsInteger<V>) return refuse_sums(T, problem);
  if (!problem.reassociates) return "sums whose last bit may decide something, or that --exact keeps";
  return std::nullopt;
}

Refusal refuses_on_cuda(const ir::Problem&, const Machine&) {
  return "images on the GPU, whose tensor cores the families for all windows use";
}

constexpr std::array<const char*, 3> kFields = {"strip", "block", "parts"};

/// Rows of a block: whole register tiles of 4, 6, 8 and 12 rows, enough to use each panel of weights often.
constexpr std::int64_t kBlockTiles = 24;
/// Beside its products, in multiply-adds of float32: what an element of a transform costs, of which a vector
/// has twice as many where inputs are int16, and a tile. Fitted to what layers of 4 to 512 channels take on
/// one core.
template <class V>
constexpr std::int64_t kElementWork = kIsInteger<V> ? 5 : 10;
constexpr std::int64_t kTileWork = 5000;
/// Weights are cold. So much of their way from memory is not hidden behind products, of which those of
/// integers take less time.
template <class V>
constexpr double kExposedStream = kIsInteger<V> ? 0.75 : 0.5;

std::int64_t tiles_of(int T, const gcrt::ConvShape& shape) {
  return static_cast<std::int64_t>(gcrt::winograd_tiles(T, shape));
}

std::int64_t weight_bytes(int T, std::int64_t words, std::int64_t out_c) {
  return static_cast<std::int64_t>(gcrt::winograd_weights_size(T, words, out_c)) * 4;
}

std::int64_t scratch_bytes(int T, std::int64_t words, const gcrt::WinogradPlan& plan) {
  return static_cast<std::int64_t>(gcrt::winograd_scratch(T, words, plan)) * 4;
}

/// Multiply-adds of a tile: its products, and its transforms.
template <class V>
std::int64_t tile_work(int T, const gcrt::ConvShape& shape, const Machine& machine) {
  const std::int64_t positions = gcrt::winograd_positions(T), columns = (shape.out_c + 15) / 16 * 16;
  const std::int64_t transforms = positions * (shape.in_c + shape.out_c) * kElementWork<V> + kTileWork;
  const double products =
      static_cast<double>(positions * shape.in_c * columns) / (kIsInteger<V> ? machine.level.int16_rate : 1);
  return static_cast<std::int64_t>(products) + transforms;
}

constexpr double kEfficiency = 0.7;

/// Parts that may run at the same time: as many as are worth a thread, but few cores' scratch is no reason
/// for a larger arena than that of the images.
template <class V>
int parts_of(int T, const gcrt::ConvShape& shape, const gcrt::WinogradPlan& plan, const Machine& machine) {
  constexpr std::int64_t kFewCores = 4;
  if (machine.smallest_scratch) return 1;
  const std::int64_t tiles = tiles_of(T, shape), words = shape.in_c / kWord<V>;
  const std::int64_t items = (tiles + plan.block - 1) / plan.block *
                             ((shape.out_c + gcrt::kWinogradColumns - 1) / gcrt::kWinogradColumns);
  const std::int64_t time = machine.picoseconds(tiles * tile_work<V>(T, shape, machine),
                                                weight_bytes(T, words, shape.out_c), kEfficiency);
  const std::int64_t images =
      std::int64_t{shape.batch} * (std::int64_t{shape.in_h} * shape.in_w * shape.in_c * sizeof(V) +
                                   std::int64_t{shape.out_h} * shape.out_w * shape.out_c * 4);
  const std::int64_t fits = std::max(kFewCores, images / 2 / scratch_bytes(T, words, plan));
  return narrow(
      std::clamp<std::int64_t>(std::min({items, time / machine.least_item, fits}), 1, machine.cores));
}

/// Strips of equal size whose transformed inputs fill half of the second-level cache, in equal blocks; the
/// other half is for their sums and the weights.
template <class V>
gcrt::WinogradPlan plan_of(int T, const gcrt::ConvShape& shape, const Machine& machine) {
  const std::int64_t tiles = tiles_of(T, shape), words = shape.in_c / kWord<V>;
  const std::int64_t tile_bytes = std::int64_t{gcrt::winograd_positions(T)} * words * 4;
  const std::int64_t most = std::max(kBlockTiles, machine.l2 / 2 / tile_bytes);
  const auto parts = [](std::int64_t whole, std::int64_t count) { return (whole + count - 1) / count; };
  const std::int64_t strip = parts(tiles, parts(tiles, most));
  const std::int64_t blocks = std::max<std::int64_t>(1, (strip + kBlockTiles / 2) / kBlockTiles);
  gcrt::WinogradPlan plan{narrow(strip), narrow(parts(strip, blocks)), 1};
  plan.parts = parts_of<V>(T, shape, plan, machine);
  return plan;
}

/// What scratch is for: of formulas, by the largest sizes, whichever is typical; a run fits its own plan in.
template <class V>
gcrt::WinogradPlan plan_of(int T, const ir::Problem& problem, const KernelPlan& chosen,
                           const Machine& machine) {
  if (!ir::are_constant(problem)) return plan_of<V>(T, geometry(ir::at_highest(problem)), machine);
  return {narrow(chosen.fields[0]), narrow(chosen.fields[1]), narrow(chosen.fields[2])};
}

template <int T, class V>
std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  const gcrt::ConvShape shape = geometry(problem);
  const std::int64_t words = shape.in_c / kWord<V>;
  const gcrt::WinogradPlan plan = plan_of<V>(T, shape, machine);
  const std::int64_t weights = weight_bytes(T, words, shape.out_c);
  PlannedCost only;
  only.plan.fields = {plan.strip, plan.block, plan.parts};
  only.cost.picoseconds =
      machine.picoseconds(tiles_of(T, shape) * tile_work<V>(T, shape, machine), problem.bytes(),
                          kEfficiency) +
      machine.picoseconds(0, static_cast<std::int64_t>(kExposedStream<V> * static_cast<double>(weights)));
  only.cost.scratch = scratch_bytes(T, words, plan);
  only.cost.extra_weights =
      weights - ir::element_count(problem.shape(1)) * bits_of(problem.operands[1].element) / 8;
  only.cost.code_key = fmt::format("winograd{}{}", T, kIsInteger<V> ? "_integer" : "");
  return {only};
}

/// Weights (M, C, 3, 3) as winograd_plan.h lays them out. read(source, n, window, taps) gives those of a
/// window of channel n, in double or int; stored(value) is what lies in memory.
template <int T, class V, class Read, class Stored>
Packing pack(const ir::Tensor& weights, std::string format, const Read& read, const Stored& stored) {
  const std::int64_t out_c = weights.shape()[0], in_c = weights.shape()[1];
  Packing packing;
  packing.source = weights;
  packing.format = std::move(format);
  packing.bytes = weight_bytes(T, in_c / kWord<V>, out_c);
  packing.write = [=](const ir::Tensor& source, std::span<std::byte> out) {
    using Exact = std::conditional_t<kIsInteger<V>, int, double>;
    for (std::int64_t n = 0; n < out_c; ++n) {
      for (std::int64_t c = 0; c < in_c; ++c) {
        Exact taps[9], transformed[gcrt::winograd_positions(T)];
        read(source, n, n * in_c + c, taps);
        gcrt::winograd_weights<T>(taps, transformed);
        for (int p = 0; p < gcrt::winograd_positions(T); ++p) {
          const V value = stored(transformed[p]);
          const std::ptrdiff_t word =
              gcrt::winograd_weights_place(T, in_c / kWord<V>, out_c, p, c / kWord<V>, n);
          const std::ptrdiff_t place = word * kWord<V> + c % kWord<V>;
          std::memcpy(out.data() + place * sizeof(V), &value, sizeof(V));
        }
      }
    }
  };
  return packing;
}

/// Computed in double and rounded once.
template <int T>
Packing pack_floats(const ir::Tensor& weights) {
  const auto read = [](const ir::Tensor& source, std::int64_t, std::int64_t window, double* taps) {
    float w[9];
    std::memcpy(w, source.bytes().data() + window * 36, sizeof w);
    std::copy(std::begin(w), std::end(w), taps);
  };
  return pack<T, float>(weights, fmt::format("Winograd F({0}x{0}, 3x3)", T), read,
                        [](double value) { return without_denormals(static_cast<float>(value)); });
}

/// Less the zero points.
template <int T>
Packing pack_integers(const ir::Tensor& weights, const ZeroPoints& zero) {
  const auto read = [zero](const ir::Tensor& source, std::int64_t n, std::int64_t window, int* taps) {
    const std::byte* const from = source.bytes().data() + window * 9;
    const bool is_signed = source.element() == ir::ElementType::kInt8;
    for (int i = 0; i < 9; ++i) {
      const int value = std::to_integer<int>(from[i]);
      taps[i] = (is_signed ? static_cast<std::int8_t>(value) : value) - static_cast<int>(zero.of_column(n));
    }
  };
  return pack<T, std::int16_t>(
      weights, fmt::format("Winograd F({0}x{0}, 3x3) of int16, less {1}", T, fmt::join(zero.w, " ")), read,
      [](int value) { return static_cast<std::int16_t>(value); });
}

template <int T, class V>
void call(const ir::Problem& problem, const KernelPlan& chosen, CallWriter& writer) {
  const ImageShape image = conv_image(problem);
  const std::int64_t words = problem.shape(1)[1] / kWord<V>;
  const gcrt::WinogradPlan plan = plan_of<V>(T, problem, chosen, writer.machine());
  const std::string function = fmt::format("winograd{}<{}>", kIsInteger<V> ? "_integer" : "", T);
  const std::string comment = "transformed for " + function;
  writer.operand(0, "x");
  std::string operands;
  if constexpr (kIsInteger<V>) {
    writer.call().headers = {"gcrt/cpu/image/winograd_int8.h"};
    const ZeroPoints zero = zero_points(writer);
    const ir::Tensor& weights = *writer.constant(1);
    writer.packed(1, pack_integers<T>(weights, zero), comment, "w", "std::int16_t");
    column_offsets(writer, weights, conv_matrices(weights.shape(), 1), zero);
    border_row(writer, problem, problem.shape(1)[1], zero);
    operands = "x, w, offsets, border";
  } else {
    writer.call().headers = {"gcrt/cpu/image/winograd.h"};
    writer.packed(1, pack_floats<T>(*writer.constant(1)), comment, "w");
    writer.weights(writer.blob().zeros((problem.shape(1)[1] + 16) * 4), "zeros", "float");
    operands = "x, w, zeros";
  }
  writer.scratch(scratch_bytes(T, words, plan), "scratch", kIsInteger<V> ? "std::int32_t" : "float");
  const std::string largest =
      fmt::format("{{/*strip*/ {}, /*block*/ {}, /*parts*/ {}}}", plan.strip, plan.block, plan.parts);
  std::string definition = "constexpr WinogradPlan plan" + largest;
  if (!ir::are_constant(problem)) {
    writer.call().headers.push_back("gcrt/cpu/image/winograd_fit.h");
    definition = fmt::format("const WinogradPlan plan = winograd_fit({}, shape, {})", T, largest);
  }
  writer.call().body = shape_and_epilogue(problem, image, writer) +
                       fmt::format("  {};\n  {}({}, shape, plan, {}, scratch, epilogue);\n", definition,
                                   function, threads_argument(writer.call()), operands);
}

}  // namespace

template <int T, class V>
KernelFamily winograd_family(std::string_view name) {
  std::array<Recipe, 2> targets = for_channels_last({.refuses = refuse_beyond_32_bits,
                                                     .takes_formulas = takes_open_images,
                                                     .fields = kFields,
                                                     .plans = plans<T, V>,
                                                     .call = call<T, V>},
                                                    {});
  targets[1] = {.refuses = refuses_on_cuda};
  return {name, ir::Kind::kConv, refuses<T, V>, targets};
}

template KernelFamily winograd_family<2, float>(std::string_view);
template KernelFamily winograd_family<4, float>(std::string_view);
template KernelFamily winograd_family<2, std::int16_t>(std::string_view);
template KernelFamily winograd_family<4, std::int16_t>(std::string_view);

}  // namespace gcompile

// Transforms, windows and resized images: of a few values that an operand may have, inference tells which give
// the declared shapes.

#include <algorithm>
#include <cmath>

#include "ir/ops/resize_plan.h"
#include "ir/ops/rewrite.h"
#include "ir/ops/settle.h"

namespace gcompile::ir {
namespace {

/// Attempts at inference for one node.
constexpr std::int64_t kMostTries = 4096;

ValueId are_exactly(RewriteContext& context, ValueId operand, const Numbers& value) {
  return are(context, operand, value);
}

bool is_number(const SettleContext& context, int i) {
  return context.is_open(i) && context.operand(i).count() == 1;
}

}  // namespace

/// The axis, where the length is known or none is given.
void settle_dft(SettleContext& context) {
  const auto rank = static_cast<std::int64_t>(context.operand(0).rank());
  if (!is_number(context, 2) || context.is_open(1)) return;
  std::vector<Numbers> ways;
  for (std::int64_t axis = 0; axis + 1 < rank; ++axis) {
    if (context.fits({{2, {axis}}})) ways.push_back({axis});
  }
  context.choose(2, ways, [rank](RewriteContext& inside, ValueId operand, const Numbers& axes) {
    return are_axes(inside, operand, axes, rank);
  });
}

/// Steps and lengths of frames of which only one pair makes so many.
void settle_stft(SettleContext& context) {
  const Numbers* out = context.declared(0);
  const std::optional<Numbers> in = context.sizes(0);
  const bool has_step = is_number(context, 1), has_length = is_number(context, 3);
  if (!out || !in || in->size() < 2 || out->size() != 4 || (!has_step && !has_length)) return;
  if ((*in)[1] > kMostTries) return;
  Numbers lengths = {0};
  if (has_length) lengths = {(*out)[2], 2 * (*out)[2] - 2, 2 * (*out)[2] - 1};
  std::vector<SettleContext::Values> found;
  for (const std::int64_t length : lengths) {
    SettleContext::Values values;
    if (has_length) values[3] = {length};
    const std::int64_t most = has_step ? (*in)[1] : 1;
    for (std::int64_t step = 1; step <= most && length >= 0; ++step) {
      if (has_step) values[1] = {step};
      if (context.fits(values)) found.push_back(values);
    }
  }
  if (found.size() != 1) return;
  SettleContext::Examples examples;
  ValueId holds;
  for (const auto& [i, value] : found[0]) {
    const ValueId here = are(context, context.operand_id(i), value);
    holds = holds.valid() ? both(context, holds, here) : here;
    examples.emplace_back(i, Tensor::of_ints(value, {1}));
  }
  if (!context.check_all(examples, holds)) return;
  for (const auto& [i, value] : found[0]) context.make_known(i, value);
}

/// The image is what is declared; of its blocks the elements are counted.
void settle_col2im(SettleContext& context) {
  const Numbers* out = context.declared(0);
  const std::optional<Numbers> in = context.sizes(0);
  if (!out || !in || in->size() != 3 || out->size() < 3) return;
  const Numbers image(out->begin() + 2, out->end());
  const auto axes = static_cast<std::int64_t>(image.size());
  if (context.is_open(1)) {
    if (context.operand(1).count() != axes) return;
    const ValueId holds = are(context, context.operand_id(1), image);
    if (!context.assume(1, image, holds)) return;
  }
  if (!context.is_open(2) || context.operand(2).count() != axes || (*out)[1] == 0) return;
  const std::int64_t taps = (*in)[1] / (*out)[1];
  if (taps == 0) return;
  std::vector<Numbers> ways = {{}};
  for (std::int64_t axis = 0; axis < axes; ++axis) {
    std::vector<Numbers> longer;
    for (const Numbers& way : ways) {
      for (std::int64_t block = 1; block <= taps; ++block) {
        if (taps % block != 0 || static_cast<std::int64_t>(longer.size()) >= kMostTries) continue;
        longer.push_back(way);
        longer.back().push_back(block);
      }
    }
    ways = std::move(longer);
  }
  ways.erase(std::remove_if(ways.begin(), ways.end(),
                            [&](const Numbers& way) {
                              return !context.fits({{2, way}});
                            }),
             ways.end());
  context.choose(2, ways, are_exactly);
}

namespace {

/// Scales that a run reads go with modes whose elements it can find.
bool reads_any_scale(const SettleContext& context) {
  const Attributes& attributes = context.attributes();
  return attributes.string_of("nearest_mode") != "simple" &&
         attributes.string_of("coordinate_transformation_mode") != "tf_crop_and_resize";
}

/// How many elements along each axis a result is a sum of.
std::vector<int> taps_of(const Attributes& attributes, const Numbers& own, const Numbers& sizes) {
  ResizeMethod method;
  method.mode = attributes.string_of("mode");
  method.antialias = attributes.flag("antialias");
  std::vector<int> taps;
  for (std::size_t k = 0; k < own.size(); ++k) {
    ResizeAxis axis;
    axis.in = own[k];
    axis.out = sizes[k];
    axis.scale.reset();
    taps.push_back(taps_at_any_scale(axis, method));
  }
  return taps;
}

/// The Resize becomes an Interpolate, or one for each axis where an element would be a sum of too many.
void interpolate(SettleContext& context, ValueId scales, const Numbers& axes, const Numbers& own,
                 const Numbers& sizes) {
  constexpr std::int64_t kMostTaps = 16;
  const std::vector<int> taps = taps_of(context.attributes(), own, sizes);
  std::int64_t together = 1;
  for (const int each : taps) together *= each;
  Attributes attributes = context.attributes();
  attributes.set("keep_aspect_ratio_policy", std::string("stretch"));
  if (together <= kMostTaps) {
    const ValueId known = list_of(context, sizes);
    context.replace_with("Interpolate", {context.operand_id(0), ValueId{}, scales, known}, attributes);
    return;
  }
  // Between the axes nothing is rounded to less than float32.
  const ElementType type = context.element(0);
  ValueId x =
      emit_cast(context, context.operand_id(0), is_float(type) ? compute_type(type) : ElementType::kFloat32);
  for (std::size_t k = 0; k < axes.size(); ++k) {
    if (own[k] == 1 && sizes[k] == 1) continue;
    attributes.set("axes", Numbers{axes[k]});
    const auto at = static_cast<std::int64_t>(k);
    const ValueId scale = emit_slice(context, scales, 0, at, at + 1);
    const ValueId size = list_of(context, {sizes[k]});
    x = context.emit("Interpolate", {x, ValueId{}, scale, size}, attributes);
  }
  context.replace_with("Identity", {emit_cast(context, x, type)});
}

void settle_scales(SettleContext& context, const Numbers& axes, const Numbers& own, const Numbers& sizes) {
  if (!reads_any_scale(context) || context.element(kScales) != ElementType::kFloat32 ||
      context.has_operand(3))
    return;
  std::vector<float> before, behind, example;
  for (std::size_t k = 0; k < own.size(); ++k) {
    constexpr std::int64_t kMostExact = 1 << 20;
    if (own[k] > kMostExact || sizes[k] > kMostExact || sizes[k] == 0) return;
    before.push_back(static_cast<float>(own[k]));
    behind.push_back(static_cast<float>(sizes[k]));
    float scale = behind[k] / before[k];
    if (std::floor(scale * before[k]) != behind[k]) scale = (behind[k] + 0.5f) / before[k];
    if (std::floor(scale * before[k]) != behind[k]) return;
    example.push_back(scale);
  }
  const Shape list = {static_cast<std::int64_t>(own.size())};
  const ValueId in = context.constant(Tensor::of_floats(before, list));
  const ValueId out = context.constant(Tensor::of_floats(behind, list));
  const ValueId lengths = context.emit("Mul", {context.operand_id(kScales), in});
  const ValueId whole = context.emit("Floor", {lengths});
  const ValueId holds = all_of(context, context.emit("Equal", {whole, out}));
  if (!context.check(kScales, Tensor::of_floats(example, list), holds)) return;
  interpolate(context, context.operand_id(kScales), axes, own, sizes);
}

std::optional<Numbers> example_of_ratio(bool is_least, const Numbers& own, const Numbers& sizes) {
  for (std::size_t k = 0; k < own.size(); ++k) {
    const double ratio = static_cast<double>(sizes[k]) / static_cast<double>(own[k]);
    Numbers example;
    bool fits = true;
    for (std::size_t i = 0; i < own.size(); ++i) {
      const double length = ratio * static_cast<double>(own[i]);
      fits = fits && std::floor(length + 0.5) == static_cast<double>(sizes[i]);
      const double bound = is_least ? std::ceil(length) : std::floor(length);
      example.push_back(i == k ? sizes[i] : static_cast<std::int64_t>(bound));
    }
    if (fits) return example;
  }
  return std::nullopt;
}

/// One axis says the factor of all: the least or the largest that the operand asks for, by which a run has to reach
/// the declared sizes.
void settle_ratio(SettleContext& context, bool is_least, const Numbers& axes, const Numbers& own,
                  const Numbers& sizes) {
  const std::optional<Numbers> example = example_of_ratio(is_least, own, sizes);
  if (!reads_any_scale(context) || !example) return;
  const auto list = [&](const Numbers& numbers) {
    return emit_cast(context, list_of(context, numbers), ElementType::kFloat64);
  };
  const ValueId given = emit_cast(context, as_list(context, context.operand_id(3)), ElementType::kFloat64);
  const ValueId before = list(own), behind = list(sizes);
  const ValueId ratios = context.emit("Div", {given, before});
  const ValueId ratio = context.emit(is_least ? "ReduceMin" : "ReduceMax", {ratios});
  const ValueId lengths = context.emit("Mul", {before, ratio});
  const ValueId half = context.constant_scalar(ElementType::kFloat64, 0.5);
  const ValueId rounded = context.emit("Floor", {context.emit("Add", {lengths, half})});
  const ValueId holds = all_of(context, context.emit("Equal", {rounded, behind}));
  if (!context.check_all({{3, Tensor::of_ints(*example, {static_cast<std::int64_t>(own.size())})}}, holds))
    return;
  const ValueId each =
      context.emit("Expand", {ratio, list_of(context, {static_cast<std::int64_t>(own.size())})});
  interpolate(context, emit_cast(context, each, ElementType::kFloat32), axes, own, sizes);
}

}  // namespace

namespace {

/// Sizes are those of the result. Where the aspect ratio is kept, one axis says by which factor, and the others
/// need only not be smaller, or larger, than that.
void settle_sizes(SettleContext& context) {
  const Numbers* out = context.declared(0);
  const std::optional<Numbers> in = context.sizes(0);
  const bool has_scales = context.is_open(kScales) && context.operand(kScales).count() > 0;
  const int open = has_scales ? kScales : 3;
  if (!context.is_open(open) || !out || !in || out->size() != in->size()) return;
  Numbers axes, sizes, own;
  if (context.attributes().has("axes")) {
    axes = context.attributes().ints_of("axes");
  } else {
    for (std::size_t axis = 0; axis < in->size(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  }
  if (context.operand(open).count() != static_cast<std::int64_t>(axes.size()) || axes.empty()) return;
  for (const std::int64_t axis : axes) {
    const auto at = static_cast<std::size_t>(normalise_axis(axis, static_cast<int>(in->size())));
    sizes.push_back((*out)[at]);
    own.push_back((*in)[at]);
    if (own.back() == 0 || sizes.back() > (std::int64_t{1} << 31) || own.back() > (std::int64_t{1} << 31))
      return;
  }
  if (has_scales) {
    settle_scales(context, axes, own, sizes);
    return;
  }
  const std::string policy = context.attributes().string_of("keep_aspect_ratio_policy");
  if (policy == "stretch") {
    const ValueId holds = are(context, context.operand_id(3), sizes);
    context.assume(3, sizes, holds);
    return;
  }
  for (std::size_t k = 1; k < sizes.size(); ++k) {
    if (sizes[k] * own[0] == sizes[0] * own[k]) continue;
    settle_ratio(context, policy == "not_larger", axes, own, sizes);  // several factors give these sizes
    return;
  }
  const ValueId given = as_list(context, context.operand_id(3));
  const ValueId wanted = list_of(context, sizes);
  const ValueId is_same = context.emit("Equal", {given, wanted});
  Attributes attributes;
  attributes.set("keepdims", std::int64_t{0});
  const ValueId is_any = context.emit("ReduceMax", {is_same}, attributes);
  const bool is_least = policy == "not_larger";
  const ValueId is_within =
      is_least ? context.emit("LessOrEqual", {wanted, given}) : context.emit("LessOrEqual", {given, wanted});
  const ValueId are_within = all_of(context, is_within);
  context.assume(3, sizes, both(context, is_any, are_within));
}

/// The region of interest moves what is read, and no size: each run reads it.
void settle_region(SettleContext& context) {
  const Attributes& attributes = context.attributes();
  if (!context.is_open(kRegion) || context.operand(kRegion).count() == 0 || !context.sizes(0)) return;
  if (attributes.string_of("coordinate_transformation_mode") != "tf_crop_and_resize") return;
  if (context.element(kRegion) != ElementType::kFloat32 || attributes.flag("antialias")) return;
  if (attributes.flag("exclude_outside") || attributes.string_of("nearest_mode") == "simple") return;
  std::size_t axes = context.shape(0).size();
  if (attributes.has("axes")) axes = attributes.ints_of("axes").size();
  if (context.operand(kRegion).count() != 2 * static_cast<std::int64_t>(axes)) return;
  const std::string& mode = attributes.string_of("mode");
  const std::size_t most = mode == "cubic" ? 2 : 4;  // by 16 elements
  if (mode != "nearest" && axes > most) return;
  const std::vector<ValueId> operands = context.node().operands;
  context.replace_with("Interpolate", operands, context.attributes());
}

}  // namespace

void settle_resize(SettleContext& context) {
  settle_sizes(context);
  settle_region(context);
}

}  // namespace gcompile::ir

// Convolutions for which there are no tiles of their own, as ones for which there are: volumes as images, of
// which a window takes several, and transposed windows as plain ones, one for each phase of their stride.

#include <algorithm>
#include <cmath>

#include "ir/ops/window.h"
#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::Dim;
using ir::Shape;
using ir::ValueId;
using ir::Window;
using Ints = std::vector<std::int64_t>;

// What rules emit -------------------------------------------------------------------------------------------

ValueId transpose(Rewriter& rewriter, ValueId value, const Ints& perm) {
  ir::Attributes attributes;
  attributes.set("perm", perm);
  return rewriter.emit("Transpose", {value}, std::move(attributes));
}

ValueId concat(Rewriter& rewriter, const std::vector<ValueId>& values, std::int64_t axis) {
  if (values.size() == 1) return values[0];
  ir::Attributes attributes;
  attributes.set("axis", axis);
  return rewriter.emit("Concat", values, std::move(attributes));
}

/// `count` positions of one axis from `start` on, `step` apart.
ValueId slice(Rewriter& rewriter, ValueId value, std::int64_t axis, std::int64_t start, Dim count,
              std::int64_t step) {
  if (start == 0 && step == 1 && rewriter.type_of(value).shape[static_cast<std::size_t>(axis)] == count)
    return value;
  const Shape end = {count * step - step + start + 1};
  return rewriter.emit("Slice", {value, rewriter.add_ints({start}), rewriter.add_ints(end),
                                 rewriter.add_ints({axis}), rewriter.add_ints({step})});
}

/// Zeros before and behind one axis.
ValueId pad(Rewriter& rewriter, ValueId value, std::size_t axis, std::int64_t before, Dim behind) {
  if (before == 0 && behind == 0) return value;
  const std::size_t rank = rewriter.type_of(value).shape.size();
  Shape pads(2 * rank, 0);
  pads[axis] = before;
  pads[axis + rank] = behind;
  ir::Attributes attributes;
  attributes.set("mode", std::string("constant"));
  return rewriter.emit("Pad", {value, rewriter.add_ints(pads)}, std::move(attributes));
}

ir::Attributes attributes_of(const Window& window, std::int64_t groups) {
  ir::Attributes attributes;
  attributes.set("kernel_shape", window.kernel);
  attributes.set("strides", window.strides);
  attributes.set("dilations", window.dilations);
  attributes.set("pads", window.pads);
  attributes.set("group", groups);
  return attributes;
}

/// The convolution with another window, and the bias of the one that it replaces.
ValueId convolution(Rewriter& rewriter, std::string_view op, ValueId x, ValueId w, bool has_bias,
                    const Window& window, std::int64_t groups) {
  std::vector<ValueId> operands = {x, w};
  if (has_bias && rewriter.has("bias")) operands.push_back(rewriter.value("bias"));
  return rewriter.emit(op, std::move(operands), attributes_of(window, groups));
}

/// The window along axes [first, first + count) of its own.
Window part_of(const Window& window, std::size_t first, std::size_t count) {
  const auto rank = static_cast<std::size_t>(window.spatial());
  const auto part = [&](const Ints& all, std::size_t from) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(from + first);
    return Ints(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  Window out{part(window.kernel, 0), part(window.strides, 0), part(window.dilations, 0),
             part(window.pads, 0)};
  const Ints behind = part(window.pads, rank);
  out.pads.insert(out.pads.end(), behind.begin(), behind.end());
  return out;
}

bool is_float32(const Match& match) { return match.type("x").element == ir::ElementType::kFloat32; }

/// Zeros that are multiplied stand for taps that are not there: weights have to be finite.
bool has_finite_weights(const Match& match) {
  const ir::Tensor* weights = match.graph().constant(match.value("w"));
  if (!weights) return false;
  for (std::int64_t i = 0; i < weights->count(); ++i) {
    if (!std::isfinite(weights->real_at(i))) return false;
  }
  return true;
}

// Conv of volumes -------------------------------------------------------------------------------------------

const Ints kDepthFirst = {0, 2, 1, 3, 4};  // (N, C, D, H, W) to (N, D, C, H, W) and back

std::string guard_volume(const Match& match) {
  if (match.type("x").rank() != 5) return "not a volume";
  if (!is_float32(match)) return "not of float32";
  return has_finite_weights(match) ? "" : "weights that are not known, or not finite";
}

/// (N, D, C, H, W) as images.
ValueId images(Rewriter& rewriter, ValueId value) {
  const Shape s = rewriter.type_of(value).shape;
  return reshaped(rewriter, value, {s[0] * s[1], s[2], s[3], s[4]});
}

/// The images of a convolution as volumes of `depth` of them.
ValueId volumes(Rewriter& rewriter, ValueId value, Dim batch, Dim depth) {
  const Shape s = rewriter.type_of(value).shape;
  return transpose(rewriter, reshaped(rewriter, value, {batch, depth, s[1], s[2], s[3]}), kDepthFirst);
}

/// A window of one pixel: rows of an image are planes, and its columns all pixels of a plane.
ValueId along_depth(Rewriter& rewriter, const Window& window, std::int64_t groups) {
  const Shape& x = rewriter.shape("x");
  const Shape& w = rewriter.shape("w");
  const ValueId planes = reshaped(rewriter, rewriter.value("x"), {x[0], x[1], x[2], x[3] * x[4]});
  const ValueId weights = reshaped(rewriter, rewriter.value("w"), {w[0], w[1], w[2], 1});
  const Window rows{{window.kernel[0], 1},
                    {window.strides[0], 1},
                    {window.dilations[0], 1},
                    {window.begin(0), 0, window.end(0), 0}};
  return reshaped(rewriter, convolution(rewriter, "Conv", planes, weights, true, rows, groups),
                  rewriter.result_type().shape);
}

/// Images whose channels are those of all planes that a window takes.
ValueId build_volume(Rewriter& rewriter) {
  const Window window = ir::window_of(rewriter.attributes("conv"));
  const std::int64_t groups = rewriter.attributes("conv").int_of("group");
  const Window depth = part_of(window, 0, 1), image = part_of(window, 1, 2);
  const Window one_pixel{{1, 1}, {1, 1}, image.dilations, {0, 0, 0, 0}};
  if (image == one_pixel) return along_depth(rewriter, window, groups);
  const Shape w = rewriter.shape("w");
  const std::int64_t taps = depth.kernel[0], each = w[1];
  const Dim batch = rewriter.shape("x")[0], count = rewriter.result_type().shape[2];
  const ValueId first = transpose(rewriter, rewriter.value("x"), kDepthFirst);
  const ValueId padded = pad(rewriter, first, 1, depth.begin(0), depth.end(0));
  std::vector<ValueId> planes;
  for (std::int64_t k = 0; k < taps; ++k)
    planes.push_back(slice(rewriter, padded, 1, k * depth.dilations[0], count, depth.strides[0]));
  if (groups > 1 && each == 1) {  // depthwise: as many convolutions, each on top of the one before
    ValueId sum;
    for (std::int64_t k = 0; k < taps; ++k) {
      const ValueId tap = slice(rewriter, rewriter.value("w"), 2, k, 1, 1);
      const ValueId weights = reshaped(rewriter, tap, {w[0], w[1], w[3], w[4]});
      const ValueId part =
          convolution(rewriter, "Conv", images(rewriter, planes[static_cast<std::size_t>(k)]), weights,
                      k == 0, image, groups);
      sum = k == 0 ? part : rewriter.emit("Add", {sum, part});
    }
    return volumes(rewriter, sum, batch, count);
  }
  const Shape x = rewriter.type_of(planes[0]).shape;  // (N, D, C, H, W)
  if (groups > 1) {
    for (ValueId& plane : planes) plane = reshaped(rewriter, plane, {x[0], x[1], groups, each, x[3], x[4]});
  }
  const ValueId joined = concat(rewriter, planes, groups > 1 ? 3 : 2);
  const ValueId stacked = reshaped(rewriter, joined, {x[0] * x[1], Dim(groups * taps * each), x[3], x[4]});
  const ValueId weights = reshaped(rewriter, transpose(rewriter, rewriter.value("w"), kDepthFirst),
                                   {w[0], Dim(taps * each), w[3], w[4]});
  return volumes(rewriter, convolution(rewriter, "Conv", stacked, weights, true, image, groups), batch,
                 count);
}

// ConvTranspose by phases -----------------------------------------------------------------------------------

/// The phases of one axis: y[q * stride + r] = sum over j of x[q + shift - j] * w[first + j * stride], for q below `count`.
struct Phases {
  std::int64_t stride, kernel, begin;
  Dim in, count;
  std::int64_t first(std::int64_t r) const { return (r + begin) % stride; }
  std::int64_t shift(std::int64_t r) const { return (r + begin) / stride; }
  std::int64_t taps(std::int64_t r) const { return (kernel - first(r) + stride - 1) / stride; }
  /// Elements of the operand before its first one, and behind its last one, that a phase takes for zeros; below 0: it
  /// does not take so many.
  std::int64_t before(std::int64_t r) const { return taps(r) - 1 - shift(r); }
  Dim behind(std::int64_t r) const { return count - in + shift(r); }
};

std::optional<Phases> phases_of(const Window& window, int axis, Dim in, Dim out) {
  const std::int64_t stride = window.strides[static_cast<std::size_t>(axis)];
  const std::int64_t kernel = window.kernel[static_cast<std::size_t>(axis)];
  const bool has_gaps =
      kernel < stride || (window.dilations[static_cast<std::size_t>(axis)] != 1 && kernel > 1);
  if (has_gaps || window.begin(axis) < 0) return std::nullopt;
  return Phases{stride, kernel, window.begin(axis), in, ceil_div(out, stride)};
}

std::vector<Phases> all_phases(const Match& match) {
  const Window window = ir::window_of(match.attributes("conv"));
  std::vector<Phases> out;
  for (int i = 0; i < window.spatial(); ++i) {
    const auto axis = static_cast<std::size_t>(i) + 2;
    const auto phases = phases_of(window, i, match.shape("x")[axis], match.result_type().shape[axis]);
    if (!phases) return {};
    out.push_back(*phases);
  }
  return out;
}

std::string guard_transposed_depthwise(const Match& match) {
  const std::int64_t groups = match.attributes("conv").int_of("group");
  const Shape& w = match.shape("w");
  if (groups < 2 || w[0] != groups || w[1] != 1) return "not depthwise";
  if (!is_float32(match)) return "not of float32";
  if (!has_finite_weights(match)) return "weights that are not known, or not finite";
  const std::vector<Phases> phases = all_phases(match);
  if (phases.empty()) return "gaps between windows, or less than no padding";
  std::int64_t count = 1;
  for (const Phases& axis : phases) {
    count *= axis.stride;
    for (std::int64_t r = 0; r < axis.stride; ++r) {
      if (axis.before(r) < 0 || !axis.behind(r).is_constant() || axis.behind(r) < 0)
        return "elements at the edges that no result takes";
    }
  }
  return count <= 16 ? "" : "more than 16 phases";
}

/// Results of the phases of one axis, side by side behind it, become positions of it.
ValueId interleaved(Rewriter& rewriter, std::vector<ValueId> phases, std::size_t axis) {
  const Shape s = rewriter.type_of(phases[0]).shape;
  if (phases.size() == 1) return phases[0];
  Shape one = s, all = s;
  one.insert(one.begin() + static_cast<std::ptrdiff_t>(axis) + 1, 1);
  for (ValueId& phase : phases) phase = reshaped(rewriter, phase, one);
  all[axis] = s[axis] * static_cast<std::int64_t>(phases.size());
  return reshaped(rewriter, concat(rewriter, phases, static_cast<std::int64_t>(axis) + 1), all);
}

/// The taps of one phase along an axis of the weights, as a convolution takes them: the last first.
ValueId turned_taps(Rewriter& rewriter, ValueId weights, std::int64_t axis, const Phases& phases,
                    std::int64_t r) {
  std::vector<ValueId> taps;
  for (std::int64_t j = phases.taps(r); j-- > 0;)
    taps.push_back(slice(rewriter, weights, axis, phases.first(r) + j * phases.stride, 1, 1));
  return concat(rewriter, taps, axis);
}

/// Adds the results of all phases of the axes from `axis` on, with `weights` for those before.
void add_phases(Rewriter& rewriter, const std::vector<Phases>& all, std::size_t axis, ValueId weights,
                Window& window, std::vector<ValueId>& results) {
  if (axis == all.size()) {
    results.push_back(convolution(rewriter, "Conv", rewriter.value("x"), weights, true, window,
                                  rewriter.attributes("conv").int_of("group")));
    return;
  }
  const Phases& phases = all[axis];
  const auto at = static_cast<std::int64_t>(axis) + 2;
  for (std::int64_t r = 0; r < phases.stride; ++r) {
    window.kernel[axis] = phases.taps(r);
    window.pads[axis] = phases.before(r);
    window.pads[axis + all.size()] = phases.behind(r);
    add_phases(rewriter, all, axis + 1, turned_taps(rewriter, weights, at, phases, r), window, results);
  }
}

/// The results of all phases stand as channels side by side; then each position becomes as many as it has phases.
ValueId build_transposed_depthwise(Rewriter& rewriter) {
  const std::vector<Phases> phases = all_phases(rewriter);
  const Shape x = rewriter.shape("x"), y = rewriter.result_type().shape;
  const Ints ones(phases.size(), 1);
  Window window{ones, ones, ones, Ints(2 * phases.size(), 0)};
  std::vector<ValueId> results;
  add_phases(rewriter, phases, 0, rewriter.value("w"), window, results);
  ValueId out = concat(rewriter, results, 1);
  const auto rank = static_cast<std::int64_t>(phases.size());
  Shape apart = {x[0]}, together = {x[0], x[1]};
  Ints perm = {0, rank + 1};
  for (std::int64_t i = 0; i < rank; ++i) {
    const Phases& axis = phases[static_cast<std::size_t>(i)];
    apart.push_back(axis.stride);
    together.push_back(axis.count * axis.stride);
    perm.push_back(rank + 2 + i);
    perm.push_back(1 + i);
  }
  apart.push_back(x[1]);
  for (const Phases& axis : phases) apart.push_back(axis.count);
  out = reshaped(rewriter, transpose(rewriter, reshaped(rewriter, out, apart), perm), together);
  for (std::size_t i = 0; i < phases.size(); ++i)
    out = slice(rewriter, out, static_cast<std::int64_t>(i) + 2, 0, y[i + 2], 1);
  return out;
}

std::string guard_transposed_volume(const Match& match) {
  if (match.type("x").rank() != 5) return "not a volume";
  if (!is_float32(match)) return "not of float32";
  if (match.attributes("conv").int_of("group") != 1) return "groups of channels";
  if (!has_finite_weights(match)) return "weights that are not known, or not finite";
  const Window window = ir::window_of(match.attributes("conv"));
  return phases_of(window, 0, match.shape("x")[2], match.result_type().shape[2])
             ? ""
             : "gaps between windows, or less than no padding";
}

/// Phases along the depth: images with the channels of all planes that a result is made of.
ValueId build_transposed_volume(Rewriter& rewriter) {
  const Window window = ir::window_of(rewriter.attributes("conv"));
  const Window image = part_of(window, 1, 2);
  const Shape x = rewriter.shape("x"), w = rewriter.shape("w"), y = rewriter.result_type().shape;
  const Phases phases = *phases_of(window, 0, x[2], y[2]);
  std::int64_t before = 0;
  Dim behind = 0;
  for (std::int64_t r = 0; r < phases.stride; ++r) {
    before = std::max(before, phases.before(r));
    behind = max(behind, phases.behind(r));
  }
  const ValueId first = transpose(rewriter, rewriter.value("x"), kDepthFirst);
  const ValueId padded = pad(rewriter, first, 1, before, behind);
  std::vector<ValueId> results;
  for (std::int64_t r = 0; r < phases.stride; ++r) {
    std::vector<ValueId> planes, taps;
    for (std::int64_t j = 0; j < phases.taps(r); ++j) {
      planes.push_back(slice(rewriter, padded, 1, before + phases.shift(r) - j, phases.count, 1));
      const ValueId tap = slice(rewriter, rewriter.value("w"), 2, phases.first(r) + j * phases.stride, 1, 1);
      taps.push_back(reshaped(rewriter, tap, {w[0], w[1], w[3], w[4]}));
    }
    const ValueId part = convolution(rewriter, "ConvTranspose", images(rewriter, concat(rewriter, planes, 2)),
                                     concat(rewriter, taps, 0), true, image, 1);
    results.push_back(reshaped(rewriter, part, {x[0], phases.count, y[1], y[3], y[4]}));
  }
  const ValueId all = interleaved(rewriter, std::move(results), 1);
  return transpose(rewriter, slice(rewriter, all, 1, 0, y[2], 1), kDepthFirst);
}

// Depthwise windows with several results of a channel ------------------------------------------------------

std::string guard_multiplied(const Match& match) {
  const std::int64_t groups = match.attributes("conv").int_of("group");
  const Shape& w = match.shape("w");
  if (!is_float32(match)) return "not of float32";
  if (groups < 2 || w[1] != 1 || match.shape("x")[1] != groups || w[0] <= groups)
    return "one result of a channel";
  if (!match.graph().constant(match.value("w"))) return "weights that are not known";
  return w[0] <= 8 * groups ? "" : "more than eight results of a channel";
}

/// One convolution for the first results of all channels, one for the second ones, and so on.
ValueId build_multiplied(Rewriter& rewriter) {
  const Window window = ir::window_of(rewriter.attributes("conv"));
  const Shape w = rewriter.shape("w"), y = rewriter.result_type().shape;
  const std::int64_t groups = rewriter.attributes("conv").int_of("group"), count = w[0] / groups;
  Shape apart = {groups, count};
  apart.insert(apart.end(), w.begin() + 1, w.end());
  Shape one = w;
  one[0] = groups;
  std::vector<ValueId> results;
  for (std::int64_t i = 0; i < count; ++i) {
    const ValueId split = reshaped(rewriter, rewriter.value("w"), apart);
    std::vector<ValueId> operands = {rewriter.value("x"),
                                     reshaped(rewriter, slice(rewriter, split, 1, i, 1, 1), one)};
    if (rewriter.has("bias")) {
      const ValueId biases = reshaped(rewriter, rewriter.value("bias"), {groups, count});
      operands.push_back(reshaped(rewriter, slice(rewriter, biases, 1, i, 1, 1), {groups}));
    }
    results.push_back(rewriter.emit("Conv", std::move(operands), attributes_of(window, groups)));
  }
  Shape sides = {y[0], count, groups};
  sides.insert(sides.end(), y.begin() + 2, y.end());
  Ints perm = {0, 2, 1};
  for (std::size_t i = 3; i < sides.size(); ++i) perm.push_back(static_cast<std::int64_t>(i));
  return reshaped(rewriter,
                  transpose(rewriter, reshaped(rewriter, concat(rewriter, results, 1), sides), perm), y);
}

// Maps of what these are ------------------------------------------------------------------------------------

bool is_view(const ir::Node& node) { return is_operator(node, "Reshape") || is_operator(node, "Transpose"); }

/// Whether the value is a convolution's, or sums and views of it, so that a map below them becomes part of it.
bool is_of_convolution(const ir::Graph& graph, ValueId value, int steps = 6) {
  const ir::NodeId producer = graph.value(value).producer;
  if (steps == 0 || !producer.valid() || graph.value(value).uses.size() != 1) return false;
  const ir::Node& node = graph.node(producer);
  if (is_operator(node, "Conv") || is_operator(node, "ConvTranspose")) return true;
  if (is_view(node)) return is_of_convolution(graph, node.operands[0], steps - 1);
  return is_operator(node, "Add") && (is_of_convolution(graph, node.operands[0], steps - 1) ||
                                      is_of_convolution(graph, node.operands[1], steps - 1));
}

std::string guard_map(const Match& match) {
  return is_of_convolution(match.graph(), match.value("x")) ? "" : "not a map of a convolution";
}

/// The view of a value of the shape of what it is one of now.
ValueId same_view(Rewriter& rewriter, std::string_view view, ValueId value) {
  if (!rewriter.is(view, "Transpose")) return reshaped(rewriter, value, rewriter.shape(view));
  return transpose(rewriter, value, rewriter.attributes(view).ints_of("perm"));
}

ValueId build_map(Rewriter& rewriter) {
  const ir::Node& map = rewriter.node("map");
  std::vector<ValueId> operands = map.operands;
  operands[0] = rewriter.value("x");
  return same_view(rewriter, "view", rewriter.emit(map.op->name, std::move(operands), map.attributes));
}

std::string guard_sum(const Match& match) {
  if (match.shape("x") != match.shape("other")) return "views of other shapes";
  const bool is_transpose = match.is("view", "Transpose");
  if (is_transpose != match.is("like", "Transpose")) return "unlike views";
  if (is_transpose && match.attributes("view").ints_of("perm") != match.attributes("like").ints_of("perm"))
    return "unlike views";
  if (match.shape("view") != match.shape("like")) return "views of other shapes";
  return guard_map(match);
}

ValueId build_sum(Rewriter& rewriter) {
  return same_view(rewriter, "view", rewriter.emit("Add", {rewriter.value("x"), rewriter.value("other")}));
}

}  // namespace

const RuleTable& volume_rules() {
  static const RuleTable rules = [] {
    const Pattern x = any("x"), w = any("w"), bias = any("bias").optional();
    RuleTable out;
    out.push_back({"volume-as-images", Tier::kReassociate, op("Conv", {x, w, bias}, "conv"), guard_volume,
                   build_volume, true});
    out.push_back({"depthwise-by-results", Tier::kExact, op("Conv", {x, w, bias}, "conv"), guard_multiplied,
                   build_multiplied, true});
    out.push_back({"transposed-depthwise-by-phases", Tier::kReassociate,
                   op("ConvTranspose", {x, w, bias}, "conv"), guard_transposed_depthwise,
                   build_transposed_depthwise, true});
    out.push_back({"transposed-volume-by-phases", Tier::kReassociate,
                   op("ConvTranspose", {x, w, bias}, "conv"), guard_transposed_volume,
                   build_transposed_volume, true});
    // f(view(conv)) -> view(f(conv))
    const Pattern view = one_of({"Reshape", "Transpose"}, {x, any("shape").optional()}, "view");
    out.push_back({"map-below-views", Tier::kExact,
                   one_of({"Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Elu", "Gelu",
                           "Softplus", "Mish", "Exp", "Erf", "Abs", "Neg"},
                          {view}, "map"),
                   guard_map, build_map, true});
    out.push_back({"clip-below-views", Tier::kExact,
                   op("Clip", {view, any("low").optional(), any("high").optional()}, "map"), guard_map,
                   build_map, true});
    // view(conv) + view(y) -> view(conv + y)
    const Pattern like = one_of({"Reshape", "Transpose"}, {any("other"), any("shape2").optional()}, "like");
    out.push_back({"sum-below-views", Tier::kExact, op("Add", {view, like.shared()}, "sum"), guard_sum,
                   build_sum, true});
    return out;
  }();
  return rules;
}

}  // namespace gcompile::passes

// Pools of pools as one pool, where its windows are theirs together and compare no more elements.

#include <algorithm>

#include "ir/ops/window.h"
#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::Dim;
using ir::ValueId;
using ir::Window;
using Ints = std::vector<std::int64_t>;

/// Windows without gaps in them, of which each has an element that is no padding.
bool is_dense(const Window& window) {
  for (int i = 0; i < window.spatial(); ++i) {
    const auto axis = static_cast<std::size_t>(i);
    const std::int64_t kernel = window.kernel[axis];
    if (window.dilations[axis] != 1 && kernel > 1) return false;
    if (window.begin(i) >= kernel || window.end(i) >= kernel) return false;
  }
  return true;
}

/// The same, without gaps between them either.
bool is_gapless(const Window& window) {
  bool touch = true;
  for (std::size_t i = 0; i < window.kernel.size(); ++i) touch &= window.strides[i] <= window.kernel[i];
  return touch && is_dense(window);
}

bool has_no_padding(const Window& window) {
  return std::all_of(window.pads.begin(), window.pads.end(), [](std::int64_t pad) { return pad == 0; });
}

/// The elements that a window of the outer pool takes, of the inner one's operand.
Window together(const Match& match) {
  const Window inner = ir::window_of(match.attributes("inner"));
  Window out = ir::window_of(match.attributes("outer"));
  const std::size_t rank = out.kernel.size();
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t stride = inner.strides[i];
    out.kernel[i] = (out.kernel[i] - 1) * stride + inner.kernel[i];
    out.strides[i] *= stride;
    out.dilations[i] = 1;
    for (const std::size_t side : {i, i + rank}) out.pads[side] = out.pads[side] * stride + inner.pads[side];
  }
  return out;
}

std::string guard_work(const Match& match) {
  const Dim inner = match.type("inner").count(), outer = match.result_type().count();
  const Dim before = inner * ir::window_of(match.attributes("inner")).taps() +
                     outer * ir::window_of(match.attributes("outer")).taps();
  return ir::always_less_equal(outer * together(match).taps(), before)
             ? ""
             : "one pool would take more elements than two";
}

std::string guard_maxima(const Match& match) {
  const Window inner = ir::window_of(match.attributes("inner"));
  const Window outer = ir::window_of(match.attributes("outer"));
  if (match.attributes("inner").flag("ceil_mode") || match.attributes("outer").flag("ceil_mode"))
    return "ceil_mode lets windows reach beyond the padding";
  if (!is_gapless(inner) || !is_dense(outer)) return "windows with gaps, or of padding alone";
  for (int i = 0; i < inner.spatial(); ++i) {
    // The inner pool may leave the last elements out, and the outer one's padding would bring them in.
    if (inner.strides[static_cast<std::size_t>(i)] != 1 && outer.end(i) != 0)
      return "padding behind a pool with strides";
  }
  return guard_work(match);
}

std::string guard_averages(const Match& match) {
  const Window inner = ir::window_of(match.attributes("inner"));
  const Window outer = ir::window_of(match.attributes("outer"));
  if (match.attributes("inner").flag("ceil_mode") || match.attributes("outer").flag("ceil_mode"))
    return "ceil_mode lets windows reach beyond the padding";
  if (!has_no_padding(inner) || !has_no_padding(outer)) return "a pool is padded";
  if (!is_gapless(inner) || !is_dense(outer) || inner.strides != inner.kernel)
    return "windows of the inner pool overlap, or leave gaps";
  const std::string reason = guard_work(match);
  return reason.empty() ? unless_decisions_stay(match) : reason;
}

ValueId build_pool(Rewriter& rewriter) {
  const Window window = together(rewriter);
  ir::Attributes attributes = rewriter.attributes("outer");
  attributes.set("kernel_shape", window.kernel);
  attributes.set("strides", window.strides);
  attributes.set("dilations", window.dilations);
  attributes.set("pads", window.pads);
  return rewriter.emit(rewriter.node("outer").op->name, {rewriter.value("x")}, std::move(attributes));
}

/// The maximum of everything has no use for the maxima of parts.
std::string guard_maximum(const Match& match) {
  const Window window = ir::window_of(match.attributes("inner"));
  if (!match.has("axes")) return "channels are compared with each other";
  Ints axes = normalised(ints_of(match, "axes"), match.type("x").rank());
  std::sort(axes.begin(), axes.end());
  if (static_cast<int>(axes.size()) != window.spatial() || axes[0] != 2) return "not of whole images";
  if (!is_gapless(window)) return "windows with gaps, or of padding alone";
  for (int i = 0; i < window.spatial(); ++i) {
    const auto axis = static_cast<std::size_t>(i);
    const Dim last = (match.shape("inner")[axis + 2] - 1) * window.strides[axis] - window.begin(i);
    if (!ir::always_less_equal(match.shape("x")[axis + 2], last + window.kernel[axis]))
      return "the pool leaves elements out";
  }
  return "";
}

ValueId build_maximum(Rewriter& rewriter) {
  return rewriter.emit("ReduceMax", {rewriter.value("x"), rewriter.value("axes")},
                       rewriter.attributes("outer"));
}

}  // namespace

const RuleTable& pool_rules() {
  static const RuleTable rules = [] {
    const auto twice = [](std::string_view pool) {
      return op(pool, {op(pool, {any("x")}, "inner")}, "outer");
    };
    const Pattern maxima = op("MaxPool", {any("x")}, "inner");
    return RuleTable{
        // MaxPool(MaxPool(x)) -> MaxPool(x)
        {"max-pool-twice", Tier::kExact, twice("MaxPool"), guard_maxima, build_pool},
        // AveragePool(AveragePool(x)) -> AveragePool(x), where windows of the inner one do not overlap
        {"average-pool-twice", Tier::kReassociate, twice("AveragePool"), guard_averages, build_pool},
        // ReduceMax(MaxPool(x)) over all of an image -> ReduceMax(x)
        {"maximum-of-pool", Tier::kExact, op("ReduceMax", {maxima, constant("axes").optional()}, "outer"),
         guard_maximum, build_maximum},
    };
  }();
  return rules;
}

}  // namespace gcompile::passes

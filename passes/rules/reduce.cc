// Reductions of reductions, and reductions of nothing.

#include <algorithm>

#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::ValueId;
using Ints = std::vector<std::int64_t>;

/// Axes that a reduction of `rank` axes runs over, sorted.
Ints axes_of(const Match& match, std::string_view node, std::string_view axes, int rank) {
  Ints out;
  if (match.has(axes)) out = normalised(ints_of(match, axes), rank);
  if (out.empty() && !match.attributes(node).flag("noop_with_empty_axes")) {
    for (int i = 0; i < rank; ++i) out.push_back(i);
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Axes of x that the outer reduction runs over; the inner one may have dropped its own.
Ints outer_axes(const Match& match) {
  const Ints inner = axes_of(match, "inner", "axes1", match.type("x").rank());
  const Ints outer = axes_of(match, "outer", "axes2", match.type("inner").rank());
  if (match.attributes("inner").flag("keepdims")) return outer;
  Ints left;
  for (int i = 0; i < match.type("x").rank(); ++i) {
    if (!std::binary_search(inner.begin(), inner.end(), i)) left.push_back(i);
  }
  Ints out;
  for (const std::int64_t axis : outer) out.push_back(left[axis]);
  return out;
}

std::string guard_twice(const Match& match) {
  if (match.node("inner").op != match.node("outer").op) return "the reductions are of different kinds";
  const Ints inner = axes_of(match, "inner", "axes1", match.type("x").rank()), outer = outer_axes(match);
  Ints both;
  std::set_intersection(inner.begin(), inner.end(), outer.begin(), outer.end(), std::back_inserter(both));
  if (!both.empty()) return "an axis is reduced twice";
  return inner.empty() || outer.empty() ? "a reduction has no axes" : "";
}

std::string guard_sums(const Match& match) {
  const std::string reason = guard_twice(match);
  return reason.empty() && ir::is_float(match.result_type().element) ? unless_decisions_stay(match) : reason;
}

/// Means over whole axes are uniform, so that the mean of means is the mean. Where one reduction keeps its axes
/// and the other drops them, the result gets its shape behind both.
ValueId build_twice(Rewriter& rewriter) {
  Ints axes = axes_of(rewriter, "inner", "axes1", rewriter.type("x").rank());
  const Ints more = outer_axes(rewriter);
  axes.insert(axes.end(), more.begin(), more.end());
  std::sort(axes.begin(), axes.end());
  ir::Attributes attributes = rewriter.attributes("outer");
  if (rewriter.attributes("inner").flag("keepdims") != attributes.flag("keepdims"))
    attributes.set("keepdims", std::int64_t{0});
  const ValueId reduced = rewriter.emit(rewriter.node("outer").op->name,
                                        {rewriter.value("x"), rewriter.add_ints(axes)}, attributes);
  return reshaped(rewriter, reduced, rewriter.result_type().shape);
}

std::string guard_single(const Match& match) {
  const int rank = match.type("x").rank();
  for (const std::int64_t axis : axes_of(match, "outer", "axes2", rank)) {
    if (match.shape("x")[axis] != 1) return "an axis has several elements, or none";
  }
  return "";
}

ValueId build_single(Rewriter& rewriter) {
  if (rewriter.type("x") == rewriter.result_type()) return rewriter.value("x");
  ir::Attributes attributes;
  attributes.set("allowzero", std::int64_t{1});
  return rewriter.emit("Reshape", {rewriter.value("x"), rewriter.add_ints(rewriter.result_type().shape)},
                       std::move(attributes));
}

}  // namespace

const RuleTable& reduce_rules() {
  static const RuleTable rules = [] {
    const Pattern x = any("x"), axes1 = constant("axes1").optional(), axes2 = constant("axes2").optional();
    const auto twice = [&](const std::vector<std::string_view>& names) {
      return one_of(names, {one_of(names, {x, axes1}, "inner"), axes2}, "outer");
    };
    RuleTable table = {
        // Reduce of axes with one element -> Reshape
        {"reduce-of-one", Tier::kExact, one_of({"ReduceMax", "ReduceMin", "ReduceProd"}, {x, axes2}, "outer"),
         guard_single, build_single},
        // A sum of one number is that number, but for -0, which added to 0 is 0
        {"reduce-of-one", Tier::kReassociate, one_of({"ReduceMean", "ReduceSum"}, {x, axes2}, "outer"),
         guard_single, build_single},
        // Max(Max(x, p), q) -> Max(x, p and q), for disjoint axes
        {"reduce-extremum-twice", Tier::kExact, twice({"ReduceMax", "ReduceMin"}), guard_twice, build_twice},
        // Mean(Mean(x, p), q) -> Mean(x, p and q), for disjoint axes
        {"reduce-sum-twice", Tier::kReassociate, twice({"ReduceMean", "ReduceSum"}), guard_sums, build_twice},
    };
    for (Rule& rule : table) rule.quiet = rule.build == build_single || rule.tier == Tier::kExact;
    return table;
  }();
  return rules;
}

}  // namespace gcompile::passes

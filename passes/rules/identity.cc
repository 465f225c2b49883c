// Nodes that give back their operand, and chains of movements that one movement can do.

#include <algorithm>
#include <cmath>

#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::ElementType;
using ir::Shape;
using ir::ValueId;
using Ints = std::vector<std::int64_t>;

ValueId operand(Rewriter& rewriter) { return rewriter.value("x"); }

// Neutral elements ------------------------------------------------------------------------------------------

std::string guard_one(const Match& match) {
  if (!all_equal(match.constant("c"), 1)) return "the constant is not 1";
  return unless_type_is_kept(match);
}

/// x + (-0) and x - (+0) give back every x; x + (+0) turns -0 into +0. Integers have one zero.
std::string guard_zero(const Match& match, bool sign_of_zero) {
  const ir::Tensor& c = match.constant("c");
  if (!all_equal(c, 0)) return "the constant is not 0";
  if (ir::is_float(c.element())) {
    for (std::int64_t i = 0; i < c.count(); ++i) {
      if (std::signbit(c.real_at(i)) != sign_of_zero) return "adding this zero changes the sign of -0";
    }
  }
  return unless_type_is_kept(match);
}
std::string guard_exact_addend(const Match& match) { return guard_zero(match, true); }
std::string guard_exact_subtrahend(const Match& match) { return guard_zero(match, false); }
std::string guard_any_zero(const Match& match) {
  return all_equal(match.constant("c"), 0) ? unless_type_is_kept(match) : "the constant is not 0";
}

// Movements that do not move --------------------------------------------------------------------------------

std::string guard_slice(const Match& match) {
  if (match.has("steps")) {
    for (const std::int64_t step : ints_of(match, "steps")) {
      if (step < 0) return "the slice reverses an axis";
    }
  }
  return unless_type_is_kept(match);
}

std::string guard_pad(const Match& match) {
  const Ints pads = ints_of(match, "pads");
  const bool none = std::all_of(pads.begin(), pads.end(), [](std::int64_t pad) { return pad == 0; });
  return none ? "" : "the pads are not 0";
}

/// Axes with more than one element, in the order of the result.
std::string guard_transpose(const Match& match) {
  std::int64_t last = -1;
  for (const std::int64_t axis : match.attributes("transpose").ints_of("perm")) {
    if (match.shape("x")[axis] == 1) continue;
    if (axis < last) return "axes with several elements change places";
    last = axis;
  }
  return "";
}

ValueId build_reshape(Rewriter& rewriter) {
  return reshaped(rewriter, rewriter.value("x"), rewriter.result_type().shape);
}

/// A linear layer as some exporters write it: rows are counted, multiplied, and given their axes back. In
/// front of the product the axes are in nobody's way; behind it they keep it from what follows.
std::string guard_rows(const Match& match) {
  if (match.shape("a").size() != 2 || match.shape("w").size() != 2) return "the product is not of rows";
  const Shape& shape = match.result_type().shape;
  if (shape.size() < 3 || shape.back() != match.shape("w").back()) return "the columns change";
  if (!match.has("c")) return "";
  const Shape& c = match.shape("c");
  return c.size() <= 1 || c.front() == 1 ? "" : "the addend is another one in each row";
}

ValueId build_rows(Rewriter& rewriter) {
  Shape shape = rewriter.result_type().shape;
  shape.back() = rewriter.shape("a").back();
  const ValueId rows = reshaped(rewriter, rewriter.value("a"), shape);
  const ValueId product = rewriter.emit("MatMul", {rows, rewriter.value("w")});
  return rewriter.has("c") ? rewriter.emit("Add", {product, rewriter.value("c")}) : product;
}

/// Concat of one operand, and of operands of which only one has elements.
ValueId build_concat(Rewriter& rewriter) {
  for (const ValueId id : rewriter.graph().node(rewriter.root()).operands) {
    if (rewriter.type_of(id) == rewriter.result_type()) return id;
  }
  GC_CHECK(false);
  return {};
}

std::string guard_concat(const Match& match) {
  const ir::Node& node = match.graph().node(match.root());
  const bool whole = std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId id) {
    return match.graph().value(id).type == match.result_type();
  });
  return whole ? "" : "several operands have elements";
}

// Pairs -----------------------------------------------------------------------------------------------------

ValueId build_transposes(Rewriter& rewriter) {
  const Ints& inner = rewriter.attributes("inner").ints_of("perm");
  const Ints& outer = rewriter.attributes("outer").ints_of("perm");
  Ints perm;
  for (const std::int64_t axis : outer) perm.push_back(inner[axis]);
  if (std::is_sorted(perm.begin(), perm.end())) return rewriter.value("x");
  ir::Attributes attributes;
  attributes.set("perm", perm);
  return rewriter.emit("Transpose", {rewriter.value("x")}, std::move(attributes));
}

std::string guard_slices(const Match& match) {
  const ir::Graph& graph = match.graph();
  const bool forward = strided(graph, match.node("inner")) && strided(graph, graph.node(match.root()));
  return forward ? "" : "a slice reverses an axis";
}

ValueId build_slices(Rewriter& rewriter) {
  const Shape& in = rewriter.shape("x");
  const Shape out = rewriter.result_type().shape;
  const ir::Graph& graph = rewriter.graph();
  const Strided first = *strided(graph, rewriter.node("inner"));
  const Strided second = *strided(graph, graph.node(rewriter.root()));
  Ints starts, ends, axes, steps;
  for (std::size_t i = 0; i < in.size(); ++i) {
    starts.push_back(first.start[i] + second.start[i] * first.step[i]);
    steps.push_back(first.step[i] * second.step[i]);
    ends.push_back(out[i] == 0 ? ir::Dim(starts.back()) : starts.back() + (out[i] - 1) * steps.back() + 1);
    axes.push_back(static_cast<std::int64_t>(i));
  }
  return rewriter.emit("Slice", {rewriter.value("x"), rewriter.add_ints(starts), rewriter.add_ints(ends),
                                 rewriter.add_ints(axes), rewriter.add_ints(steps)});
}

// Casts -----------------------------------------------------------------------------------------------------

/// Bits of the integers that a type holds without a gap, and whether it holds negative ones.
int exact_bits(ElementType type) {
  switch (type) {
    case ElementType::kFloat64:
      return 53;
    case ElementType::kFloat32:
      return 24;
    case ElementType::kFloat16:
      return 11;
    case ElementType::kBFloat16:
      return 8;
    case ElementType::kBool:
      return 1;
    default:
      return ir::bits_of(type) - (ir::is_signed(type) ? 1 : 0);
  }
}

/// Whether every value of `from` is a value of `to`.
bool is_widening(ElementType from, ElementType to) {
  if (!ir::is_computable(from) || !ir::is_computable(to)) return false;
  if (from == to) return true;
  if (to == ElementType::kBool) return false;
  if (ir::is_float(from)) {
    if (!ir::is_float(to)) return false;
    return to == ElementType::kFloat64 || (to == ElementType::kFloat32 && from != ElementType::kFloat64);
  }
  const bool negative = from != ElementType::kBool && ir::is_signed(from);
  if (negative && !ir::is_signed(to)) return false;
  return exact_bits(from) <= exact_bits(to);
}

/// The outer conversion must treat the middle value as it would the first: integers that pass through a float
/// saturate where they would wrap.
std::string guard_casts(const Match& match) {
  const ElementType first = match.type("x").element, middle = match.type("inner").element;
  const ElementType last = match.result_type().element;
  if (!is_widening(first, middle)) return "the inner Cast loses values";
  const bool integers = !ir::is_float(first) && !ir::is_float(last) && last != ElementType::kBool;
  if (integers && ir::is_float(middle) && !is_widening(first, last)) {
    return "the integer saturates on the way through floating point and would wrap";
  }
  return "";
}

ValueId build_casts(Rewriter& rewriter) {
  if (rewriter.type("x") == rewriter.result_type()) return rewriter.value("x");
  return rewriter.emit("Cast", {rewriter.value("x")}, rewriter.attributes("outer"));
}

// Where -----------------------------------------------------------------------------------------------------

std::string guard_where(const Match& match) {
  const ir::Tensor& condition = match.constant("c");
  const bool first = all_equal(condition, 1), second = all_equal(condition, 0);
  if (!first && !second) return "the condition is mixed";
  return match.type(first ? "a" : "b") == match.result_type() ? "" : "the chosen operand is broadcast";
}

ValueId build_where(Rewriter& rewriter) {
  return rewriter.value(all_equal(rewriter.constant("c"), 1) ? "a" : "b");
}

ValueId build_inner(Rewriter& rewriter) { return rewriter.value("inner"); }

void add_neutral(RuleTable& rules, const Pattern& x, const Pattern& c) {
  // x * 1 -> x
  rules.push_back({"mul-one", Tier::kExact, op("Mul", {x, c}), guard_one, operand});
  // x / 1 -> x
  rules.push_back({"div-one", Tier::kExact, op("Div", {x, c}), guard_one, operand});
  // x ^ 1 -> x
  rules.push_back({"pow-one", Tier::kExact, op("Pow", {x, c}), guard_one, operand});
  // x + -0 -> x
  rules.push_back({"add-negative-zero", Tier::kExact, op("Add", {x, c}), guard_exact_addend, operand});
  // x - 0 -> x
  rules.push_back({"sub-zero", Tier::kExact, op("Sub", {x, c}), guard_exact_subtrahend, operand});
  // x + 0 -> x, but for x = -0
  rules.push_back({"add-zero", Tier::kReassociate, op("Add", {x, c}), guard_any_zero, operand});
  // x - -0 -> x, but for x = -0
  rules.push_back({"sub-negative-zero", Tier::kReassociate, op("Sub", {x, c}), guard_any_zero, operand});
}

void add_movements(RuleTable& rules, const Pattern& x, const Pattern& c) {
  // Identity(x) -> x
  rules.push_back({"identity", Tier::kExact, op("Identity", {x}), nullptr, operand});
  // Cast to its own type
  rules.push_back({"cast-to-same", Tier::kExact, op("Cast", {x}), unless_type_is_kept, operand});
  // Reshape, Expand, Tile to its own shape
  rules.push_back(
      {"reshape-to-same", Tier::kExact, op("Reshape", {x, any("shape")}), unless_type_is_kept, operand});
  rules.push_back(
      {"expand-to-same", Tier::kExact, op("Expand", {x, any("shape")}), unless_type_is_kept, operand});
  rules.push_back({"tile-once", Tier::kExact, op("Tile", {x, any("repeats")}), unless_type_is_kept, operand});
  // Slice of everything
  rules.push_back({"slice-of-all", Tier::kExact, slice_of(x, {}), guard_slice, operand});
  // Pad by nothing
  rules.push_back({"pad-by-nothing", Tier::kExact,
                   op("Pad", {x, constant("pads"), any("value").optional(), any("axes").optional()}),
                   guard_pad, operand});
  // Transpose that moves only axes of one element -> Reshape
  rules.push_back({"transpose-of-unit-axes", Tier::kExact, op("Transpose", {x}, "transpose"), guard_transpose,
                   build_reshape});
  // Reshape(a w) -> Reshape(a) w; Reshape(a w + c) -> Reshape(a) w + c
  const Pattern product = op("MatMul", {any("a"), any("w")});
  rules.push_back(
      {"reshape-of-rows", Tier::kExact, op("Reshape", {product, any("shape")}), guard_rows, build_rows});
  rules.push_back({"reshape-of-rows", Tier::kExact,
                   op("Reshape", {op("Add", {product, any("c")}), any("shape")}), guard_rows, build_rows});
  // Concat(x) -> x; Concat(x, nothing) -> x
  rules.push_back({"concat-of-one", Tier::kExact, op_of_any("Concat"), guard_concat, build_concat});
  // Where(true, a, b) -> a; Where(false, a, b) -> b
  rules.push_back(
      {"where-constant", Tier::kExact, op("Where", {c, any("a"), any("b")}), guard_where, build_where});
}

void add_pairs(RuleTable& rules, const Pattern& x) {
  // f(f(x)) -> x
  for (const std::string_view f : {"Neg", "Not", "BitwiseNot"}) {
    rules.push_back({"involution", Tier::kExact, op(f, {op(f, {x}).shared()}), nullptr, operand});
  }
  // f(f(x)) -> f(x)
  for (const std::string_view f : {"Relu", "Abs", "Ceil", "Floor", "Round", "Sign"}) {
    rules.push_back(
        {"idempotent", Tier::kExact, op(f, {op(f, {x}, "inner").shared()}), nullptr, build_inner});
  }
  // Transpose(Transpose(x, p), q) -> Transpose(x, p of q)
  rules.push_back({"transpose-of-transpose", Tier::kExact,
                   op("Transpose", {op("Transpose", {x}, "inner").shared()}, "outer"), nullptr,
                   build_transposes});
  // Reshape(Reshape(x)) -> Reshape(x)
  rules.push_back({"reshape-of-reshape", Tier::kExact,
                   op("Reshape", {op("Reshape", {x, any("first")}).shared(), any("second")}), nullptr,
                   build_reshape});
  // Slice(Slice(x)) -> Slice(x)
  rules.push_back({"slice-of-slice", Tier::kExact, slice_of(slice_of(x, "inner", "1").shared(), {}, "2"),
                   guard_slices, build_slices});
  // Cast(Cast(x, wider), t) -> Cast(x, t)
  rules.push_back({"cast-of-cast", Tier::kExact, op("Cast", {op("Cast", {x}, "inner").shared()}, "outer"),
                   guard_casts, build_casts});
}

}  // namespace

const RuleTable& identity_rules() {
  static const RuleTable rules = [] {
    RuleTable table;
    const Pattern x = any("x"), c = constant("c");
    add_movements(table, x, c);
    add_pairs(table, x);
    add_neutral(table, x, c);
    for (Rule& rule : table) rule.quiet = true;
    return table;
  }();
  return rules;
}

}  // namespace gcompile::passes

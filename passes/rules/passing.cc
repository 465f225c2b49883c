// Scales and shifts go past what stands between them and a contraction, which then takes them into its weights
// (weights.cc): batch normalisation behind Relu, a pool, or a Concat.

#include <algorithm>
#include <cmath>

#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::Shape;
using ir::Tensor;
using ir::ValueId;
using Ints = std::vector<std::int64_t>;

constexpr std::string_view kNotReal = "integers are not scaled";
constexpr std::string_view kNobodyAbsorbs = "no contraction with constant weights would take the constant";
constexpr std::string_view kNotPerChannel = "the constant is not a scalar or one value per channel";
constexpr std::string_view kNotPositive = "a factor is not a positive number";

bool has_constant(const ir::Graph& graph, const ir::Node& node, std::size_t slot) {
  return slot < node.operands.size() && node.operands[slot].valid() && graph.constant(node.operands[slot]);
}

/// The axis of the channels of a contraction with constant weights that computes the value for this reader alone.
std::optional<int> absorbing_axis(const ir::Graph& graph, ValueId value) {
  const ir::NodeId producer = graph.value(value).producer;
  if (!producer.valid() || graph.use_count(value) != 1) return std::nullopt;
  const ir::Node& node = graph.node(producer);
  if (node.form || !node.op->domain.empty()) return std::nullopt;
  if (is_operator(node, "Conv") || is_operator(node, "ConvTranspose")) {
    const bool has_bias = node.operands.size() > 2 && node.operands[2].valid();
    const bool known = has_constant(graph, node, 1) && (!has_bias || has_constant(graph, node, 2));
    return known ? std::optional(1) : std::nullopt;
  }
  const int last = static_cast<int>(graph.value(value).type.shape.size()) - 1;
  if (is_operator(node, "MatMul")) return has_constant(graph, node, 1) ? std::optional(last) : std::nullopt;
  if (!is_operator(node, "Add") || !has_constant(graph, node, 1)) return std::nullopt;
  const ir::NodeId inner = graph.value(node.operands[0]).producer;
  const bool is_product = inner.valid() && is_operator(graph.node(inner), "MatMul") &&
                          has_constant(graph, graph.node(inner), 1) && graph.use_count(node.operands[0]) == 1;
  return is_product ? std::optional(last) : std::nullopt;
}

bool is_positive(const Tensor& factors) {
  for (std::int64_t i = 0; i < factors.count(); ++i) {
    if (!(factors.real_at(i) > 0) || std::isinf(factors.real_at(i))) return false;
  }
  return true;
}

// One operand -----------------------------------------------------------------------------------------------

/// The factor of a result that has the channels of its operand.
std::string guard_map(const Match& match) {
  if (!ir::is_float(match.result_type().element)) return std::string(kNotReal);
  const auto axis = absorbing_axis(match.graph(), match.value("x"));
  if (!axis) return std::string(kNobodyAbsorbs);
  if (match.result_type() != match.type("inner") ||
      !along_axis(match.constant("c"), match.result_type().shape, *axis)) {
    return std::string(kNotPerChannel);
  }
  return is_positive(match.constant("c")) ? "" : std::string(kNotPositive);
}

/// Means of what is scaled are infinite where a pixel is, and scaled means need not be.
std::string guard_mean(const Match& match) {
  if (match.result_type().element == ir::ElementType::kFloat16) return "float16 may overflow below the mean";
  if (match.result_type() != match.type("inner")) return std::string(kNotPerChannel);
  const auto axis = absorbing_axis(match.graph(), match.value("x"));
  if (!axis || *axis != 1) return std::string(kNobodyAbsorbs);
  if (!along_axis(match.constant("c"), match.result_type().shape, 1)) return std::string(kNotPerChannel);
  return all_finite(match.constant("c")) ? "" : "a factor is not finite";
}

/// The product or quotient by "c", then what was in front of it.
ValueId build_past(Rewriter& rewriter) {
  const ir::Node& inner = rewriter.node("inner");
  const std::string_view op = rewriter.graph().node(rewriter.root()).op->name;
  std::vector<ValueId> operands = inner.operands;
  const ir::Attributes attributes = inner.attributes;
  operands[0] = rewriter.emit(op, {rewriter.value("x"), rewriter.value("c")});
  return rewriter.emit(inner.op->name, std::move(operands), attributes);
}

/// A mean over pixels; it keeps its axes, so that the factors are those of the same channels.
std::string guard_reduced(const Match& match) {
  if (!match.has("axes") || !match.attributes("inner").flag("keepdims")) return "the mean drops axes";
  for (const std::int64_t axis : normalised(ints_of(match, "axes"), match.type("x").rank())) {
    if (axis == 1) return "a mean of channels";
  }
  return guard_mean(match);
}

// Concat ----------------------------------------------------------------------------------------------------

std::size_t concat_axis(const Match& match) {
  return axis_of(match.attributes("concat"), match.type("concat").rank());
}

std::string guard_concat(const Match& match) {
  if (!ir::is_float(match.result_type().element)) return std::string(kNotReal);
  if (match.type("concat") != match.result_type()) return std::string(kNotPerChannel);
  for (const ValueId operand : match.node("concat").operands) {
    const auto axis = absorbing_axis(match.graph(), operand);
    if (!axis) return std::string(kNobodyAbsorbs);
    if (!along_axis(match.constant("c"), match.result_type().shape, *axis))
      return std::string(kNotPerChannel);
    if (!match.graph().value(operand).type.shape[concat_axis(match)].is_constant())
      return "parts of a size that is not known";
  }
  return "";
}

ValueId build_concat(Rewriter& rewriter) {
  const std::size_t axis = concat_axis(rewriter);
  const std::string_view op = rewriter.graph().node(rewriter.root()).op->name;
  const ir::Attributes attributes = rewriter.attributes("concat");
  const Shape shape = rewriter.result_type().shape, own = rewriter.shape("c");
  const std::size_t lead = shape.size() - own.size();
  const bool varies = axis >= lead && own[axis - lead] != 1;
  std::vector<ValueId> operands = rewriter.node("concat").operands;
  std::int64_t begin = 0;
  for (ValueId& operand : operands) {
    const std::int64_t count = rewriter.type_of(operand).shape[axis];
    ValueId c = rewriter.value("c");
    if (varies) {
      Shape counts = own;
      Strided part{Ints(own.size(), 0), Ints(own.size(), 1)};
      counts[axis - lead] = count;
      part.start[axis - lead] = begin;
      c = emit_slice(rewriter, c, part, counts);
    }
    operand = rewriter.emit(op, {operand, c});
    begin += count;
  }
  return rewriter.emit("Concat", std::move(operands), attributes);
}

}  // namespace

const RuleTable& passing_rules() {
  static const RuleTable rules = [] {
    const Pattern x = any("x"), c = constant("c");
    RuleTable table;
    for (const std::string_view scale : {"Mul", "Div"}) {
      // f(x) * c -> f(x * c) for c > 0
      table.push_back({"scale-past-map", Tier::kReassociate,
                       op(scale, {one_of({"Relu", "MaxPool"}, {x}, "inner"), c}), guard_map, build_past,
                       true});
      // AveragePool(x) * c -> AveragePool(x * c), ReduceMean(x) * c -> ReduceMean(x * c)
      table.push_back({"scale-past-mean", Tier::kReassociate, op(scale, {op("AveragePool", {x}, "inner"), c}),
                       guard_mean, build_past, true});
      const Pattern mean = op("ReduceMean", {x, constant("axes").optional()}, "inner");
      table.push_back(
          {"scale-past-mean", Tier::kReassociate, op(scale, {mean, c}), guard_reduced, build_past, true});
    }
    // Concat(x, y) * c -> Concat(x * c, y * c), and with quotients and sums
    for (const std::string_view map : {"Mul", "Div", "Add"}) {
      table.push_back({"constant-past-concat", Tier::kExact, op(map, {op_of_any("Concat", "concat"), c}),
                       guard_concat, build_concat, true});
    }
    return table;
  }();
  return rules;
}

}  // namespace gcompile::passes

// The scale of a quantisation goes into what is quantised:
//   Q(f(DQ(x, a), c), s, z) -> Q(f(DQ(x, a / s), c / s), 1, z)    with f(x / s) = f(x) / s for all s > 0
// so that a layer between integers multiplies each of its operands once and divides nothing: of a convolution
// it makes the requantisation of DESIGN law 7, of a residual two multipliers. The quotient is rounded
// elsewhere than the model says, so a step is decided otherwise where it lies within a few last
// bits of a half.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/interrupt.h"
#include "passes/engine/passes.h"
#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::ElementType;
using ir::NodeId;
using ir::Tensor;
using ir::ValueId;

/// f(x / s) = f(x) / s when the first `operands` operands are divided; 0: all of them.
struct Homogeneous {
  std::string_view name;
  std::size_t operands;
};
constexpr std::array<Homogeneous, 18> kHomogeneous = {{
    {"Abs", 1},
    {"Add", 0},
    {"AveragePool", 1},
    {"Clip", 0},
    {"Concat", 0},
    {"Div", 1},
    {"LeakyRelu", 1},
    {"Max", 0},
    {"MaxPool", 1},
    {"Min", 0},
    {"Mul", 1},
    {"Neg", 1},
    {"PRelu", 1},
    {"ReduceMean", 1},
    {"ReduceSum", 1},
    {"Relu", 1},
    {"Sub", 0},
    {"Transpose", 1},
}};

/// A quantised chain longer than this keeps its division.
constexpr std::size_t kMostNodes = 32;

class ScaleMover {
 public:
  ScaleMover(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  bool run() {
    bool changed = false;
    for (const NodeId id : graph_.topological_order()) {
      poll_interrupt();
      if (!is_operator(graph_.node(id), "QuantizeLinear") || !move_scale(id)) continue;
      context_.did(fmt::format("QuantizeLinear '{}'", printable(graph_.node(id).name)), "quantised-scales");
      context_.count("quantised-scales");
      changed = true;
    }
    if (changed) graph_.erase_unused_constants();
    return changed;
  }

 private:
  /// Operand `slot` of `node`: integers of known scales, or a constant.
  struct Leaf {
    NodeId node;
    std::size_t slot;
  };
  struct Chain {
    std::vector<Leaf> leaves;
    std::vector<ValueId> between;  // the leaves and the quantisation
  };

  bool move_scale(NodeId quantise) {
    const Tensor* scale = scale_of(quantise);
    if (!scale || scale->count() != 1 || scale->real_at(0) == 1) return false;
    const auto chain = chain_of(quantise, scale->real_at(0));
    if (!chain) return false;
    const double divisor = scale->real_at(0);
    for (const ValueId value : chain->between)
      graph_.value(value).name += " / scale";  // no value of the model
    for (const Leaf& leaf : chain->leaves) {
      const ValueId value = graph_.node(leaf.node).operands[leaf.slot];
      graph_.set_operand(leaf.node, static_cast<int>(leaf.slot), divided(value, divisor));
    }
    graph_.set_operand(quantise, 1,
                       graph_.add_constant(Tensor::scalar(ir::Scalar::of_real(ElementType::kFloat32, 1))));
    return true;
  }

  /// Known scales of float32 of a QuantizeLinear or DequantizeLinear.
  const Tensor* scale_of(NodeId id) const {
    const Tensor* scale = graph_.constant(graph_.node(id).operands[1]);
    return scale && scale->element() == ElementType::kFloat32 ? scale : nullptr;
  }

  /// Everything to divide above a quantisation; nullopt: something there is neither integers nor constant, is
  /// read elsewhere too, or is not homogeneous.
  std::optional<Chain> chain_of(NodeId quantise, double divisor) const {
    Chain chain;
    std::vector<Leaf> open = {{quantise, 0}};
    for (std::size_t visited = 0; !open.empty(); ++visited) {
      const Leaf next = open.back();
      open.pop_back();
      const ValueId value = graph_.node(next.node).operands[next.slot];
      if (!value.valid()) continue;
      if (visited == kMostNodes || graph_.value(value).type.element != ElementType::kFloat32)
        return std::nullopt;
      if (is_divisible(value, divisor)) {
        chain.leaves.push_back(next);
        continue;
      }
      chain.between.push_back(value);
      const std::size_t count = divided_operands(value);
      if (count == 0) return std::nullopt;
      for (std::size_t i = 0; i < count; ++i) open.push_back({graph_.value(value).producer, i});
    }
    return chain;
  }

  /// Number of operands to divide so that the value, which nobody else reads, is divided; 0: it cannot be.
  std::size_t divided_operands(ValueId value) const {
    const ir::Value& v = graph_.value(value);
    if (!v.producer.valid() || v.result_index != 0 || v.uses.size() != 1 || graph_.is_output(value)) return 0;
    const ir::Node& node = graph_.node(v.producer);
    for (const Homogeneous& row : kHomogeneous) {
      if (!is_operator(node, row.name)) continue;
      return row.operands == 0 ? node.operands.size() : row.operands;
    }
    return 0;
  }

  const Tensor* factors_of(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    if (!producer.valid() || !is_operator(graph_.node(producer), "DequantizeLinear"))
      return graph_.constant(value);
    return scale_of(producer);
  }

  /// Integers of known scales, or a constant; quotients neither overflow nor lose bits.
  bool is_divisible(ValueId value, double divisor) const {
    const Tensor* factors = factors_of(value);
    if (!factors) return false;
    for (std::int64_t i = 0; i < factors->count(); ++i) {
      const double factor = factors->real_at(i);
      if (factor != 0 && !std::isnormal(static_cast<float>(factor / divisor))) return false;
    }
    return divisor > 0 && std::isnormal(divisor);
  }

  ValueId divided(ValueId value, double divisor) {
    const Tensor* factors = factors_of(value);
    const Tensor quotient =
        computed(factors->type(), [&](std::int64_t i) { return factors->real_at(i) / divisor; });
    const NodeId producer = graph_.value(value).producer;
    if (!producer.valid()) return graph_.add_constant(quotient, graph_.value(value).name);
    ir::RewriteContext context(graph_, producer, 0);
    std::vector<ValueId> operands = context.node().operands;
    operands[1] = graph_.add_constant(quotient, graph_.value(operands[1]).name);
    return context.emit("DequantizeLinear", std::move(operands), context.attributes());
  }

  ir::Graph& graph_;
  PassContext& context_;
};

}  // namespace

bool move_quantised_scales(ir::Graph& graph, PassContext& context) {
  return context.enabled("scales", Tier::kReassociate) && ScaleMover(graph, context).run();
}

}  // namespace gcompile::passes

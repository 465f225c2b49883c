// Constant folding with the reference evaluator: a node whose operands are all known, or whose results the
// import already knows, becomes constants. An If whose condition is known is inlined by decomposition first.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/interrupt.h"
#include "ir/graph/operator.h"
#include "ir/ops/rewrite.h"
#include "passes/engine/passes.h"

namespace gcompile::passes {
namespace {

/// Bytes by which folding may let the constants of a model grow: an Expand or Tile of a constant is cheaper
/// to compute than to ship.
constexpr std::int64_t kGrowthLimit = std::int64_t{256} << 20;
/// Steps of the evaluator that any model gets, and more for each byte of its own constants, which are what
/// folding is for: time stays linear in them (DESIGN law 17).
constexpr std::int64_t kWork = std::int64_t{1} << 30;
constexpr std::int64_t kWorkPerByte = 32;
/// Steps of one node of an expression at one element, and of one product of a sum of products.
constexpr std::int64_t kNodeWork = 4;
constexpr std::int64_t kProductWork = 16;

FoldingBudget budget_of(const ir::Graph& graph) {
  FoldingBudget budget{true, kWork, kGrowthLimit};
  for (const ir::ValueId id : graph.values()) {
    if (const ir::Tensor* constant = graph.constant(id))
      budget.work += kWorkPerByte * constant->type().bytes();
  }
  return budget;
}

/// Elements of operands and results; and the multiply-adds if it is a sum of products: those of an M x K by
/// K x N product are the geometric mean of its three sizes, and other contractions are not far from it.
struct Sizes {
  double elements = 0;
  double products = 1;
};

Sizes sizes_of(const ir::Graph& graph, const ir::Node& node) {
  Sizes sizes;
  const auto take = [&](ir::ValueId id) {
    if (!id.valid()) return;
    const auto count = static_cast<double>(graph.value(id).type.count());
    sizes.elements += count;
    sizes.products *= std::max(count, 1.0);
  };
  for (std::size_t i = 0; i < std::min<std::size_t>(node.operands.size(), 2); ++i) take(node.operands[i]);
  take(node.results[0]);
  sizes.products = std::sqrt(sizes.products);
  for (std::size_t i = 2; i < node.operands.size(); ++i) {
    if (node.operands[i].valid())
      sizes.elements += static_cast<double>(graph.value(node.operands[i]).type.count());
  }
  return sizes;
}

/// What evaluating the node takes, estimated without doing it.
double work_of(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  const Sizes sizes = sizes_of(graph, node);
  const double linear = kNodeWork * sizes.elements;
  // Small whatever it does.
  if (sizes.products * kProductWork < kWork / 1024 && sizes.elements * kNodeWork < kWork / 1024) {
    return std::max(linear, kProductWork * sizes.products);
  }
  if (!node.op->lower) return std::max(linear, kProductWork * sizes.products);
  const ir::Form form = ir::form_of(graph, id);
  if (std::holds_alternative<ir::ContractForm>(form)) return kProductWork * sizes.products + linear;
  const auto* loops = std::get_if<ir::LoopForm>(&form);
  if (!loops) return linear * std::log2(sizes.elements + 2);
  double points = 1;
  for (const std::int64_t extent : loops->extents) points *= static_cast<double>(extent);
  return points * static_cast<double>(loops->dag.nodes().size()) * kNodeWork;
}

bool all_known(const ir::Graph& graph, const ir::Node& node) {
  return std::all_of(node.operands.begin(), node.operands.end(),
                     [&](ir::ValueId id) { return !id.valid() || graph.constant(id); });
}

/// Whether nobody asks, or the answer is known already.
bool results_known(const ir::Graph& graph, const ir::Node& node) {
  return std::all_of(node.results.begin(), node.results.end(), [&](ir::ValueId id) {
    return !id.valid() || graph.constant(id) || graph.use_count(id) == 0;
  });
}

/// Whether the node makes floats of packed integers, or reads such floats: of small ones the import knows the
/// values, but the laws of integers come first for them as for large ones.
bool reads_packed(const ir::Graph& graph, const ir::Node& node) {
  return node.op->traits.unpacks ||
         std::any_of(node.operands.begin(), node.operands.end(), [&](ir::ValueId id) {
           return id.valid() && graph.constant(id) && graph.value(id).producer.valid();
         });
}

class Folder {
 public:
  Folder(ir::Graph& graph, PassContext& context, bool unpack)
      : graph_(graph), context_(context), unpack_(unpack), budget_(context.folding_budget()) {
    if (!budget_.is_set) budget_ = budget_of(graph);
  }

  bool fold(ir::NodeId id) {
    const ir::Node& node = graph_.node(id);
    if (fold_sizes(id)) return true;
    if (!node.op->deterministic || (!unpack_ && reads_packed(graph_, node))) return false;
    std::vector<std::optional<ir::Tensor>> values(node.results.size());
    if (results_known(graph_, node)) {
      for (std::size_t i = 0; i < node.results.size(); ++i) {
        if (const ir::Tensor* known = graph_.constant(node.results[i])) values[i] = *known;
      }
    } else {
      if (!node.subgraphs.empty() || !all_known(graph_, node) || !affordable(id)) return false;
      std::vector<const ir::Tensor*> operands;
      for (const ir::ValueId operand : node.operands) operands.push_back(graph_.constant(operand));
      try {
        std::vector<ir::Tensor> results = ir::evaluate_node(graph_, id, operands);
        for (std::size_t i = 0; i < node.results.size(); ++i) values[i] = std::move(results.at(i));
      } catch (const OperatorError& error) {
        context_.refused(node.name, error.message);  // an error of the model only if nothing else removes it
        return false;
      }
    }
    replace(id, values);
    return true;
  }

 private:
  /// A node of which a formula of the model's dimensions is all that is wanted.
  bool fold_sizes(ir::NodeId id) {
    const ir::Node& node = graph_.node(id);
    if (node.results.size() != 1 || !node.results[0].valid()) return false;
    const ir::Value& value = graph_.value(node.results[0]);
    if (!value.sizes || value.uses.empty()) return false;
    graph_.replace_uses(node.results[0],
                        graph_.add_sizes(value.type.element, value.type.shape, *value.sizes));
    graph_.erase_node(id);
    return true;
  }

  /// Bytes of the results less those of operands that nobody else reads, and work; charged when both fit.
  bool affordable(ir::NodeId id) {
    const ir::Node& node = graph_.node(id);
    std::int64_t growth = 0;
    for (const ir::ValueId result : node.results) {
      if (result.valid()) growth += graph_.value(result).type.bytes();
    }
    for (const ir::ValueId operand : node.operands) {
      if (operand.valid() && graph_.use_count(operand) == 1) growth -= graph_.value(operand).type.bytes();
    }
    if (growth > 0 && growth > budget_.bytes) {
      context_.refused(node.name, fmt::format("its value of {} bytes would let the constants grow too far",
                                              graph_.value(node.results[0]).type.bytes()));
      return false;
    }
    const double work = work_of(graph_, id);
    if (work > static_cast<double>(budget_.work)) {
      context_.refused(node.name, "its value would take longer to compute than folding may take for a model");
      return false;
    }
    budget_.bytes -= growth;
    budget_.work -= static_cast<std::int64_t>(work);
    return true;
  }

  void replace(ir::NodeId id, const std::vector<std::optional<ir::Tensor>>& values) {
    const std::vector<ir::ValueId> results = graph_.node(id).results;
    const std::vector<ir::ValueId> operands = graph_.node(id).operands;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i].valid() || !values[i] || graph_.use_count(results[i]) == 0) continue;
      graph_.replace_uses(results[i],
                          graph_.add_constant(*values[i], ir::name_as_constant(graph_, results[i])));
    }
    graph_.erase_node(id);
    // Weights that are widened to be summed up are four times as large: their bytes go at once, the values at
    // the end of the pass.
    for (const ir::ValueId operand : operands) {
      if (!operand.valid() || graph_.use_count(operand) > 0 || graph_.is_input(operand)) continue;
      ir::Value& value = graph_.value(operand);
      if (value.constant && !value.producer.valid()) value.constant.emplace();
    }
  }

  ir::Graph& graph_;
  PassContext& context_;
  const bool unpack_;
  FoldingBudget& budget_;
};

bool fold(ir::Graph& graph, PassContext& context, bool unpack) {
  bool changed = false;
  Folder folder(graph, context, unpack);
  for (const ir::NodeId id : graph.topological_order()) {
    poll_interrupt();
    changed |= folder.fold(id);
  }
  graph.erase_unused_constants();
  return changed;
}

}  // namespace

bool fold_constants(ir::Graph& graph, PassContext& context) {
  return fold(graph, context, context.options().level == 0);
}

bool fold_all_constants(ir::Graph& graph, PassContext& context) { return fold(graph, context, true); }

}  // namespace gcompile::passes

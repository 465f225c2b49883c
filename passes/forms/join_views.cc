// Movements behind each other that are one view together: splitting heads as PyTorch writes it, Reshape
// (s, b, h * d) -> (s, b * h, d), Transpose, Reshape -> (b, h, s, d), copies in its first step where the
// features are a part of larger rows; in one step no element moves, however the axes of what it reads lie.

#include <fmt/format.h>

#include <algorithm>

#include "base/interrupt.h"
#include "ir/graph/operator.h"
#include "passes/engine/form_edit.h"
#include "passes/engine/passes.h"

namespace gcompile::passes {
namespace {

using ir::Index;
using ir::LoopForm;
using ir::NodeId;
using ir::ScalarNode;
using ir::ValueId;

class ViewJoiner {
 public:
  ViewJoiner(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  bool run() {
    bool changed = false;
    for (const NodeId id : graph_.topological_order()) {
      poll_interrupt();
      changed |= visit(id);
    }
    return changed;
  }

 private:
  /// The form of a movement by no index that is loaded, and what it moves.
  struct Movement {
    const LoopForm* form = nullptr;
    ValueId operand;
  };

  std::optional<Movement> movement(NodeId id) const {
    if (!id.valid()) return std::nullopt;
    const ir::Node& node = graph_.node(id);
    const auto* form = node.form ? std::get_if<LoopForm>(node.form.get()) : nullptr;
    const ScalarNode* load = form ? ir::pure_load(*form) : nullptr;
    if (!load || std::any_of(load->index.begin(), load->index.end(),
                             [](const Index& index) { return index.has_loaded(); })) {
      return std::nullopt;
    }
    return Movement{form, node.operands[load->operand]};
  }

  /// Whatever strides the operand has, the result is a view of it.
  static bool is_view(const LoopForm& form) {
    const ScalarNode* load = ir::pure_load(form);
    return std::all_of(load->index.begin(), load->index.end(),
                       [](const Index& index) { return index.is_affine(); });
  }

  static LoopForm composed(const LoopForm& reader, const LoopForm& producer) {
    const std::vector<ir::Range> ranges = reader.ranges();
    return rebuild(reader, [&](ir::Dag& dag, const ScalarNode& leaf) {
      return dag.import(
          producer.dag, producer.regions[0].root, leaf.index, ranges,
          [&](const ScalarNode& load) { return dag.load(load.operand, load.type, load.index); });
    });
  }

  /// Goes back as far as all from there on is one view. What is no view on the way there ends the search:
  /// indices of movements that do not undo each other grow with every step.
  bool visit(NodeId id) {
    std::optional<Movement> next = movement(id);
    if (!next) return false;
    LoopForm form = *next->form;
    bool copies = !is_view(form);
    std::vector<NodeId> passed;
    std::size_t count = 0;  // of those that are joined
    LoopForm joined;
    while (!graph_.value(next->operand).constant) {
      const NodeId producer = graph_.value(next->operand).producer;
      next = movement(producer);
      if (!next) break;
      copies = copies || !is_view(*next->form);
      form = composed(form, *next->form);
      if (!is_view(form)) break;
      passed.push_back(producer);
      if (!copies) continue;
      joined = form;
      count = passed.size();
    }
    if (count == 0) return false;
    passed.resize(count);
    join(id, std::move(joined), passed);
    return true;
  }

  void join(NodeId id, LoopForm form, const std::vector<NodeId>& passed) {
    const std::string subject =
        fmt::format("{} '{}'", graph_.node(id).op->name, printable(graph_.node(id).name));
    context_.did(subject, fmt::format("is one view with the {} movements before it", passed.size()));
    std::vector<ir::Origin> origins;
    for (auto at = passed.rbegin(); at != passed.rend(); ++at) {
      const std::vector<ir::Origin>& more = graph_.node(*at).origins;
      origins.insert(origins.end(), more.begin(), more.end());
    }
    const std::vector<ir::Origin>& own = graph_.node(id).origins;
    origins.insert(origins.end(), own.begin(), own.end());
    set_loops(graph_, id, std::move(form), graph_.node(passed.back()).operands);
    graph_.node(id).origins = std::move(origins);
    for (const NodeId movement : passed) {
      if (graph_.use_count(graph_.node(movement).results[0]) > 0) break;
      graph_.erase_node(movement);
    }
  }

  ir::Graph& graph_;
  PassContext& context_;
};

}  // namespace

bool join_views(ir::Graph& graph, PassContext& context) { return ViewJoiner(graph, context).run(); }

}  // namespace gcompile::passes

// Lowers every node to its form and writes single-element constants into the expressions.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "ir/interrupt.h"
#include "ir/operator.h"
#include "passes/form_edit.h"
#include "passes/passes.h"
#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

/// Layers repeat: nodes whose loops are equal share one form until a pass changes one of them.
class FormPool {
 public:
  void share(ir::Node& node) {
    const auto* loops = std::get_if<ir::LoopForm>(node.form.get());
    if (!loops) return;
    std::vector<std::shared_ptr<const ir::Form>>& alike = forms_[loops->dag.hash()];
    for (const std::shared_ptr<const ir::Form>& form : alike) {
      if (std::get<ir::LoopForm>(*form) == *loops) {
        node.form = form;
        return;
      }
    }
    if (alike.size() < kAlike) alike.push_back(node.form);
  }

 private:
  /// Of one expression over other extents; more are not worth a search.
  static constexpr std::size_t kAlike = 16;
  std::map<std::uint64_t, std::vector<std::shared_ptr<const ir::Form>>> forms_;
};

/// Whether the sums of a contraction may be formed by another algebra (DESIGN law 6).
bool may_reassociate(const ir::Graph& graph, ir::NodeId id, const ir::ContractForm& contract,
                     const PassContext& context) {
  return ir::is_float(contract.accumulator) && context.options().tier >= Tier::kReassociate &&
         !feeds_integer_decision(graph, graph.node(id).results[0]);
}

}  // namespace

bool attach_forms(ir::Graph& graph, PassContext& context) {
  ir::Diagnostics diagnostics;
  FormPool pool;
  for (const ir::NodeId id : graph.nodes()) {
    ir::poll_interrupt();
    if (graph.node(id).form) continue;
    try {
      ir::Form form = ir::form_of(graph, id);
      if (auto* contract = std::get_if<ir::ContractForm>(&form)) {
        contract->reassociates = may_reassociate(graph, id, *contract, context);
      }
      set_form(graph, id, std::move(form));
      inline_scalars(graph, id);
      pool.share(graph.node(id));
    } catch (const ir::OperatorError& error) {
      diagnostics.add(ir::diagnose(graph, id, "E0301", error));
    }
  }
  diagnostics.throw_if_errors();
  return true;
}

}  // namespace gcompile::passes

#pragma once
// Edits of nodes that carry forms: operand lists and expressions change together.

#include <functional>
#include <map>

#include "ir/forms/rebuild.h"
#include "ir/graph/graph.h"

namespace gcompile::passes {

void set_form(ir::Graph& graph, ir::NodeId id, ir::Form form);

/// The loop form of a node: the form itself, or the epilogue of its contraction; nullptr for other forms.
const ir::LoopForm* loops_of(const ir::Node& node);
/// Operands of the node that its own kernel reads before any expression does (the base of a contraction).
int base_operands(const ir::Node& node);

/// Writes constants of one element into the expressions, reads axes of one element at 0, and drops operands
/// that no load names any more.
void inline_scalars(ir::Graph& graph, ir::NodeId id);

/// Whether ir::rebuild() of the form with the same leaves would give the same dag: one root, nothing that it does
/// not need, and no index that could become simpler.
bool is_rebuilt(const ir::LoopForm& form);

/// Sets form and operands of a node at once: operands after the first `base` that no load names are dropped,
/// equal ones merged, loads renumbered.
void set_loops(ir::Graph& graph, ir::NodeId id, ir::LoopForm loops, std::vector<ir::ValueId> operands);

}  // namespace gcompile::passes

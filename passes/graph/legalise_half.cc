// Contractions, recurrences and running sums of 16-bit floats are computed in float32, with one rounding at
// the end, and TopK ranks them there, where every one of them is exact:
//   Conv(x: float16, w: float16) -> Cast(Conv(Cast(x), Cast(w)))
// as the kernels of gcrt have no other accumulator. Element-wise operators need no help: expressions load,
// widen, compute and round (ir/loops/expression.h).

#include "ir/graph/operator.h"
#include "ir/ops/support.h"
#include "passes/engine/passes.h"

namespace gcompile::passes {
namespace {

bool is_half(ir::ElementType type) {
  return type == ir::ElementType::kFloat16 || type == ir::ElementType::kBFloat16;
}

void widen(ir::Graph& graph, ir::NodeId id) {
  ir::RewriteContext context(graph, id, 0);
  const ir::ElementType half = context.element(0);
  std::vector<ir::ValueId> operands = context.node().operands;
  for (ir::ValueId& operand : operands) {
    if (operand.valid() && graph.value(operand).type.element == half) {
      operand = ir::emit_cast(context, operand, ir::ElementType::kFloat32);
    }
  }
  const ir::NodeId wide = context.emit_node(context.node().op->name, std::move(operands),
                                            context.attributes(), context.result_count());
  for (int i = 0; i < context.result_count(); ++i) {
    if (!context.has_result(i)) continue;
    const ir::ElementType type = context.result(i).element;
    context.replace_result(i, ir::emit_cast(context, graph.node(wide).results[i], type));
  }
  graph.erase_node(id);
}

}  // namespace

bool legalise_half(ir::Graph& graph, PassContext&) {
  bool changed = false;
  for (const ir::NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (!node.op->traits.computed_in_float || node.form) continue;
    if (!is_half(graph.value(node.operands[0]).type.element)) continue;
    widen(graph, id);
    changed = true;
  }
  return changed;
}

}  // namespace gcompile::passes

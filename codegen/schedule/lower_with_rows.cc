// A reduction over rows and the product of vectors that alone reads them, as one call: every block of the
// product makes the rows for itself.

#include "codegen/schedule/schedule.h"

namespace gcompile {

using ir::NodeId;
using ir::ValueId;

namespace {

/// Whether `value`, seen through views, is the result of `maker`, which nothing else reads.
bool is_private_result(const ir::Graph& graph, ir::ValueId value, NodeId maker,
                       const std::set<NodeId>& elided) {
  for (;;) {
    if (!value.valid() || graph.use_count(value) != 1 || graph.is_output(value)) return false;
    const NodeId producer = graph.value(value).producer;
    if (producer == maker) return true;
    if (!producer.valid() || !elided.count(producer)) return false;
    value = graph.node(producer).operands[0];
  }
}

}  // namespace

bool Scheduler::lower_with_rows(ScheduleScope& scope, NodeId maker, NodeId reader) {
  const auto* loops = std::get_if<ir::LoopForm>(&scope.forms.at(maker));
  const ir::Form& form = scope.forms.at(reader);
  const ir::Graph& graph = scope.graph;
  if (!chooser_.on_device() || !loops || loops->is_map() || !std::holds_alternative<ir::ContractForm>(form) ||
      scope.host_only.count(maker) || ir::SizesScope::in_force()) {
    return false;
  }
  const ValueId rows = graph.node(maker).results[0], operand = graph.node(reader).operands[0];
  if (!is_private_result(graph, operand, maker, scope.homes.elided)) return false;
  // What lies between them shows all of the rows, in their order.
  const Storage& made = scope.homes.storage.at(rows);
  const Storage& seen = scope.homes.storage.at(operand);
  const auto is_dense = [&](ValueId value, const Storage& at) {
    const ir::Shape& shape = graph.value(value).type.shape;
    return ir::same_layout(shape, at.strides, ir::row_major_strides(shape));
  };
  if (made.buffer != seen.buffer || made.offset != seen.offset || !is_dense(rows, made) ||
      !is_dense(operand, seen) || graph.value(rows).type.count() != graph.value(operand).type.count() ||
      graph.value(rows).type.element != ir::ElementType::kFloat32) {
    return false;
  }
  const HomeOf home = [&](ValueId value) -> const Storage& { return scope.homes.storage.at(value); };
  const RowMaker made_by{maker, *loops};
  KernelCall call = chooser_.call_for({graph, reader, form, home, false, &made_by}, weights_);
  if (call.family.empty()) return false;
  std::vector<ir::Origin> origins = origins_of(graph.node(maker));
  const std::vector<ir::Origin> later = origins_of(graph.node(reader));
  origins.insert(origins.end(), later.begin(), later.end());
  steps_.emit(scope, std::move(call), std::move(origins),
              comment_of(graph.node(maker)) + ", " + comment_of(graph.node(reader)),
              layout_text(graph.value(graph.node(reader).results[0]).type,
                          home(graph.node(reader).results[0]).strides));
  return true;
}

}  // namespace gcompile

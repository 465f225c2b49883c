#include "codegen/order/peak_order.h"

#include <algorithm>
#include <map>

#include "codegen/order/order.h"

namespace gcompile {

using ir::NodeId;
using ir::ValueId;

std::vector<NodeId> lowest_peak_order(const ir::Graph& graph, const NodeForms& forms,
                                      const std::vector<NodeId>& given) {
  std::vector<ScheduleStep> steps;
  std::vector<ScheduleValue> values;
  std::map<ValueId, std::int32_t> index;  // of the value that holds the bytes
  std::map<ValueId, std::int32_t> views;  // the step that a reader of a view comes after
  const auto index_of = [&](ValueId id) {
    const auto [at, inserted] = index.try_emplace(id, static_cast<std::int32_t>(values.size()));
    if (inserted) {
      const ir::Value& value = graph.value(id);
      const bool arena = value.producer.valid() && !graph.is_output(id);
      values.push_back({arena ? ir::highest(value.type.bytes()) : 0, graph.is_output(id)});
    }
    return at->second;
  };
  for (const NodeId id : given) {
    const ir::Node& node = graph.node(id);
    ScheduleStep step;
    for (const ValueId operand : node.operands) {
      if (!operand.valid() || graph.constant(operand)) continue;
      step.uses.push_back(index_of(operand));
      if (const auto after = views.find(operand); after != views.end()) step.after.push_back(after->second);
    }
    const auto number = static_cast<std::int32_t>(steps.size());
    const auto* loops = std::get_if<ir::LoopForm>(&forms.at(id));
    const ir::ScalarNode* load = loops ? ir::pure_load(*loops) : nullptr;
    const bool view =
        load && !graph.is_output(node.results[0]) && !graph.constant(node.operands[load->operand]);
    for (const ValueId result : node.results) {
      if (!result.valid()) continue;
      if (view) {
        const ValueId operand = node.operands[load->operand];
        index[result] = index.at(operand);
        views[result] = number;  // which comes after the view that it is of, if it is of one
      } else {
        step.makes.push_back(index_of(result));
      }
    }
    std::sort(step.uses.begin(), step.uses.end());
    step.uses.erase(std::unique(step.uses.begin(), step.uses.end()), step.uses.end());
    steps.push_back(std::move(step));
  }
  std::vector<NodeId> order;
  for (const std::int32_t step : choose_schedule_order(steps, values).steps) {
    order.push_back(given[static_cast<std::size_t>(step)]);
  }
  return order;
}

}  // namespace gcompile

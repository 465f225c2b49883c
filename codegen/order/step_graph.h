#pragma once

#include <cstdint>
#include <vector>

#include "codegen/order/order.h"

namespace gcompile::schedule {

/// Steps and values with the links between them. Lists are sorted and free of duplicates.
struct StepGraph {
  std::vector<ScheduleStep> steps;
  std::vector<ScheduleValue> values;
  std::vector<std::vector<int32_t>> users;         // by value
  std::vector<int32_t> maker;                      // by value, -1: there from the start
  std::vector<std::vector<int32_t>> predecessors;  // by step
  std::vector<std::vector<int32_t>> successors;    // by step
  int64_t start_bytes = 0;                         // live before the first step

  int32_t step_count() const { return static_cast<int32_t>(steps.size()); }
};

/// Checks what choose_schedule_order() asks for.
StepGraph make_step_graph(const std::vector<ScheduleStep>& steps, const std::vector<ScheduleValue>& values);

/// Bytes that running a step changes: while it runs, and what stays or goes for good.
struct Effect {
  int64_t during = 0;
  int64_t after = 0;
};

/// `is_last(value)`: all other readers of the value have run.
template <typename IsLast>
Effect effect_of(const StepGraph& graph, int32_t index, const IsLast& is_last) {
  const ScheduleStep& step = graph.steps[static_cast<size_t>(index)];
  Effect effect;
  int64_t freed = 0;
  for (int32_t value : step.makes) {
    const auto v = static_cast<size_t>(value);
    effect.during += graph.values[v].size;
    if (graph.users[v].empty() && !graph.values[v].is_output) freed += graph.values[v].size;
  }
  for (int32_t value : step.uses) {
    const auto v = static_cast<size_t>(value);
    if (!graph.values[v].is_output && is_last(value)) freed += graph.values[v].size;
  }
  effect.after = effect.during - freed;
  effect.during += step.scratch;
  return effect;
}

/// The search over sets of finished steps. Orders with a peak of `limit` or more are not looked for.
struct DownSetResult {
  std::vector<int32_t> order;  // empty: none below the limit was found
  int64_t peak = 0;
  bool complete = false;  // no set was dropped: nothing is below what was found, or below the limit
};
DownSetResult search_down_sets(const StepGraph& graph, int64_t limit, int64_t state_budget);

}  // namespace gcompile::schedule

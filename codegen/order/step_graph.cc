#include "codegen/order/step_graph.h"

#include <algorithm>

#include "base/diagnostics.h"

namespace gcompile::schedule {
namespace {

void sort_unique(std::vector<int32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

void check_indices(const std::vector<int32_t>& list, size_t count) {
  for (int32_t index : list) GC_CHECK(index >= 0 && static_cast<size_t>(index) < count);
}

}  // namespace

StepGraph make_step_graph(const std::vector<ScheduleStep>& steps, const std::vector<ScheduleValue>& values) {
  StepGraph graph{steps, values, {}, {}, {}, {}, 0};
  graph.users.resize(values.size());
  graph.maker.assign(values.size(), -1);
  graph.predecessors.resize(steps.size());
  graph.successors.resize(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    ScheduleStep& step = graph.steps[i];
    check_indices(step.uses, values.size());
    check_indices(step.makes, values.size());
    check_indices(step.after, i);
    sort_unique(step.uses);
    GC_CHECK(step.scratch >= 0);
    for (int32_t value : step.makes) {
      int32_t& maker = graph.maker[static_cast<size_t>(value)];
      GC_CHECK(maker < 0);
      maker = static_cast<int32_t>(i);
    }
    for (int32_t value : step.uses)
      graph.users[static_cast<size_t>(value)].push_back(static_cast<int32_t>(i));
    graph.predecessors[i] = step.after;
  }
  for (size_t v = 0; v < values.size(); ++v) {
    GC_CHECK(values[v].size >= 0);
    const int32_t maker = graph.maker[v];
    // What nobody makes or reads takes no part, unless it is a result.
    if (maker < 0 && (!graph.users[v].empty() || values[v].is_output)) graph.start_bytes += values[v].size;
    for (int32_t user : graph.users[v]) {
      GC_CHECK(maker < user);
      if (maker >= 0) graph.predecessors[static_cast<size_t>(user)].push_back(maker);
    }
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    sort_unique(graph.predecessors[i]);
    for (int32_t before : graph.predecessors[i]) {
      graph.successors[static_cast<size_t>(before)].push_back(static_cast<int32_t>(i));
    }
  }
  return graph;
}

}  // namespace gcompile::schedule

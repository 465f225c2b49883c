#include "codegen/order/order.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "base/diagnostics.h"
#include "codegen/order/step_graph.h"

namespace gcompile {
namespace {

using schedule::Effect;
using schedule::StepGraph;

/// Steps that run one after the other. Counts say what a step would free, so that nobody looks at all readers
/// of a value each time that one of them runs.
class Progress {
 public:
  explicit Progress(const StepGraph& graph) : graph_(graph) {
    for (const std::vector<int32_t>& users : graph.users) {
      waiting_.push_back({users.size(), std::accumulate(users.begin(), users.end(), int64_t{0})});
    }
  }

  Effect effect_of(int32_t step) const {
    return schedule::effect_of(graph_, step, [&](int32_t value) { return waiting(value).count == 1; });
  }

  /// `changed(step, bytes)`: of the steps to come this one now frees so many more.
  template <typename Changed>
  void run(int32_t step, const Changed& changed) {
    for (int32_t value : graph_.steps[static_cast<size_t>(step)].uses) {
      Waiting& waiting = waiting_[static_cast<size_t>(value)];
      --waiting.count;
      waiting.sum -= step;
      const ScheduleValue& freed = graph_.values[static_cast<size_t>(value)];
      if (waiting.count == 1 && !freed.is_output) changed(static_cast<int32_t>(waiting.sum), freed.size);
    }
  }

 private:
  /// Readers of a value that have not run yet. The sum of their numbers names the last one.
  struct Waiting {
    size_t count;
    int64_t sum;
  };
  const Waiting& waiting(int32_t value) const { return waiting_[static_cast<size_t>(value)]; }

  const StepGraph& graph_;
  std::vector<Waiting> waiting_;
};

int64_t peak_of(const StepGraph& graph, const std::vector<int32_t>& order) {
  Progress progress(graph);
  int64_t live = graph.start_bytes;
  int64_t peak = live;
  for (int32_t step : order) {
    const Effect effect = progress.effect_of(step);
    peak = std::max(peak, live + effect.during);
    live += effect.after;
    progress.run(step, [](int32_t, int64_t) {});
  }
  return peak;
}

/// No order can do with less than what the hungriest step touches.
int64_t peak_bound(const StepGraph& graph) {
  int64_t bound = graph.start_bytes;
  for (const ScheduleStep& step : graph.steps) {
    int64_t touched = step.scratch;
    for (int32_t value : step.uses) touched += graph.values[static_cast<size_t>(value)].size;
    for (int32_t value : step.makes) touched += graph.values[static_cast<size_t>(value)].size;
    bound = std::max(bound, touched);
  }
  return bound;
}

/// From each sink in turn, what it needs first, down to the sources.
std::vector<int32_t> depth_first(const StepGraph& graph) {
  std::vector<int32_t> order;
  std::vector<size_t> visited(graph.steps.size(), 0);  // 0: not yet; k + 1: k predecessors are through
  std::vector<int32_t> stack;
  for (int32_t sink = 0; sink < graph.step_count(); ++sink) {
    if (!graph.successors[static_cast<size_t>(sink)].empty()) continue;
    stack.push_back(sink);
    visited[static_cast<size_t>(sink)] = 1;
    while (!stack.empty()) {
      const auto step = static_cast<size_t>(stack.back());
      const std::vector<int32_t>& before = graph.predecessors[step];
      if (visited[step] > before.size()) {
        order.push_back(stack.back());
        stack.pop_back();
        continue;
      }
      const int32_t next = before[visited[step]++ - 1];
      if (visited[static_cast<size_t>(next)] == 0) {
        visited[static_cast<size_t>(next)] = 1;
        stack.push_back(next);
      }
    }
  }
  return order;
}

/// Always the ready step that leaves the fewest bytes behind, then the one that needs the fewest to run, then
/// the first.
std::vector<int32_t> least_growth(const StepGraph& graph) {
  using Key = std::tuple<int64_t, int64_t, int32_t>;
  std::vector<int32_t> order;
  Progress progress(graph);
  std::vector<size_t> missing;
  std::vector<std::optional<Key>> keys(graph.steps.size());  // of the steps that are ready
  std::set<Key> ready;
  const auto insert = [&](int32_t step) {
    const Effect effect = progress.effect_of(step);
    ready.insert(keys[static_cast<size_t>(step)].emplace(effect.after, effect.during, step));
  };
  for (int32_t step = 0; step < graph.step_count(); ++step) {
    missing.push_back(graph.predecessors[static_cast<size_t>(step)].size());
    if (missing.back() == 0) insert(step);
  }
  while (!ready.empty()) {
    const int32_t best = std::get<int32_t>(*ready.begin());
    ready.erase(ready.begin());
    keys[static_cast<size_t>(best)].reset();
    order.push_back(best);
    progress.run(best, [&](int32_t step, int64_t bytes) {
      std::optional<Key>& key = keys[static_cast<size_t>(step)];
      if (!key) return;
      ready.erase(*key);
      std::get<0>(*key) -= bytes;
      ready.insert(*key);
    });
    for (int32_t next : graph.successors[static_cast<size_t>(best)]) {
      if (--missing[static_cast<size_t>(next)] == 0) insert(next);
    }
  }
  return order;
}

/// The same from the end: always the step all whose readers are placed and which, seen backwards, adds the
/// fewest bytes: its operands come to life unless a later step has kept them, its results go. Then the last.
std::vector<int32_t> least_growth_backwards(const StepGraph& graph) {
  using Key = std::pair<int64_t, int32_t>;  // growth, the step's number negated
  std::vector<int32_t> order;
  std::vector<bool> live(graph.values.size(), false);
  std::vector<size_t> missing;
  std::vector<std::optional<Key>> keys(graph.steps.size());  // of the steps that are ready
  std::set<Key> ready;
  const auto insert = [&](int32_t index) {
    const ScheduleStep& step = graph.steps[static_cast<size_t>(index)];
    int64_t growth = 0;
    for (int32_t value : step.uses) {
      if (!live[static_cast<size_t>(value)]) growth += graph.values[static_cast<size_t>(value)].size;
    }
    for (int32_t value : step.makes) {
      if (live[static_cast<size_t>(value)]) growth -= graph.values[static_cast<size_t>(value)].size;
    }
    ready.insert(keys[static_cast<size_t>(index)].emplace(growth, -index));
  };
  for (size_t v = 0; v < graph.values.size(); ++v) live[v] = graph.values[v].is_output;
  for (int32_t step = 0; step < graph.step_count(); ++step) {
    missing.push_back(graph.successors[static_cast<size_t>(step)].size());
    if (missing.back() == 0) insert(step);
  }
  while (!ready.empty()) {
    const int32_t best = -ready.begin()->second;
    ready.erase(ready.begin());
    keys[static_cast<size_t>(best)].reset();
    order.push_back(best);
    for (int32_t value : graph.steps[static_cast<size_t>(best)].uses) {
      if (live[static_cast<size_t>(value)]) continue;
      live[static_cast<size_t>(value)] = true;
      for (int32_t user : graph.users[static_cast<size_t>(value)]) {
        std::optional<Key>& key = keys[static_cast<size_t>(user)];
        if (!key) continue;
        ready.erase(*key);
        key->first -= graph.values[static_cast<size_t>(value)].size;
        ready.insert(*key);
      }
    }
    for (int32_t value : graph.steps[static_cast<size_t>(best)].makes) {
      live[static_cast<size_t>(value)] = false;
    }
    for (int32_t before : graph.predecessors[static_cast<size_t>(best)]) {
      if (--missing[static_cast<size_t>(before)] == 0) insert(before);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace

int64_t schedule_peak(const std::vector<ScheduleStep>& steps, const std::vector<ScheduleValue>& values,
                      const std::vector<int32_t>& order) {
  GC_CHECK(order.size() == steps.size());
  return peak_of(schedule::make_step_graph(steps, values), order);
}

ScheduleOrder choose_schedule_order(const std::vector<ScheduleStep>& steps,
                                    const std::vector<ScheduleValue>& values,
                                    const ScheduleOrderOptions& options) {
  const StepGraph graph = schedule::make_step_graph(steps, values);
  const int64_t bound = peak_bound(graph);
  ScheduleOrder best;
  best.steps.resize(steps.size());
  std::iota(best.steps.begin(), best.steps.end(), 0);
  best.given_peak_bytes = best.peak_bytes = peak_of(graph, best.steps);
  best.rule = "given";
  struct Rule {
    const char* name;
    std::vector<int32_t> (*run)(const StepGraph&);
  };
  for (const Rule& rule : {Rule{"depth-first", depth_first}, Rule{"least-growth", least_growth},
                           Rule{"least-growth backwards", least_growth_backwards}}) {
    if (best.peak_bytes <= bound) break;
    std::vector<int32_t> order = rule.run(graph);
    GC_CHECK(order.size() == steps.size());
    const int64_t peak = peak_of(graph, order);
    if (peak < best.peak_bytes) best.steps = std::move(order), best.peak_bytes = peak, best.rule = rule.name;
  }
  best.proven_optimal = best.peak_bytes <= bound;
  if (best.proven_optimal || options.state_budget <= 0) return best;
  schedule::DownSetResult found = schedule::search_down_sets(graph, best.peak_bytes, options.state_budget);
  best.proven_optimal = found.complete;
  if (!found.order.empty()) {
    best.steps = std::move(found.order);
    best.peak_bytes = found.peak;
    best.rule = "down-sets";
  }
  return best;
}

}  // namespace gcompile

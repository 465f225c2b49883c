#include <algorithm>
#include <map>
#include <utility>

#include "base/interrupt.h"
#include "codegen/order/step_graph.h"

namespace gcompile::schedule {
namespace {

/// Work that a state of the budget stands for: enough for graphs of a few thousand steps; of larger ones the
/// search stops early.
constexpr int64_t kWordsPerState = 1000;

using StepSet = std::vector<uint64_t>;

bool contains(const StepSet& set, int32_t step) {
  return (set[static_cast<size_t>(step) / 64] >> (static_cast<uint32_t>(step) % 64) & 1) != 0;
}

void insert(StepSet& set, int32_t step) {
  set[static_cast<size_t>(step) / 64] |= uint64_t{1} << (static_cast<uint32_t>(step) % 64);
}

/// A set of finished steps that is closed under predecessors: what is live depends on the set alone, so of
/// the orders that lead to it only the one with the lowest peak matters.
struct State {
  StepSet done;
  std::vector<int32_t> ready;
  int64_t live = 0;
  int64_t peak = 0;
};

struct Origin {
  int32_t parent;
  int32_t step;
};

State advance(const StepGraph& graph, const State& from, int32_t step, const Effect& effect, StepSet done) {
  State to;
  to.done = std::move(done);
  to.live = from.live + effect.after;
  to.peak = std::max(from.peak, from.live + effect.during);
  for (int32_t other : from.ready) {
    if (other != step) to.ready.push_back(other);
  }
  for (int32_t next : graph.successors[static_cast<size_t>(step)]) {
    const std::vector<int32_t>& before = graph.predecessors[static_cast<size_t>(next)];
    if (std::all_of(before.begin(), before.end(), [&](int32_t b) { return contains(to.done, b); })) {
      to.ready.push_back(next);
    }
  }
  std::sort(to.ready.begin(), to.ready.end());
  return to;
}

/// Whether all readers of the value but `step` are done.
bool is_last_reader(const StepGraph& graph, const StepSet& done, int32_t value, int32_t step) {
  const std::vector<int32_t>& users = graph.users[static_cast<size_t>(value)];
  return std::all_of(users.begin(), users.end(),
                     [&](int32_t user) { return user == step || contains(done, user); });
}

/// Machine words that looking at a step from one state touches: the readers of what it uses, and the set.
int64_t work_of(const StepGraph& graph, const State& state, int32_t step) {
  auto words = static_cast<int64_t>(state.done.size() + state.ready.size());
  for (int32_t value : graph.steps[static_cast<size_t>(step)].uses) {
    words += static_cast<int64_t>(graph.users[static_cast<size_t>(value)].size());
  }
  return words;
}

/// Keeps the `width` states with the lowest peak, then the fewest live bytes. True if any was dropped.
bool keep_best(std::vector<State>& states, std::vector<Origin>& origins, size_t width) {
  if (states.size() <= width) return false;
  std::vector<size_t> order(states.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(states[a].peak, states[a].live) < std::pair(states[b].peak, states[b].live);
  });
  order.resize(width);
  std::vector<State> kept;
  std::vector<Origin> kept_origins;
  for (size_t i : order) {
    kept.push_back(std::move(states[i]));
    kept_origins.push_back(origins[i]);
  }
  states = std::move(kept);
  origins = std::move(kept_origins);
  return true;
}

}  // namespace

DownSetResult search_down_sets(const StepGraph& graph, int64_t limit, int64_t state_budget) {
  DownSetResult result;
  result.complete = true;
  const size_t width =
      static_cast<size_t>(std::clamp<int64_t>(state_budget / std::max(graph.step_count(), 1), 1, 8192));
  const int64_t work_budget = state_budget * kWordsPerState;
  int64_t work = 0;
  State start;
  start.done.assign((graph.steps.size() + 63) / 64, 0);
  start.live = start.peak = graph.start_bytes;
  for (int32_t step = 0; step < graph.step_count(); ++step) {
    if (graph.predecessors[static_cast<size_t>(step)].empty()) start.ready.push_back(step);
  }
  std::vector<State> states{std::move(start)};
  std::vector<std::vector<Origin>> levels;
  for (int32_t size = 0; size < graph.step_count() && !states.empty(); ++size) {
    std::vector<State> next;
    std::vector<Origin> origins;
    std::map<StepSet, size_t> found;
    poll_interrupt();
    for (size_t parent = 0; parent < states.size(); ++parent) {
      const State& state = states[parent];
      for (int32_t step : state.ready) {
        work += work_of(graph, state, step);
        if (work > work_budget) return {};
        const Effect effect = effect_of(
            graph, step, [&](int32_t value) { return is_last_reader(graph, state.done, value, step); });
        const int64_t peak = std::max(state.peak, state.live + effect.during);
        if (peak >= limit) continue;
        StepSet done = state.done;
        insert(done, step);
        const auto [at, is_new] = found.try_emplace(done, next.size());
        if (is_new) {
          next.push_back(advance(graph, state, step, effect, std::move(done)));
          origins.push_back({static_cast<int32_t>(parent), step});
        } else if (peak < next[at->second].peak) {
          next[at->second].peak = peak;
          origins[at->second] = {static_cast<int32_t>(parent), step};
        }
      }
    }
    if (keep_best(next, origins, width)) result.complete = false;
    states = std::move(next);
    levels.push_back(std::move(origins));
  }
  if (states.empty() || levels.empty()) return result;
  result.peak = states.front().peak;
  int32_t at = 0;
  for (size_t level = levels.size(); level-- > 0;) {
    const Origin& origin = levels[level][static_cast<size_t>(at)];
    result.order.push_back(origin.step);
    at = origin.parent;
  }
  std::reverse(result.order.begin(), result.order.end());
  return result;
}

}  // namespace gcompile::schedule

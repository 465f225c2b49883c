#include "codegen/program/threaded_steps.h"

#include <algorithm>
#include <array>
#include <limits>

#include "codegen/calls/hand_over.h"

namespace gcompile {
namespace {

enum Way { kAlone, kThreaded, kWays };

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;

/// Picoseconds until a step has the activations that it reads, where those before it ran the other way.
std::int64_t to_fetch(const LoweredStep& step) {
  return usual_hand_over(step.bytes_read - step.weight_bytes);
}

/// Picoseconds of the step by itself with two threads that are awake.
std::int64_t time_of(const LoweredStep& step, Way way, const Machine& machine) {
  const std::int64_t alone = step.call.time_alone;
  return way == kAlone ? alone : alone / 2 + machine.least_item / 2;
}

bool may_run(const LoweredStep& step, Way way) {
  if (step.kind == LoweredStep::Kind::kStrips) return way == kThreaded;
  return way == kAlone || step.call.threaded;
}

/// The least time behind each step by the way it runs, and the way of the step before it.
struct Reached {
  std::array<std::int64_t, kWays> time = {0, kNever};
  std::array<Way, kWays> before = {kAlone, kAlone};
};

}  // namespace

void leave_to_one_thread(std::vector<LoweredStep>& steps, const Machine& machine) {
  std::vector<Reached> reached(1);
  for (LoweredStep& step : steps) {
    Reached next;
    for (const Way way : {kAlone, kThreaded}) {
      const Way other = way == kAlone ? kThreaded : kAlone;
      const std::int64_t same = reached.back().time[way];
      const std::int64_t changed = std::min(kNever, reached.back().time[other] + to_fetch(step));
      next.before[way] = same <= changed ? way : other;
      next.time[way] = may_run(step, way)
                           ? std::min(kNever, std::min(same, changed) + time_of(step, way, machine))
                           : kNever;
    }
    reached.push_back(next);
    leave_to_one_thread(step.then_steps, machine);
    leave_to_one_thread(step.else_steps, machine);
  }
  const std::int64_t back =
      steps.empty() ? 0 : usual_hand_over(steps.back().bytes_written - steps.back().scratch_bytes);
  Way way = reached.back().time[kAlone] <= reached.back().time[kThreaded] + back ? kAlone : kThreaded;
  for (std::size_t i = steps.size(); i-- > 0;) {
    steps[i].alone = way == kAlone && steps[i].call.threaded;
    way = reached[i + 1].before[way];
  }
}

}  // namespace gcompile

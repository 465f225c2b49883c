#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gcompile {

/// Something in memory that steps make and read.
struct ScheduleValue {
  /// Bytes of the arena; 0 for constants, aliases and what lives elsewhere.
  int64_t size = 0;
  /// Lives until the end although nobody may read it: a result of the graph.
  bool is_output = false;
};

struct ScheduleStep {
  /// Indices of values. One that no step makes is there from the start and freed after its last use.
  std::vector<int32_t> uses;
  std::vector<int32_t> makes;
  /// Bytes needed only while the step runs.
  int64_t scratch = 0;
  /// Steps that must run before this one for other reasons than a value, such as the readers of what it
  /// overwrites. A step that works in place uses its operand and makes nothing; the readers of its result use
  /// the operand and come after it.
  std::vector<int32_t> after;
};

struct ScheduleOrder {
  /// Indices of steps in the order to run.
  std::vector<int32_t> steps;
  int64_t peak_bytes = 0;
  int64_t given_peak_bytes = 0;
  /// "given", "depth-first", "least-growth", "least-growth backwards", "down-sets".
  std::string rule;
  /// No order has a lower peak.
  bool proven_optimal = false;
};

struct ScheduleOrderOptions {
  /// States (sets of finished steps) that the search may visit; 0: rules only. About 10^6 per second.
  int64_t state_budget = 400'000;
};

/// Most bytes live during any step. A value lives from the step that makes it (or the start) to its last use
/// (or, for an output, the end), both included.
int64_t schedule_peak(const std::vector<ScheduleStep>& steps, const std::vector<ScheduleValue>& values,
                      const std::vector<int32_t>& order);

/// Chooses the order with the lowest peak among the given one, three list-scheduling rules, and a search over
/// sets of finished steps (exact while they are few, else the most promising of each size; after Ahn et al.,
/// "SERENITY", MLSys 2020). Ties go to the first of these, so an order is only changed for fewer bytes. The
/// given order must be a valid one: a step that uses a value or names a step from further on is an internal
/// error, as is a value made twice.
ScheduleOrder choose_schedule_order(const std::vector<ScheduleStep>& steps,
                                    const std::vector<ScheduleValue>& values,
                                    const ScheduleOrderOptions& options = {});

}  // namespace gcompile

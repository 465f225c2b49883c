#pragma once
// The time that a call is predicted to take on a GPU.

#include "codegen/calls/kernel_call.h"
#include "codegen/choice/machine.h"
#include "ir/graph/problem.h"

namespace gcompile {

/// Bytes that a kernel moves: all, and those of them that come from the device's memory or go there.
struct Traffic {
  std::int64_t all = 0, memory = 0;
};
/// The time of a call on the machine's GPU. A kernel that knows nothing better is bound by the bytes that it
/// moves or by its multiply-adds.
gcrt::KernelTime predicted_time(const Execution& execution, std::int64_t multiply_adds,
                                const Machine& machine, const Traffic& traffic);
/// The predicted time in whole picoseconds.
std::int64_t picoseconds_of(const gcrt::KernelTime& time);
/// The time in picoseconds of a kernel that streams its operands and results.
std::int64_t streaming_picoseconds(const ir::Problem& problem, const Machine& machine);

}  // namespace gcompile

#pragma once
// Cases run in a process of their own, so that a crash, a hang or an allocation without bound ends that
// process and is told like any other finding.

#include <cstdint>
#include <functional>
#include <string>

#include "tests/fuzz/whole_compile.h"

namespace gcompile::fuzz {

struct Bounds {
  int seconds = 10;                            // of processor time, for one case
  std::int64_t bytes = std::int64_t{1} << 30;  // resident, beyond what the process starts with
};

struct Finding {
  std::uint64_t number = 0;
  std::string text;      // empty: there is none
  bool is_hang = false;  // a matter of time, which the machine may have taken for itself
};

struct Counts {
  std::uint64_t cases = 0, compiled = 0;
  std::uint64_t slowest = 0;   // a case
  double slowest_seconds = 0;  // of processor time, without those that have a defect
};

/// Runs cases first, first + 1, ... below `end` until one has a defect (`run` says so, or its process ends)
/// or `stop` is true between two cases. Adds those before it to `counts`.
Finding run_isolated(std::uint64_t first, std::uint64_t end, const Bounds& bounds,
                     const std::function<Outcome(std::uint64_t)>& run, const std::function<bool()>& stop,
                     Counts& counts);
/// One case alone.
Finding run_isolated(const std::function<Outcome()>& run);

}  // namespace gcompile::fuzz

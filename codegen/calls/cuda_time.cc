#include "codegen/calls/cuda_time.h"

#include <algorithm>
#include <cmath>

#include "gcrt/cuda/product/tile_model.h"

namespace gcompile {

gcrt::KernelTime predicted_time(const Execution& execution, std::int64_t multiply_adds,
                                const Machine& machine, const Traffic& traffic) {
  // What is read again comes from memory again unless the second-level cache holds it.
  const double again = execution.bytes_again;
  const double bytes = static_cast<double>(traffic.all) + again;
  const double of_memory = static_cast<double>(traffic.memory) +
                           (gcrt::stays_in_cache(machine.gpu, static_cast<double>(traffic.all)) ? 0 : again);
  gcrt::KernelTime time = execution.time;
  if (time.microseconds() > 0) {
    // What moves is known better here; tiles read some of it several times.
    time.memory = gcrt::memory_microseconds(machine.gpu, of_memory);
    const std::ptrdiff_t blocks = time.blocks > 0 ? time.blocks : machine.gpu.multiprocessors;
    time.cache = std::max(time.cache, gcrt::cache_microseconds(machine.gpu, bytes, blocks));
  } else {
    const double per_clock = execution.products_per_clock > 0 ? execution.products_per_clock
                                                              : gcrt::scalar_products_per_clock(machine.gpu);
    time = gcrt::streaming_time(machine.gpu, execution.launches, execution.overlaps, of_memory, bytes,
                                static_cast<double>(multiply_adds), per_clock, execution.time.blocks);
    time.latency = gcrt::waiting_microseconds(machine.gpu, execution.rounds);
    time.join = gcrt::clocks_to_microseconds(machine.gpu, execution.joins * gcrt::kArrivalClocks);
  }
  time.fill += gcrt::clocks_to_microseconds(machine.gpu, execution.reductions * gcrt::kReductionClocks);
  return time;
}

std::int64_t picoseconds_of(const gcrt::KernelTime& time) { return std::llround(time.microseconds() * 1e6); }

std::int64_t streaming_picoseconds(const ir::Problem& problem, const Machine& machine) {
  const auto bytes = static_cast<double>(problem.bytes());
  return picoseconds_of(gcrt::streaming_time(machine.gpu, 1, true, bytes, bytes,
                                             static_cast<double>(problem.multiply_adds()),
                                             gcrt::scalar_products_per_clock(machine.gpu)));
}

}  // namespace gcompile

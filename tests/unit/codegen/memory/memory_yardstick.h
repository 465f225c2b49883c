#pragma once
// The planner of TensorFlow Lite Micro, written anew as the yardstick: shares no code with ours.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "codegen/memory/plan.h"

namespace gcompile::memory_yardstick {

/// Height if the buffers are placed in this order,
/// each into the first gap in space among those that share a step.
inline int64_t first_fit(const std::vector<Buffer>& buffers, const std::vector<size_t>& order) {
  struct Placed {
    int64_t offset, top, begin, end;
  };
  std::vector<Placed> placed;
  int64_t height = 0;
  for (size_t i : order) {
    const Buffer& b = buffers[i];
    const int64_t size = (b.size + b.alignment - 1) / b.alignment * b.alignment;
    if (size == 0) continue;
    int64_t at = 0;
    for (const Placed& p : placed) {
      if (p.begin >= b.end_step || b.begin_step >= p.end) continue;
      if (at + size <= p.offset) break;
      at = std::max(at, (p.top + b.alignment - 1) / b.alignment * b.alignment);
    }
    const auto above =
        std::find_if(placed.begin(), placed.end(), [&](const Placed& p) { return p.offset > at; });
    placed.insert(above, {at, at + size, b.begin_step, b.end_step});
    height = std::max(height, at + size);
  }
  return height;
}

/// By falling size.
inline int64_t greedy_by_size(const std::vector<Buffer>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto rounded = [&](size_t i) {
    return (buffers[i].size + buffers[i].alignment - 1) / buffers[i].alignment * buffers[i].alignment;
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rounded(a) > rounded(b); });
  return first_fit(buffers, order);
}

}  // namespace gcompile::memory_yardstick

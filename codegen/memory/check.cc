#include "codegen/memory/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/interrupt.h"

namespace gcompile {
namespace {

__extension__ using Wide = __int128;

Wide rounded_size(const Buffer& buffer) {
  const Wide size = buffer.size;
  const Wide alignment = buffer.alignment;
  return size % alignment == 0 ? size : size + alignment - size % alignment;
}

bool share_a_step(const Buffer& a, const Buffer& b) {
  return !(a.end_step <= b.begin_step || b.end_step <= a.begin_step);
}

bool share_a_byte(Wide offset_a, Wide size_a, Wide offset_b, Wide size_b) {
  if (size_a == 0 || size_b == 0) return false;
  return !(offset_a + size_a <= offset_b || offset_b + size_b <= offset_a);
}

std::string label(const std::vector<Buffer>& buffers, size_t i) {
  return fmt::format("buffer {} '{}'", i, buffers[i].name);
}

std::string check_one(const std::vector<Buffer>& buffers, const MemoryPlan& plan, size_t i) {
  const Buffer& buffer = buffers[i];
  const int64_t offset = plan.offsets[i];
  if (buffer.size < 0 || buffer.alignment <= 0 || buffer.end_step <= buffer.begin_step) {
    return fmt::format("{} is malformed", label(buffers, i));
  }
  if (offset < 0) return fmt::format("{} has the negative offset {}", label(buffers, i), offset);
  if (offset % buffer.alignment != 0) {
    return fmt::format("{} at {} is not aligned to {}", label(buffers, i), offset, buffer.alignment);
  }
  if (buffer.fixed_offset && offset != *buffer.fixed_offset) {
    return fmt::format("{} is fixed at {} but was moved to {}", label(buffers, i), *buffer.fixed_offset,
                       offset);
  }
  if (Wide{offset} + rounded_size(buffer) > Wide{plan.arena_bytes}) {
    return fmt::format("{} at {} ends outside the arena of {} bytes", label(buffers, i), offset,
                       plan.arena_bytes);
  }
  return {};
}

}  // namespace

std::vector<std::string> check_memory_plan(const std::vector<Buffer>& buffers, const MemoryPlan& plan,
                                           size_t limit) {
  std::vector<std::string> violations;
  if (plan.offsets.size() != buffers.size()) {
    violations.push_back(fmt::format("{} buffers, but {} offsets", buffers.size(), plan.offsets.size()));
    return violations;
  }
  if (plan.arena_bytes < plan.lower_bound) {
    violations.push_back(
        fmt::format("the arena of {} bytes is below the bound {}", plan.arena_bytes, plan.lower_bound));
  }
  for (size_t i = 0; i < buffers.size() && violations.size() < limit; ++i) {
    std::string problem = check_one(buffers, plan, i);
    if (!problem.empty()) violations.push_back(std::move(problem));
  }
  if (!violations.empty()) return violations;
  std::vector<size_t> by_begin(buffers.size());
  std::iota(by_begin.begin(), by_begin.end(), size_t{0});
  std::stable_sort(by_begin.begin(), by_begin.end(),
                   [&](size_t a, size_t b) { return buffers[a].begin_step < buffers[b].begin_step; });
  std::vector<size_t> live;
  for (size_t j : by_begin) {
    ir::poll_interrupt();
    std::erase_if(live, [&](size_t i) { return !share_a_step(buffers[i], buffers[j]); });
    for (size_t i : live) {
      if (violations.size() >= limit) return violations;
      if (!share_a_byte(plan.offsets[i], rounded_size(buffers[i]), plan.offsets[j],
                        rounded_size(buffers[j]))) {
        continue;
      }
      violations.push_back(fmt::format("{} at {} and {} at {} overlap while both live", label(buffers, i),
                                       plan.offsets[i], label(buffers, j), plan.offsets[j]));
    }
    live.push_back(j);
  }
  return violations;
}

}  // namespace gcompile

#include "codegen/memory/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/interrupt.h"

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

std::vector<size_t> sorted_by(const std::vector<Buffer>& buffers, std::int64_t Buffer::*step) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].*step < buffers[b].*step; });
  return order;
}

/// Whether no two buffers that live in a common step share a byte; each by itself must be right. O(n log n):
/// live buffers are disjoint, so that a new one can only meet its neighbours.
bool are_disjoint(const std::vector<Buffer>& buffers, const MemoryPlan& plan) {
  const std::vector<size_t> by_end = sorted_by(buffers, &Buffer::end_step);
  auto ended = by_end.begin();
  std::map<std::int64_t, std::int64_t> live;  // offset -> end
  for (size_t j : sorted_by(buffers, &Buffer::begin_step)) {
    poll_interrupt();
    for (; ended != by_end.end() && buffers[*ended].end_step <= buffers[j].begin_step; ++ended) {
      if (buffers[*ended].size > 0) live.erase(plan.offsets[*ended]);
    }
    if (buffers[j].size == 0) continue;
    const std::int64_t begin = plan.offsets[j];
    const auto end = static_cast<std::int64_t>(begin + rounded_size(buffers[j]));
    const auto next = live.lower_bound(begin);
    if (next != live.end() && next->first < end) return false;
    if (next != live.begin() && std::prev(next)->second > begin) return false;
    live.emplace_hint(next, begin, end);
  }
  return true;
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
  if (!violations.empty() || are_disjoint(buffers, plan)) return violations;
  std::vector<size_t> live;
  for (size_t j : sorted_by(buffers, &Buffer::begin_step)) {
    poll_interrupt();
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

#include "codegen/memory/plan.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>

#include "codegen/memory/ensemble.h"
#include "codegen/memory/improve.h"
#include "codegen/memory/placement_problem.h"

namespace gcompile {
MemoryPlan plan_memory(const std::vector<Buffer>& buffers, const MemoryPlanOptions& options) {
  const memory::PlacementProblem problem = memory::make_problem(buffers);
  memory::Placement best = memory::best_greedy(problem);
  MemoryPlan plan;
  plan.lower_bound = problem.lower_bound;
  plan.proven_optimal = best.height <= problem.lower_bound;
  if (!plan.proven_optimal && options.search_budget > 0) {
    const memory::SearchResult found = memory::improve_placement(problem, best, options);
    plan.search_work = found.work;
    plan.proven_optimal = found.proven_optimal;
  }
  plan.order_used = best.rule;
  plan.arena_bytes = std::max(best.height, problem.lower_bound);
  plan.offsets.assign(buffers.size(), 0);
  for (size_t i = 0; i < buffers.size(); ++i) plan.offsets[i] = buffers[i].fixed_offset.value_or(0);
  for (size_t i = 0; i < problem.blocks.size(); ++i) {
    plan.offsets[static_cast<size_t>(problem.blocks[i].source)] = best.offsets[i];
  }
  return plan;
}

namespace {

/// Free stretches of an endless arena.
class Gaps {
 public:
  /// Offset of the lowest place.
  int64_t take(int64_t size, int64_t alignment) {
    for (auto gap = free_.begin();; ++gap) {
      const auto [begin, end] = *gap;
      const int64_t offset = memory::align_up(begin, alignment);
      if (end - offset < size) continue;
      free_.erase(gap);
      if (begin < offset) free_.emplace(begin, offset);
      if (offset + size < end) free_.emplace(offset + size, end);
      return offset;
    }
  }
  void release(int64_t begin, int64_t end) {
    auto next = free_.lower_bound(begin);
    if (next != free_.end() && next->first == end) {
      end = next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin() && std::prev(next)->second == begin) {
      std::prev(next)->second = end;
    } else {
      free_.emplace(begin, end);
    }
  }

 private:
  std::map<int64_t, int64_t> free_ = {{0, std::numeric_limits<int64_t>::max()}};  // begin -> end
};

}  // namespace

int64_t first_fit_reference(const std::vector<Buffer>& buffers) {
  memory::make_problem(buffers);  // for its checks
  std::vector<size_t> by_begin(buffers.size());
  std::iota(by_begin.begin(), by_begin.end(), size_t{0});
  std::stable_sort(by_begin.begin(), by_begin.end(),
                   [&](size_t a, size_t b) { return buffers[a].begin_step < buffers[b].begin_step; });
  Gaps gaps;
  std::multimap<int64_t, std::pair<int64_t, int64_t>> live_until;  // end step -> bytes taken
  int64_t height = 0;
  for (size_t index : by_begin) {
    const Buffer& buffer = buffers[index];
    if (buffer.size == 0) continue;
    while (!live_until.empty() && live_until.begin()->first <= buffer.begin_step) {
      gaps.release(live_until.begin()->second.first, live_until.begin()->second.second);
      live_until.erase(live_until.begin());
    }
    const int64_t size = memory::align_up(buffer.size, buffer.alignment);
    const int64_t offset = gaps.take(size, buffer.alignment);
    live_until.emplace(buffer.end_step, std::pair(offset, offset + size));
    height = std::max(height, offset + size);
  }
  return height;
}

const char* buffer_kind_name(BufferKind kind) {
  switch (kind) {
    case BufferKind::kActivation:
      return "activation";
    case BufferKind::kScratch:
      return "scratch";
    case BufferKind::kInput:
      return "input";
    case BufferKind::kOutput:
      return "output";
    case BufferKind::kState:
      return "state";
  }
  return "unknown";
}

}  // namespace gcompile

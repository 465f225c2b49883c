#include "codegen/memory/greedy.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/diagnostics.h"
#include "base/interrupt.h"

namespace gcompile::memory {
namespace {

/// Listing all pairs costs 4 bytes each way.
constexpr int64_t kListedPairsLimit = 4'000'000;

int64_t count_conflict_pairs(const PlacementProblem& problem) {
  std::vector<int32_t> begins;
  for (const Block& block : problem.blocks) begins.push_back(block.begin);
  std::sort(begins.begin(), begins.end());
  int64_t pairs = 0;
  for (size_t i = 0; i < begins.size(); ++i) pairs -= static_cast<int64_t>(i) + 1;
  for (const Block& block : problem.blocks) {
    pairs += std::lower_bound(begins.begin(), begins.end(), block.end) - begins.begin();
  }
  return pairs;
}

/// Takes the placed conflicts of a block from the bottom up and finds the gap for it.
class GapFinder {
 public:
  GapFinder(const Block& block, Fit fit) : block_(block), fit_(fit) {}

  /// True once no later conflict can change the offset.
  bool feed(int64_t conflict_offset, int64_t conflict_top) {
    if (done_) return true;
    const int64_t offset = align_up(floor_, block_.alignment);
    const int64_t slack = conflict_offset - offset - block_.size;
    if (slack >= 0 && slack < best_slack_) {
      best_ = offset;
      best_slack_ = slack;
      done_ = fit_ == Fit::kFirst || slack == 0;
    }
    floor_ = std::max(floor_, conflict_top);
    return done_;
  }

  int64_t offset() const { return best_ >= 0 ? best_ : align_up(floor_, block_.alignment); }

 private:
  const Block& block_;
  Fit fit_;
  bool done_ = false;
  int64_t floor_ = 0;
  int64_t best_ = -1;
  int64_t best_slack_ = std::numeric_limits<int64_t>::max();
};

}  // namespace

GreedyPlacer::GreedyPlacer(const PlacementProblem& problem) : problem_(problem) {
  if (count_conflict_pairs(problem) <= kListedPairsLimit) list_conflicts();
}

void GreedyPlacer::list_conflicts() {
  const std::vector<Block>& blocks = problem_.blocks;
  std::vector<int32_t> by_begin(blocks.size());
  std::iota(by_begin.begin(), by_begin.end(), 0);
  std::stable_sort(by_begin.begin(), by_begin.end(), [&](int32_t a, int32_t b) {
    return blocks[static_cast<size_t>(a)].begin < blocks[static_cast<size_t>(b)].begin;
  });
  auto for_each_pair = [&](auto&& visit) {
    for (size_t i = 0; i < by_begin.size(); ++i) {
      const int32_t end = blocks[static_cast<size_t>(by_begin[i])].end;
      for (size_t j = i + 1; j < by_begin.size(); ++j) {
        if (blocks[static_cast<size_t>(by_begin[j])].begin >= end) break;
        visit(static_cast<size_t>(by_begin[i]), static_cast<size_t>(by_begin[j]));
      }
    }
  };
  conflict_start_.assign(blocks.size() + 1, 0);
  for_each_pair([&](size_t a, size_t b) { ++conflict_start_[a + 1], ++conflict_start_[b + 1]; });
  std::partial_sum(conflict_start_.begin(), conflict_start_.end(), conflict_start_.begin());
  conflicts_.resize(static_cast<size_t>(conflict_start_.back()));
  std::vector<int64_t> next(conflict_start_.begin(), conflict_start_.end() - 1);
  for_each_pair([&](size_t a, size_t b) {
    conflicts_[static_cast<size_t>(next[a]++)] = static_cast<int32_t>(b);
    conflicts_[static_cast<size_t>(next[b]++)] = static_cast<int32_t>(a);
  });
  listed_ = true;
}

int64_t GreedyPlacer::most_work_of_an_order() const {
  const auto blocks = static_cast<int64_t>(problem_.blocks.size());
  return listed_ ? 5 * static_cast<int64_t>(conflicts_.size()) : blocks * (blocks - 1) / 2;
}

void GreedyPlacer::collect_listed(int32_t index, const std::vector<int64_t>& offsets) {
  const auto block = static_cast<size_t>(index);
  neighbours_.clear();
  for (int64_t i = conflict_start_[block]; i < conflict_start_[block + 1]; ++i) {
    const auto other = static_cast<size_t>(conflicts_[static_cast<size_t>(i)]);
    const int64_t offset = offsets[other];
    if (offset >= 0) neighbours_.push_back({offset, offset + problem_.blocks[other].size, 0, 0});
  }
  work_ += conflict_start_[block + 1] - conflict_start_[block] + 4 * static_cast<int64_t>(neighbours_.size());
  std::sort(neighbours_.begin(), neighbours_.end(),
            [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
}

/// Without branches: which of the placed share time with the block is as good as random.
void GreedyPlacer::collect_chunk(const std::vector<Placed>& chunk, const Block& block) {
  neighbours_.resize(kChunkLimit);
  size_t count = 0;
  for (const Placed& placed : chunk) {
    neighbours_[count] = placed;
    count += static_cast<size_t>(placed.begin < block.end) & static_cast<size_t>(block.begin < placed.end);
  }
  neighbours_.resize(count);
  work_ += static_cast<int64_t>(chunk.size());
}

int64_t GreedyPlacer::choose_offset(int32_t index, Fit fit, bool use_hints,
                                    const std::vector<int64_t>& offsets) {
  const Block& block = problem_.blocks[static_cast<size_t>(index)];
  GapFinder finder(block, fit);
  bool hint_free = use_hints && block.hint >= 0 && block.hint % block.alignment == 0;
  const auto feed = [&] {
    for (const Placed& placed : neighbours_) {
      hint_free = hint_free && (block.hint + block.size <= placed.offset || placed.top <= block.hint);
      if (finder.feed(placed.offset, placed.top) && !hint_free) return true;
    }
    return false;
  };
  if (listed_) {
    collect_listed(index, offsets);
    feed();
  } else {
    for (const std::vector<Placed>& chunk : chunks_) {
      collect_chunk(chunk, block);
      if (feed()) break;
    }
  }
  return hint_free ? block.hint : finder.offset();
}

void GreedyPlacer::remember(int32_t index, int64_t offset) {
  if (listed_) return;
  const Block& block = problem_.blocks[static_cast<size_t>(index)];
  const Placed placed{offset, offset + block.size, block.begin, block.end};
  auto chunk = std::partition_point(chunks_.begin(), chunks_.end(),
                                    [&](const auto& c) { return c.back().offset < offset; });
  if (chunk == chunks_.end()) {
    if (chunks_.empty()) chunks_.emplace_back();
    chunk = chunks_.end() - 1;
  }
  auto at =
      std::partition_point(chunk->begin(), chunk->end(), [&](const Placed& p) { return p.offset < offset; });
  chunk->insert(at, placed);
  if (chunk->size() >= kChunkLimit) {
    std::vector<Placed> upper(chunk->begin() + kChunkLimit / 2, chunk->end());
    chunk->resize(kChunkLimit / 2);
    chunks_.insert(chunk + 1, std::move(upper));
  }
}

Placement GreedyPlacer::place(const std::vector<int32_t>& order, Fit fit, int64_t give_up_at,
                              bool use_hints) {
  Placement result;
  result.offsets.assign(problem_.blocks.size(), -1);
  chunks_.clear();
  auto put = [&](int32_t index, int64_t offset) {
    result.offsets[static_cast<size_t>(index)] = offset;
    result.height = std::max(result.height, offset + problem_.blocks[static_cast<size_t>(index)].size);
    remember(index, offset);
  };
  if (problem_.has_fixed) {
    for (size_t i = 0; i < problem_.blocks.size(); ++i) {
      if (problem_.blocks[i].fixed_offset >= 0) put(static_cast<int32_t>(i), problem_.blocks[i].fixed_offset);
    }
  }
  for (int32_t index : order) {
    poll_interrupt();
    const Block& block = problem_.blocks[static_cast<size_t>(index)];
    if (block.fixed_offset >= 0) continue;
    put(index, choose_offset(index, fit, use_hints, result.offsets));
    if (result.height >= give_up_at) {
      result.height = -1;
      return result;
    }
  }
  return result;
}

void sink_blocks(const PlacementProblem& problem, GreedyPlacer& placer, Placement& placement) {
  std::vector<int32_t> order(problem.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return placement.offsets[static_cast<size_t>(a)] < placement.offsets[static_cast<size_t>(b)];
  });
  Placement sunk = placer.place(order, Fit::kFirst, std::numeric_limits<int64_t>::max());
  GC_CHECK(sunk.height <= placement.height);
  sunk.rule = placement.rule;
  placement = std::move(sunk);
}

}  // namespace gcompile::memory

#include "codegen/memory/skyline.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

#include "base/diagnostics.h"

namespace gcompile::memory {
namespace {

constexpr int32_t kNobody = std::numeric_limits<int32_t>::max();

/// Answers which block of the least rank lives within a range of sections: a tree of the lives as points
/// (begin, end), halved by begin and by end in turn.
class LifeTree {
 public:
  LifeTree(const std::vector<Block>& blocks, const std::vector<int32_t>& rank)
      : blocks_(blocks), rank_(rank) {
    while (leaves_ < blocks.size()) leaves_ *= 2;
    nodes_.resize(2 * leaves_);
    place_.resize(blocks.size());
    points_.resize(blocks.size());
    std::iota(points_.begin(), points_.end(), 0);
    build(1, 0, leaves_, true);
  }

  void remove(int32_t block) {
    size_t node = place_[static_cast<size_t>(block)];
    nodes_[node] = Node();
    for (node /= 2; node > 0; node /= 2) nodes_[node] = join(nodes_[2 * node], nodes_[2 * node + 1]);
  }

  /// kNobody: none does.
  int32_t least_rank_within(int32_t begin, int32_t end, int64_t& work) const {
    int32_t best = kNobody;
    descend(1, begin, end, best, work);
    return best;
  }

 private:
  struct Node {
    int32_t least_begin = kNobody;
    int32_t largest_begin = -1;
    int32_t least_end = kNobody;
    int32_t largest_end = -1;
    int32_t least_rank = kNobody;
  };

  static Node join(const Node& a, const Node& b) {
    return {std::min(a.least_begin, b.least_begin), std::max(a.largest_begin, b.largest_begin),
            std::min(a.least_end, b.least_end), std::max(a.largest_end, b.largest_end),
            std::min(a.least_rank, b.least_rank)};
  }

  void build(size_t node, size_t first, size_t last, bool by_begin) {
    if (first >= points_.size()) return;
    if (last - first == 1) {
      const auto index = static_cast<size_t>(points_[first]);
      const Block& block = blocks_[index];
      nodes_[node] = {block.begin, block.begin, block.end, block.end, rank_[index]};
      place_[index] = node;
      return;
    }
    const size_t middle = (first + last) / 2;
    if (middle < points_.size()) {
      const auto at = [&](size_t i) { return points_.begin() + static_cast<std::ptrdiff_t>(i); };
      std::nth_element(at(first), at(middle), at(std::min(last, points_.size())), [&](int32_t a, int32_t b) {
        const Block& left = blocks_[static_cast<size_t>(a)];
        const Block& right = blocks_[static_cast<size_t>(b)];
        return by_begin ? std::pair(left.begin, a) < std::pair(right.begin, b)
                        : std::pair(left.end, a) < std::pair(right.end, b);
      });
    }
    build(2 * node, first, middle, !by_begin);
    build(2 * node + 1, middle, last, !by_begin);
    nodes_[node] = join(nodes_[2 * node], nodes_[2 * node + 1]);
  }

  void descend(size_t node, int32_t begin, int32_t end, int32_t& best, int64_t& work) const {
    const Node& here = nodes_[node];
    ++work;
    if (here.least_rank >= best || here.largest_begin < begin || here.least_end > end) return;
    if (here.least_begin >= begin && here.largest_end <= end) {
      best = here.least_rank;
      return;
    }
    descend(2 * node, begin, end, best, work);
    descend(2 * node + 1, begin, end, best, work);
  }

  const std::vector<Block>& blocks_;
  const std::vector<int32_t>& rank_;
  size_t leaves_ = 1;
  std::vector<Node> nodes_;      // nodes_[1] is the root, the children of n are 2n and 2n + 1
  std::vector<size_t> place_;    // by block, its leaf
  std::vector<int32_t> points_;  // the blocks, as the leaves hold them
};

/// Runs of sections of equal height. All sections belong to one.
class Skyline {
 public:
  explicit Skyline(int32_t section_count) : runs_(static_cast<size_t>(section_count)) {
    if (section_count > 0) put(0, section_count, 0);
  }

  struct Run {
    int32_t end = 0;  // 0: no run begins here
    int32_t before = -1;
    int64_t height = 0;
  };
  const Run& run(int32_t begin) const { return runs_[static_cast<size_t>(begin)]; }

  /// The begin of the lowest run, the first of equals; those of its height that follow are joined to it.
  int32_t lowest() {
    for (;; valleys_.pop()) {
      const auto [height, begin] = valleys_.top();
      const Run& found = run(begin);
      if (found.end == 0 || found.height != height) continue;
      while (!last(found) && run(found.end).height == height) put(begin, swallow(found.end), height);
      return begin;
    }
  }

  /// Lifts the run to its lower neighbour and joins the two, or the three.
  void raise(int32_t begin) {
    const Run old = run(begin);
    int64_t height = std::numeric_limits<int64_t>::max();
    if (begin > 0) height = std::min(height, run(old.before).height);
    if (!last(old)) height = std::min(height, run(old.end).height);
    GC_CHECK(height > old.height && height != std::numeric_limits<int64_t>::max());
    int32_t end = old.end;
    if (!last(old) && run(end).height == height) end = swallow(end);
    if (begin > 0 && run(old.before).height == height) {
      swallow(begin);
      begin = old.before;
    }
    put(begin, end, height);
  }

  /// Sets the height of [begin, end), which lies within the run at `at`.
  void build_on(int32_t at, int32_t begin, int32_t end, int64_t height) {
    const Run old = run(at);
    if (end < old.end) put(end, old.end, old.height, begin);
    put(begin, end, height, begin > at ? at : old.before);
    if (begin > at) put(at, begin, old.height);
  }

 private:
  bool last(const Run& run) const { return run.end == static_cast<int32_t>(runs_.size()); }

  /// Forgets the run; returns its end.
  int32_t swallow(int32_t begin) { return std::exchange(runs_[static_cast<size_t>(begin)].end, 0); }

  void put(int32_t begin, int32_t end, int64_t height) { put(begin, end, height, run(begin).before); }
  void put(int32_t begin, int32_t end, int64_t height, int32_t before) {
    runs_[static_cast<size_t>(begin)] = {end, before, height};
    if (end < static_cast<int32_t>(runs_.size())) runs_[static_cast<size_t>(end)].before = begin;
    valleys_.emplace(height, begin);
  }

  std::vector<Run> runs_;                      // by their begin
  using Valley = std::pair<int64_t, int32_t>;  // height and begin; may be out of date
  std::priority_queue<Valley, std::vector<Valley>, std::greater<>> valleys_;
};

}  // namespace

Placement fill_skyline(const PlacementProblem& problem, const std::vector<int32_t>& order, int64_t give_up_at,
                       int64_t& work) {
  GC_CHECK(!problem.has_fixed);
  Placement result;
  result.offsets.assign(problem.blocks.size(), -1);
  std::vector<int32_t> rank(order.size());
  for (size_t i = 0; i < order.size(); ++i) rank[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  LifeTree open(problem.blocks, rank);
  Skyline skyline(problem.section_count);
  for (size_t left = order.size(); left > 0;) {
    const int32_t valley = skyline.lowest();
    const int64_t floor = skyline.run(valley).height;
    const int32_t best = open.least_rank_within(valley, skyline.run(valley).end, work);
    if (best == kNobody) {
      skyline.raise(valley);
      continue;
    }
    const int32_t index = order[static_cast<size_t>(best)];
    const Block& block = problem.blocks[static_cast<size_t>(index)];
    const int64_t offset = align_up(floor, block.alignment);
    result.offsets[static_cast<size_t>(index)] = offset;
    result.height = std::max(result.height, offset + block.size);
    if (result.height >= give_up_at) {
      result.height = -1;
      return result;
    }
    open.remove(index);
    skyline.build_on(valley, block.begin, block.end, offset + block.size);
    --left;
  }
  return result;
}

}  // namespace gcompile::memory

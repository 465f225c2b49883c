#include "codegen/memory/improve.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "codegen/memory/capacity_search.h"
#include "codegen/memory/ensemble.h"
#include "codegen/memory/greedy.h"
#include "codegen/memory/parts.h"

namespace gcompile::memory {
namespace {

/// (block, section) pairs of a part that the search may hold: about 12 bytes each.
constexpr int64_t kPairLimit = 4'000'000;

enum class RankKey { kSections, kArea, kSize, kLifetime };
/// Each key with each focus.
constexpr uint64_t kTactics = 2 * 4;
/// At one capacity before it counts as out of reach for now.
constexpr int kAttempts = kTactics;

double rank_key(const Block& block, RankKey key) {
  const auto size = static_cast<double>(block.size);
  const double sections = block.end - block.begin;
  switch (key) {
    case RankKey::kSections:
      return sections;
    case RankKey::kArea:
      return sections * size;
    case RankKey::kSize:
      return size;
    case RankKey::kLifetime:
      return static_cast<double>(block.lifetime);
  }
  return 0.0;
}

/// Ranks the blocks by falling key, ties by larger area. From round 1 on the keys are shaken by up to a
/// third, another way each round: the run time of such searches has a heavy tail, which restarts cut off.
std::vector<int32_t> make_rank(const PlacementProblem& problem, RankKey key, uint64_t round) {
  uint64_t state = 0x9E3779B97F4A7C15u * (round + 1);
  std::vector<std::pair<double, double>> keys;
  for (const Block& block : problem.blocks) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double noise = round == 0 ? 0.0 : static_cast<double>(state >> 40) / static_cast<double>(1 << 24);
    keys.emplace_back(rank_key(block, key) * (1.0 + noise / 3.0), rank_key(block, RankKey::kArea));
  }
  std::vector<int32_t> order(problem.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return keys[static_cast<size_t>(a)] > keys[static_cast<size_t>(b)];
  });
  std::vector<int32_t> rank(order.size());
  for (size_t i = 0; i < order.size(); ++i) rank[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  return rank;
}

/// Every height that a pushed-down placement can have is a multiple of this: the offsets are sums of sizes,
/// rounded up where an alignment asks for more than the sizes give by themselves.
int64_t common_unit(const PlacementProblem& problem) {
  int64_t sizes = 0;
  for (const Block& block : problem.blocks) sizes = std::gcd(sizes, block.size);
  int64_t unit = sizes;
  for (const Block& block : problem.blocks) {
    if (sizes % block.alignment != 0) unit = std::gcd(unit, block.alignment);
  }
  return std::max<int64_t>(unit, 1);
}

/// The best placement of one part so far, what is proven of it, and what is asked for next. All heights
/// count from the bottom of the arena.
class PartSearch {
 public:
  /// `whole`: a placement of all blocks, of which the part's own make the start.
  PartSearch(const Part& part, const Placement& whole)
      : part_(part),
        unit_(common_unit(part.problem)),
        floor_(part.base + part.problem.lower_bound),
        placer_(std::make_unique<GreedyPlacer>(part.problem)) {
    for (const Block& block : part.problem.blocks) pairs_ += block.end - block.begin;
    if (!can_search()) {
      best_ = best_greedy(part.problem);
      return;
    }
    best_.height = whole.height;
    for (int32_t i : part.blocks) best_.offsets.push_back(whole.offsets[static_cast<size_t>(i)]);
    sink_blocks(part.problem, *placer_, best_);
  }

  const Placement& best() const { return best_; }
  int64_t height() const { return part_.base + best_.height; }
  /// No placement is lower.
  int64_t floor() const { return floor_; }
  bool can_search() const {
    return pairs_ <= kPairLimit && placer_->most_work_of_an_order() <= kFirstFitLimit;
  }
  bool improved() const { return improved_; }

  /// One run of the search. `goal`: the height from which on the arena would not get smaller; the run asks
  /// for it, or for one on the way there. Returns the work done.
  int64_t attempt(int64_t goal, int64_t work_limit, int64_t work_left) {
    if (!search_) {
      search_ = std::make_unique<CapacitySearch>(part_.problem);
      // At least what a descent without a wrong turn takes.
      slice_ = std::max(work_limit / 200, 400 * pairs_);
    }
    low_ = std::max(low_, goal);
    const int64_t capacity = halving_ ? low_ + (height() - low_) / unit_ / 2 * unit_ : goal;
    const int64_t before = search_->work() + placer_->work();
    // Every other time the tactic that found something last, as it is likely to again.
    const uint64_t tactic = favourite_ && failures_ % 2 == 1 ? *favourite_ : turn_++ % kTactics;
    const auto focus =
        tactic % 2 == 0 ? CapacitySearch::Focus::kLowestValley : CapacitySearch::Focus::kFewestCases;
    const std::vector<int32_t> rank =
        make_rank(part_.problem, static_cast<RankKey>(tactic / 2), rounds_[tactic]++);
    const auto outcome = search_->run(capacity - part_.base, focus, rank, std::min(slice_, work_left));
    if (outcome == CapacitySearch::Outcome::kFound) favourite_ = tactic;
    learn(outcome, capacity, goal);
    return search_->work() + placer_->work() - before;
  }

 private:
  void learn(CapacitySearch::Outcome outcome, int64_t capacity, int64_t goal) {
    ++failures_;
    if (outcome == CapacitySearch::Outcome::kFound) {
      keep_found();
      failures_ = 0;
    } else if (outcome == CapacitySearch::Outcome::kImpossible) {
      floor_ = std::max(floor_, part_.base + ((capacity - part_.base) / unit_ + 1) * unit_);
      low_ = std::max(low_, floor_);
      failures_ = 0;
    } else if (failures_ == kAttempts) {
      failures_ = 0;
      low_ = capacity;
      halving_ = true;
    }
    // Halve the rest of the way from above while it works, so that missing the goal still gains something.
    if (halving_ && height() - low_ <= std::max(unit_, goal / 500)) {
      halving_ = false;
      low_ = goal;
      slice_ = slice_ * 3 / 2;
    }
  }

  void keep_found() {
    best_.offsets = search_->offsets();
    best_.height = 0;
    for (size_t i = 0; i < best_.offsets.size(); ++i)
      best_.height = std::max(best_.height, best_.offsets[i] + part_.problem.blocks[i].size);
    sink_blocks(part_.problem, *placer_, best_);
    improved_ = true;
  }

  const Part& part_;
  Placement best_;
  bool improved_ = false;
  int64_t unit_;
  int64_t floor_;
  std::unique_ptr<GreedyPlacer> placer_;
  int64_t pairs_ = 0;
  std::unique_ptr<CapacitySearch> search_;
  int64_t slice_ = 0;
  uint64_t turn_ = 0;
  std::array<uint64_t, kTactics> rounds_{};
  std::optional<uint64_t> favourite_;
  int failures_ = 0;  // at this capacity
  bool halving_ = false;
  int64_t low_ = 0;  // given up for now: this height and those below
};

Placement join(const Parts& parts, const std::vector<PartSearch>& searches) {
  Placement joined;
  joined.offsets = parts.settled;
  joined.height = parts.settled_height;
  joined.rule = "parts";
  for (size_t p = 0; p < searches.size(); ++p) {
    const Part& part = parts.parts[p];
    const Placement& placement = searches[p].best();
    if (searches[p].improved()) joined.rule = "search";
    joined.height = std::max(joined.height, part.base + placement.height);
    for (size_t i = 0; i < part.blocks.size(); ++i)
      joined.offsets[static_cast<size_t>(part.blocks[i])] = part.base + placement.offsets[i];
  }
  return joined;
}

}  // namespace

SearchResult improve_placement(const PlacementProblem& problem, Placement& best,
                               const MemoryPlanOptions& options) {
  SearchResult result;
  if (problem.has_fixed) return result;
  const Parts parts = split_problem(problem);
  std::vector<PartSearch> searches;
  for (const Part& part : parts.parts) searches.emplace_back(part, best);
  int64_t goal = problem.lower_bound;
  for (;;) {
    const auto tallest = std::max_element(searches.begin(), searches.end(), [](const auto& a, const auto& b) {
      return a.height() < b.height();
    });
    for (const PartSearch& search : searches) goal = std::max(goal, search.floor());
    if (tallest == searches.end() || tallest->height() <= goal) break;
    const int64_t work_left = options.search_budget - result.work;
    if (work_left <= 0 || !tallest->can_search()) break;
    result.work += tallest->attempt(goal, options.search_budget, work_left);
  }
  Placement joined = join(parts, searches);
  if (joined.height < best.height) best = std::move(joined);
  result.proven_optimal = best.height <= goal;
  return result;
}

}  // namespace gcompile::memory

#include <algorithm>
#include <numeric>

#include "codegen/memory/search.h"

namespace gcompile::memory {
namespace {

constexpr int64_t kPairLimit = 4'000'000;

enum class RankKey { kLife, kArea, kSize };
constexpr int kRankKeys = 3;

double rank_key(const Block& block, RankKey key) {
  const auto size = static_cast<double>(block.size);
  const double life = block.end - block.begin;
  switch (key) {
    case RankKey::kLife:
      return life;
    case RankKey::kArea:
      return life * size;
    case RankKey::kSize:
      return size;
  }
  return 0.0;
}

/// Ranks the blocks by falling key, ties by larger area. From round 1 on the keys are shaken by up to a
/// third, another way each round: the run time of such searches has a heavy tail, which restarts cut off.
std::vector<int32_t> make_rank(const Packing& packing, RankKey key, uint64_t round) {
  uint64_t state = 0x9E3779B97F4A7C15u * (round + 1);
  std::vector<std::pair<double, double>> keys;
  for (const Block& block : packing.blocks) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double noise = round == 0 ? 0.0 : static_cast<double>(state >> 40) / static_cast<double>(1 << 24);
    keys.emplace_back(rank_key(block, key) * (1.0 + noise / 3.0), rank_key(block, RankKey::kArea));
  }
  std::vector<int32_t> order(packing.blocks.size());
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
int64_t common_unit(const Packing& packing) {
  int64_t sizes = 0;
  for (const Block& block : packing.blocks) sizes = std::gcd(sizes, block.size);
  int64_t unit = sizes;
  for (const Block& block : packing.blocks) {
    if (sizes % block.alignment != 0) unit = std::gcd(unit, block.alignment);
  }
  return std::max<int64_t>(unit, 1);
}

}  // namespace

SearchResult improve_placement(const Packing& packing, Placement& best, int64_t work_limit) {
  SearchResult result;
  int64_t pairs = 0;
  for (const Block& block : packing.blocks) pairs += block.end - block.begin;
  if (packing.has_fixed || pairs > kPairLimit) return result;
  const int64_t unit = common_unit(packing);
  CapacitySearch search(packing);
  // At least what a descent without a wrong turn takes.
  int64_t slice = std::max(work_limit / 200, 400 * pairs);
  int64_t floor = packing.lower_bound;  // nothing is possible below it
  uint64_t turn = 0;
  auto attempt = [&](int64_t capacity) {
    const auto focus =
        turn % 2 == 0 ? CapacitySearch::Focus::kLowestValley : CapacitySearch::Focus::kFewestCases;
    const std::vector<int32_t> rank =
        make_rank(packing, static_cast<RankKey>(turn / 2 % kRankKeys), turn / (2 * kRankKeys));
    ++turn;
    const auto outcome = search.run(capacity, focus, rank, std::min(slice, work_limit - search.work()));
    if (outcome == CapacitySearch::Outcome::kFound) {
      best.offsets = search.offsets();
      best.height = 0;
      for (size_t i = 0; i < best.offsets.size(); ++i) {
        best.height = std::max(best.height, best.offsets[i] + packing.blocks[i].size);
      }
      best.rule = "search";
      result.improved = true;
    } else if (outcome == CapacitySearch::Outcome::kImpossible) {
      floor = std::max(floor, capacity + unit);
    }
  };
  while (search.work() < work_limit && best.height > floor) {
    for (int i = 0; i < 2 * kRankKeys && best.height > floor && search.work() < work_limit; ++i)
      attempt(floor);
    // Halve the rest of the way from above while it works, so that missing the bound still gains something.
    int64_t low = floor;
    while (best.height - low > std::max(unit, floor / 500) && search.work() < work_limit) {
      const int64_t middle = low + (best.height - low) / unit / 2 * unit;
      attempt(middle);
      if (best.height > middle) low = middle;
    }
    slice = slice * 3 / 2;
  }
  result.work = search.work();
  result.proven_optimal = best.height <= floor;
  return result;
}

}  // namespace gcompile::memory

#include <algorithm>
#include <functional>
#include <numeric>

#include "codegen/memory_search.h"

namespace gcompile::memory {
namespace {

constexpr int64_t kPairLimit = 4'000'000;

std::vector<int32_t> rank_by(const Packing& packing, const std::function<double(const Block&)>& key) {
  std::vector<double> keys;
  for (const Block& block : packing.blocks) keys.push_back(key(block));
  std::vector<int32_t> order(packing.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return keys[static_cast<size_t>(a)] > keys[static_cast<size_t>(b)];
  });
  std::vector<int32_t> rank(order.size());
  for (size_t i = 0; i < order.size(); ++i) rank[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  return rank;
}

std::vector<std::vector<int32_t>> make_ranks(const Packing& packing) {
  auto size = [](const Block& b) { return static_cast<double>(b.size); };
  auto life = [](const Block& b) { return static_cast<double>(b.end - b.begin); };
  return {
      rank_by(packing, life),
      rank_by(packing, [=](const Block& b) { return life(b) * size(b); }),
      rank_by(packing, size),
  };
}

/// Every height that a pushed-down placement can have is a multiple of this: the offsets are sums of sizes, rounded up
/// where an alignment asks for more than the sizes give by themselves.
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
  const std::vector<std::vector<int32_t>> ranks = make_ranks(packing);
  CapacitySearch search(packing);
  int64_t slice = std::max<int64_t>(work_limit / 64, 1);
  // No placement is known at or below `low`; none exists below `floor`. Both and best.height are multiples of
  // the unit.
  int64_t floor = packing.lower_bound;
  size_t turn = 0;
  auto attempt = [&](int64_t capacity) {
    const std::vector<int32_t>& rank = ranks[turn++ % ranks.size()];
    const auto outcome = search.run(capacity, rank, std::min(slice, work_limit - search.work()));
    if (outcome == CapacitySearch::Outcome::kFound) {
      best.offsets = search.offsets();
      best.height = 0;
      for (size_t i = 0; i < best.offsets.size(); ++i) {
        best.height = std::max(best.height, best.offsets[i] + packing.blocks[i].size);
      }
      best.rule = "search";
    } else if (outcome == CapacitySearch::Outcome::kImpossible) {
      floor = std::max(floor, capacity + unit);
    }
  };
  while (search.work() < work_limit && best.height > floor) {
    for (size_t i = 0; i < ranks.size() && best.height > floor && search.work() < work_limit; ++i)
      attempt(floor);
    // Halve the rest of the way from above while it works, so that missing the bound still gains something.
    int64_t low = floor;
    while (best.height - low > unit && search.work() < work_limit) {
      const int64_t middle = low + (best.height - low) / unit / 2 * unit;
      attempt(middle);
      if (best.height > middle) low = middle;
    }
    slice *= 2;
  }
  result.work = search.work();
  result.proven_optimal = best.height <= floor;
  return result;
}

}  // namespace gcompile::memory

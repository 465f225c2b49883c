#include "codegen/choice/prices.h"

#include <fmt/format.h>

#include "gcrt/cuda/product/tile_model.h"

namespace gcompile {

/// Passes learn of formulas while they run, so that only what is said in numbers is remembered.
const Ranking& MachinePrices::ranking_of(const ir::Problem& problem) const {
  if (ir::at_typical(problem) == problem) return rankings_.of(problem);
  latest_ = rank(problem, machine_);
  return latest_;
}

ir::Price MachinePrices::price(const ir::Problem& problem) const {
  const Ranking& ranking = ranking_of(problem);
  ir::Price price;
  if (!ranking.taken.empty()) {
    price.picoseconds = ranking.taken.front().planned.cost.picoseconds;
    return price;
  }
  for (const auto& [family, reason] : ranking.refused) {
    price.refusal += fmt::format("{}{} does not take {}", price.refusal.empty() ? "" : "; ", family, reason);
  }
  return price;
}

std::optional<ir::ElementType> MachinePrices::factor_type() const {
  const ir::ElementType stored = facts_of(machine_.precision).weight;
  const bool is_short = machine_.target == Target::kCuda && stored != ir::ElementType::kFloat32 &&
                        gcrt::has_tensor_cores(machine_.architecture.capability, machine_.precision);
  return is_short ? std::optional(stored) : std::nullopt;
}

std::vector<std::int64_t> MachinePrices::channel_units() const {
  // 8 or 16 bytes.
  return machine_.target == Target::kCuda ? std::vector<std::int64_t>{4, 8} : std::vector<std::int64_t>{};
}

std::int64_t MachinePrices::channels_together() const {
  // A word of bytes; the columns of a panel of weights.
  return machine_.target == Target::kCpp && !machine_.level.has_vectors() ? 4 : 16;
}

std::int64_t MachinePrices::moved(std::int64_t bytes) const { return machine_.picoseconds(0, bytes); }

std::vector<ir::LayoutOffer> MachinePrices::offers(const ir::Problem& problem) const {
  std::vector<ir::LayoutOffer> offers;
  for (const Candidate& candidate : ranking_of(problem).taken) {
    const Recipe& recipe = candidate.family->recipe(machine_.target);
    ir::LayoutOffer offer;
    if (recipe.layout) offer = recipe.layout(problem);
    offer.picoseconds = candidate.planned.cost.picoseconds;
    offers.push_back(std::move(offer));
  }
  return offers;
}

}  // namespace gcompile

#pragma once
// The kernel families of a machine as the passes see them.

#include "codegen/choice/rankings.h"

namespace gcompile {

class MachinePrices final : public ir::KernelPrices {
 public:
  explicit MachinePrices(Machine machine) : machine_(std::move(machine)), rankings_(machine_) {}
  ir::Price price(const ir::Problem& problem) const override;
  std::optional<ir::ElementType> factor_type() const override;
  std::vector<std::int64_t> channel_units() const override;
  std::int64_t channels_together() const override;
  bool checks_where_used() const override { return machine_.target == Target::kCuda; }
  std::int64_t moved(std::int64_t bytes) const override;
  std::vector<ir::LayoutOffer> offers(const ir::Problem& problem) const override;

 private:
  const Ranking& ranking_of(const ir::Problem& problem) const;

  Machine machine_;
  mutable Rankings rankings_;
  mutable Ranking latest_;  // of a problem that is not remembered
};

}  // namespace gcompile

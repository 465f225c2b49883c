#pragma once
// The kernel families of a machine as the passes see them.

#include "codegen/choice/family.h"

namespace gcompile {

class MachinePrices final : public ir::KernelPrices {
 public:
  explicit MachinePrices(Machine machine) : machine_(std::move(machine)) {}
  ir::Price price(const ir::Problem& problem) const override;
  std::optional<ir::ElementType> factor_type() const override;
  std::vector<std::int64_t> channel_units() const override;
  bool checks_where_used() const override { return machine_.target == Target::kCuda; }
  std::vector<ir::LayoutOffer> offers(const ir::Problem& problem) const override;

 private:
  Machine machine_;
};

}  // namespace gcompile

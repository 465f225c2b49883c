#pragma once
// What ranks the families of a machine asks each problem once, however many stages ask.

#include <list>
#include <map>
#include <string>

#include "codegen/choice/family.h"

namespace gcompile {

/// The rankings of one machine, each made when it is first asked for. What is known of formulas must not
/// change meanwhile.
class Rankings {
 public:
  /// `is_laid`: results lie as the problems say (prefer_layout).
  explicit Rankings(Machine machine, bool is_laid = false)
      : machine_(std::move(machine)), is_laid_(is_laid) {}
  const Machine& machine() const { return machine_; }
  /// What rank() says; the reference stays good.
  const Ranking& of(const ir::Problem& problem, const KernelFamily* forced = nullptr);

 private:
  struct Known {
    ir::Problem problem;
    const KernelFamily* forced;
    Ranking ranking;
  };
  Machine machine_;
  bool is_laid_;
  std::map<std::string, std::list<Known>> known_;  // by the text of the problem, which does not say all of it
};

}  // namespace gcompile

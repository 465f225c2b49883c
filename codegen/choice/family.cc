#include "codegen/choice/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/diagnostics.h"

namespace gcompile {

namespace {

Refusal refusal_of(const KernelFamily& family, const ir::Problem& problem, const ir::Problem& typical,
                   const Machine& machine) {
  const Recipe& recipe = family.recipe(machine.target);
  if (!ir::are_constant(problem) && !(recipe.takes_formulas && recipe.takes_formulas(problem))) {
    return "sizes that only a run knows";
  }
  if (family.refuses) {
    if (Refusal refusal = family.refuses(typical)) return refusal;
  }
  return recipe.refuses ? recipe.refuses(typical, machine) : std::nullopt;
}

/// The problem with one element where an axis has none, because plans are made for something to do.
ir::Problem with_elements(ir::Problem problem) {
  for (auto* list : {&problem.operands, &problem.results}) {
    for (ir::ProblemOperand& operand : *list) {
      for (ir::Dim& size : operand.shape) size = size == 0 ? ir::Dim(1) : size;
    }
  }
  return problem;
}

/// Families by their fastest plan; within a family the fastest plan first, or that with the least scratch: a
/// slower family is no way to save scratch.
void sort_by_preference(std::vector<Candidate>& candidates, const Machine& machine) {
  const auto price = [&](const Candidate& c) {
    const Cost& cost = c.planned.cost;
    return static_cast<double>(cost.picoseconds) +
           machine.weight_price * static_cast<double>(cost.extra_weights);
  };
  std::map<std::string_view, double> fastest;
  for (const Candidate& c : candidates) {
    const auto [at, inserted] = fastest.try_emplace(c.family->name, price(c));
    if (!inserted) at->second = std::min(at->second, price(c));
  }
  std::stable_sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
    if (a.family != b.family) return fastest.at(a.family->name) < fastest.at(b.family->name);
    const std::int64_t x = a.planned.cost.scratch, y = b.planned.cost.scratch;
    if (machine.smallest_scratch && x != y) return x < y;
    return price(a) < price(b);
  });
}

}  // namespace

namespace {

/// Makes times those of an average over the levels that the project is for.
void average(std::vector<Candidate>& candidates, const ir::Problem& problem, const Machine& machine) {
  const auto is_other = [&](const Candidate& c) { return c.family != candidates.front().family; };
  if (machine.rivals.empty() || std::none_of(candidates.begin(), candidates.end(), is_other)) return;
  Machine rival = machine;
  for (const Level& level : machine.rivals) {
    rival.level = level;
    for (std::size_t i = 0; i < candidates.size();) {
      const KernelFamily* family = candidates[i].family;
      const std::vector<PlannedCost> plans = family->recipe(machine.target).plans(problem, rival);
      // What has no counterpart is taken for as fast as the best.
      for (std::size_t at = 0; i < candidates.size() && candidates[i].family == family; ++at, ++i) {
        candidates[i].planned.cost.picoseconds += plans[at < plans.size() ? at : 0].cost.picoseconds;
      }
    }
  }
  const auto levels = static_cast<std::int64_t>(machine.rivals.size()) + 1;
  for (Candidate& c : candidates) c.planned.cost.picoseconds /= levels;
}

}  // namespace

Ranking rank(const ir::Problem& problem, const Machine& machine, const KernelFamily* forced) {
  Ranking ranking;
  // Formulas are legal where a family says so, and cost what they do at the typical sizes.
  const ir::Problem typical = ir::at_typical(problem), planned = with_elements(typical);
  for (const KernelFamily* family : families()) {
    if (family->kind != problem.kind() || (forced && family != forced)) continue;
    if (Refusal refusal = refusal_of(*family, problem, typical, machine)) {
      ranking.refused.emplace_back(family->name, *std::move(refusal));
      continue;
    }
    for (PlannedCost& plan : family->recipe(machine.target).plans(planned, machine)) {
      ranking.taken.push_back({family, std::move(plan)});
    }
  }
  average(ranking.taken, planned, machine);
  sort_by_preference(ranking.taken, machine);
  return ranking;
}

void prefer_layout(Ranking& ranking, const ir::Problem& problem, Target target) {
  const auto lies_so = [&](const Candidate& candidate) {
    const Recipe& recipe = candidate.family->recipe(target);
    const std::optional<ir::AxisOrder> wanted = recipe.layout ? recipe.layout(problem).result : std::nullopt;
    if (!wanted || wanted->empty()) return true;
    const ir::ProblemOperand& result = problem.results[0];
    const auto inner = static_cast<std::size_t>(wanted->back());
    return result.shape[inner] == 1 || result.strides[inner] == 1;
  };
  std::stable_partition(ranking.taken.begin(), ranking.taken.end(), lies_so);
}

std::string to_string(const Recipe& recipe, const KernelPlan& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.fields.size(); ++i) {
    text += fmt::format("{}{} {}", i ? ", " : "", recipe.fields[i], plan.fields[i]);
  }
  return text;
}

}  // namespace gcompile

#include "codegen/choice/rankings.h"

#include <algorithm>

namespace gcompile {

const Ranking& Rankings::of(const ir::Problem& problem, const KernelFamily* forced) {
  std::list<Known>& same_text = known_[to_string(problem)];
  const auto at = std::find_if(same_text.begin(), same_text.end(), [&](const Known& known) {
    return known.forced == forced && known.problem == problem;
  });
  if (at != same_text.end()) return at->ranking;
  same_text.push_back({problem, forced, rank(problem, machine_, forced)});
  Ranking& ranking = same_text.back().ranking;
  if (is_laid_) prefer_layout(ranking, problem, machine_.target);
  return ranking;
}

}  // namespace gcompile

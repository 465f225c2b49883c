#include "codegen/memory/ensemble.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <string>

#include "base/interrupt.h"
#include "codegen/memory/greedy.h"
#include "codegen/memory/skyline.h"

namespace gcompile::memory {
namespace {

/// Placed blocks that the rules may look at after the first: what fits in a fifth of a second.
constexpr int64_t kFirstFitWork = 40'000'000;
/// Nodes that the skyline's rules may look at after the first; about half of a second.
constexpr int64_t kSkylineWork = 30'000'000;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

using Key = std::function<double(const Block&)>;

struct Rule {
  const char* name;
  /// Larger goes first; ties go to the earlier buffer.
  Key key;
};

/// For each block the peak, and the sum over its sections, of the live bytes.
struct Pressure {
  std::vector<double> peak;
  std::vector<double> sum;
};

Pressure measure_pressure(const PlacementProblem& problem) {
  Pressure pressure;
  std::vector<double> prefix(static_cast<size_t>(problem.section_count) + 1, 0.0);
  for (size_t i = 0; i < problem.section_bytes.size(); ++i) {
    prefix[i + 1] = prefix[i] + static_cast<double>(problem.section_bytes[i]);
  }
  // Sparse table of maxima: level k holds maxima over 2^k sections.
  std::vector<std::vector<int64_t>> levels{problem.section_bytes};
  for (size_t width = 1; 2 * width <= problem.section_bytes.size(); width *= 2) {
    const std::vector<int64_t>& below = levels.back();
    std::vector<int64_t> level(below.size() - width);
    for (size_t i = 0; i < level.size(); ++i) level[i] = std::max(below[i], below[i + width]);
    levels.push_back(std::move(level));
  }
  for (const Block& block : problem.blocks) {
    const auto begin = static_cast<size_t>(block.begin);
    const auto end = static_cast<size_t>(block.end);
    size_t level = 0;
    while ((size_t{2} << level) <= end - begin) ++level;
    const int64_t peak = std::max(levels[level][begin], levels[level][end - (size_t{1} << level)]);
    pressure.peak.push_back(static_cast<double>(peak));
    pressure.sum.push_back(prefix[end] - prefix[begin]);
  }
  return pressure;
}

/// For first-fit and best-fit.
std::vector<Rule> make_rules(const PlacementProblem& problem, const Pressure& pressure) {
  const Block* first = problem.blocks.data();
  auto size = [](const Block& b) { return static_cast<double>(b.size); };
  auto life = [](const Block& b) { return static_cast<double>(b.lifetime); };
  auto peak = [first, &pressure](const Block& b) { return pressure.peak[static_cast<size_t>(&b - first)]; };
  auto sum = [first, &pressure](const Block& b) { return pressure.sum[static_cast<size_t>(&b - first)]; };
  return {
      {"size", size},
      {"area", [=](const Block& b) { return size(b) * life(b); }},
      {"lifetime", life},
      {"begin", [](const Block& b) { return -static_cast<double>(b.begin); }},
      {"end", [](const Block& b) { return static_cast<double>(b.end); }},
      {"conflict", [=](const Block& b) { return size(b) * sum(b); }},
      {"pressure", sum},
      {"peak-size", [=](const Block& b) { return peak(b) * size(b); }},
      {"peak-area", [=](const Block& b) { return peak(b) * size(b) * life(b); }},
      {"peak-lifetime", [=](const Block& b) { return peak(b) * life(b); }},
      {"size-root-life", [=](const Block& b) { return size(b) * size(b) * life(b); }},
      {"end-first", [](const Block& b) { return -static_cast<double>(b.end); }},
  };
}

/// For the skyline.
std::vector<Rule> make_skyline_rules(const PlacementProblem& problem, const Pressure& pressure) {
  const Block* first = problem.blocks.data();
  auto sections = [](const Block& b) { return static_cast<double>(b.end - b.begin); };
  auto size = [](const Block& b) { return static_cast<double>(b.size); };
  auto peak = [first, &pressure](const Block& b) { return pressure.peak[static_cast<size_t>(&b - first)]; };
  return {
      {"sections", sections},
      {"peak", peak},
      {"lifetime", [](const Block& b) { return static_cast<double>(b.lifetime); }},
      {"area", [=](const Block& b) { return size(b) * sections(b); }},
      {"peak-sections", [=](const Block& b) { return peak(b) * sections(b); }},
      {"size", size},
  };
}

/// By falling keys of the rule, ties by falling second keys.
std::vector<int32_t> sorted_by(const PlacementProblem& problem, const Rule& rule, const Key& second = {}) {
  std::vector<std::pair<double, double>> keys;
  for (const Block& block : problem.blocks) keys.emplace_back(rule.key(block), second ? second(block) : 0.0);
  std::vector<int32_t> order(problem.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return keys[static_cast<size_t>(a)] > keys[static_cast<size_t>(b)];
  });
  return order;
}

/// Hinted blocks first, so that a whole earlier plan given as hints is found again.
std::vector<int32_t> hinted_first(const PlacementProblem& problem, std::vector<int32_t> order) {
  std::stable_partition(order.begin(), order.end(),
                        [&](int32_t i) { return problem.blocks[static_cast<size_t>(i)].hint >= 0; });
  return order;
}

/// Keeps the lowest placement; ties go to the earlier one.
struct Contest {
  const PlacementProblem& problem;
  Placement best{{}, kNever, ""};

  bool over() const { return best.height <= problem.lower_bound; }
  void enter(Placement candidate, std::string rule) {
    poll_interrupt();
    if (candidate.height < 0) return;
    best = std::move(candidate);
    best.rule = std::move(rule);
  }
};

void try_first_fit(Contest& contest, const Pressure& pressure, GreedyPlacer& placer) {
  const PlacementProblem& problem = contest.problem;
  const std::vector<Rule> rules = make_rules(problem, pressure);
  const std::vector<int32_t> by_size = sorted_by(problem, rules[0]);
  contest.enter(placer.place(by_size, Fit::kFirst, kNever), "size/first-fit");
  if (problem.has_hints) {
    // Wins ties, hence the limit one above the best.
    const std::vector<int32_t> order = hinted_first(problem, by_size);
    contest.enter(placer.place(order, Fit::kFirst, contest.best.height + 1, true), "hints");
  }
  for (const Rule& rule : rules) {
    const std::vector<int32_t> order = sorted_by(problem, rule);
    for (Fit fit : {Fit::kFirst, Fit::kBest}) {
      if (contest.over() || placer.work() > kFirstFitWork) return;
      contest.enter(placer.place(order, fit, contest.best.height),
                    std::string(rule.name) + (fit == Fit::kFirst ? "/first-fit" : "/best-fit"));
    }
  }
}

void try_skyline(Contest& contest, const Pressure& pressure) {
  const Key area = [](const Block& b) { return static_cast<double>(b.size) * (b.end - b.begin); };
  int64_t work = 0;
  for (const Rule& rule : make_skyline_rules(contest.problem, pressure)) {
    if (contest.over() || work > kSkylineWork) return;
    const std::vector<int32_t> order = sorted_by(contest.problem, rule, area);
    contest.enter(fill_skyline(contest.problem, order, contest.best.height, work),
                  std::string(rule.name) + "/skyline");
  }
}

}  // namespace

Placement best_greedy(const PlacementProblem& problem) {
  Contest contest{problem};
  const Pressure pressure = measure_pressure(problem);
  GreedyPlacer placer(problem);
  const bool must = problem.has_fixed || problem.has_hints;
  if (must || placer.most_work_of_an_order() <= kFirstFitLimit) try_first_fit(contest, pressure, placer);
  if (!problem.has_fixed) try_skyline(contest, pressure);
  return std::move(contest.best);
}

}  // namespace gcompile::memory

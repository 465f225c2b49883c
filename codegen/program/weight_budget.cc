#include "codegen/program/weight_budget.h"

#include <algorithm>

namespace gcompile {
namespace {

template <class F>
void for_each_call(const std::vector<LoweredStep>& steps, const F& visit) {
  for (const LoweredStep& step : steps) {
    if (step.kind == LoweredStep::Kind::kCall) visit(step.call);
    for_each_call(step.then_steps, visit);
    for_each_call(step.else_steps, visit);
    for_each_call(step.strip_steps, visit);
  }
}

double price_of(const Rival& rival, double of_byte) {
  return static_cast<double>(rival.picoseconds) + of_byte * static_cast<double>(rival.extra_weights);
}

/// What the choice would be if a byte cost that much.
std::int64_t extra_weights_at(const std::vector<LoweredStep>& steps, double of_byte) {
  std::int64_t sum = 0;
  for_each_call(steps, [&](const KernelCall& call) {
    const Rival* best = nullptr;
    for (const Rival& rival : call.rivals) {
      if (!rival.refusal.empty()) continue;
      if (!best || price_of(rival, of_byte) < price_of(*best, of_byte)) best = &rival;
    }
    if (best) sum += best->extra_weights;
  });
  return sum;
}

/// Prices at which one family becomes dearer than another, ascending.
std::vector<double> turning_points(const std::vector<LoweredStep>& steps) {
  std::vector<double> points;
  for_each_call(steps, [&](const KernelCall& call) {
    for (const Rival& large : call.rivals) {
      for (const Rival& small : call.rivals) {
        const std::int64_t bytes = large.extra_weights - small.extra_weights;
        const std::int64_t saved = small.picoseconds - large.picoseconds;
        if (!large.refusal.empty() || !small.refusal.empty() || bytes <= 0 || saved <= 0) continue;
        points.push_back(static_cast<double>(saved) / static_cast<double>(bytes));
      }
    }
  });
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

}  // namespace

std::int64_t extra_weights(const std::vector<LoweredStep>& steps) {
  std::int64_t sum = 0;
  for_each_call(steps, [&](const KernelCall& call) {
    if (!call.rivals.empty()) sum += call.rivals[0].extra_weights;
  });
  return sum;
}

double weight_price_within(const std::vector<LoweredStep>& steps, std::int64_t budget) {
  const std::vector<double> points = turning_points(steps);
  if (points.empty()) return 0;
  // Between two points, where no last bit of a price decides.
  const auto price = [&](std::size_t i) {
    return i + 1 < points.size() ? (points[i] + points[i + 1]) / 2 : 2 * points[i];
  };
  std::size_t low = 0, high = points.size() - 1;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (extra_weights_at(steps, price(middle)) <= budget) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return price(low);
}

}  // namespace gcompile

// NonMaxSuppression, one comparison after the other, as the specification says it; and cases.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gcrt/scalar/boxes.h"
#include "random_values.h"

namespace suppress_reference {

using namespace GCRT_NAMESPACE;

struct Case {
  std::ptrdiff_t batch, classes, boxes, most;
  float overlap, score;
  bool has_score;
  int scores;          // how many different ones there are
  float size;          // of boxes; places are between 0 and 16
  std::int64_t asked;  // by the run
};

// Few and many candidates, ties of scores and of overlaps, more than a block of the device sorts in its own memory.
constexpr Case kCases[] = {
    {1, 1, 1, 1, 0.5f, 0.0f, true, 3, 4, 1},          {2, 3, 40, 5, 0.5f, 0.25f, true, 7, 4, 9},
    {1, 2, 63, 63, 0.25f, 0.0f, false, 1, 2, 63},     {1, 1, 700, 300, 0.5f, 0.001f, true, 1000, 1, 300},
    {2, 1, 333, 333, 0.0f, 0.5f, true, 50, 1, 40},    {1, 1, 2500, 100, 0.3f, 0.0f, false, 100000, 0.5f, 100},
    {1, 2, 90, 20, 0.5f, 2.0f, true, 9, 4, 20},       {1, 1, 20, 20, 0.5f, 0.0f, true, 5, 4, -3},
    {0, 3, 20, 20, 0.5f, 0.0f, true, 5, 4, 20},       {1, 3, 0, 0, 0.5f, 0.0f, true, 5, 4, 20},
    {1, 1, 2100, 2100, 1.0f, 0.0f, true, 4, 8, 2100},
};

struct Problem {
  Case c;
  std::vector<float> boxes, scores;
  SuppressShape shape;

  // Sides are multiples of 1/4 that may be 0 or turned around, and some numbers are none.
  explicit Problem(const Case& of) : c(of), shape{of.batch, of.classes, of.boxes, of.most} {
    kernel_test::Random random(static_cast<unsigned>(of.boxes + 7));
    const auto number = [&](int bound) { return random.below(bound); };
    for (std::ptrdiff_t i = 0; i < of.batch * of.boxes * 4; ++i) {
      const bool is_first = i % 4 < 2;
      const float quarter = static_cast<float>(number(64)) * 0.25f;
      const float side = static_cast<float>(number(9) - 1) * 0.125f * of.size;
      boxes.push_back(is_first ? quarter : boxes[static_cast<std::size_t>(i - 2)] + side);
      if (number(97) == 0) boxes.back() = std::numeric_limits<float>::quiet_NaN();
    }
    for (std::ptrdiff_t i = 0; i < of.batch * of.classes * of.boxes; ++i) {
      const int score = number(of.scores + 1);
      scores.push_back(static_cast<float>(score) / static_cast<float>(of.scores) - 0.125f);
      if (number(50) == 0) scores.back() = std::numeric_limits<float>::quiet_NaN();
      if (number(50) == 0) scores.back() = -0.0f;
      if (number(90) == 0) scores.back() = -std::numeric_limits<float>::infinity();
    }
  }

  std::size_t room() const { return static_cast<std::size_t>(c.batch * c.classes * c.most * 3); }

  template <class Boxes>
  static bool goes(const float* p, const float* q, float overlap) {
    const Box<float> a = Boxes::at(p), b = Boxes::at(q);
    const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
    const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
    if (!(a.area > 0) || !(b.area > 0) || !(width > 0) || !(height > 0)) return false;
    return width * height / (a.area + b.area - width * height) > overlap;
  }

  // Rows with zeros behind them; `count` becomes how many there are.
  template <class Boxes>
  std::vector<std::int64_t> expected(std::int64_t& count) const {
    std::vector<std::int64_t> rows;
    for (std::ptrdiff_t line = 0; line < c.batch * c.classes; ++line) {
      const float* const own = scores.data() + line * c.boxes;
      const float* const places = boxes.data() + line / c.classes * c.boxes * 4;
      std::vector<std::ptrdiff_t> order, kept;
      for (std::ptrdiff_t i = 0; i < c.boxes; ++i) {
        if (c.has_score ? own[i] > c.score : !std::isnan(own[i])) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(),
                       [&](std::ptrdiff_t i, std::ptrdiff_t j) { return own[i] > own[j]; });
      for (const std::ptrdiff_t i : order) {
        if (static_cast<std::int64_t>(kept.size()) >= std::min<std::int64_t>(c.asked, c.most)) break;
        const auto suppresses = [&](std::ptrdiff_t k) {
          return goes<Boxes>(places + 4 * i, places + 4 * k, c.overlap);
        };
        if (std::any_of(kept.begin(), kept.end(), suppresses)) continue;
        kept.push_back(i);
        rows.insert(rows.end(), {line / c.classes, line % c.classes, i});
      }
    }
    count = static_cast<std::int64_t>(rows.size()) / 3;
    rows.resize(room());
    return rows;
  }
};

}  // namespace suppress_reference

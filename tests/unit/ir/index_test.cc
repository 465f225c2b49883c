// Indices against numbers: what an expression simplifies to has the value of the expression at every point.

#include "ir/loops/index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "ir/sizes/sizes.h"

namespace gcompile::ir {
namespace {

using Numbers = std::vector<std::int64_t>;

/// Values of the axes and of the symbols.
struct Point {
  Numbers axes, symbols;
  std::int64_t size(Dim dim) const {
    return dim.at([&](int symbol) { return symbols[static_cast<std::size_t>(symbol)]; });
  }
};

std::int64_t value(const Index& index, const Point& point) {
  std::int64_t sum = point.size(index.constant());
  for (const Index::Term& t : index.terms()) {
    std::int64_t atom = 0;
    if (t.atom.kind == IndexAtom::Kind::kAxis) {
      atom = point.axes[static_cast<std::size_t>(t.atom.axis)];
    } else {
      const std::int64_t inner = value(*t.atom.inner, point), divisor = point.size(t.atom.divisor);
      const std::int64_t quotient = floor_div(inner, divisor);
      atom = t.atom.kind == IndexAtom::Kind::kFloorDiv ? quotient : inner - quotient * divisor;
    }
    sum += point.size(t.coefficient) * atom;
  }
  return sum;
}

/// Calls for every point of the ranges; of large ones for a sample that has all corners.
void for_points(const std::vector<Range>& ranges, const Numbers& symbols, std::mt19937& random,
                const std::function<void(const Point&)>& call) {
  Point point{Numbers(ranges.size()), symbols};
  Numbers low, high;
  std::int64_t count = 1;
  for (const Range& r : ranges) {
    low.push_back(point.size(r.low));
    high.push_back(point.size(r.high));
    if (low.back() >= high.back()) return;
    count *= high.back() - low.back();
  }
  const bool all = count <= 2000;
  const std::int64_t corners = std::int64_t{1} << ranges.size();
  for (std::int64_t n = 0; n < (all ? count : corners + 300); ++n) {
    std::int64_t rest = n;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const std::int64_t extent = high[i] - low[i];
      if (all) {
        point.axes[i] = low[i] + rest % extent;
        rest /= extent;
      } else if (n < corners) {
        point.axes[i] = (n >> i) & 1 ? high[i] - 1 : low[i];
      } else {
        point.axes[i] = std::uniform_int_distribution<std::int64_t>(low[i], high[i] - 1)(random);
      }
    }
    call(point);
  }
}

/// An index as it comes out, and what it means.
struct Meaning {
  Index index;
  std::function<std::int64_t(const Point&)> number;
};

class Indices {
 public:
  explicit Indices(std::uint32_t seed) : random(seed) {
    for (int i = 0; i < 3; ++i) {
      const std::int64_t low = pick(0, 3) == 0 ? pick(-5, 5) : 0;
      ranges.push_back({low, low + pick(1, pick(0, 1) ? 9 : 70)});
    }
  }
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  }
  /// Numbers as strides are: products of few factors.
  std::int64_t stride() {
    std::int64_t product = 1;
    for (std::int64_t left = pick(0, 3); left > 0; --left) product *= pick(1, 8);
    return product;
  }
  Meaning axis() {
    const auto i = static_cast<std::size_t>(pick(0, 2));
    return {Index::axis(static_cast<int>(i)), [=](const Point& p) { return p.axes[i]; }};
  }
  Meaning make(int depth) {
    if (depth == 0) return axis();
    Meaning sum = make(depth - 1);
    for (std::int64_t more = pick(0, 2); more > 0; --more) {
      const Meaning a = sum, b = pick(0, 1) ? make(depth - 1) : axis();
      const std::int64_t by = pick(0, 5) == 0 ? -stride() : stride(),
                         constant = pick(0, 2) ? 0 : pick(-9, 90);
      sum = {a.index + b.index * Dim(by) + Index(constant),
             [=](const Point& p) { return a.number(p) + by * b.number(p) + constant; }};
    }
    const std::int64_t divisor = stride();
    switch (pick(0, 3)) {
      case 0:
        return {floor_div(sum.index, Dim(divisor), ranges),
                [=](const Point& p) { return floor_div(sum.number(p), divisor); }};
      case 1:
        return {modulo(sum.index, Dim(divisor), ranges), [=](const Point& p) {
                  const std::int64_t number = sum.number(p);
                  return number - floor_div(number, divisor) * divisor;
                }};
      case 2:
        return {recombine(sum.index, ranges), sum.number};
      default:
        return sum;
    }
  }
  std::mt19937 random;
  std::vector<Range> ranges;
};

TEST(Index, RandomExpressionsKeepTheirValues) {
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    Indices indices(seed);
    const Meaning made = indices.make(3);
    const Range range = range_of(made.index, indices.ranges);
    for_points(indices.ranges, {}, indices.random, [&](const Point& point) {
      const std::int64_t number = made.number(point);
      if (HasFailure()) return;
      ASSERT_EQ(value(made.index, point), number) << "seed " << seed << ": " << to_string(made.index);
      ASSERT_LE(range.low.constant(), number) << "seed " << seed << ": " << to_string(made.index);
      ASSERT_LT(number, range.high.constant()) << "seed " << seed << ": " << to_string(made.index);
    });
    if (HasFailure()) return;
  }
}

int divisions_of(const Index& index) {
  int count = 0;
  for (const Index::Term& t : index.terms()) {
    if (t.atom.inner) count += 1 + divisions_of(*t.atom.inner);
  }
  return count;
}

/// Positions in one shape by the coordinates of another one, as Reshape makes them: where the borders of the
/// axes meet, what lies inside is never divided, whichever axes are merged or split.
TEST(Index, WhatLiesInsideIsNotDivided) {
  const std::vector<Range> ranges = {{0, 394}, {0, 8}, {0, 8}};
  const Index i0 = Index::axis(0), i1 = Index::axis(1), i2 = Index::axis(2);
  EXPECT_EQ(floor_div(i0 * 64 + i1 * 8 + i2, 12608, ranges), floor_div(i0, 197, ranges));
  EXPECT_EQ(modulo(i0 * 64 + i1 * 8 + i2, 12608, ranges), modulo(i0, 197, ranges) * 64 + i1 * 8 + i2);
  EXPECT_EQ(floor_div(i0 * 64 + i1 * 8 + Index(7) - i2, 128, ranges), floor_div(i0, 2, ranges));
  // What lies inside is one factor further on throughout.
  EXPECT_EQ(floor_div(i0 * 64 + i1 + Index(128 + 9), 320, ranges), floor_div(i0 + Index(2), 5, ranges));
  EXPECT_EQ(floor_div(i0 * 64 - i1 - Index(1), 320, ranges), floor_div(i0 - Index(1), 5, ranges));
  // The factor is what two coefficients share: 32 of 96 and 64.
  EXPECT_EQ(floor_div(i0 * 96 + i1 * 64 + i2, 320, ranges), floor_div(i0 * 3 + i1 * 2, 10, ranges));
  // One too many for the factor: nothing is proven, and nothing changes.
  const Index wide = i0 * 8 + i1 + Index(1);
  EXPECT_EQ(floor_div(wide, 24, ranges).terms()[0].atom.inner->compare(wide), 0);
  std::mt19937 random(1);
  for (const std::int64_t inside : {1, 3, 8, 20}) {
    for (const std::int64_t split : {2, 3, 197}) {
      for (const std::int64_t outside : {1, 5}) {
        // [outside * split, inside] as [outside, split, inside], and back.
        const std::vector<Range> merged = {{0, outside * split}, {0, inside}};
        const Numbers shape = {outside, split, inside};
        const std::vector<Index> found = delinearise(i0 * Dim(inside) + i1, shape_of(shape), merged);
        EXPECT_EQ(divisions_of(found[0]) + divisions_of(found[1]), outside == 1 ? 0 : 2);
        EXPECT_EQ(found[2], inside == 1 ? Index() : i1);
        const std::vector<Range> apart = {{0, outside}, {0, split}, {0, inside}};
        const Numbers joined = {outside * split, inside};
        const std::vector<Index> back =
            delinearise(linearise(std::vector{i0, i1, i2}, shape_of(shape)), shape_of(joined), apart);
        EXPECT_EQ(divisions_of(back[0]) + divisions_of(back[1]), 0);
      }
    }
  }
}

/// The same where sizes are formulas; where a size may be zero there is no proof that what lies inside is
/// less than it.
TEST(Index, WhatLiesInsideIsNotDividedByFormulas) {
  Sizes sizes;
  const Dim n = Dim::symbol(sizes.add_symbol({.name = "n", .bounds = {1, 9}, .typical = 4, .unit = 1}));
  const Dim w = Dim::symbol(sizes.add_symbol({.name = "w", .bounds = {1, 7}, .typical = 4, .unit = 1}));
  const SizesScope scope(&sizes);
  const Index i0 = Index::axis(0), i1 = Index::axis(1), i2 = Index::axis(2);
  const std::vector<Range> ranges = {{0, n * 5}, {0, w * 4}, {0, 2}};
  struct Case {
    Index index;
    Dim divisor;
    Index quotient, rest;
  };
  const std::vector<Case> cases = {
      {i0 * (w * 4) + i1, n * w * 4, floor_div(i0, n, ranges), modulo(i0, n, ranges) * (w * 4) + i1},
      {i0 * (w * 8) + i1 * 2 + i2, w * 24, floor_div(i0, 3, ranges),
       modulo(i0, 3, ranges) * (w * 8) + i1 * 2 + i2},
      {i0 * (w * n * 8) + i1, w * 12, Index(), Index()},
      {i0 * (w * 2) + i1, n * w * 4, Index(), Index()},
      {i0 * 2 + i2, n * 2, floor_div(i0, n, ranges), modulo(i0, n, ranges) * 2 + i2},
  };
  std::mt19937 random(1);
  for (const Case& c : cases) {
    const Index quotient = floor_div(c.index, c.divisor, ranges), rest = modulo(c.index, c.divisor, ranges);
    if (!(c.quotient == Index())) {
      EXPECT_EQ(quotient, c.quotient) << to_string(quotient);
      EXPECT_EQ(rest, c.rest) << to_string(rest);
    }
    for (std::int64_t of_n = 1; of_n <= 9; ++of_n) {
      for (std::int64_t of_w = 1; of_w <= 7; of_w += 2) {
        for_points(ranges, {of_n, of_w}, random, [&](const Point& point) {
          const std::int64_t number = value(c.index, point), divisor = point.size(c.divisor);
          EXPECT_EQ(value(quotient, point), floor_div(number, divisor));
          EXPECT_EQ(value(rest, point), number - floor_div(number, divisor) * divisor);
        });
      }
    }
  }
}

}  // namespace
}  // namespace gcompile::ir

// Sizes as formulas: canonical forms against numbers, and what follows from bounds.
#include "ir/sizes/dim.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "base/operator_error.h"
#include "ir/graph/operator.h"
#include "ir/sizes/sizes.h"
#include "ir/sizes/solve_sizes.h"

namespace gcompile::ir {
namespace {

using Values = std::vector<std::int64_t>;

std::string text(const Dim& dim) {
  return to_string(dim, plain_spelling([](int symbol) -> DimSpelling::Name {
                     return {std::string(1, static_cast<char>('a' + symbol))};
                   }));
}

std::int64_t at(const Dim& dim, const Values& values) {
  return dim.at([&](int symbol) { return values[static_cast<std::size_t>(symbol)]; });
}

std::int64_t floor_of(std::int64_t a, std::int64_t b) { return (a - ((a % b + b) % b)) / b; }

/// A formula, and the same in numbers.
struct Formula {
  Dim dim;
  std::function<std::int64_t(const Values&)> number;
};

class Formulas {
 public:
  explicit Formulas(std::uint32_t seed) : random_(seed) {}
  static constexpr int kSymbols = 3;

  Formula make(int depth) {
    const int kind = depth == 0 ? pick(0, 1) : pick(0, 7);
    if (kind == 0) {
      const std::int64_t number = pick(-6, 9);
      return {Dim(number), [=](const Values&) { return number; }};
    }
    if (kind == 1) {
      const int symbol = pick(0, kSymbols - 1);
      return {Dim::symbol(symbol), [=](const Values& v) { return v[static_cast<std::size_t>(symbol)]; }};
    }
    const Formula a = make(depth - 1);
    if (kind == 2) {
      const std::int64_t divisor = pick(1, 6);
      return {floor_div(a.dim, divisor), [=](const Values& v) { return floor_of(a.number(v), divisor); }};
    }
    const Formula b = make(depth - 1);
    switch (kind) {
      case 3:
        return {min(a.dim, b.dim), [=](const Values& v) { return std::min(a.number(v), b.number(v)); }};
      case 4:
        return {max(a.dim, b.dim), [=](const Values& v) { return std::max(a.number(v), b.number(v)); }};
      case 5:
        return {a.dim * b.dim, [=](const Values& v) { return a.number(v) * b.number(v); }};
      case 6:
        return {a.dim - b.dim, [=](const Values& v) { return a.number(v) - b.number(v); }};
      default:
        return {a.dim + b.dim, [=](const Values& v) { return a.number(v) + b.number(v); }};
    }
  }
  Values values(const std::vector<Bounds>& bounds) {
    Values out;
    for (const Bounds& b : bounds) out.push_back(pick(static_cast<int>(b.low), static_cast<int>(b.high)));
    return out;
  }
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

 private:
  std::mt19937 random_;
};

/// Calls visit(formulas, bounds) with many seeds; formulas that grow too long are left out.
template <class F>
void for_many(int count, const F& visit) {
  int made = 0;
  for (std::uint32_t seed = 1; made < count; ++seed) {
    ASSERT_LT(seed, 4u * static_cast<std::uint32_t>(count)) << "formulas are too long too often";
    Formulas formulas(seed);
    std::vector<Bounds> bounds;
    for (int i = 0; i < Formulas::kSymbols; ++i) {
      const std::int64_t low = formulas.pick(-3, 8);
      bounds.push_back({low, low + formulas.pick(0, 20)});
    }
    try {
      visit(formulas, bounds);
      ++made;
    } catch (const OperatorError&) {
    }
  }
}

TEST(DimTest, FormsHaveTheValueOfTheirNumbers) {
  for_many(5000, [](Formulas& formulas, const std::vector<Bounds>& bounds) {
    const Formula formula = formulas.make(4);
    for (int i = 0; i < 10; ++i) {
      const Values values = formulas.values(bounds);
      ASSERT_EQ(at(formula.dim, values), formula.number(values)) << text(formula.dim);
    }
  });
}

TEST(DimTest, EqualFormsCompareEqual) {
  for_many(2000, [](Formulas& formulas, const std::vector<Bounds>&) {
    const Dim a = formulas.make(2).dim, b = formulas.make(2).dim, c = formulas.make(2).dim;
    EXPECT_EQ(a + b, b + a);
    EXPECT_EQ((a + b) + c, a + (b + c));
    EXPECT_EQ(a - a, Dim(0));
    EXPECT_EQ(a * b, b * a);
    EXPECT_EQ((a + b) * c, a * c + b * c);
    EXPECT_EQ(min(a, b), min(b, a));
    EXPECT_EQ(max(a + 5, b + 5), max(a, b) + 5);
    EXPECT_EQ(floor_div(a * 6, 3), a * 2);
    EXPECT_EQ(floor_div(a * 12 + b * 12 + 7, 12), a + b);
    const Dim linear =
        Dim::symbol(0) * formulas.pick(-9, 9) + Dim::symbol(1) * formulas.pick(-9, 9) + formulas.pick(-9, 9);
    EXPECT_EQ(floor_div(floor_div(linear, 3), 4), floor_div(linear, 12));
    EXPECT_EQ(floor_div(a * 2 + 1, 4), floor_div(a, 2));
    EXPECT_TRUE(Dim::compare(a, a) == 0);
    EXPECT_TRUE(a == b || (Dim::compare(a, b) < 0) != (Dim::compare(b, a) < 0));
  });
}

TEST(DimTest, QuotientsAreExactOrNone) {
  for_many(2000, [](Formulas& formulas, const std::vector<Bounds>&) {
    const Dim a = formulas.make(2).dim, b = formulas.make(2).dim;
    if (b == Dim(0)) return;
    const auto quotient = exact_quotient(a * b, b);
    ASSERT_TRUE(quotient) << text(a) << " times " << text(b);
    EXPECT_EQ(*quotient, a) << text(b);
    const auto other = exact_quotient(a, b);
    EXPECT_TRUE(!other || *other * b == a);
  });
  const Dim h = Dim::symbol(0), w = Dim::symbol(1);
  EXPECT_EQ(exact_quotient(h * w * 16, w * 4), h * 4);
  EXPECT_FALSE(exact_quotient(h * w + 1, w));
  EXPECT_FALSE(exact_quotient(h, 2));
  EXPECT_FALSE(exact_quotient(h, 0));
}

TEST(DimTest, SubstitutionIsEvaluation) {
  for_many(2000, [](Formulas& formulas, const std::vector<Bounds>& bounds) {
    const Formula formula = formulas.make(3), inner = formulas.make(2);
    const Dim changed =
        formula.dim.replaced([&](int symbol) { return symbol == 1 ? inner.dim : Dim::symbol(symbol); });
    Values values = formulas.values(bounds);
    const std::int64_t direct = at(changed, values);
    values[1] = inner.number(values);
    EXPECT_EQ(direct, formula.number(values));
  });
}

TEST(DimTest, MultiplesAreCoefficients) {
  const Dim h = Dim::symbol(7);  // "h"
  const Dim height = h * 32;
  EXPECT_EQ(content(height * 3 + 16), 16);
  // The lowest number has no opposite.
  EXPECT_EQ(content(Dim(std::numeric_limits<std::int64_t>::min())), std::int64_t{1} << 62);
  // Five halvings, as an image's, with the pads of windows of three rows.
  Dim size = height;
  for (int i = 0; i < 5; ++i) size = floor_div(size + 2 - 3, 2) + 1;
  EXPECT_EQ(size, h);
  EXPECT_EQ(text(floor_div(h * 3 + 1, 2)), "h + floor((h + 1) / 2)");
  EXPECT_EQ(text(h * -2 * Dim::symbol(0) - 1), "-2 x a x h - 1");
}

TEST(DimTest, UnitsLeaveTheCoefficient) {
  Sizes sizes;
  const Dim batch = Dim::symbol(sizes.add_symbol({"batch", {1, 4}, 1}));
  const Dim height = Dim::symbol(sizes.add_symbol({"height", {1, 10}, 1, 32})) * 32;
  const SizesScope scope(&sizes);
  EXPECT_EQ(to_string(height), "height");
  EXPECT_EQ(to_string(floor_div(height, 2) + 1), "height / 2 + 1");
  EXPECT_EQ(to_string(batch * height * -3), "-3 x batch x height");
  EXPECT_EQ(to_string(floor_div(height * height, 512) * 3), "3 x height x height / 512");
  EXPECT_EQ(to_string(floor_div(height, 64)), "floor(height / 32 / 2)");
}

TEST(DimTest, GrowthIsAnError) {
  EXPECT_THROW(Dim(std::int64_t{1} << 40) * (std::int64_t{1} << 40), OperatorError);
  EXPECT_THROW(Dim::symbol(0) * ((std::int64_t{1} << 61) + 1) * 2, OperatorError);
  Dim power = Dim::symbol(0);
  for (int i = 0; i < 3; ++i) power = power * power;
  EXPECT_THROW(power * Dim::symbol(0), OperatorError);
  Dim many;
  EXPECT_THROW(for (int i = 0; i < 80; ++i) many = many + Dim::symbol(i), OperatorError);
  Dim deep = Dim::symbol(0);
  EXPECT_THROW(for (int i = 0; i < 12; ++i) deep = min(deep * 2, Dim::symbol(1)), OperatorError);
}

/// What is never formed step by step: extremes that cancel with what they are of, and with each other.
TEST(SizesTest, ExtremesCancel) {
  Sizes sizes;
  const Dim n = Dim::symbol(sizes.add_symbol({"n", {1, 40}, 8})),
            m = Dim::symbol(sizes.add_symbol({"m", {1, 9}, 4}));
  const SizesScope scope(&sizes);
  EXPECT_TRUE(always_less_equal(min(n, 20), n));
  EXPECT_TRUE(always_less_equal(n, max(n, 20)));
  EXPECT_TRUE(always_less_equal(min(n, 20) * 2 + m, n * 2 + m));
  EXPECT_TRUE(always_less_equal(m * min(n, 20), m * n));
  EXPECT_FALSE(always_less_equal(n, min(n, 20)));
  const Dim part = ceil_div(n, 4);
  Dim sum = 0;
  for (int i = 0; i < 4; ++i) {
    const Dim length = min(part * (i + 1), n) - min(part * i, n);
    EXPECT_TRUE(always_less_equal(0, length)) << i;
    sum += length;
  }
  EXPECT_EQ(sum, n);
}

/// A proof that would need larger numbers than sizes have is none, and no error.
TEST(SizesTest, ProofsOfHugeSizesAreUnknown) {
  Sizes sizes;
  const Dim h = Dim::symbol(sizes.add_symbol({"h", {8, 64}, 8})),
            w = Dim::symbol(sizes.add_symbol({"w", {8, 64}, 8}));
  const SizesScope scope(&sizes);
  const Dim pixels = floor_div(h + 1, 2) * floor_div(w + 1, 2);
  EXPECT_TRUE(always_less_equal(pixels * 3, Dim(kDimLimit - 1)));
  EXPECT_FALSE(always_less_equal(Dim(kDimLimit - 1), pixels));
}

TEST(SizesTest, AssumedOrders) {
  Sizes sizes;
  const Dim a = Dim::symbol(sizes.add_symbol({"a", {1, 9}, 4})),
            b = Dim::symbol(sizes.add_symbol({"b", {1, 9}, 4}));
  const SizesScope scope(&sizes);
  EXPECT_FALSE(always_less_equal(a, b));
  EXPECT_TRUE(assume_less_equal(a, b));
  EXPECT_TRUE(assume_less_equal(a, b));
  EXPECT_EQ(sizes.checks().size(), 1u);
  EXPECT_TRUE(always_less_equal(a, b));
  EXPECT_FALSE(assume_less_equal(b + 1, a));
  EXPECT_TRUE(assume_multiple(a, 2));
  EXPECT_EQ(sizes.checks().size(), 2u);
  EXPECT_FALSE(assume_multiple(Dim(5), 2));
}

TEST(SizesTest, BoundsEncloseAndComparisonsHold) {
  for_many(3000, [](Formulas& formulas, const std::vector<Bounds>& bounds) {
    Sizes sizes;
    for (const Bounds& b : bounds) sizes.add_symbol({"s", b, b.low});
    const Formula a = formulas.make(3), b = formulas.make(3);
    const Bounds range = sizes.bounds(a.dim);
    const Truth equal = sizes.equal(a.dim, b.dim), less_equal = sizes.less_equal(a.dim, b.dim);
    for (int i = 0; i < 20; ++i) {
      const Values values = formulas.values(bounds);
      const std::int64_t x = a.number(values), y = b.number(values);
      ASSERT_TRUE(range.contains(x)) << text(a.dim);
      ASSERT_TRUE(equal == Truth::kUnknown || (equal == Truth::kYes) == (x == y)) << text(a.dim - b.dim);
      ASSERT_TRUE(less_equal == Truth::kUnknown || (less_equal == Truth::kYes) == (x <= y));
    }
  });
}

TEST(SizesTest, EqualitiesAreSolvedAndChecked) {
  Sizes sizes;
  const Dim past = Dim::symbol(sizes.add_symbol({"past", {0, 1023}, 127}));
  const Dim rows = Dim::symbol(sizes.add_symbol({"rows", {1, 1024}, 1}));
  const Dim total = Dim::symbol(sizes.add_symbol({"total", {1, 1024}, 128}));
  EXPECT_EQ(sizes.equal(total, past + rows), Truth::kUnknown);
  EXPECT_TRUE(sizes.assume_equal(total, past + rows));
  EXPECT_EQ(sizes.resolved(total * 2), (past + rows) * 2);
  EXPECT_EQ(sizes.equal(total - past, rows), Truth::kYes);
  ASSERT_EQ(sizes.checks().size(), 1u);
  // The bounds of the total hold for the sum: a cache of 1,024 rows has room, and a slice needs no minimum.
  EXPECT_EQ(sizes.less_equal(past + rows, 1024), Truth::kYes);
  EXPECT_EQ(sizes.bounds(past + rows).high, 1024);
  EXPECT_EQ(sizes.at_typical(total), 128);
  // A contradiction is one.
  EXPECT_FALSE(sizes.assume_equal(total, past + rows + 1));
  EXPECT_FALSE(sizes.assume_equal(rows * 2, past * 2 + 1));
}

TEST(SizesTest, RemaindersBound) {
  Sizes sizes;
  const Dim s = Dim::symbol(sizes.add_symbol({"s", {1, 1000}, 7}));
  EXPECT_EQ(sizes.bounds(s - 4 * floor_div(s, 4)), (Bounds{0, 3}));
  EXPECT_EQ(sizes.bounds(2 * s - 8 * floor_div(s, 4)), (Bounds{0, 6}));
  EXPECT_EQ(sizes.bounds(4 * floor_div(s, 4) - s), (Bounds{-3, 0}));
  // s and a remainder: it grows, but never below the least s.
  EXPECT_EQ(sizes.bounds(2 * s - 4 * floor_div(s, 4)), (Bounds{1, 1003}));
  // The padding of a window of 3 at stride 2, and its smaller half.
  const Dim padding = 2 * floor_div(s + 1, 2) - s + 1;
  EXPECT_EQ(sizes.bounds(padding), (Bounds{1, 2}));
  EXPECT_EQ(sizes.bounds(floor_div(padding, 2)), (Bounds{0, 1}));
}

/// Products of different symbols: affine in each.
TEST(SizesTest, PolynomialsAreBoundedAtTheCorners) {
  std::mt19937 random(20);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int turn = 0; turn < 2000; ++turn) {
    Sizes sizes;
    std::vector<Bounds> bounds;
    for (int i = 0; i < 4; ++i) {
      const std::int64_t low = pick(-3, 9);
      bounds.push_back({low, low + pick(1, 9)});
      sizes.add_symbol({std::string(1, static_cast<char>('a' + i)), bounds.back()});
    }
    Dim form = pick(-20, 20);
    for (int term = 0; term < 5; ++term) {
      Dim product = pick(-5, 5);
      for (int symbol = 0; symbol < 4; ++symbol) {
        if (pick(0, 1) == 1) product *= Dim::symbol(symbol);
      }
      form += product;
    }
    Bounds exact{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
    for (int corner = 0; corner < 16; ++corner) {
      const std::int64_t value = form.at([&](int symbol) {
        const Bounds& both = bounds[static_cast<std::size_t>(symbol)];
        return (corner >> symbol & 1) != 0 ? both.high : both.low;
      });
      exact = {std::min(exact.low, value), std::max(exact.high, value)};
    }
    EXPECT_EQ(sizes.bounds(form), exact) << text(form);
  }
}

/// Powers are no corners' business: -a * a + 4 a is most in the middle.
TEST(SizesTest, PowersAreBoundedBetweenTheCorners) {
  Sizes sizes;
  const Dim a = Dim::symbol(sizes.add_symbol({"a", {0, 4}}));
  EXPECT_GE(sizes.bounds(a * 4 - a * a).high, 4);
  EXPECT_LE(sizes.bounds(a * 4 - a * a).low, 0);
}

/// Counted from the least values powers are exact where they only grow, as sizes of relative positions do.
TEST(SizesTest, PowersAreCountedFromTheLeastValues) {
  Sizes sizes;
  const Dim s = Dim::symbol(sizes.add_symbol({"s", {1, 32}}));
  const Dim b = Dim::symbol(sizes.add_symbol({"b", {1, 2}}));
  EXPECT_EQ(sizes.bounds(2 * s * s - s), (Bounds{1, 2016}));
  EXPECT_EQ(sizes.bounds(4 * b * s * (2 * s - 1)), (Bounds{4, 16128}));
  std::mt19937 random(6);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int turn = 0; turn < 2000; ++turn) {
    Sizes some;
    const std::int64_t low[] = {pick(-2, 5), pick(-2, 5)};
    const Dim x = Dim::symbol(some.add_symbol({"x", {low[0], low[0] + 4}}));
    const Dim y = Dim::symbol(some.add_symbol({"y", {low[1], low[1] + 4}}));
    Dim form = pick(-9, 9);
    for (int term = 0; term < 4; ++term) {
      Dim product = pick(-3, 3);
      for (int power = pick(0, 3); power > 0; --power) product *= pick(0, 1) == 0 ? x : y;
      form += product;
    }
    const Bounds known = some.bounds(form);
    for (int i = 0; i < 25; ++i) {
      const std::int64_t at[] = {low[0] + i % 5, low[1] + i / 5};
      ASSERT_TRUE(known.contains(form.at([&](int symbol) { return at[symbol]; }))) << text(form);
    }
  }
}

/// What has no bound has none with something added, nor divided.
TEST(SizesTest, BeyondTheLimitNothingIsKnown) {
  Sizes sizes;
  const std::int64_t high = std::int64_t{1} << 40;
  const Dim a = Dim::symbol(sizes.add_symbol({"a", {1, high}}));
  const Dim b = Dim::symbol(sizes.add_symbol({"b", {1, high}}));
  const Dim c = Dim::symbol(sizes.add_symbol({"c", {1, high}}));
  EXPECT_EQ(sizes.less_equal(a * b * 4, b * c * 4096), Truth::kUnknown);
  EXPECT_EQ(sizes.less_equal(floor_div(b * c, 4096), a * b), Truth::kUnknown);
}

/// What a proof forms on its way is longer, or has larger numbers, than the formulas that it is about.
TEST(SizesTest, NoQuestionIsTooLong) {
  Sizes sizes;
  const SizesScope scope(&sizes);
  std::vector<Dim> symbols;
  for (int i = 0; i < 13; ++i) symbols.push_back(Dim::symbol(sizes.add_symbol({"s", {1, 4}, 1})));
  Dim few(0), many(2000), between(100);
  int pair = 0;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Dim product = symbols[i] * symbols[j];
      if (pair++ % 2 == 0) {
        few = few + product;
      } else {
        many = many + product;
        between = between + product;
      }
    }
  }
  EXPECT_THROW(many - few, OperatorError);
  EXPECT_TRUE(always_less(few, many));
  EXPECT_FALSE(always_less(many, few));
  EXPECT_EQ(sizes.equal(few, many), Truth::kNo);
  EXPECT_EQ(sizes.equal(few, between), Truth::kUnknown);
  EXPECT_TRUE(sizes.assume_equal(few, between));
  EXPECT_EQ(sizes.checks().size(), 1U);
  sizes.add_fact(many, {2018, 2100});
  EXPECT_EQ(sizes.bounds(few), (Bounds{39, 624}));
  const Dim large = floor_div(symbols[0] + 1, 4) + symbols[0] * (std::int64_t{1} << 59);
  EXPECT_THROW(large * 8, OperatorError);
  EXPECT_EQ(sizes.bounds(large), (Bounds{std::int64_t{1} << 59, (std::int64_t{1} << 61) + 1}));
}

TEST(SizesTest, FactsOfSumsBound) {
  Sizes sizes;
  const Dim past = Dim::symbol(sizes.add_symbol({"past", {0, 1024}, 0}));
  const Dim rows = Dim::symbol(sizes.add_symbol({"rows", {1, 1024}, 1}));
  EXPECT_EQ(sizes.less_equal(past + rows, 1024), Truth::kUnknown);
  sizes.add_fact(past + rows, {1, 1024});
  EXPECT_EQ(sizes.less_equal(past + rows, 1024), Truth::kYes);
  EXPECT_EQ(sizes.less_equal(past * 2 + rows * 2, 2048), Truth::kYes);
  EXPECT_EQ(sizes.less_equal(past, 1023), Truth::kYes);
}

TEST(SizesTest, WhatCannotBeSolvedIsCheckedOnly) {
  Sizes sizes;
  const Dim a = Dim::symbol(sizes.add_symbol({"a", {1, 100}, 10}));
  const Dim b = Dim::symbol(sizes.add_symbol({"b", {1, 100}, 10}));
  EXPECT_TRUE(sizes.assume_equal(a * 2, b * 3));
  EXPECT_EQ(sizes.resolved(a), a);
  EXPECT_EQ(sizes.checks().size(), 1u);
  EXPECT_FALSE(sizes.assume_equal(a * 2, b * 2 + 1));
}

TEST(SolveSymbols, OneAfterTheOther) {
  Sizes sizes;
  for (const char* name : {"a", "b", "c"}) sizes.add_symbol({name, {1, 9}, 1, 1});
  const SizesScope scope(&sizes);
  const Dim a = Dim::symbol(0), b = Dim::symbol(1), c = Dim::symbol(2);
  const std::vector<Dim> forms = {7, a * (b + c), a * b * 4 + a, a * 3};
  const SolvedSymbols found = solve_symbols(forms, 3);
  EXPECT_TRUE(found.told.empty());
  ASSERT_EQ(found.solved.size(), 3u);
  const std::vector<std::string> expected = {"a = (formula 3 - 0) / 3", "b = (formula 2 - a) / 4 x a",
                                             "c = (formula 1 - a x b) / a"};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const SolvedSymbol& each = found.solved[i];
    EXPECT_EQ(fmt::format("{} = (formula {} - {}) / {}", text(Dim::symbol(each.symbol)), each.formula.value(),
                          text(each.rest), text(each.factor)),
              expected[i]);
  }
}

/// Past keys and past values, each with a length that has a name of its own; and a length that a constant
/// mask fixes.
TEST(SolveSymbols, EqualitiesTellWhatNoFormDoes) {
  Sizes sizes;
  for (const char* name : {"keys", "values", "length"}) sizes.add_symbol({name, {1, 9}, 1, 1});
  const SizesScope scope(&sizes);
  const Dim keys = Dim::symbol(0), values = Dim::symbol(1), length = Dim::symbol(2);
  EXPECT_TRUE(sizes.assume_equal(keys + 1, values + 1));
  EXPECT_TRUE(sizes.assume_equal(length, 5));
  const SolvedSymbols found = solve_symbols(std::vector<Dim>{sizes.resolved(keys) * 8}, 3);
  EXPECT_TRUE(found.told.empty());
  ASSERT_EQ(found.solved.size(), 3u);
  EXPECT_EQ(found.solved[0].formula, 0u);
  for (const std::size_t i : {1u, 2u}) EXPECT_FALSE(found.solved[i].formula.has_value());
  EXPECT_EQ(text(found.solved[1].rest), text(Dim::symbol(found.solved[0].symbol)));
  EXPECT_EQ(text(found.solved[2].rest), "5");
}

TEST(SolveSymbols, WhatFormsDoNotTellIsOpen) {
  Sizes sizes;
  for (const char* name : {"a", "b", "c"}) sizes.add_symbol({name, {1, 9}, 1, 1});
  const SizesScope scope(&sizes);
  const Dim a = Dim::symbol(0), b = Dim::symbol(1), c = Dim::symbol(2);
  const auto told = [&](std::vector<Dim> forms) { return solve_symbols(forms, 3).told; };
  EXPECT_EQ(told({a * b, b * c}), std::vector<int>({0}));
  EXPECT_EQ(told({a * b, b * b, c}), std::vector<int>({0}));        // a square tells nothing
  EXPECT_EQ(told({floor_div(a, 2), b, c}), std::vector<int>({0}));  // nor does a quotient
  EXPECT_EQ(told({a, b, 9 - c}), std::vector<int>({2}));            // nor what shrinks
  EXPECT_EQ(told({}), std::vector<int>({0, 1, 2}));
}

}  // namespace
}  // namespace gcompile::ir

// Loops over tiles that are turned, over the columns of a matrix, and over lines that are summed as they go: every
// element once, at every size. Parts that take turns.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "gcrt/cpu/columns.h"
#include "gcrt/cpu/interleaved.h"
#include "gcrt/cpu/scan.h"
#include "gcrt/cpu/turned_tiles.h"
#include "gcrt/scalar/scalar.h"

namespace GCRT_NAMESPACE {
namespace {

/// Packs of so many parts, of which part k holds 10 * lane + k.
template <class T, int N, int... K>
void expect_in_turn(std::integer_sequence<int, K...>) {
  constexpr int kParts = sizeof...(K);
  T parts[kParts][N], y[kParts * N + 1] = {};
  for (int k = 0; k < kParts; ++k) {
    for (int i = 0; i < N; ++i) parts[k][i] = static_cast<T>(10 * i + k);
  }
  store_interleaved(Lanes<N>{}, y, load(Lanes<N>{}, parts[K])...);
  for (int i = 0; i < N; ++i) {
    for (int k = 0; k < kParts; ++k) EXPECT_EQ(y[kParts * i + k], parts[k][i]) << N << " lanes, part " << k;
  }
  EXPECT_EQ(y[kParts * N], T(0));
}

template <class T, int... N>
void expect_in_turn_of_all(std::integer_sequence<int, N...>) {
  (expect_in_turn<T, N>(std::make_integer_sequence<int, 2>{}), ...);
  (expect_in_turn<T, N>(std::make_integer_sequence<int, 3>{}), ...);
  (expect_in_turn<T, N>(std::make_integer_sequence<int, 4>{}), ...);
  (expect_in_turn<T, N>(std::make_integer_sequence<int, 7>{}), ...);
}

TEST(Interleaved, PartsTakeTurnsInMemory) {
  using Lanes = std::integer_sequence<int, 1, 2, 4, 8, 16>;
  expect_in_turn_of_all<float>(Lanes{});
  expect_in_turn_of_all<std::int8_t>(Lanes{});
  expect_in_turn_of_all<std::int32_t>(Lanes{});
  expect_in_turn_of_all<std::int64_t>(std::integer_sequence<int, 1, 2, 4, 8>{});
  expect_in_turn_of_all<double>(std::integer_sequence<int, 1, 2, 4, 8>{});
}

/// y[i][j] = x[j][i] of a matrix of `rows` by `columns`, on a part of each axis; how often each element is written.
template <class T, int L>
void expect_turned(AxisPart along, AxisPart across, std::ptrdiff_t rows, std::ptrdiff_t columns) {
  std::vector<T> x(static_cast<std::size_t>(rows * columns)), y(x.size(), T(0));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i * 37 + 1);
  std::vector<int> written(x.size(), 0);
  turn_tiles<L>(
      along, across,
      [&](auto lane, std::ptrdiff_t i, std::ptrdiff_t j) { return load(lane, x.data() + i + rows * j); },
      [&](auto lane, std::ptrdiff_t i, std::ptrdiff_t j, auto turned) {
        store(lane, y.data() + columns * i + j, turned);
        for (int k = 0; k < kLanesOf<decltype(turned)>; ++k)
          ++written[static_cast<std::size_t>(columns * i + j + k)];
      });
  for (std::ptrdiff_t i = 0; i < rows; ++i) {
    for (std::ptrdiff_t j = 0; j < columns; ++j) {
      const bool is_inside = i >= along.begin && i < along.end && j >= across.begin && j < across.end;
      const auto at = static_cast<std::size_t>(columns * i + j);
      ASSERT_EQ(written[at], is_inside ? 1 : 0) << rows << " by " << columns << " at " << i << ", " << j;
      const T expected = is_inside ? x[static_cast<std::size_t>(rows * j + i)] : T(0);
      ASSERT_EQ(y[at], expected) << rows << " by " << columns << " at " << i << ", " << j;
    }
  }
}

template <class T, int L = kLanes>
void expect_turned_at_all_sizes() {
  for (const std::ptrdiff_t rows : {0, 1, 3, 4, 7, 8, 9, 12, 15, 16, 17, 31, 33}) {
    for (const std::ptrdiff_t columns : {0, 1, 2, 4, 5, 8, 15, 16, 19, 20, 32, 35, 1030})
      expect_turned<T, L>({0, rows}, {0, columns}, rows, columns);
  }
  expect_turned<T, L>({32, 64}, {0, 50}, 70, 50);
  expect_turned<T, L>({0, 13}, {64, 90}, 13, 90);
}

TEST(TurnedTiles, HoldEveryElementOnce) {
  expect_turned_at_all_sizes<float>();
  expect_turned_at_all_sizes<std::uint8_t>();
  expect_turned_at_all_sizes<std::int32_t>();
  expect_turned_at_all_sizes<double, kLanes / 2>();
  expect_turned_at_all_sizes<std::int64_t, kLanes / 2>();
}

TEST(TurnedTiles, TurnSeveralTensorsSideBySide) {
  constexpr std::ptrdiff_t kRows = 21, kColumns = 39;
  std::vector<float> x(kRows * kColumns), w(x.size()), y(x.size());
  std::vector<std::uint8_t> b(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i);
    w[i] = static_cast<float>(i * 3 % 101);
    b[i] = static_cast<std::uint8_t>(i % 3);
  }
  turn_tiles(
      {0, kRows}, {0, kColumns},
      [&](auto lane, std::ptrdiff_t i, std::ptrdiff_t j) {
        const std::ptrdiff_t at = i + kRows * j;
        return packs(load(lane, x.data() + at), load(lane, w.data() + at), load(lane, b.data() + at));
      },
      [&](auto lane, std::ptrdiff_t i, std::ptrdiff_t j, const auto& turned) {
        store(lane, y.data() + kColumns * i + j,
              turned.first - turned.rest.first + cast<float>(lane, turned.rest.rest));
      });
  for (std::ptrdiff_t i = 0; i < kRows; ++i) {
    for (std::ptrdiff_t j = 0; j < kColumns; ++j) {
      const auto from = static_cast<std::size_t>(kRows * j + i);
      ASSERT_EQ(y[static_cast<std::size_t>(kColumns * i + j)],
                x[from] - w[from] + static_cast<float>(b[from]));
    }
  }
}

template <class T, int L = kLanes>
void expect_columns(std::ptrdiff_t rows, AxisPart part, std::ptrdiff_t columns) {
  std::vector<T> x(static_cast<std::size_t>(rows * columns)), y(static_cast<std::size_t>(columns), T(-1));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(static_cast<T>(i * 29 % 97) / T(7));
  add_columns<T, L>(
      part, rows,
      [&](auto lane, std::ptrdiff_t i, std::ptrdiff_t row) {
        return load(lane, x.data() + columns * row + i);
      },
      [&](auto lane, std::ptrdiff_t i, auto sum) { store(lane, y.data() + i, sum); });
  for (std::ptrdiff_t i = 0; i < columns; ++i) {
    T sum = T(0);
    for (std::ptrdiff_t row = 0; row < rows; ++row)
      sum = sum + x[static_cast<std::size_t>(columns * row + i)];
    const T expected = i >= part.begin && i < part.end ? sum : T(-1);
    ASSERT_EQ(y[static_cast<std::size_t>(i)], expected) << rows << " rows, column " << i << " of " << columns;
  }
}

TEST(Columns, AreReducedInTheOrderOfRows) {
  for (const std::ptrdiff_t rows : {0, 1, 2, 9}) {
    for (const std::ptrdiff_t columns : {0, 1, 15, 16, 17, 33, 64, 127, 128, 129, 300}) {
      expect_columns<float>(rows, {0, columns}, columns);
      expect_columns<double, kLanes / 2>(rows, {0, columns}, columns);
      expect_columns<std::int32_t>(rows, {0, columns}, columns);
    }
  }
  expect_columns<float>(5, {16, 200}, 230);
}

template <class Combine, class T>
void expect_running(const ScanShape& shape) {
  std::vector<T> x(static_cast<std::size_t>(shape.outer * shape.extent * shape.inner)), expected(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(static_cast<T>(i * 31 % 89) / T(3));
  for (std::ptrdiff_t o = 0; o < shape.outer; ++o) {
    for (std::ptrdiff_t i = 0; i < shape.inner; ++i) {
      T sum = Combine::template identity<T>();
      for (std::ptrdiff_t j = 0; j < shape.extent; ++j) {
        const std::ptrdiff_t row = shape.reverse ? shape.extent - 1 - j : j;
        const auto at = static_cast<std::size_t>((o * shape.extent + row) * shape.inner + i);
        if (shape.exclusive) expected[at] = sum;
        sum = Combine::of(sum, x[at]);
        if (!shape.exclusive) expected[at] = sum;
      }
    }
  }
  std::vector<T> y(x.size());
  cumulative<Combine>(shape, x.data(), y.data(), nullptr);
  EXPECT_EQ(y, expected) << shape.outer << ", " << shape.extent << ", " << shape.inner;
  cumulative<Combine>(shape, x.data(), x.data(), nullptr);
  EXPECT_EQ(x, expected) << "in place";
}

template <class Combine>
void expect_running(const ScanShape& shape) {
  expect_running<Combine, float>(shape);
  expect_running<Combine, double>(shape);
  expect_running<Combine, std::int32_t>(shape);
  expect_running<Combine, std::int64_t>(shape);
}

TEST(Scan, SumsAndMultiplies) {
  const std::vector<float> x = {2, 3, 4};
  std::vector<float> sums(3), products(3);
  cumulative_sum(ScanShape{1, 3, 1, false, false}, x.data(), sums.data(), nullptr);
  cumulative_product(ScanShape{1, 3, 1, true, true}, x.data(), products.data(), nullptr);
  EXPECT_EQ(sums, (std::vector<float>{2, 5, 9}));
  EXPECT_EQ(products, (std::vector<float>{12, 4, 1}));
}

TEST(Scan, TakesEveryLineInItsOrder) {
  for (const std::ptrdiff_t outer : {0, 1, 3, 4, 9}) {
    for (const std::ptrdiff_t extent : {0, 1, 2, 17}) {
      for (const std::ptrdiff_t inner : {1, 2, 8, 19, 128, 150}) {
        for (const int flags : {0, 1, 2, 3}) {
          const ScanShape shape{outer, extent, inner, (flags & 1) != 0, (flags & 2) != 0};
          expect_running<RunningSum>(shape);
          expect_running<RunningProduct>(shape);
        }
      }
    }
  }
}

}  // namespace
}  // namespace GCRT_NAMESPACE

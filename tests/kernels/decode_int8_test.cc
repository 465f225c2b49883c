// Products of rounded rows by packed weights against plain loops: the rounding to the bit, the product with
// every kind of zero point, blocks and sizes around every edge, and extremes that saturate where sums do.
#include "gcrt/cpu/product/decode_int8.h"

#include "packed_matrix.h"

namespace kernel_test {
namespace {

constexpr Blocking kBlockings[] = {{0, 0, 0, 0}, {1, 1, 1, 0}, {20, 40, 7, 0}};

// Rows of A as they should be rounded, and what is left of them.
struct RoundedReference {
  std::vector<int> integers;   // [rows][depth]
  std::vector<float> scales;   // [rows][blocks]
  std::vector<double> values;  // [rows][depth]

  RoundedReference(int rows, int depth, int block, const std::vector<float>& a, int lda) {
    for (int m = 0; m < rows; ++m) {
      for (int begin = 0; begin < depth; begin += block) {
        const int end = std::min(depth, begin + block);
        const auto at = [&](int k) { return a[static_cast<std::size_t>(m * lda + k)]; };
        float largest = 0;
        for (int k = begin; k < end; ++k) largest = std::max(largest, std::fabs(at(k)));
        scales.push_back(largest / 127.0f);
        const float inverse = largest > 0 ? 1.0f / scales.back() : 0.0f;
        for (int k = begin; k < end; ++k) {
          integers.push_back(static_cast<int>(std::nearbyint(at(k) * inverse)));
          values.push_back(static_cast<double>(scales.back()) * integers.back());
        }
      }
    }
  }
};

template <int Bits, class Zero>
std::vector<std::int8_t> rounded(int rows, int depth, const std::vector<float>& a, int lda,
                                 const BlockWeights<Bits, Zero>& weights) {
  const auto size = static_cast<std::size_t>(rows * rounded_row_size(depth, weights.block));
  std::vector<std::int8_t> out(size, 99);
  // In two pieces, the last one first.
  round_rows(depth, a.data(), lda, weights, out.data(), rows / 2, rows);
  round_rows(depth, a.data(), lda, weights, out.data(), 0, rows / 2);
  return out;
}

template <int Bits>
void check_rounding(int rows, int depth, int block) {
  SCOPED_TRACE(::testing::Message() << rows << " rows of " << depth << ", blocks of " << block);
  const int lda = depth + 3;
  std::vector<float> a = random_values<float>(static_cast<std::size_t>(rows * lda), 3);
  for (int k = 0; k < std::min(block, depth); ++k) a[static_cast<std::size_t>(k)] = 0;
  const RoundedReference expected(rows, depth, block, a, lda);
  const BlockWeights<Bits, void> weights{nullptr, nullptr, nullptr, block};
  const std::vector<std::int8_t> got = rounded(rows, depth, a, lda, weights);
  const std::ptrdiff_t row_size = rounded_row_size(depth, block), blocks = ceil_div(depth, block);
  for (int m = 0; m < rows; ++m) {
    const std::int8_t* row = got.data() + m * row_size;
    std::vector<int> sums(static_cast<std::size_t>(blocks));
    for (int k = 0; k < depth; ++k) {
      const int want = expected.integers[static_cast<std::size_t>(m * depth + k)];
      sums[static_cast<std::size_t>(k / block)] += want;
      const int place = Bits == 8 ? k : k / 8 * 8 + k % 8 / 2 + k % 2 * 4;
      ASSERT_EQ(row[place], want) << "row " << m << ", element " << k;
    }
    for (std::ptrdiff_t i = 0; i < blocks; ++i) {
      float scale, sum;
      std::memcpy(&scale, row + rounded_values_size(depth) + 4 * i, 4);
      std::memcpy(&sum, row + rounded_values_size(depth) + 4 * (blocks + i), 4);
      ASSERT_EQ(scale, expected.scales[static_cast<std::size_t>(m * blocks + i)]);
      ASSERT_EQ(sum, static_cast<float>(sums[static_cast<std::size_t>(i)]));
    }
  }
}

TEST(Rounded, RowsAreRoundedPerBlock) {
  for (const int rows : {1, 2, 5}) {
    for (const int block : {8, 16, 32, 128}) {
      for (const int depth : {1, 7, 8, 32, 41, 130, 517}) {
        check_rounding<4>(rows, depth, block);
        check_rounding<8>(rows, depth, block);
      }
    }
  }
}

template <class Tile, int Bits, class Zero>
void check(int rows, int columns, int depth, const std::vector<float>& a, int lda,
           const PackedMatrix<Bits, Zero>& b, int block, double tolerance) {
  SCOPED_TRACE(::testing::Message() << rows << " x " << columns << " x " << depth << ", blocks of " << block);
  const BlockWeights<Bits, Zero> weights{b.words.data(), b.scales.data(), b.zeros.data(), block};
  const RoundedReference reference(rows, depth, block, a, lda);
  std::vector<double> expected;
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n) {
      double sum = 0;
      for (int k = 0; k < depth; ++k) {
        sum += reference.values[static_cast<std::size_t>(m * depth + k)] *
               b.values[static_cast<std::size_t>(k * columns + n)];
      }
      expected.push_back(sum);
    }
  }
  const std::vector<std::int8_t> left = rounded(rows, depth, a, lda, weights);
  for (const Blocking& blocking : kBlockings) {
    in_any_pieces<float>(rows, columns, gemm_work_items<Tile>(rows, columns, blocking),
                         [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
                           gemm_rounded<Tile>(rows, columns, depth, weights, left.data(), blocking, epilogue,
                                              begin, end);
                         })
        .check(expected, tolerance);
  }
}

template <class Tile, int Bits, class Zero>
void check_product(int rows, int columns, int depth, int block) {
  const int lda = depth + 3;
  const auto a = random_values<float>(static_cast<std::size_t>(rows * lda), 1);
  check<Tile>(rows, columns, depth, a, lda, PackedMatrix<Bits, Zero>(depth, columns, block), block,
              1e-5 * (Bits == 8 ? 64 : 8));
}

template <int Bits, class Zero>
void check_products() {
  for_each_packed_product([](auto tile, int rows, int columns, int depth, int block) {
    check_product<decltype(tile), Bits, Zero>(rows, columns, depth, block);
  });
}

TEST(Rounded, FourBits) { check_products<4, void>(); }
TEST(Rounded, FourBitsWithZeroPoints) { check_products<4, std::int8_t>(); }
TEST(Rounded, FourBitsWithBrokenZeroPoints) { check_products<4, float>(); }
TEST(Rounded, EightBits) { check_products<8, void>(); }
TEST(Rounded, EightBitsWithZeroPoints) { check_products<8, std::int8_t>(); }
TEST(Rounded, EightBitsWithBrokenZeroPoints) { check_products<8, float>(); }

// With elements -127, 0 and 127 and scales of 1 every sum is an integer that float32 holds: nothing
// saturates, nothing is rounded.
template <int Bits>
void check_extremes(int depth, int block) {
  constexpr int kRows = 7, kColumns = 40;
  std::vector<float> a(static_cast<std::size_t>(kRows * depth));
  Random random(9);
  for (int i = 0; i < kRows * depth; ++i) {
    const bool same_sign = i / depth < 2;  // the first rows have one sign each
    const int sign = same_sign ? 1 - i / depth * 2 : random.below(3) - 1;
    a[static_cast<std::size_t>(i)] = static_cast<float>(127 * (i % block == 0 && sign == 0 ? 1 : sign));
  }
  for (const int choice : {0, 1, 2}) {
    const PackedMatrix<Bits, void> b(
        depth, kColumns, block, [](int) { return 1.0f; },
        [choice](Random& r) {
          return (choice == 0 ? 0 : choice == 1 ? 1 : r.below(2)) * ((1 << Bits) - 1);
        });
    check<UsualTile>(kRows, kColumns, depth, a, depth, b, block, 0);
  }
}

TEST(Rounded, SumsAreExact) {
  for (const int block : {16, 32, 128, 512}) {
    check_extremes<4>(512, block);
    check_extremes<8>(512, block);
  }
}

TEST(Rounded, SpecialValues) {
  constexpr int kRows = 5, kColumns = 3, kDepth = 40, kBlock = 16;
  std::vector<float> a(static_cast<std::size_t>(kRows * kDepth), 1.0f);
  for (int k = 0; k < kDepth; ++k) a[static_cast<std::size_t>(k)] = 1e-38f;
  a[kDepth + 20] = kInfinity<float>;
  a[2 * kDepth + 39] = kNan<float>;
  a[3 * kDepth + 1] = 3e38f;
  const PackedMatrix<4, void> b(
      kDepth, kColumns, kBlock, [](int) { return 0.5f; }, [](Random&) { return 10; });
  const BlockWeights<4, void> weights{b.words.data(), b.scales.data(), nullptr, kBlock};
  const std::vector<std::int8_t> left = rounded(kRows, kDepth, a, kDepth, weights);
  Recorded<float> result(kRows, kColumns);
  gemm_rounded(kRows, kColumns, kDepth, weights, left.data(), Blocking{}, result.epilogue(), 0,
               gemm_work_items(kRows, kColumns, Blocking{}));
  for (int n = 0; n < kColumns; ++n) {
    const auto at = [&](int m) { return result.y[static_cast<std::size_t>(m * kColumns + n)]; };
    EXPECT_EQ(at(0), 0);
    EXPECT_TRUE(std::isnan(at(1)));
    EXPECT_TRUE(std::isnan(at(2)));
    EXPECT_NEAR(at(3) / 3e38f, 1, 1e-6);
    EXPECT_NEAR(at(4), 40, 1e-5);
  }
}

}  // namespace
}  // namespace kernel_test

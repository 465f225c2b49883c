// Products by packed weights against plain loops in double: both widths, every kind of zero point, blocks and
// sizes around every edge.
#include "gcrt/cpu/decode.h"

#include "kernel_test.h"

namespace kernel_test {
namespace {

template <class Zero>
struct ZeroPoints {
  std::vector<Zero> packed;
  double operator[](std::size_t i) const { return static_cast<double>(packed[i]); }
  const Zero* data() const { return packed.data(); }
};
template <>
struct ZeroPoints<void> {
  double operator[](std::size_t) const { return 0; }
  const void* data() const { return nullptr; }
};

template <class Zero>
ZeroPoints<Zero> random_zeros(std::size_t count, int middle) {
  ZeroPoints<Zero> zeros;
  Random random(5);
  if constexpr (!std::is_void<Zero>::value) {
    for (std::size_t i = 0; i < count; ++i) {
      const int zero = random.below(2 * middle) - middle;
      zeros.packed.push_back(static_cast<Zero>(zero + (std::is_integral<Zero>::value ? 0.0 : 0.5)));
    }
  }
  return zeros;
}

// A packed B, and what its elements stand for.
template <int Bits, class Zero>
struct PackedMatrix {
  std::vector<std::uint32_t> words;
  std::vector<float> scales;
  ZeroPoints<Zero> zeros;
  std::vector<double> values;  // [depth][columns]

  PackedMatrix(int depth, int columns, int block) {
    constexpr int kDepth = PackedBits<Bits>::kDepth, kMiddle = 1 << (Bits - 1);
    const int panels = (columns + 31) / 32, in_column = (depth + kDepth - 1) / kDepth;
    const int blocks = (depth + block - 1) / block;
    Random random(static_cast<std::uint32_t>(depth + columns));
    words.resize(static_cast<std::size_t>(panels * in_column * 32));
    for (int i = 0; i < panels * blocks * 32; ++i) scales.push_back(0.01f * static_cast<float>(i % 37 + 1));
    zeros = random_zeros<Zero>(scales.size(), kMiddle);
    for (int k = 0; k < depth; ++k) {
      for (int n = 0; n < columns; ++n) {
        const int q = random.below(2 * kMiddle);
        words[static_cast<std::size_t>((n / 32 * in_column + k / kDepth) * 32 + n % 32)] |=
            static_cast<std::uint32_t>(q) << (k % kDepth * Bits);
        const auto at = static_cast<std::size_t>((n / 32 * blocks + k / block) * 32 + n % 32);
        values.push_back((q - kMiddle - zeros[at]) * static_cast<double>(scales[at]));
      }
    }
  }
};

constexpr Blocking kBlockings[] = {{0, 0, 0, 0}, {1, 1, 1, 0}, {20, 40, 7, 0}};

template <class Tile, int Bits, class Zero>
void check_product(int rows, int columns, int depth, int block) {
  SCOPED_TRACE(::testing::Message() << rows << " x " << columns << " x " << depth << ", blocks of " << block);
  const int lda = depth + 3;
  const auto a = random_values<float>(static_cast<std::size_t>(rows * lda), 1);
  const PackedMatrix<Bits, Zero> b(depth, columns, block);
  const BlockWeights<Bits, Zero> weights{b.words.data(), b.scales.data(), b.zeros.data(), block};
  std::vector<double> expected;
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n) {
      double sum = 0;
      for (int k = 0; k < depth; ++k) {
        sum += static_cast<double>(a[static_cast<std::size_t>(m * lda + k)]) *
               b.values[static_cast<std::size_t>(k * columns + n)];
      }
      expected.push_back(sum);
    }
  }
  std::vector<float> prepared(
      static_cast<std::size_t>(kDecodedRows * prepared_row_size<Bits>(depth, weights.chunk())));
  prepare_rows(rows, depth, a.data(), lda, weights, prepared.data());
  for (const Blocking& blocking : kBlockings) {
    in_any_pieces<float>(rows, columns, gemm_work_items<Tile>(rows, columns, blocking),
                         [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
                           gemm_decoded<Tile>(rows, columns, depth, a.data(), lda, weights, prepared.data(),
                                              blocking, epilogue, begin, end);
                         })
        .check(expected, 1e-5 * (Bits == 8 ? 64 : 8));
  }
}

using OtherTile =
    TileOfLevel<RegisterTile<2, 2, 2>, RegisterTile<4, 4>, RegisterTile<4, 2>, RegisterTile<6, 4>>;

template <int Bits, class Zero>
void check_products() {
  for (const int rows : {1, 2, 3, 4, 5, 7, 13}) {
    for (const int columns : {1, 16, 17, 50, 70}) {
      for (const int block : {8, 32, 128}) {
        for (const int depth : {1, 7, 32, 41, 130})
          check_product<UsualTile, Bits, Zero>(rows, columns, depth, block);
      }
    }
  }
  for (const int rows : {1, 3, 100}) {
    for (const int block : {16, 256, 1000, 1024}) {
      check_product<OtherTile, Bits, Zero>(rows, 40, 1000, block);
      check_product<UsualTile, Bits, Zero>(rows, 90, 517, block);
    }
  }
}

TEST(Decode, FourBits) { check_products<4, void>(); }
TEST(Decode, FourBitsWithZeroPoints) { check_products<4, std::int8_t>(); }
TEST(Decode, FourBitsWithBrokenZeroPoints) { check_products<4, float>(); }
TEST(Decode, EightBits) { check_products<8, void>(); }
TEST(Decode, EightBitsWithZeroPoints) { check_products<8, std::int8_t>(); }
TEST(Decode, EightBitsWithBrokenZeroPoints) { check_products<8, float>(); }

}  // namespace
}  // namespace kernel_test

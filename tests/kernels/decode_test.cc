// Products by packed weights against plain loops in double: both widths, every kind of zero point, blocks and
// sizes around every edge.
#include "gcrt/cpu/product/decode.h"

#include "packed_matrix.h"

namespace kernel_test {
namespace {

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

template <int Bits, class Zero>
void check_products() {
  for_each_packed_product([](auto tile, int rows, int columns, int depth, int block) {
    check_product<decltype(tile), Bits, Zero>(rows, columns, depth, block);
  });
}

TEST(Decode, FourBits) { check_products<4, void>(); }
TEST(Decode, FourBitsWithZeroPoints) { check_products<4, std::int8_t>(); }
TEST(Decode, FourBitsWithBrokenZeroPoints) { check_products<4, float>(); }
TEST(Decode, EightBits) { check_products<8, void>(); }
TEST(Decode, EightBitsWithZeroPoints) { check_products<8, std::int8_t>(); }
TEST(Decode, EightBitsWithBrokenZeroPoints) { check_products<8, float>(); }

}  // namespace
}  // namespace kernel_test

// Matrix products against three plain loops, over sizes around every tile edge.
#include "gcrt/cpu/product/gemm.h"

#include "kernel_test.h"

namespace kernel_test {
namespace {

template <class T, class Wide>
std::vector<Wide> reference(int rows, int columns, int depth, const std::vector<T>& a, int lda,
                            const std::vector<T>& b, int ldb) {
  std::vector<Wide> c(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n) {
      Wide sum = 0;
      for (int k = 0; k < depth; ++k) {
        sum += static_cast<Wide>(a[static_cast<std::size_t>(m * lda + k)]) *
               static_cast<Wide>(b[static_cast<std::size_t>(k * ldb + n)]);
      }
      c[static_cast<std::size_t>(m * columns + n)] = sum;
    }
  }
  return c;
}

/// Tiles of columns are whole panels, or divide one, for elements of any size.
using OtherTile =
    TileOfLevel<RegisterTile<2, 2, 2>, RegisterTile<4, 4>, RegisterTile<4, 2, 2>, RegisterTile<6, 4, 2>>;
using SixRows = RegisterTile<6, 2>;

/// Bits depend on how the depth is cut, not on items and blocks.
constexpr Blocking kBlockings[] = {{0, 0, 0, 0}, {1, 1, 1, 0}, {20, 0, 7, 0}, {0, 40, 0, 0}, {30, 17, 16, 0}};
constexpr Blocking kCutDepths[] = {{0, 0, 0, 16}, {9, 1, 7, 32}, {0, 33, 13, 512}};

template <class Tile, class T, class Wide>
void check_product(int rows, int columns, int depth, double tolerance) {
  SCOPED_TRACE(::testing::Message() << rows << " x " << columns << " x " << depth);
  const int lda = depth + 3;
  const int ldb = columns + 1;
  const auto a = random_values<T>(static_cast<std::size_t>(rows * lda), 1);
  const auto b = random_values<T>(static_cast<std::size_t>(depth * ldb + 1), 2);
  std::vector<T> packed(static_cast<std::size_t>(packed_b_size(depth, columns)) + 1);
  pack_b(depth, columns, b.data(), ldb, 1, packed.data());
  std::vector<T> sums(static_cast<std::size_t>(parked_sums_size(rows, columns)));
  const std::vector<Wide> expected = reference<T, Wide>(rows, columns, depth, a, lda, b, ldb);
  Recorded<T> whole(rows, columns);
  gemm<Tile>(rows, columns, depth, a.data(), lda, packed.data(), whole.epilogue());
  whole.check(expected, tolerance);
  const auto result_of = [&](const Blocking& blocking) {
    return in_any_pieces<T>(rows, columns, WorkItems<FmaDot<T, Tile>>(rows, columns, 1, blocking).count(),
                            [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
                              gemm<Tile>(rows, columns, depth, a.data(), lda, packed.data(), blocking,
                                         epilogue, begin, end, sums.data());
                            });
  };
  for (const Blocking& blocking : kBlockings) EXPECT_EQ(result_of(blocking).y, whole.y);
  for (const Blocking& blocking : kCutDepths) result_of(blocking).check(expected, tolerance);
}
template <class T, class Wide>
void check_product(int rows, int columns, int depth, double tolerance) {
  if constexpr (std::is_same<T, float>::value) {
    check_product<UsualTile, T, Wide>(rows, columns, depth, tolerance);
    check_product<OtherTile, T, Wide>(rows, columns, depth, tolerance);
  } else {
    check_product<SixRows, T, Wide>(rows, columns, depth, tolerance);
  }
}

TEST(Gemm, FloatAroundTileEdges) {
  for (int rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 17, 25, 49}) {
    for (int columns : {1, 3, 8, 15, 16, 17, 33, 58, 64, 65}) {
      for (int depth : {1, 4, 7, 33}) check_product<float, double>(rows, columns, depth, 1e-5);
    }
  }
}

TEST(Gemm, FloatLongDepth) {
  for (int rows : {1, 12, 13, 26, 49, 200}) {
    for (int columns : {5, 48, 70}) check_product<float, double>(rows, columns, 2051, 1e-4);
  }
}

TEST(Gemm, FloatManyRows) {
  check_product<float, double>(1601, 33, 58, 1e-5);
  check_product<float, double>(400, 17, 700, 2e-5);
}

TEST(Gemm, EmptyDepthGivesZeros) {
  check_product<float, double>(5, 19, 0, 0.0);
  check_product<float, double>(1, 200, 0, 0.0);
}

// One row goes through another kernel, and the last item may have few rows.
TEST(Gemm, BitsDoNotDependOnTheItems) {
  for (int columns : {16, 33, 48, 63, 80, 200}) check_product<float, double>(1, columns, 131, 1e-5);
  for (int rest : {0, 1, 2, 3, 5}) {
    check_product<float, double>(8 * UsualTile::kRows + rest, 40, 31, 1e-5);
    check_product<float, double>(8 * UsualTile::kRows + rest, 7, 1031, 1e-4);
  }
  check_product<float, double>(50, 130, 31, 1e-5);
}

TEST(Gemm, DoubleAndIntegers) {
  for (int rows : {1, 2, 5, 13, 24}) {
    for (int columns : {1, 9, 16, 35, 66}) {
      for (int depth : {1, 6, 17}) {
        check_product<double, double>(rows, columns, depth, 1e-14);
        check_product<std::uint32_t, std::uint32_t>(rows, columns, depth, 0.0);
        check_product<std::uint64_t, std::uint64_t>(rows, columns, depth, 0.0);
      }
    }
  }
}

TEST(Gemm, SignedIntegersWrap) {
  const std::int32_t a[2] = {2147483647, 65536};
  const std::int32_t b[2] = {2, 65536};
  std::int32_t packed[2 * kPanelColumns];
  pack_b(2, 1, b, 1, 1, packed);
  Recorded<std::int32_t> result(1, 1);
  gemm<SixRows>(1, 1, 2, a, 2, packed, result.epilogue());
  EXPECT_EQ(result.y[0], -2);
}

TEST(Gemm, PackTransposed) {
  const int depth = 7, columns = 37;
  const auto b = random_values<float>(depth * columns, 3);
  std::vector<float> transposed(b.size());
  for (int k = 0; k < depth; ++k) {
    for (int n = 0; n < columns; ++n) {
      transposed[static_cast<std::size_t>(n * depth + k)] = b[static_cast<std::size_t>(k * columns + n)];
    }
  }
  std::vector<float> from_rows(static_cast<std::size_t>(packed_b_size(depth, columns)), 5.0f);
  std::vector<float> from_columns(from_rows.size(), 6.0f);
  pack_b(depth, columns, b.data(), columns, 1, from_rows.data());
  pack_b(depth, columns, transposed.data(), 1, depth, from_columns.data());
  EXPECT_EQ(from_rows, from_columns);
  EXPECT_EQ(from_rows[static_cast<std::size_t>(packed_b_offset(depth, 32) + 3 * kPanelColumns + 4)],
            b[3 * columns + 36]);
  EXPECT_EQ(from_rows.back(), 0.0f);
}

}  // namespace
}  // namespace kernel_test

// The body of the tile unit that tests run on, against plain loops and what the instructions refuse; and that
// kernels of bytes go through it. What they compute is int8_test's and product_int8_test's, which are built
// with tiles as well.
#include "gcrt/cpu/product/gemm_int8.h"
#include "gcrt/cpu/tile_features.h"
#include "integer_operands.h"

namespace kernel_test {
namespace {

static_assert(kInTiles, "built with GCRT_EMULATE_TILES");
static_assert(std::is_same<WordDot<std::int8_t, std::int8_t, kInTiles>, TiledByteDot<std::int8_t>>::value,
              "");

TileShapes shapes_of(int rows, int words, int columns) {
  TileShapes shapes;
  const int sizes[3][2] = {{rows, 4 * columns}, {rows, 4 * words}, {words, 4 * columns}};
  for (int i = 0; i < 3; ++i) {
    shapes.rows[i] = static_cast<std::uint8_t>(sizes[i][0]);
    shapes.row_bytes[i] = static_cast<std::uint16_t>(sizes[i][1]);
  }
  return shapes;
}

template <class TX>
void check_instruction(int rows, int words, int columns, Values values, std::uint32_t seed) {
  SCOPED_TRACE(::testing::Message() << rows << "x" << words << "x" << columns << " seed " << seed);
  const int a_stride = 4 * words + 3, b_stride = 4 * columns + 5, s_stride = columns + 2;
  const auto o = make_operands<TX, std::int8_t>(
      static_cast<std::size_t>((rows - 1) * a_stride + 4 * words),
      static_cast<std::size_t>((words - 1) * b_stride + 4 * columns), values, seed);
  const Exact<TX> a(o.x);
  const Exact<std::int8_t> b(o.w);
  std::vector<std::int32_t> sums(static_cast<std::size_t>(rows * s_stride)), expected;
  Random random(seed);
  for (std::int32_t& s : sums) s = random.below(1 << 30);
  expected = sums;
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n) {
      for (int k = 0; k < 4 * words; ++k) {
        expected[static_cast<std::size_t>(m * s_stride + n)] +=
            a.data[static_cast<std::size_t>(m * a_stride + k)] *
            b.data[static_cast<std::size_t>(k / 4 * b_stride + 4 * n + k % 4)];
      }
    }
  }
  TileUnit unit;
  unit.configure(shapes_of(rows, words, columns));
  unit.load<0>(sums.data(), 4 * s_stride);
  unit.load<1>(a.data.get(), a_stride);
  unit.load<2>(b.data.get(), b_stride);
  unit.multiply_add<std::is_signed<TX>::value, 0, 1, 2>();
  unit.store<0>(sums.data(), 4 * s_stride);  // what lies between the rows stays
  EXPECT_EQ(sums, expected);
}

TEST(Tiles, ProductsOfAllShapes) {
  for (int rows : {1, 3, 16}) {
    for (int words : {1, 5, 16}) {
      for (int columns : {1, 7, 16}) {
        for (const Values values : {Values::random, Values::extreme}) {
          check_instruction<std::uint8_t>(rows, words, columns, values, 1);
          check_instruction<std::int8_t>(rows, words, columns, values, 2);
        }
      }
    }
  }
}

TEST(Tiles, WhatTheInstructionsRefuse) {
  const auto configure = [](const TileShapes& shapes) {
    TileUnit unit;
    unit.configure(shapes);
  };
  configure(shapes_of(16, 16, 16));
  // The unit takes two that no kernel means: without a palette registers have no shape, and a row to start
  // with goes on with a load that was interrupted. The emulation refuses them, where they are mistakes.
  TileShapes no_palette = shapes_of(16, 16, 16), interrupted = no_palette;
  no_palette.palette = 0;
  interrupted.start_row = 1;
#ifdef GCRT_EMULATE_TILES
  EXPECT_DEATH(configure(no_palette), "");
  EXPECT_DEATH(configure(interrupted), "");
#else
  configure(no_palette);
  configure(interrupted);
  const auto load = [](const TileShapes& shapes) {
    char bytes[kTileRows * kTileRowBytes] = {};
    TileUnit unit;
    unit.configure(shapes);
    unit.load<0>(bytes, kTileRowBytes);
  };
  EXPECT_DEATH(load(no_palette), "");
#endif
  for (const auto& spoil : std::initializer_list<void (*)(TileShapes&)>{
           [](TileShapes& s) { s.reserved[13] = 1; }, [](TileShapes& s) { s.rows[0] = 17; },
           [](TileShapes& s) { s.row_bytes[0] = 65; }, [](TileShapes& s) { s.rows[0] = 0; },
           [](TileShapes& s) { s.row_bytes[1] = 0; },
           [](TileShapes& s) { s.rows[8] = 1, s.row_bytes[8] = 4; }}) {
    TileShapes shapes = shapes_of(16, 16, 16);
    spoil(shapes);
    EXPECT_DEATH(configure(shapes), "");
  }
  const auto multiply = [](const TileShapes& shapes) {
    TileUnit unit;
    unit.configure(shapes);
    unit.multiply_add<false, 0, 1, 2>();
  };
  multiply(shapes_of(5, 6, 7));
  for (const auto& spoil : std::initializer_list<void (*)(TileShapes&)>{
           [](TileShapes& s) { --s.rows[0]; }, [](TileShapes& s) { --s.rows[1]; },
           [](TileShapes& s) { --s.rows[2]; }, [](TileShapes& s) { s.row_bytes[0] -= 4; },
           [](TileShapes& s) { s.row_bytes[1] -= 4; }, [](TileShapes& s) { s.row_bytes[2] -= 4; },
           [](TileShapes& s) { --s.row_bytes[0], --s.row_bytes[2]; }}) {
    TileShapes shapes = shapes_of(5, 6, 7);
    spoil(shapes);
    EXPECT_DEATH(multiply(shapes), "");
  }
  char bytes[kTileRows * kTileRowBytes] = {};
  TileUnit unit;
  EXPECT_DEATH(unit.load<0>(bytes, kTileRowBytes), "");
  unit.configure(shapes_of(1, 1, 1));
  unit.load<2>(bytes, kTileRowBytes);
  EXPECT_DEATH(unit.load<3>(bytes, kTileRowBytes), "");
  EXPECT_DEATH(unit.store<3>(bytes, kTileRowBytes), "");
}

TEST(Tiles, AShapeIsSetWhereItChanges) {
  ByteTiles tiles;
  char ones[kTileRowBytes];
  std::memset(ones, 1, sizeof(ones));
  char out[kTileRowBytes] = {};
  tiles.shape(2, 5);
  tiles.unit.load<0>(ones, 0);
  tiles.shape(2, 5);
  tiles.unit.store<0>(out, 0);
  EXPECT_EQ(out[0], 1);
  tiles.shape(2, 6);  // which empties all registers
  tiles.unit.store<0>(out, 0);
  EXPECT_EQ(out[0], 0);
}

TEST(Tiles, RowsOfTasksCoverAll) {
  using Dot = TiledByteDot<std::uint8_t>;
  for (int rows = 1; rows <= 300; ++rows) {
    int left = rows, tasks = 0;
    for (; left > 0; ++tasks) {
      const int next = Dot::next_rows(left);
      ASSERT_GE(next, 1);
      ASSERT_LE(next, Dot::kRows);
      left -= next;
    }
    EXPECT_EQ(left, 0);
    EXPECT_EQ(tasks, (rows + Dot::kRows - 1) / Dot::kRows);
  }
}

// y = saturate(sums + y), in place: the second operand of a residual layer. Elements that are handed over
// twice are found out.
struct Residual {
  std::uint8_t* y;
  std::ptrdiff_t columns;
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    for (int i = 0; i < L::value; ++i) {
      std::int32_t sum[L::value];
      store(lane, sum, sums);
      std::uint8_t& to = y[m * columns + n + i];
      to = static_cast<std::uint8_t>(std::min(std::max(sum[i] / 64 + to, 0), 255));
    }
  }
};

TEST(Tiles, ResidualEpilogueInPlace) {
  constexpr int kDepth = 100;
  for (int rows = 1; rows <= 70; ++rows) {
    for (int columns : {1, 16, 31, 45}) {
      const auto o = make_operands<std::uint8_t, std::int8_t>(
          static_cast<std::size_t>(rows * kDepth), static_cast<std::size_t>(kDepth * columns), Values::random,
          static_cast<std::uint32_t>(rows));
      std::vector<std::int8_t> packed;
      std::vector<std::int32_t> sums;
      const auto w = [&](int, int k, int n) { return o.w[static_cast<std::size_t>(k * columns + n)]; };
      append_packed<std::uint8_t>(1, kDepth, columns, w, packed, sums);
      const Exact<std::uint8_t> a(o.x);
      const Exact<std::int8_t> b(packed);
      const Exact<std::int32_t> offsets(offsets_of<std::uint8_t, std::int8_t>(o.zero_point, sums));
      std::vector<std::uint8_t> y(static_cast<std::size_t>(rows * columns)), expected;
      Random random(3);
      for (std::uint8_t& value : y) value = static_cast<std::uint8_t>(random.below(256));
      for (int m = 0; m < rows; ++m) {
        for (int n = 0; n < columns; ++n) {
          int sum = 0;
          for (int k = 0; k < kDepth; ++k)
            sum += (o.x[static_cast<std::size_t>(m * kDepth + k)] - o.zero_point) * w(0, k, n);
          const int value = sum / 64 + y[static_cast<std::size_t>(m * columns + n)];
          expected.push_back(static_cast<std::uint8_t>(std::min(std::max(value, 0), 255)));
        }
      }
      const Blocking blocking{0, 0, 0, 0};
      gemm_integer<kInTiles>(rows, columns, kDepth, a.data.get(), kDepth, b.data.get(), offsets.data.get(),
                             nullptr, blocking, Residual{y.data(), columns}, 0,
                             gemm_integer_work_items<kInTiles>(rows, columns, blocking));
      ASSERT_EQ(y, expected) << rows << "x" << columns;
    }
  }
}

TEST(Tiles, TheFeatureIsNoCompilersOwn) {
  EXPECT_EQ(compiled_features() & kTileFeature, 0u);
  EXPECT_EQ(compiled_tile_feature(), kTileFeature);
  EXPECT_EQ(machine_tile_feature(), kTileFeature);  // of the emulated unit
}

}  // namespace
}  // namespace kernel_test

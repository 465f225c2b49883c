// Products of floats by bfloat16 in the emulated tile unit: the instruction against its definition, the parts
// of a number, matrix products and convolutions against plain loops, numbers that no parts hold, and the
// errors that docs/precision.md states.
#include "conv_reference.h"
#include "gcrt/cpu/image/conv.h"
#include "gcrt/cpu/product/dot_bfloat16.h"
#include "gcrt/cpu/product/gemm.h"

namespace kernel_test {
namespace {

static_assert(kInTiles, "built with GCRT_EMULATE_TILES");

template <int Products>
using Tile = InBfloat16<Products, UsualTile>;

float float_of(std::uint32_t bits) { return bit_cast<float>(bits); }
std::uint32_t bits_of(float value) { return bit_cast<std::uint32_t>(value); }

// As the instruction reads and leaves numbers.
float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

// The product of one row and one column, by the machine's fused multiply-add.
float dot(const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b, float start) {
  float sums[2] = {};
  for (std::size_t k = 0; k < a.size(); ++k) {
    const float x = flushed(float_of(std::uint32_t{a[k]} << 16)),
                y = flushed(float_of(std::uint32_t{b[k]} << 16));
    sums[k % 2] = flushed(std::fma(x, y, sums[k % 2]));
  }
  return flushed(flushed(start) + flushed(sums[0] + sums[1]));
}

// Numbers whose exponents lie in [least, least + range) of 255; where `range` is 256, any bits.
std::uint16_t random_bfloat16(Random& random, int least, int range) {
  const std::uint32_t bits = random.next();
  if (range == 256) return static_cast<std::uint16_t>(bits);
  return static_cast<std::uint16_t>((bits & 0x807fu) | static_cast<std::uint32_t>(least + random.below(range))
                                                           << 7);
}

void expect_same(float got, float want) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << got;
  } else {
    EXPECT_EQ(bits_of(got), bits_of(want)) << got << " instead of " << want;
  }
}

void check_instruction(int rows, int words, int columns, int least, int range) {
  SCOPED_TRACE(::testing::Message() << rows << "x" << words << "x" << columns << " from " << least);
  TileShapes shapes;
  const int sizes[3][2] = {{rows, 4 * columns}, {rows, 4 * words}, {words, 4 * columns}};
  for (int i = 0; i < 3; ++i) {
    shapes.rows[i] = static_cast<std::uint8_t>(sizes[i][0]);
    shapes.row_bytes[i] = static_cast<std::uint16_t>(sizes[i][1]);
  }
  Random random(static_cast<std::uint32_t>(rows + words + columns + least));
  std::uint16_t a[kTileRows][2 * kTileWords], b[kTileRows][2 * kPanelColumns];
  float sums[kTileRows][kPanelColumns], got[kTileRows][kPanelColumns] = {};
  for (auto& row : a)
    for (std::uint16_t& value : row) value = random_bfloat16(random, least, range);
  for (auto& row : b)
    for (std::uint16_t& value : row) value = random_bfloat16(random, least, range);
  for (auto& row : sums) {
    for (float& sum : row)
      sum = float_of(
          std::uint32_t{random_bfloat16(random, range == 256 ? 0 : std::max(0, 2 * least - 127), range)}
              << 16 |
          random.next() % 65536);
  }
  TileUnit unit;
  unit.configure(shapes);
  unit.load<0>(sums, sizeof(sums[0]));
  unit.load<1>(a, sizeof(a[0]));
  unit.load<2>(b, sizeof(b[0]));
  unit.multiply_add_bfloat16<0, 1, 2>();
  unit.store<0>(got, sizeof(got[0]));
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n) {
      std::vector<std::uint16_t> row(a[m], a[m] + 2 * words), column;
      for (int k = 0; k < 2 * words; ++k) column.push_back(b[k / 2][2 * n + k % 2]);
      expect_same(got[m][n], dot(row, column, sums[m][n]));
    }
  }
}

TEST(Bfloat16, TheInstruction) {
  for (int rows : {1, 5, 16}) {
    for (int words : {1, 7, 16}) {
      for (int columns : {1, 3, 16}) check_instruction(rows, words, columns, 120, 10);
    }
  }
  check_instruction(16, 16, 16, 0, 256);  // infinities, NaN and denormal numbers among them
  check_instruction(16, 1, 16, 0, 256);
  check_instruction(16, 16, 16, 60, 8);  // results around the smallest normal number
  check_instruction(16, 1, 16, 62, 3);
  check_instruction(16, 16, 16, 186, 8);  // and the largest
  check_instruction(16, 16, 16, 90, 60);  // sums that are small beside products, and large
}

// The values of the parts, the largest first, and whether they are refused.
template <int Parts>
bool split(float value, float (&parts)[Parts]) {
  std::uint32_t words[Parts];
  const bool is_refused = any_upper_bit(split_words<Parts>(value, 0.0f, words, 1));
  for (int i = 0; i < Parts; ++i) {
    EXPECT_EQ(words[i] >> 16, 0u);
    parts[i] = float_of(words[i] << 16);
  }
  return is_refused;
}

TEST(Bfloat16, ThreePartsHoldANumber) {
  Random random(1);
  int taken = 0;
  for (int i = 0; i < 200'000; ++i) {
    const float value = float_of(random.next());
    float parts[3];
    const bool is_refused = split(value, parts);
    const float size = std::fabs(value);
    EXPECT_EQ(is_refused, !(size < float_of(0x7f7f8000u)) || (size > 0 && size < 0x1p-103f)) << value;
    if (is_refused) continue;
    ++taken;
    ASSERT_EQ(parts[0] + (parts[1] + parts[2]), value);
    for (const float part : parts) ASSERT_EQ(flushed(part), part) << value;
  }
  EXPECT_GT(taken, 100'000);
}

TEST(Bfloat16, EveryPartIsTheNearest) {
  Random random(2);
  for (int i = 0; i < 100'000; ++i) {
    const float value = (random.unit() + 2) * (i % 2 == 0 ? 1.0f : 1e30f);  // of one binade, mostly
    float one[1], two[2];
    EXPECT_FALSE(split(value, one));
    EXPECT_FALSE(split(value, two));
    EXPECT_EQ(one[0], two[0]);
    EXPECT_LE(std::fabs(value - one[0]), std::ldexp(std::fabs(value), -8));
    EXPECT_LE(std::fabs(value - two[0] - two[1]), std::ldexp(std::fabs(value), -16));
  }
  float one[1];
  EXPECT_FALSE(split(float_of(0x3f808000u), one));
  EXPECT_EQ(bits_of(one[0]), 0x3f800000u);  // halves go to even
  EXPECT_FALSE(split(float_of(0x3f818000u), one));
  EXPECT_EQ(bits_of(one[0]), 0x3f820000u);
  EXPECT_FALSE(split(1e-45f, one));  // the unit takes it for zero
  for (const float value : {float_of(0x7f7f8000u), kInfinity<float>, -kInfinity<float>, kNan<float>})
    EXPECT_TRUE(split(value, one)) << value;
  EXPECT_FALSE(split(float_of(0x7f7f7fffu), one));
}

struct Matrices {
  Matrices(int row_count, int column_count, int k, std::uint32_t seed = 1)
      : rows(row_count),
        columns(column_count),
        depth(k),
        lda(k + 3),
        a(random_values<float>(static_cast<std::size_t>((rows - 1) * lda + depth), seed)),
        b(random_values<float>(static_cast<std::size_t>(depth * columns), seed + 1)) {}

  float& left(int m, int k) { return a[static_cast<std::size_t>(m * lda + k)]; }
  float& right(int k, int n) { return b[static_cast<std::size_t>(k * columns + n)]; }

  template <class T>
  Recorded<float> product(const Blocking& blocking = {}) const {
    std::vector<float> packed(static_cast<std::size_t>(packed_b_size(depth, columns)));
    pack_b(depth, columns, b.data(), columns, 1, packed.data());
    std::vector<float> sums(static_cast<std::size_t>(parked_sums_size(rows, columns)));
    return in_any_pieces<float>(rows, columns, gemm_work_items<T>(rows, columns, blocking),
                                [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
                                  gemm<T>(rows, columns, depth, a.data(), lda, packed.data(), blocking,
                                          epilogue, begin, end, sums.data());
                                });
  }
  std::vector<double> expected() {
    std::vector<double> sums;
    for (int m = 0; m < rows; ++m) {
      for (int n = 0; n < columns; ++n) {
        double sum = 0;
        for (int k = 0; k < depth; ++k) sum += double{left(m, k)} * right(k, n);
        sums.push_back(sum);
      }
    }
    return sums;
  }

  int rows, columns, depth, lda;
  std::vector<float> a, b;
};

// Errors in units of the root mean square of the exact result.
struct Errors {
  double most = 0, rms = 0;
};
Errors errors_of(const std::vector<float>& got, const std::vector<double>& expected) {
  Errors out;
  double squares = 0, scale = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(double{got[i]} - expected[i]);
    out.most = std::max(out.most, error);
    squares += error * error;
    scale += expected[i] * expected[i];
  }
  out.most /= std::sqrt(scale / static_cast<double>(got.size()));
  out.rms = std::sqrt(squares / scale);
  return out;
}

template <int Products>
void check_product(int rows, int columns, int depth, double tolerance) {
  SCOPED_TRACE(::testing::Message() << rows << "x" << columns << "x" << depth << " by " << Products);
  Matrices matrices(rows, columns, depth);
  const Recorded<float> whole = matrices.product<Tile<Products>>();
  whole.check(matrices.expected(), tolerance);
  for (const Blocking& blocking : {Blocking{1, 1, 1, 0}, Blocking{40, 70, 0, 0}, Blocking{0, 0, 130, 32}})
    EXPECT_EQ(matrices.product<Tile<Products>>(blocking).y, whole.y);
}

TEST(Bfloat16, ProductsOfAllShapes) {
  for (int rows : {1, 33, 129, 150}) {
    for (int columns : {1, 40, 131}) {
      for (int depth : {1, 31, 33, 77}) check_product<6>(rows, columns, depth, 1e-6);
    }
  }
  for (int depth : {0, 5, 300, 700}) {
    check_product<6>(35, 50, depth, 1e-5);
    check_product<3>(35, 50, depth, 2e-4);
    check_product<1>(35, 50, depth, 1e-1);
  }
}

void check_conv(const ConvShape& s) {
  SCOPED_TRACE(::testing::Message() << s.in_h << "x" << s.in_w << "x" << s.in_c << " to " << s.out_c
                                    << " kernel " << s.kernel_h << "x" << s.kernel_w << " stride "
                                    << s.stride_w);
  const int channels = s.in_c / s.groups, columns = s.out_c / s.groups;
  const std::ptrdiff_t depth = std::ptrdiff_t{channels} * s.kernel_h * s.kernel_w;
  const auto x = random_values<float>(input_size(s), 11);
  const auto w = random_values<float>(static_cast<std::size_t>(depth * s.out_c), 12);
  std::vector<float> packed(static_cast<std::size_t>(packed_b_size(depth, columns) * s.groups));
  for (int g = 0; g < s.groups; ++g) {
    pack_b(depth, columns, w.data() + g * columns, s.out_c, 1,
           packed.data() + g * packed_b_size(depth, columns));
  }
  const std::vector<float> zeros(static_cast<std::size_t>(channels), 0.0f);
  const auto run = [&](const Blocking& blocking) {
    return in_any_pieces<float>(out_pixels(s), s.out_c, conv2d_work_items<Tile<6>>(s, blocking),
                                [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
                                  conv2d<Tile<6>>(s, x.data(), packed.data(), zeros.data(), blocking,
                                                  epilogue, begin, end);
                                });
  };
  const Recorded<float> whole = run(Blocking{});
  whole.check(conv_reference(s, x, w), 1e-5);
  for (const Blocking& blocking : {Blocking{1, 1, 1, 0}, Blocking{40, 20, 15, 0}})
    EXPECT_EQ(run(blocking).y, whole.y);
  if (s.batch != 1) return;
  const Recorded<float> image = in_any_pieces<float>(
      out_pixels(s), s.out_c, s.out_h, [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
        conv2d_rows<Tile<6>>(s, x.data(), packed.data(), zeros.data(), Blocking{}, epilogue, begin, end);
      });
  EXPECT_EQ(image.y, whole.y);
}

TEST(Bfloat16, Convolutions) {
  for (int in_c : {1, 3, 16, 35, 64}) {
    for (int stride : {1, 2}) {
      ConvOptions o;
      o.stride_h = o.stride_w = stride;
      o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 1;
      check_conv(make_shape(11, 14, in_c, 20, 3, 3, o));
    }
  }
  ConvOptions o;
  check_conv(make_shape(9, 21, 40, 70, 1, 1, o));
  o.pad_top = o.pad_left = 3;
  check_conv(make_shape(12, 13, 3, 18, 7, 7, o));  // summed in parts of the taps
  check_conv(make_shape(1, 300, 2, 19, 1, 40, ConvOptions{}));
  o.dilation_h = o.dilation_w = 2;
  o.batch = 2;
  o.extra_pixel_stride = 5;
  check_conv(make_shape(9, 10, 6, 33, 3, 3, o));
  o.groups = 3;
  check_conv(make_shape(9, 10, 12, 60, 3, 3, o));
}

// Rows, or panels, with numbers that no parts hold are multiplied as floats; of all others every bit stays.
template <int Products>
void check_outside(float value) {
  SCOPED_TRACE(::testing::Message() << value << " by " << Products);
  Matrices matrices(50, 70, 300);
  const std::vector<float> before = matrices.product<Tile<Products>>().y;
  for (int m : {0, 17, 34, 49}) matrices.left(m, 70) = value;
  matrices.right(299, 20) = value;
  matrices.right(100, 21) = 0;
  const Recorded<float> got = matrices.product<Tile<Products>>(), floats = matrices.product<UsualTile>();
  const std::vector<double> expected = matrices.expected();
  const double tolerance =
      (Products == 1 ? 0.1 : 2e-3) + (std::isfinite(value) ? 1e-7 * std::fabs(value) : 0.0);
  for (int m = 0; m < 50; ++m) {
    for (int n = 0; n < 70; ++n) {
      const auto i = static_cast<std::size_t>(m * 70 + n);
      const bool has_outside = m == 0 || m == 17 || m == 34 || m == 49 || n / 16 == 1;
      if (!has_outside) {
        ASSERT_EQ(got.y[i], before[i]) << m << ", " << n;
      } else if (std::isfinite(floats.y[i])) {
        ASSERT_NEAR(got.y[i], expected[i], tolerance) << m << ", " << n;
      } else {
        expect_same(got.y[i], floats.y[i]);
      }
    }
  }
}

TEST(Bfloat16, NumbersThatNoPartsHold) {
  for (const float value : {kInfinity<float>, -kInfinity<float>, kNan<float>, 3.4e38f, -3.397e38f}) {
    check_outside<1>(value);
    check_outside<3>(value);
    check_outside<6>(value);
  }
}

// As exact as floats where the last of three parts would be denormal.
TEST(Bfloat16, SmallFactors) {
  for (const float scale : {0x1p-60f, 0x1p-102f, 0x1p-105f, 0x1p-118f}) {
    Matrices matrices(20, 20, 40);
    for (float& value : matrices.a) value *= scale;
    for (float& value : matrices.b) value *= 0x1p100f;
    EXPECT_LT(errors_of(matrices.product<Tile<6>>().y, matrices.expected()).most, 1e-6) << scale;
    EXPECT_EQ(errors_of(matrices.product<Tile<1>>().y, matrices.expected()).most > 1e-6, true) << scale;
  }
  Matrices zeros(20, 20, 40);
  for (float& value : zeros.a) value = 0;
  for (const float sum : zeros.product<Tile<6>>().y) EXPECT_EQ(sum, 0.0f);
}

double normal(Random& random) {
  double sum = 0;
  for (int i = 0; i < 12; ++i) sum += random.unit();
  return sum / 2;
}

// docs/precision.md states these.
TEST(Bfloat16, StatedErrors) {
  for (const int depth : {768, 3072}) {
    Matrices matrices(64, 64, depth);
    Random random(3);
    for (auto* side : {&matrices.a, &matrices.b}) {
      for (float& value : *side) value = static_cast<float>(normal(random));
    }
    const std::vector<double> expected = matrices.expected();
    const auto errors = [&](auto tile) { return errors_of(matrices.product<decltype(tile)>().y, expected); };
    const Errors floats = errors(UsualTile{}), one = errors(Tile<1>{}), three = errors(Tile<3>{}),
                 six = errors(Tile<6>{});
    EXPECT_LT(one.most, 1e-2);
    EXPECT_NEAR(one.rms, 2.4e-3, 1e-4);
    EXPECT_LT(three.most, 1.7e-5);
    EXPECT_NEAR(three.rms, 4.4e-6, 2e-7);
    EXPECT_LT(six.most, std::min(floats.most, 3.5e-6));
    EXPECT_LT(six.rms, std::min(floats.rms, 5e-7));
  }
}

}  // namespace
}  // namespace kernel_test

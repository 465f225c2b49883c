// Contractions of cores without vectors, of bytes in pairs of halves and one by one, and of floats, against loops.
#include <cmath>
#include <random>

#include "gcrt/cpu/image/conv_scalar_int8.h"
#include "gcrt/cpu/image/depthwise_scalar_int8.h"
#include "gcrt/isa/saturate_product.h"
#include "integer_reference.h"

namespace kernel_test {
namespace {

template <class X, class W, bool Halves>
struct Way : Kinds<X, W> {
  static constexpr bool kInHalves = Halves;
};
using AllWays =
    ::testing::Types<Way<std::uint8_t, std::int8_t, true>, Way<std::int8_t, std::int8_t, true>,
                     Way<std::uint8_t, std::int16_t, true>, Way<std::int8_t, std::int16_t, true>,
                     Way<std::uint8_t, std::int8_t, false>, Way<std::int8_t, std::int8_t, false>,
                     Way<std::uint8_t, std::int16_t, false>, Way<std::int8_t, std::int16_t, false>>;

template <class T>
class ScalarInteger : public ::testing::Test {};
TYPED_TEST_SUITE(ScalarInteger, AllWays);

// w(k, n) in rows of whole words of four k.
template <class TW, class F>
void append_rows(int depth, int columns, const F& w, std::vector<TW>& rows) {
  for (int n = 0; n < columns; ++n) {
    for (int k = 0; k < (depth + 3) / 4 * 4; ++k) rows.push_back(k < depth ? w(k, n) : TW(0));
  }
}

template <class Kind>
void check_gemm(int rows, int columns, int depth, int gap, Values values, std::uint32_t seed) {
  using TX = typename Kind::TX;
  using TW = typename Kind::TW;
  SCOPED_TRACE(::testing::Message() << rows << "x" << columns << "x" << depth << " gap " << gap);
  const int lda = depth + gap;
  const auto o = make_operands<TX, TW>(static_cast<std::size_t>((rows - 1) * lda + depth),
                                       static_cast<std::size_t>(depth * columns), values, seed);
  const auto w_at = [&](int k, int n) { return o.w[static_cast<std::size_t>(k * columns + n)]; };
  std::vector<TW> packed;
  append_rows(depth, columns, w_at, packed);
  std::vector<std::int64_t> expected;
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n) {
      std::int64_t sum = 0;
      for (int k = 0; k < depth; ++k) {
        sum += (std::int64_t{o.x[static_cast<std::size_t>(m * lda + k)]} - o.zero_point) * w_at(k, n);
      }
      expected.push_back(sum);
    }
  }
  const Exact<TX> a(o.x);
  const Exact<TW> w(packed);
  Recorded<std::int32_t> result(rows, columns);
  gemm_scalar<Kind::kInHalves>(rows, columns, depth, a.data.get(), lda, static_cast<TX>(o.zero_point),
                               w.data.get(), result.epilogue());
  result.check(modulo(expected), 0.0);
}

TYPED_TEST(ScalarInteger, Gemm) {
  std::uint32_t seed = 1;
  for (int depth = 1; depth <= 40; ++depth) {
    for (int columns = 1; columns <= 40; columns += depth % 5 + 1) {
      check_gemm<TypeParam>(1 + (depth + columns) % 3, columns, depth, depth % 3, Values::random, ++seed);
    }
  }
  for (const Values values : {Values::extreme, Values::random}) {
    check_gemm<TypeParam>(2, 19, 640, 0, values, ++seed);
    check_gemm<TypeParam>(2, 19, 641, 5, values, ++seed);
  }
}

template <class Kind>
void check_conv(const ConvShape& s, Values values = Values::random, std::uint32_t seed = 3) {
  using TX = typename Kind::TX;
  using TW = typename Kind::TW;
  SCOPED_TRACE(::testing::Message() << "in " << s.batch << "x" << s.in_h << "x" << s.in_w << "x" << s.in_c
                                    << " out " << s.out_h << "x" << s.out_w << "x" << s.out_c << " kernel "
                                    << s.kernel_h << "x" << s.kernel_w << " groups " << s.groups);
  const int depth = s.kernel_h * s.kernel_w * (s.in_c / s.groups);
  const auto o = make_operands<TX, TW>(used_size(s), static_cast<std::size_t>(depth * s.out_c), values, seed);
  std::vector<TW> packed;
  append_rows(
      depth, s.out_c, [&](int k, int n) { return o.w[static_cast<std::size_t>(k * s.out_c + n)]; }, packed);
  const Exact<TX> x(o.x);
  const Exact<TW> w(packed);
  const auto zero = static_cast<TX>(o.zero_point);
  std::vector<std::int32_t> lines(static_cast<std::size_t>(line_words(depth)));
  const std::vector<std::int64_t> expected = modulo(integer_reference(s, o));
  Recorded<std::int32_t> result(out_pixels(s), s.out_c);
  conv2d_scalar<Kind::kInHalves>(nullptr, s, x.data.get(), zero, w.data.get(), lines.data(),
                                 result.epilogue());
  result.check(expected, 0.0);
  if (s.batch != 1) return;
  in_any_pieces<std::int32_t>(out_pixels(s), s.out_c, s.out_h,
                              [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
                                conv2d_scalar<Kind::kInHalves>(s, x.data.get(), zero, w.data.get(),
                                                               lines.data(), epilogue, begin, end);
                              })
      .check(expected, 0.0);
}

void check_floats(const ConvShape& s) {
  SCOPED_TRACE(::testing::Message() << "in " << s.batch << "x" << s.in_h << "x" << s.in_w << "x" << s.in_c
                                    << " out " << s.out_h << "x" << s.out_w << "x" << s.out_c);
  const int depth = s.kernel_h * s.kernel_w * (s.in_c / s.groups);
  const auto x = random_values<float>(input_size(s), 21);
  const auto w = random_values<float>(static_cast<std::size_t>(depth * s.out_c), 22);
  std::vector<float> rows, lines(static_cast<std::size_t>(2 * line_words(depth)));
  append_rows(
      depth, s.out_c, [&](int k, int n) { return w[static_cast<std::size_t>(k * s.out_c + n)]; }, rows);
  Recorded<float> whole(out_pixels(s), s.out_c);
  conv2d_scalar(nullptr, s, x.data(), rows.data(), lines.data(), whole.epilogue());
  whole.check(conv_reference(s, x, w), 2e-5);
  if (s.batch != 1) return;
  const auto pieces = in_any_pieces<float>(
      out_pixels(s), s.out_c, s.out_h, [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
        conv2d_scalar(s, x.data(), rows.data(), lines.data(), epilogue, begin, end);
      });
  EXPECT_EQ(pieces.y, whole.y);
}

ConvOptions padded(int pad) {
  ConvOptions o;
  o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = pad;
  return o;
}

TYPED_TEST(ScalarInteger, Conv) {
  for (int size : {1, 3, 7}) {
    for (int in_c : {1, 2, 3, 4, 5, 8, 17}) {
      for (int out_c : {1, 7, 16, 33}) {
        check_conv<TypeParam>(make_shape(size, size + 1, in_c, out_c, 3, 3, padded(1)));
        check_conv<TypeParam>(make_shape(size, size + 1, in_c, out_c, 1, 1, padded(0)));
      }
    }
  }
  for (std::uint32_t seed : {1u, 2u}) {
    check_conv<TypeParam>(make_shape(5, 6, 12, 5, 3, 3, padded(1)), Values::extreme, seed);
  }
}

TYPED_TEST(ScalarInteger, ConvStridesDilationsGroupsSlices) {
  for (int groups : {1, 3}) {
    for (int dilation : {1, 2}) {
      ConvOptions o = padded(2);
      o.pad_bottom = 0;
      o.stride_h = 2;
      o.stride_w = 3;
      o.dilation_h = o.dilation_w = dilation;
      o.groups = groups;
      check_conv<TypeParam>(make_shape(9, 11, 12, 15, 3, 5, o));
      o.batch = 2;
      o.extra_pixel_stride = 3;
      o.extra_row_stride = 2;
      check_conv<TypeParam>(make_shape(7, 10, 9, 6, 3, 4, o));
    }
  }
}

TEST(ScalarFloat, NearestByBits) {
  const auto check = [](float value) {
    const float expected = std::nearbyint(value);
    ASSERT_EQ(nearest_by_bits(value), std::fabs(expected) < 16777216 ? static_cast<int>(expected)
                                      : value < 0                    ? -(1 << 25)
                                                                     : 1 << 25)
        << value;
  };
  for (std::uint64_t bits = 0; bits < 0x7f800001; bits += 997) {
    check(bit_cast<float>(static_cast<std::uint32_t>(bits)));
    check(-bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  for (int i = -3000; i <= 3000; ++i) {
    const float tie = static_cast<float>(i) / 4;
    for (const float value : {tie, std::nextafter(tie, 1e9f), std::nextafter(tie, -1e9f)}) check(value);
  }
}

TEST(ScalarFloat, NearestProduct) {
  std::mt19937 random(1);
  const auto check = [](std::int32_t word, float factor) {
    const float product = static_cast<float>(word) * factor;
    const int expected = nearest_by_bits(product), given = nearest_product(word, factor);
    if (std::fabs(product) < 511) {
      ASSERT_EQ(given, expected) << word << " * " << factor;
    } else if (std::fabs(product) < 0x1p31f) {
      ASSERT_GE(product < 0 ? -given : given, 510) << word << " * " << factor;
    }
  };
  for (int i = 0; i < 2000000; ++i) {
    // Normal factors, and now and then another number.
    const float factor = std::ldexp(1 + static_cast<float>(random() % (1 << 23)) * 0x1p-23f,
                                    static_cast<int>(random() % 48) - 40);
    const auto word = static_cast<std::int32_t>(random()) >> (random() % 32);
    check(word, i % 16 == 0 ? -factor : factor);
    // A product within some last bits of a half.
    const double half = static_cast<double>(random() % 1024) - 511.5,
                 nearest = half / static_cast<double>(factor);
    if (std::fabs(nearest) < 2e9) check(static_cast<std::int32_t>(std::nearbyint(nearest)), factor);
  }
  // 2^k * (odd + 0.5) / 2^k is a half.
  for (int bits = 1; bits < 22; ++bits) {
    for (int odd = -600; odd < 600; ++odd) check((2 * odd + 1) << (bits - 1), std::ldexp(1.0f, -bits));
  }
  for (const float factor : {0.0f, 1e-40f, 1.0f, 0.5f, 0.49999997f, 3e38f}) {
    for (const std::int32_t word : {0, 1, -1, 77, -1000, 2147483647, -2147483647 - 1}) check(word, factor);
  }
}

TEST(ScalarFloat, Conv) {
  for (int size : {1, 3, 6}) {
    for (int in_c : {1, 3, 4, 17}) {
      for (int out_c : {1, 3, 4, 7, 33}) {
        check_floats(make_shape(size, size + 1, in_c, out_c, 3, 3, padded(1)));
        check_floats(make_shape(size, size + 1, in_c, out_c, 1, 1, padded(0)));
      }
    }
  }
  ConvOptions o = padded(2);
  o.stride_h = 2;
  o.dilation_w = 2;
  o.groups = 3;
  check_floats(make_shape(9, 11, 12, 15, 3, 4, o));
  o.batch = 2;
  o.extra_pixel_stride = 3;
  o.extra_row_stride = 2;
  check_floats(make_shape(7, 10, 9, 6, 3, 4, o));
}

template <class Kind>
void check_depthwise(const ConvShape& s, Values values, std::uint32_t seed) {
  using TX = typename Kind::TX;
  using TW = typename Kind::TW;
  SCOPED_TRACE(::testing::Message() << "in " << s.batch << "x" << s.in_h << "x" << s.in_w << "x" << s.in_c
                                    << " out " << s.out_h << "x" << s.out_w << "x" << s.out_c);
  const auto o = make_operands<TX, TW>(
      used_size(s), static_cast<std::size_t>(s.kernel_h * s.kernel_w * s.out_c), values, seed);
  const Exact<TX> x(o.x);
  const Exact<TW> w(o.w);
  const auto zero = static_cast<TX>(o.zero_point);
  const std::vector<std::int64_t> expected = modulo(integer_reference(s, o));
  Recorded<std::int32_t> result(out_pixels(s), s.out_c);
  depthwise2d_scalar<Kind::kInHalves>(nullptr, s, x.data.get(), zero, w.data.get(), result.epilogue());
  result.check(expected, 0.0);
  if (s.batch != 1) return;
  in_any_pieces<std::int32_t>(out_pixels(s), s.out_c, s.out_h,
                              [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
                                depthwise2d_scalar<Kind::kInHalves>(s, x.data.get(), zero, w.data.get(),
                                                                    epilogue, begin, end);
                              })
      .check(expected, 0.0);
}

TYPED_TEST(ScalarInteger, Depthwise) {
  for (int channels : {1, 3, 8, 16, 21, 64}) {
    for (int stride : {1, 2}) {
      ConvOptions o = padded(1);
      o.stride_h = o.stride_w = stride;
      o.groups = channels;
      for (const Values values : {Values::random, Values::extreme}) {
        check_depthwise<TypeParam>(make_shape(5, 8, channels, channels, 3, 3, o), values, 4);
        check_depthwise<TypeParam>(make_shape(1, 2, channels, channels, 3, 3, o), values, 5);
        check_depthwise<TypeParam>(make_shape(6, 5, channels, channels * 3, 3, 2, o), values, 6);
      }
      o.dilation_h = o.dilation_w = 2;
      o.batch = 2;
      o.extra_pixel_stride = 3;
      o.extra_row_stride = 2;
      check_depthwise<TypeParam>(make_shape(10, 13, channels, channels, 5, 3, o), Values::random, 7);
    }
  }
}

}  // namespace
}  // namespace kernel_test

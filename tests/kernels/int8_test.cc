// Integer contractions against plain 64-bit loops: every kind of operand, awkward sizes, borders, extremes.
#include "conv_reference.h"
#include "gcrt/cpu/image/conv_int8.h"
#include "gcrt/cpu/image/depthwise_int8.h"
#include "gcrt/cpu/product/gemm_int8.h"
#include "integer_reference.h"

namespace kernel_test {
namespace {

// A kernel that is asked for tiles where there are any.
template <class TX, class TW>
constexpr bool kAsksForTiles = kInTiles && (kAreBytes<TX, TW>);

constexpr Blocking kBlockings[] = {{0, 0, 0, 0}, {9, 17, 5, 0}};

template <class TX, class TW>
void check_gemm(int rows, int columns, int depth, int gap, Values values, std::uint32_t seed) {
  constexpr bool kTiled = kAsksForTiles<TX, TW>;
  SCOPED_TRACE(::testing::Message() << rows << "x" << columns << "x" << depth << " gap " << gap << " seed "
                                    << seed);
  const int lda = depth + gap;
  const auto o = make_operands<TX, TW>(static_cast<std::size_t>((rows - 1) * lda + depth),
                                       static_cast<std::size_t>(depth * columns), values, seed);
  const auto w = [&](int, int k, int n) { return o.w[static_cast<std::size_t>(k * columns + n)]; };
  std::vector<TW> packed;
  std::vector<std::int32_t> sums;
  append_packed<TX>(1, depth, columns, w, packed, sums);
  std::vector<std::int64_t> expected;
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n) {
      std::int64_t sum = 0;
      for (int k = 0; k < depth; ++k) {
        sum += (std::int64_t{o.x[static_cast<std::size_t>(m * lda + k)]} - o.zero_point) * w(0, k, n);
      }
      expected.push_back(sum);
    }
  }
  const Exact<TX> a(o.x);
  const Exact<TW> whole(packed);
  const Exact<std::int32_t> table(split_words<TX>(packed, static_cast<std::size_t>(depth + 3) / 4));
  const Exact<TW> halved(packed);
  const Exact<std::int32_t> c(offsets_of<TX, TW>(o.zero_point, sums));
  for (const Blocking& blocking : kBlockings) {
    for (const bool splits : {false, true}) {
      const TW* const b = splits ? halved.data.get() : whole.data.get();
      const std::int32_t* const split = splits && kAreBytes<TX, TW> ? table.data.get() : nullptr;
      const Recorded<std::int32_t> result = in_any_pieces<std::int32_t>(
          rows, columns, gemm_integer_work_items<kTiled>(rows, columns, blocking),
          [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
            gemm_integer<kTiled>(rows, columns, depth, a.data.get(), lda, b, c.data.get(), split, blocking,
                                 epilogue, begin, end);
          });
      result.check(modulo(expected), 0.0);
    }
  }
}

template <class T>
class Integer : public ::testing::Test {};
TYPED_TEST_SUITE(Integer, AllKinds);

TYPED_TEST(Integer, GemmSmallSizes) {
  using TX = typename TypeParam::TX;
  using TW = typename TypeParam::TW;
  std::uint32_t seed = 1;
  for (int depth = 1; depth <= 40; ++depth) {
    for (int columns = 1; columns <= 40; columns += depth % 5 + 1) {
      check_gemm<TX, TW>(1 + (depth + columns) % 15, columns, depth, depth % 3, Values::random, ++seed);
    }
  }
  for (int columns = 1; columns <= 70; ++columns) {
    check_gemm<TX, TW>(14, columns, 19, 0, Values::random, ++seed);
  }
  for (int rows = 1; rows <= 40; ++rows) {
    check_gemm<TX, TW>(rows, 33, 23, 0, Values::random, ++seed);
    check_gemm<TX, TW>(rows, 16, 8, 1, Values::random, ++seed);
  }
}

TYPED_TEST(Integer, GemmLargeAndExtreme) {
  using TX = typename TypeParam::TX;
  using TW = typename TypeParam::TW;
  for (std::uint32_t seed : {1u, 2u}) {
    for (int rows : {1, 7, 40}) {
      check_gemm<TX, TW>(rows, 33, 1031, 0, Values::extreme, seed);
      check_gemm<TX, TW>(rows, 48, 64, 5, Values::extreme, seed);
    }
  }
  for (int depth : {1, 16, 19, 64, 310}) {
    check_gemm<TX, TW>(37, 40, depth, 0, Values::narrow, 7);
    check_gemm<TX, TW>(2, 9, depth, 3, Values::narrow, 8);
  }
  check_gemm<TX, TW>(130, 100, 310, 0, Values::random, 9);
  check_gemm<TX, TW>(700, 40, 900, 3, Values::random, 10);
}

// Parts of rows and steps of words of the tile unit, whole and not.
TYPED_TEST(Integer, GemmRowsAndDepthsOfTiles) {
  using TX = typename TypeParam::TX;
  using TW = typename TypeParam::TW;
  for (int rows = 1; rows <= 70; ++rows) {
    check_gemm<TX, TW>(rows, 1 + rows % 49, 60 + rows % 10, rows % 2, Values::random, 11);
  }
  for (int depth : {63, 64, 65, 68, 96, 127, 130, 575, 1090}) {
    for (int columns : {16, 17, 47}) {
      check_gemm<TX, TW>(33, columns, depth, 0, Values::random, 12);
      check_gemm<TX, TW>(50, columns, depth, 5, Values::narrow, 13);
    }
  }
}

TYPED_TEST(Integer, GemmWorkItemsCoverTheResultOnce) {
  using TX = typename TypeParam::TX;
  using TW = typename TypeParam::TW;
  check_gemm<TX, TW>(3, 170, 9, 0, Values::random, 5);
  check_gemm<TX, TW>(211, 37, 9, 0, Values::random, 6);
}

template <class TX, class TW>
void check_conv(const ConvShape& s, Values values = Values::random, std::uint32_t seed = 3) {
  constexpr bool kTiled = kAsksForTiles<TX, TW>;
  SCOPED_TRACE(::testing::Message() << "in " << s.batch << "x" << s.in_h << "x" << s.in_w << "x" << s.in_c
                                    << " out " << s.out_h << "x" << s.out_w << "x" << s.out_c << " kernel "
                                    << s.kernel_h << "x" << s.kernel_w << " stride " << s.stride_h << ","
                                    << s.stride_w << " pad " << s.pad_top << "," << s.pad_left << " dilation "
                                    << s.dilation_h << "," << s.dilation_w << " groups " << s.groups);
  const int channels = s.in_c / s.groups;
  const int columns = s.out_c / s.groups;
  const int taps = s.kernel_h * s.kernel_w;
  const auto o =
      make_operands<TX, TW>(used_size(s), static_cast<std::size_t>(taps * channels * s.out_c), values, seed);
  std::vector<TW> packed;
  std::vector<std::int32_t> sums;
  for (int g = 0; g < s.groups; ++g) {
    const auto w = [&](int tap, int k, int n) {
      return o.w[static_cast<std::size_t>((tap * channels + k) * s.out_c + g * columns + n)];
    };
    if (gathers_windows(s)) {
      const auto joined = [&](int, int k, int n) { return w(k / channels, k % channels, n); };
      append_packed<TX>(1, taps * channels, columns, joined, packed, sums);
    } else {
      append_packed<TX>(taps, channels, columns, w, packed, sums);
    }
  }
  const Exact<TX> x(o.x);
  const Exact<TW> whole(packed);
  const Exact<std::int32_t> c(offsets_of<TX, TW>(o.zero_point, sums));
  const Exact<TX> border(
      std::vector<TX>(static_cast<std::size_t>(channels + 3), static_cast<TX>(o.zero_point)));
  const std::vector<std::int64_t> expected = integer_reference(s, o);
  const Exact<std::int32_t> table(split_words<TX>(
      packed, packed.size() / 64 / static_cast<std::size_t>(s.groups * ((columns + 15) / 16))));
  const Exact<TW> halved(packed);
  for (const Blocking& blocking : kBlockings) {
    for (const bool splits : {false, true}) {
      const TW* const b = splits ? halved.data.get() : whole.data.get();
      const std::int32_t* const split = splits && kAreBytes<TX, TW> ? table.data.get() : nullptr;
      const Recorded<std::int32_t> result = in_any_pieces<std::int32_t>(
          out_pixels(s), s.out_c, conv2d_integer_work_items<kTiled>(s, blocking),
          [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
            conv2d_integer<kTiled>(s, x.data.get(), b, c.data.get(), split, border.data.get(), blocking,
                                   epilogue, begin, end);
          });
      result.check(modulo(expected), 0.0);
      if (s.batch != 1) continue;
      const Recorded<std::int32_t> rows = in_any_pieces<std::int32_t>(
          out_pixels(s), s.out_c, s.out_h,
          [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
            conv2d_integer_rows<kTiled>(s, x.data.get(), b, c.data.get(), split, border.data.get(), blocking,
                                        epilogue, begin, end);
          });
      rows.check(modulo(expected), 0.0);
    }
  }
}

ConvOptions padded(int pad) {
  ConvOptions o;
  o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = pad;
  return o;
}

TYPED_TEST(Integer, ConvSmallImagesAndAwkwardChannels) {
  using TX = typename TypeParam::TX;
  using TW = typename TypeParam::TW;
  for (int size : {1, 3, 7, 15}) {
    for (int in_c : {1, 2, 3, 4, 5, 8, 17}) {
      for (int out_c : {1, 7, 16, 33}) {
        check_conv<TX, TW>(make_shape(size, size + 1, in_c, out_c, 3, 3, padded(1)));
      }
    }
  }
}

TYPED_TEST(Integer, ConvFraming) {
  for (int in_c : {1, 3, 4, 6}) {
    for (int kernel : {3, 40, 300}) {
      for (int stride : {1, 7, 400}) {
        ConvOptions o;
        o.stride_w = stride;
        const ConvShape s = make_shape(1, 410, in_c, 19, 1, kernel, o);
        EXPECT_TRUE(is_framing(s));
        check_conv<typename TypeParam::TX, typename TypeParam::TW>(s);
      }
    }
  }
}

// Windows that are gathered, and such as are too deep for that.
TYPED_TEST(Integer, ConvFewChannels) {
  for (int kernel : {2, 5, 7, 9}) {
    for (int in_c : {1, 2, 3, 5}) {
      ConvOptions o = padded(kernel / 2);
      o.stride_h = o.stride_w = 2;
      o.extra_pixel_stride = kernel == 5 ? 2 : 0;
      check_conv<typename TypeParam::TX, typename TypeParam::TW>(
          make_shape(13, 18, in_c, 35, kernel, kernel, o));
    }
  }
}

TYPED_TEST(Integer, ConvStridesDilationsPads) {
  using TX = typename TypeParam::TX;
  using TW = typename TypeParam::TW;
  for (int stride : {1, 2, 3}) {
    for (int dilation : {1, 2}) {
      for (int kernel : {1, 2, 3, 5}) {
        for (int pad : {0, 1, 3}) {
          for (int in_c : {2, 3, 8, 18}) {
            ConvOptions o;
            o.stride_h = stride;
            o.stride_w = stride == 3 ? 1 : stride;
            o.dilation_h = dilation;
            o.dilation_w = kernel == 5 ? 1 : dilation;
            o.pad_top = pad;
            o.pad_left = pad == 3 ? 1 : pad;
            o.pad_right = pad == 1 ? 0 : pad;
            const ConvShape s = make_shape(11, 17, in_c, 20, kernel, kernel, o);
            if (is_possible(s)) check_conv<TX, TW>(s);
          }
        }
      }
    }
  }
}

TYPED_TEST(Integer, ConvPointwiseSlicesBatches) {
  using TX = typename TypeParam::TX;
  using TW = typename TypeParam::TW;
  for (int extra : {0, 5}) {
    for (int in_c : {3, 8, 19}) {
      ConvOptions o;
      o.batch = 2;
      o.extra_pixel_stride = extra;
      check_conv<TX, TW>(make_shape(7, 9, in_c, 40, 1, 1, o));
      o.extra_row_stride = extra;
      check_conv<TX, TW>(make_shape(7, 9, in_c, 40, 1, 1, o));
      o.stride_h = o.stride_w = 2;
      check_conv<TX, TW>(make_shape(7, 9, in_c, 40, 1, 1, o));
      o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 1;
      check_conv<TX, TW>(make_shape(7, 9, in_c, 40, 3, 3, o));
    }
  }
}

TYPED_TEST(Integer, ConvGroups) {
  using TX = typename TypeParam::TX;
  using TW = typename TypeParam::TW;
  for (int groups : {2, 3, 12}) {
    ConvOptions o = padded(1);
    o.groups = groups;
    check_conv<TX, TW>(make_shape(6, 7, 12, 24, 3, 3, o));
    check_conv<TX, TW>(make_shape(6, 7, 12, 60, 1, 1, o));
    check_conv<TX, TW>(make_shape(17, 16, 24, 12, 3, 3, o));
    o = {};
    o.groups = groups;
    check_conv<TX, TW>(make_shape(8, 9, 24, 24, 1, 1, o));
  }
}

TYPED_TEST(Integer, ConvManyTapsAndLongDepth) {
  using TX = typename TypeParam::TX;
  using TW = typename TypeParam::TW;
  ConvOptions o;
  o.pad_left = 40;
  o.pad_right = 20;
  o.stride_w = 3;
  check_conv<TX, TW>(make_shape(1, 200, 1, 20, 1, 101, o));
  check_conv<TX, TW>(make_shape(1, 200, 17, 20, 1, 101, o));
  check_conv<TX, TW>(make_shape(9, 22, 17, 20, 11, 11, padded(5)));
  check_conv<TX, TW>(make_shape(9, 22, 3, 20, 7, 7, padded(5)));
  check_conv<TX, TW>(make_shape(40, 1, 4, 9, 9, 1, o = {}));
  check_conv<TX, TW>(make_shape(7, 8, 600, 70, 3, 3, padded(1)));
}

// Rows of pixels that are evenly spaced in whole, in parts and not at all.
TYPED_TEST(Integer, ConvRowsOfTiles) {
  using TX = typename TypeParam::TX;
  using TW = typename TypeParam::TW;
  for (int width : {14, 28, 70}) {
    for (int in_c : {16, 20, 68}) {
      for (int stride : {1, 2}) {
        ConvOptions o = padded(1);
        o.stride_h = o.stride_w = stride;
        check_conv<TX, TW>(make_shape(5, width, in_c, 35, 3, 3, o), Values::narrow);
        o.extra_pixel_stride = 3;
        check_conv<TX, TW>(make_shape(5, width, in_c, 18, 3, 3, o));
        check_conv<TX, TW>(make_shape(5, width, in_c, 18, 1, 1, o = padded(0)));
      }
    }
  }
}

TYPED_TEST(Integer, ConvExtremes) {
  using TX = typename TypeParam::TX;
  using TW = typename TypeParam::TW;
  for (std::uint32_t seed : {1u, 2u}) {
    for (int in_c : {3, 17, 64}) {
      check_conv<TX, TW>(make_shape(6, 7, in_c, 33, 3, 3, padded(1)), Values::extreme, seed);
      check_conv<TX, TW>(make_shape(6, 7, in_c, 33, 1, 1, padded(0)), Values::extreme, seed);
      check_conv<TX, TW>(make_shape(6, 7, in_c, 33, 3, 3, padded(1)), Values::narrow, seed);
    }
  }
}

TYPED_TEST(Integer, ConvWorkItemsCoverTheResultOnce) {
  using TX = typename TypeParam::TX;
  using TW = typename TypeParam::TW;
  for (int groups : {1, 2}) {
    ConvOptions o = padded(1);
    o.groups = groups;
    check_conv<TX, TW>(make_shape(4, 4, 8, 100 * groups, 3, 3, o));
    check_conv<TX, TW>(make_shape(13, 13, 8, 20, 3, 3, o));
  }
}

template <class TX>
void check_depthwise(const ConvShape& s, Values values = Values::random, std::uint32_t seed = 4) {
  SCOPED_TRACE(::testing::Message() << "in " << s.batch << "x" << s.in_h << "x" << s.in_w << "x" << s.in_c
                                    << " out " << s.out_h << "x" << s.out_w << "x" << s.out_c << " kernel "
                                    << s.kernel_h << "x" << s.kernel_w << " stride " << s.stride_h << ","
                                    << s.stride_w << " pad " << s.pad_top << "," << s.pad_left << " dilation "
                                    << s.dilation_h << "," << s.dilation_w);
  const int taps = s.kernel_h * s.kernel_w;
  const auto o =
      make_operands<TX, std::int16_t>(used_size(s), static_cast<std::size_t>(taps * s.out_c), values, seed);
  std::vector<std::int32_t> sums(static_cast<std::size_t>(s.out_c), 0);
  for (std::size_t i = 0; i < o.w.size(); ++i) sums[i % static_cast<std::size_t>(s.out_c)] += o.w[i];
  const Exact<TX> x(o.x);
  const Exact<std::int16_t> w(o.w);
  const Exact<std::int32_t> c(offsets_of<TX, std::int16_t>(o.zero_point, sums));
  const Recorded<std::int32_t> result =
      in_any_pieces<std::int32_t>(out_pixels(s), s.out_c, depthwise2d_work_items(s),
                                  [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
                                    depthwise2d_integer(s, x.data.get(), w.data.get(), c.data.get(),
                                                        static_cast<TX>(o.zero_point), epilogue, begin, end);
                                  });
  result.check(modulo(integer_reference(s, o)), 0.0);
}

template <class TX>
void check_depthwise_shapes() {
  for (int channels : {1, 3, 8, 16, 21, 64, 75}) {
    for (int kernel : {1, 3, 5}) {
      for (int stride : {1, 2}) {
        ConvOptions o = padded(kernel / 2);
        o.stride_h = o.stride_w = stride;
        o.groups = channels;
        check_depthwise<TX>(make_shape(9, 21, channels, channels, kernel, kernel, o));
        check_depthwise<TX>(make_shape(3, 2, channels, channels, kernel, kernel, o));
        check_depthwise<TX>(make_shape(9, 12, channels, channels * 3, kernel, kernel, o));
        o.pad_left = 2;
        o.pad_bottom = 0;
        o.dilation_h = o.dilation_w = 2;
        o.batch = 2;
        o.extra_pixel_stride = 3;
        o.extra_row_stride = 2;
        check_depthwise<TX>(make_shape(10, 23, channels, channels, kernel, 3, o));
      }
    }
    ConvOptions o = padded(1);
    o.groups = channels;
    for (std::uint32_t seed : {1u, 2u}) {
      check_depthwise<TX>(make_shape(5, 6, channels, channels, 3, 3, o), Values::extreme, seed);
    }
  }
}

TEST(IntegerDepthwise, Unsigned) { check_depthwise_shapes<std::uint8_t>(); }
TEST(IntegerDepthwise, Signed) { check_depthwise_shapes<std::int8_t>(); }
TEST(IntegerDepthwise, Unsigned16) { check_depthwise_shapes<std::uint16_t>(); }
TEST(IntegerDepthwise, Signed16) { check_depthwise_shapes<std::int16_t>(); }

}  // namespace
}  // namespace kernel_test

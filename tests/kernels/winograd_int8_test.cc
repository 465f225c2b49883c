// Winograd's convolution of bytes against plain sums: every type of input, tile edges, borders, wrapping
// sums, threads.
#include "gcrt/cpu/image/winograd_int8.h"

#include <limits>

#include "conv_reference.h"

namespace kernel_test {
namespace {

enum class Values { random, extreme };

template <class TX>
struct Operands {
  std::vector<TX> x;
  std::vector<std::int32_t> w;  // [tap][in_c][out_c]
  int zero_point;
};

template <class TX>
Operands<TX> make_operands(const ConvShape& s, Values values) {
  constexpr int kLow = std::numeric_limits<TX>::min(), kHigh = std::numeric_limits<TX>::max();
  Operands<TX> o{std::vector<TX>(input_size(s)),
                 std::vector<std::int32_t>(static_cast<std::size_t>(9 * s.in_c * s.out_c)), kLow};
  Random random(5);
  if (values == Values::extreme) {
    for (TX& x : o.x) x = static_cast<TX>(kHigh);
    for (std::size_t i = 0; i < o.w.size(); ++i) o.w[i] = static_cast<int>(i) % s.out_c % 2 == 0 ? 127 : -127;
    return o;
  }
  o.zero_point = kLow + random.below(256);
  for (TX& x : o.x) x = static_cast<TX>(kLow + random.below(256));
  for (std::int32_t& w : o.w) w = random.below(256) - 128;
  return o;
}

template <int T, class TX>
void check_plan(const ConvShape& s, const WinogradPlan& plan, Values values = Values::random) {
  SCOPED_TRACE(::testing::Message() << "F(" << T << "), in " << s.batch << "x" << s.in_h << "x" << s.in_w
                                    << "x" << s.in_c << " out " << s.out_h << "x" << s.out_w << "x" << s.out_c
                                    << " pad " << s.pad_top << "," << s.pad_left << " strip " << plan.strip
                                    << " block " << plan.block << " parts " << plan.parts);
  const Operands<TX> o = make_operands<TX>(s, values);
  const int words = s.in_c / 2;
  std::vector<std::int16_t> packed(static_cast<std::size_t>(2 * winograd_weights_size(T, words, s.out_c)));
  std::vector<std::int32_t> offsets(static_cast<std::size_t>(ceil_div(s.out_c, 16) * 16));
  for (int n = 0; n < s.out_c; ++n) {
    std::int32_t sum = 0;
    for (int c = 0; c < s.in_c; ++c) {
      int taps[9], transformed[winograd_positions(T)];
      for (int tap = 0; tap < 9; ++tap) {
        taps[tap] = o.w[static_cast<std::size_t>((tap * s.in_c + c) * s.out_c + n)];
        sum += taps[tap];
      }
      winograd_weights<T>(taps, transformed);
      for (int p = 0; p < winograd_positions(T); ++p) {
        const std::ptrdiff_t word = winograd_weights_place(T, words, s.out_c, p, c / 2, n);
        packed[static_cast<std::size_t>(2 * word + c % 2)] = static_cast<std::int16_t>(transformed[p]);
      }
    }
    offsets[static_cast<std::size_t>(n)] = -o.zero_point * sum;
  }
  std::vector<std::int32_t> x(o.x.begin(), o.x.end());
  for (std::int32_t& value : x) value -= o.zero_point;  // so that what lies outside the image is zero
  const std::vector<double> expected = conv_reference(s, x, o.w);

  const std::vector<TX> border(static_cast<std::size_t>(s.in_c), static_cast<TX>(o.zero_point));
  constexpr std::size_t kGuard = 16;
  constexpr std::int32_t kUnset = 0x5a5a5a5a;
  const auto size = static_cast<std::size_t>(winograd_scratch(T, words, plan));
  const auto run = [&](const Threads* threads) {
    std::vector<std::int32_t> scratch(size + kGuard, kUnset);
    Recorded<std::int32_t> result(out_pixels(s), s.out_c);
    winograd_integer<T>(threads, s, plan, o.x.data(), packed.data(), offsets.data(), border.data(),
                        scratch.data(), result.epilogue());
    for (std::size_t i = size; i < scratch.size(); ++i) EXPECT_EQ(scratch[i], kUnset) << "beyond scratch";
    return result;
  };
  run(nullptr).check(expected, 0.0);
  for (int pieces : {2, 5, 16}) {
    OneLoop loop(pieces);
    run(&loop.threads).check(expected, 0.0);
    EXPECT_LE(loop.loops, 1);
  }
}

template <class TX>
class WinogradIntegerTest : public ::testing::Test {};
using Inputs = ::testing::Types<std::uint8_t, std::int8_t>;
TYPED_TEST_SUITE(WinogradIntegerTest, Inputs);

template <class TX>
void check_winograd(const ConvShape& s) {
  for (const WinogradPlan& plan : {WinogradPlan{1, 1, 16}, WinogradPlan{5, 2, 3}, WinogradPlan{50, 25, 2}}) {
    check_plan<2, TX>(s, plan);
    check_plan<4, TX>(s, plan);
  }
}

ConvOptions same_size() {
  ConvOptions o;
  o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 1;
  return o;
}

TYPED_TEST(WinogradIntegerTest, SmallImagesAndAwkwardChannels) {
  for (int size : {1, 2, 3, 4, 5, 9}) {
    for (int in_c : {2, 6, 16, 34}) {
      for (int out_c : {1, 15, 16, 33})
        check_winograd<TypeParam>(make_shape(size, size + 1, in_c, out_c, 3, 3, same_size()));
    }
  }
}

TYPED_TEST(WinogradIntegerTest, PadsSlicesAndBatches) {
  for (int top : {0, 1, 5}) {
    for (int left : {0, 1, 4}) {
      ConvOptions o;
      o.pad_top = top;
      o.pad_left = left;
      o.pad_bottom = 2;
      o.batch = 2;
      o.extra_pixel_stride = o.extra_row_stride = top;
      check_winograd<TypeParam>(make_shape(6, 5, 10, 20, 3, 3, o));
    }
  }
}

// The largest sums that the weights may have: products alone leave 32 bits.
TYPED_TEST(WinogradIntegerTest, SumsUpToTheLargestAreExact) {
  const auto check = [](auto tile, int channels) {
    constexpr int T = decltype(tile)::value;
    const std::int64_t sum = std::int64_t{9} * channels * 127 * 255;
    ASSERT_LE(sum, winograd_largest_sum(T));
    ASSERT_GT(sum + 18 * 127 * 255, winograd_largest_sum(T));
    check_plan<T, TypeParam>(make_shape(6, 6, channels, 4, 3, 3, same_size()), {4, 4, 2}, Values::extreme);
  };
  check(Lanes<2>{}, 1840);
  check(Lanes<4>{}, 114);
}

}  // namespace
}  // namespace kernel_test

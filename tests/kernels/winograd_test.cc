// Winograd's convolution against plain loops: tile edges, borders, slices, batches, every plan, threads.
#include "gcrt/cpu/image/winograd.h"

#include "conv_reference.h"
#include "gcrt/thread_pool.h"

namespace kernel_test {
namespace {

// w: [tap][in_c][out_c].
template <int T>
std::vector<float> packed_weights(const ConvShape& s, const std::vector<float>& w) {
  std::vector<float> packed(static_cast<std::size_t>(winograd_weights_size(T, s.in_c, s.out_c)));
  for (int c = 0; c < s.in_c; ++c) {
    for (int n = 0; n < s.out_c; ++n) {
      double taps[9], transformed[winograd_positions(T)];
      for (int tap = 0; tap < 9; ++tap) {
        taps[tap] = static_cast<double>(w[static_cast<std::size_t>((tap * s.in_c + c) * s.out_c + n)]);
      }
      winograd_weights<T>(taps, transformed);
      for (int p = 0; p < winograd_positions(T); ++p) {
        packed[static_cast<std::size_t>(winograd_weights_place(T, s.in_c, s.out_c, p, c, n))] =
            static_cast<float>(transformed[p]);
      }
    }
  }
  return packed;
}

struct Operands {
  std::vector<float> x, w, packed;
};

template <int T>
Recorded<float> run(const ConvShape& s, const WinogradPlan& plan, const Operands& operands,
                    const Threads* threads) {
  const std::vector<float> zeros(static_cast<std::size_t>(s.in_c), 0.0f);
  // What the arena holds from other steps is never read.
  constexpr std::size_t kGuard = 16;
  const auto size = static_cast<std::size_t>(winograd_scratch(T, s.in_c, plan));
  std::vector<float> scratch(size + kGuard, std::nanf(""));
  Recorded<float> result(out_pixels(s), s.out_c);
  winograd<T>(threads, s, plan, operands.x.data(), operands.packed.data(), zeros.data(), scratch.data(),
              result.epilogue());
  for (std::size_t i = size; i < scratch.size(); ++i) EXPECT_TRUE(std::isnan(scratch[i])) << "beyond scratch";
  return result;
}

template <int T>
void check_plan(const ConvShape& s, const WinogradPlan& plan) {
  SCOPED_TRACE(::testing::Message() << "F(" << T << "), in " << s.batch << "x" << s.in_h << "x" << s.in_w
                                    << "x" << s.in_c << " out " << s.out_h << "x" << s.out_w << "x" << s.out_c
                                    << " pad " << s.pad_top << "," << s.pad_left << " strip " << plan.strip
                                    << " block " << plan.block << " parts " << plan.parts);
  Operands operands;
  operands.x = random_values<float>(input_size(s), 11);
  operands.w = random_values<float>(static_cast<std::size_t>(9 * s.in_c * s.out_c), 12);
  operands.packed = packed_weights<T>(s, operands.w);
  const Recorded<float> whole = run<T>(s, plan, operands, nullptr);
  whole.check(conv_reference(s, operands.x, operands.w), 2e-5 * std::sqrt(s.in_c));
  for (int pieces : {2, 3, 5, 16}) {
    OneLoop loop(pieces);
    const Recorded<float> part = run<T>(s, plan, operands, &loop.threads);
    EXPECT_LE(loop.loops, 1);
    EXPECT_EQ(part.calls, whole.calls) << pieces;
    EXPECT_EQ(std::memcmp(part.y.data(), whole.y.data(), whole.y.size() * sizeof(float)), 0)
        << "other bits in " << pieces << " pieces";
  }
}

void check_winograd(const ConvShape& s) {
  for (const WinogradPlan& plan : {WinogradPlan{1, 1, 3}, WinogradPlan{5, 2, 16}, WinogradPlan{24, 24, 5},
                                   WinogradPlan{50, 25, 1}, WinogradPlan{96, 13, 2}}) {
    check_plan<2>(s, plan);
    check_plan<4>(s, plan);
  }
}

ConvOptions same_size() {
  ConvOptions o;
  o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 1;
  return o;
}

TEST(Winograd, SmallImagesAndAwkwardChannels) {
  for (int size : {1, 2, 3, 4, 5, 7, 9}) {
    for (int in_c : {1, 3, 8, 17}) {
      for (int out_c : {1, 15, 16, 33})
        check_winograd(make_shape(size, size + 1, in_c, out_c, 3, 3, same_size()));
    }
  }
}

TEST(Winograd, EveryNumberOfChannels) {
  for (int channels = 1; channels <= 17; ++channels) {
    check_plan<2>(make_shape(5, 6, channels, 18 - channels, 3, 3, same_size()), {4, 3, 2});
    check_plan<4>(make_shape(5, 6, channels, 18 - channels, 3, 3, same_size()), {4, 3, 2});
  }
}

TEST(Winograd, Pads) {
  for (int top : {0, 1, 2, 5}) {
    for (int left : {0, 1, 4}) {
      for (int end : {0, 2, 7}) {
        ConvOptions o;
        o.pad_top = top;
        o.pad_left = left;
        o.pad_bottom = end;
        o.pad_right = end == 2 ? 0 : 1;
        const ConvShape s = make_shape(6, 5, 9, 20, 3, 3, o);
        if (is_possible(s)) check_winograd(s);
      }
    }
  }
}

TEST(Winograd, SlicesAndBatches) {
  for (int extra : {0, 5}) {
    ConvOptions o = same_size();
    o.batch = 3;
    o.extra_pixel_stride = o.extra_row_stride = extra;
    check_winograd(make_shape(6, 5, 9, 21, 3, 3, o));
    check_winograd(make_shape(9, 17, 3, 70, 3, 3, o));
  }
}

TEST(Winograd, LongDepth) {
  check_plan<2>(make_shape(9, 9, 1100, 17, 3, 3, same_size()), {25, 25, 3});
  check_plan<4>(make_shape(30, 30, 1100, 17, 3, 3, same_size()), {64, 32, 16});
}

TEST(Winograd, SixteenThreads) {
  const ConvShape s = make_shape(33, 30, 24, 100, 3, 3, same_size());
  Operands operands;
  operands.x = random_values<float>(input_size(s), 21);
  operands.w = random_values<float>(static_cast<std::size_t>(9 * s.in_c * s.out_c), 22);
  operands.packed = packed_weights<4>(s, operands.w);
  const WinogradPlan plan{36, 7, 16};
  const Recorded<float> whole = run<4>(s, plan, operands, nullptr);
  for (int count : {1, 2, 16}) {
    ThreadPool pool(count);
    const Recorded<float> part = run<4>(s, plan, operands, pool.threads());
    EXPECT_EQ(part.calls, whole.calls) << count;
    EXPECT_EQ(std::memcmp(part.y.data(), whole.y.data(), whole.y.size() * sizeof(float)), 0) << count;
  }
}

// The bound of the error beside float64, and what the header states, with positive inputs as activations are
// and weights that keep the variance.
template <int T>
void check_error(int size, int channels, double rms_bound, double maximum) {
  const ConvShape s = make_shape(size, size, channels, 32, 3, 3, same_size());
  Operands operands;
  operands.x = random_values<float>(input_size(s), 31);
  for (float& value : operands.x) value = value > 0 ? value : 0;
  operands.w = random_values<float>(static_cast<std::size_t>(9 * channels * 32), 32);
  operands.packed = packed_weights<T>(s, operands.w);
  const Recorded<float> result = run<T>(s, {24, 24, 1}, operands, nullptr);
  const std::vector<double> expected = conv_reference(s, operands.x, operands.w);
  double squares = 0, errors = 0, largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = static_cast<double>(result.y[i]) - expected[i];
    squares += expected[i] * expected[i];
    errors += error * error;
    largest = std::max(largest, std::fabs(error));
  }
  const double rms = std::sqrt(squares / static_cast<double>(expected.size()));
  const double error = std::sqrt(errors / static_cast<double>(expected.size()));
  std::printf("T = %d, %d channels: error %.2e of rms, at most %.2e\n", T, channels, error / rms,
              largest / rms);
  EXPECT_LT(error / rms, rms_bound) << "T = " << T << ", " << channels << " channels";
  EXPECT_LT(largest / rms, maximum) << "T = " << T << ", " << channels << " channels";
}

TEST(Winograd, ErrsAsStated) {
  check_error<2>(28, 64, 6e-7, 4e-6);
  check_error<2>(8, 512, 6e-7, 4e-6);
  check_error<4>(28, 64, 2e-6, 1.2e-5);
  check_error<4>(8, 512, 2e-6, 1.2e-5);
}

}  // namespace
}  // namespace kernel_test

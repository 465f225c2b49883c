// Pooling against plain loops: types, borders, padding counted or not, windows past the end (ceil_mode).
#include "gcrt/cpu/image/pool.h"

#include <algorithm>
#include <limits>
#include <string>

#include "conv_reference.h"

namespace kernel_test {
namespace {

std::string describe(const ConvShape& s) {
  return "in " + std::to_string(s.in_h) + "x" + std::to_string(s.in_w) + "x" + std::to_string(s.in_c) +
         " out " + std::to_string(s.out_h) + "x" + std::to_string(s.out_w) + " kernel " +
         std::to_string(s.kernel_h) + " stride " + std::to_string(s.stride_h) + " pad " +
         std::to_string(s.pad_top) + " dilation " + std::to_string(s.dilation_h);
}

template <class T>
void check_max(const ConvShape& s) {
  SCOPED_TRACE(describe(s));
  const auto x = random_values<T>(input_size(s), 31);
  const double lowest = std::is_floating_point<T>::value
                            ? -std::numeric_limits<double>::infinity()
                            : static_cast<double>(std::numeric_limits<T>::lowest());
  std::vector<double> expected(static_cast<std::size_t>(out_pixels(s) * s.in_c), lowest);
  for_each_tap(s, [&](std::ptrdiff_t pixel, int, std::ptrdiff_t offset) {
    for (int c = 0; c < s.in_c; ++c) {
      double& best = expected[static_cast<std::size_t>(pixel * s.in_c + c)];
      best = std::max(best, static_cast<double>(x[static_cast<std::size_t>(offset + c)]));
    }
  });
  const Recorded<T> result =
      in_any_pieces<T>(out_pixels(s), s.in_c, pool2d_work_items(s),
                       [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
                         max_pool2d(s, x.data(), epilogue, begin, end);
                       });
  result.check(expected, 0.0);
}

template <class T>
void check_average(const ConvShape& s, bool count_include_pad, int pad_bottom, int pad_right,
                   double tolerance) {
  SCOPED_TRACE(describe(s) + (count_include_pad ? " with padding" : ""));
  const auto x = random_values<T>(input_size(s), 32);
  std::vector<double> expected(static_cast<std::size_t>(out_pixels(s) * s.in_c), 0.0);
  std::vector<int> counts(static_cast<std::size_t>(out_pixels(s)), 0);
  for_each_tap(s, [&](std::ptrdiff_t pixel, int, std::ptrdiff_t offset) {
    ++counts[static_cast<std::size_t>(pixel)];
    for (int c = 0; c < s.in_c; ++c) {
      expected[static_cast<std::size_t>(pixel * s.in_c + c)] +=
          static_cast<double>(x[static_cast<std::size_t>(offset + c)]);
    }
  });
  for (std::ptrdiff_t pixel = 0; pixel < out_pixels(s); ++pixel) {
    int count = counts[static_cast<std::size_t>(pixel)];
    if (count_include_pad) {
      count = 0;
      const int oh = static_cast<int>(pixel) / s.out_w % s.out_h;
      const int ow = static_cast<int>(pixel) % s.out_w;
      for (int kh = 0; kh < s.kernel_h; ++kh) {
        for (int kw = 0; kw < s.kernel_w; ++kw) {
          count += oh * s.stride_h + kh * s.dilation_h < s.pad_top + s.in_h + pad_bottom &&
                   ow * s.stride_w + kw * s.dilation_w < s.pad_left + s.in_w + pad_right;
        }
      }
    }
    for (int c = 0; c < s.in_c; ++c)
      expected[static_cast<std::size_t>(pixel * s.in_c + c)] /= std::max(count, 1);
  }
  const Recorded<T> result = in_any_pieces<T>(
      out_pixels(s), s.in_c, pool2d_work_items(s),
      [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
        average_pool2d(s, x.data(), count_include_pad, pad_bottom, pad_right, epilogue, begin, end);
      });
  result.check(expected, tolerance);
}

template <class F>
void for_each_shape(const F& visit) {
  for (int channels : {1, 3, 16, 24, 58, 100}) {
    for (int kernel : {1, 2, 3, 5}) {
      for (int stride : {1, 2}) {
        for (int pad : {0, 1}) {
          for (int ceil : {0, 1}) {
            if (pad >= kernel) continue;
            ConvOptions o;
            o.batch = 2;
            o.stride_h = o.stride_w = stride;
            o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = pad;
            o.dilation_w = kernel == 3 ? 2 : 1;
            o.extra_pixel_stride = stride;
            ConvShape s = make_shape(7, 10, channels, channels, kernel, kernel, o);
            if (ceil != 0 && stride == 2) {
              ++s.out_h;
              ++s.out_w;
            }
            visit(s, pad);
          }
        }
      }
    }
  }
}

TEST(Pool, Max) {
  for_each_shape([](const ConvShape& s, int) {
    check_max<float>(s);
    check_max<std::int8_t>(s);
    check_max<std::uint8_t>(s);
  });
}

TEST(Pool, MaxOtherTypes) {
  ConvOptions o;
  const ConvShape s = make_shape(9, 8, 21, 21, 3, 3, o);
  check_max<double>(s);
  check_max<std::int32_t>(s);
  check_max<float>(s);
}

TEST(Pool, MaxKeepsNaN) {
  ConvOptions o;
  const ConvShape s = make_shape(2, 2, 17, 17, 2, 2, o);
  auto x = random_values<float>(input_size(s), 33);
  x[17 + 3] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> y(17);
  std::vector<int> calls(18);
  max_pool2d(nullptr, s, x.data(), RecordingEpilogue<float>{y.data(), calls.data(), 1, 17});
  for (std::size_t c = 0; c < 17; ++c) EXPECT_EQ(std::isnan(y[c]), c == 3);
}

TEST(Pool, Average) {
  for_each_shape([](const ConvShape& s, int pad) {
    check_average<float>(s, false, pad, pad, 1e-6);
    check_average<float>(s, true, pad, pad, 1e-6);
    check_average<double>(s, true, pad, pad, 1e-15);
  });
}

}  // namespace
}  // namespace kernel_test

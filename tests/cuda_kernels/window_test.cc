// Depthwise convolution and pooling on the emulator against plain loops.
#include "conv_reference.h"
#include "gcrt/cuda/image/depthwise.h"
#include "gcrt/cuda/image/pool.h"

namespace cuda_kernel_test {
namespace {

std::size_t size(std::ptrdiff_t count) { return static_cast<std::size_t>(count); }

ConvCase window(int batch, int image, int channels, int kernel, int stride, int pad) {
  ConvCase c;
  c.batch = batch;
  c.in_h = image;
  c.in_w = image + 1;
  c.in_c = c.out_c = c.groups = channels;
  c.kernel_h = c.kernel_w = kernel;
  c.stride_h = c.stride_w = stride;
  c.pad_top = c.pad_left = c.pad_bottom = c.pad_right = pad;
  return c;
}

template <DepthwiseWindow kWindow = DepthwiseWindow::kAny, int kLanesTaken = 4>
void check_depthwise(const ConvCase& c) {
  const ConvShape s = shape_of(c);
  SCOPED_TRACE(::testing::Message() << s.in_h << " x " << s.in_w << " x " << s.in_c << ", kernel "
                                    << s.kernel_h << ", stride " << s.stride_h << ", " << s.out_c
                                    << " channels out");
  const auto x = random_image<float>(s, 1);
  const int taps = s.kernel_h * s.kernel_w;
  const auto w = random_values<float>(size(s.out_c * taps), 2);
  std::vector<float> by_tap(w.size());
  for (int n = 0; n < s.out_c; ++n) {
    for (int tap = 0; tap < taps; ++tap) by_tap[size(tap * s.out_c + n)] = w[size(n * taps + tap)];
  }
  const DeviceArray<float> x_device(x);
  const DeviceArray<float> w_device(by_tap);
  Recorded<float> result(output_pixels(s), s.out_c);
  Queue queue;
  depthwise2d<kWindow>(queue, s, x_device.data(), w_device.data(), result.epilogue<kLanesTaken>());
  expect_no_error(queue);
  const ConvReference reference = convolve(s, x, w, 0);
  result.check(reference.sums, reference.magnitudes, 1e-6);
}

TEST(CudaDepthwise, AnyWindow) {
  for (const int channels : {1, 3, 4, 8, 33}) {
    for (const int stride : {1, 2}) {
      check_depthwise(window(2, 9, channels, 3, stride, 1));
      check_depthwise(window(1, 9, channels, 4, stride, 2));
    }
  }
}

TEST(CudaDepthwise, KnownWindows) {
  for (const int channels : {1, 4, 6, 32}) {
    for (const int pad : {0, 1, 2}) {
      ASSERT_EQ(depthwise_window(shape_of(window(2, 9, channels, 3, 1, pad))), DepthwiseWindow::k3);
      check_depthwise<DepthwiseWindow::k3>(window(2, 9, channels, 3, 1, pad));
      ASSERT_EQ(depthwise_window(shape_of(window(2, 9, channels, 3, 2, pad))), DepthwiseWindow::k3Stride2);
      check_depthwise<DepthwiseWindow::k3Stride2>(window(2, 9, channels, 3, 2, pad));
      ASSERT_EQ(depthwise_window(shape_of(window(2, 9, channels, 5, 1, pad))), DepthwiseWindow::k5);
      check_depthwise<DepthwiseWindow::k5>(window(2, 9, channels, 5, 1, pad));
    }
  }
}

TEST(CudaDepthwise, FewerLanes) {
  check_depthwise<DepthwiseWindow::k3, 1>(window(1, 7, 8, 3, 1, 1));
  check_depthwise<DepthwiseWindow::k3, 2>(window(1, 7, 6, 3, 1, 1));
}

TEST(CudaDepthwise, DilationsSlicesAndMultipliers) {
  ConvCase c = window(1, 11, 8, 3, 1, 2);
  c.dilation_h = 2;
  c.dilation_w = 3;
  c.kernel_h = 2;
  ASSERT_EQ(depthwise_window(shape_of(c)), DepthwiseWindow::kAny);
  check_depthwise(c);
  for (const int padding : {1, 4}) {
    c.pixel_padding = padding;
    check_depthwise(c);
  }
  for (const int multiplier : {2, 3}) {
    c.out_c = c.in_c * multiplier;
    check_depthwise(c);
  }
}

template <class T, int kLanesTaken, bool kIsAverage>
void check_pool(const ConvCase& c, bool counts_padding = false) {
  const ConvShape s = shape_of(c);
  SCOPED_TRACE(::testing::Message() << s.in_h << " x " << s.in_w << " x " << s.in_c << ", kernel "
                                    << s.kernel_h << ", stride " << s.stride_h << ", pad " << s.pad_top);
  const auto x = random_image<T>(s, 3);
  std::vector<double> expected;
  for (int b = 0; b < s.batch; ++b) {
    for (int oh = 0; oh < s.out_h; ++oh) {
      for (int ow = 0; ow < s.out_w; ++ow) {
        for (int n = 0; n < s.in_c; ++n) {
          double sum = 0;
          double largest = std::numeric_limits<T>::has_infinity
                               ? -std::numeric_limits<double>::infinity()
                               : static_cast<double>(std::numeric_limits<T>::lowest());
          int count = 0;
          for (int kh = 0; kh < s.kernel_h; ++kh) {
            for (int kw = 0; kw < s.kernel_w; ++kw) {
              const int ih = oh * s.stride_h - s.pad_top + kh * s.dilation_h;
              const int iw = ow * s.stride_w - s.pad_left + kw * s.dilation_w;
              const bool is_inside = ih >= 0 && ih < s.in_h && iw >= 0 && iw < s.in_w;
              const bool is_padding = ih < s.in_h + c.pad_bottom && iw < s.in_w + c.pad_right;
              if (is_inside || (counts_padding && is_padding)) ++count;
              if (!is_inside) continue;
              const double value = static_cast<double>(
                  x[size(b * s.in_image_stride + ih * s.in_row_stride + iw * s.in_pixel_stride + n)]);
              sum += value;
              largest = std::max(largest, value);
            }
          }
          expected.push_back(kIsAverage ? sum / (count > 0 ? count : 1) : largest);
        }
      }
    }
  }
  const DeviceArray<T> x_device(x);
  Recorded<T> result(output_pixels(s), s.in_c);
  Queue queue;
  if constexpr (kIsAverage) {
    average_pool2d(queue, s, x_device.data(), counts_padding, c.pad_bottom, c.pad_right,
                   result.template epilogue<kLanesTaken>());
    result.check(expected, std::vector<double>(expected.size(), 1.0), 1e-6);
  } else {
    max_pool2d(queue, s, x_device.data(), result.template epilogue<kLanesTaken>());
    result.check_exact(expected);
  }
  expect_no_error(queue);
}

TEST(CudaPool, Max) {
  for (const int channels : {1, 4, 6, 33}) {
    for (const int stride : {1, 2}) {
      check_pool<float, 4, false>(window(2, 9, channels, 3, stride, 1));
      check_pool<float, 2, false>(window(1, 8, channels, 2, stride, 0));
      check_pool<std::uint8_t, 4, false>(window(1, 8, channels, 3, stride, 1));
      check_pool<std::int8_t, 4, false>(window(1, 8, channels, 3, stride, 1));
      check_pool<double, 1, false>(window(1, 8, channels, 3, stride, 1));
    }
  }
}

TEST(CudaPool, MaxWithDilationInASlice) {
  ConvCase c = window(1, 9, 8, 3, 1, 1);
  c.dilation_h = c.dilation_w = 2;
  check_pool<float, 4, false>(c);
  c.pixel_padding = 3;
  check_pool<float, 4, false>(c);
}

TEST(CudaPool, MaxOfNothingIsTheLowest) { check_pool<std::int8_t, 4, false>(window(1, 3, 4, 2, 1, 2)); }

TEST(CudaPool, Average) {
  for (const bool counts_padding : {false, true}) {
    for (const int channels : {1, 4, 6, 33}) {
      check_pool<float, 4, true>(window(2, 9, channels, 3, 2, 1), counts_padding);
      check_pool<double, 1, true>(window(1, 7, channels, 2, 1, 0), counts_padding);
    }
    ConvCase c = window(1, 6, 8, 3, 2, 1);
    c.pad_bottom = 0;
    c.in_w = 5;
    check_pool<float, 4, true>(c, counts_padding);
  }
}

}  // namespace
}  // namespace cuda_kernel_test

// Convolutions written as plain loops in double, and the packing of their weights.
#pragma once

#include "gcrt/conv_shape.h"
#include "kernel_test.h"

namespace kernel_test {

struct ConvOptions {
  int pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  int stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int groups = 1, batch = 1;
  int extra_pixel_stride = 0, extra_row_stride = 0;
};

inline ConvShape make_shape(int in_h, int in_w, int in_c, int out_c, int kernel_h, int kernel_w,
                            const ConvOptions& o) {
  ConvShape s{};
  s.batch = o.batch;
  s.in_h = in_h;
  s.in_w = in_w;
  s.in_c = in_c;
  s.out_c = out_c;
  s.kernel_h = kernel_h;
  s.kernel_w = kernel_w;
  s.stride_h = o.stride_h;
  s.stride_w = o.stride_w;
  s.dilation_h = o.dilation_h;
  s.dilation_w = o.dilation_w;
  s.pad_top = o.pad_top;
  s.pad_left = o.pad_left;
  s.groups = o.groups;
  s.out_h = (in_h + o.pad_top + o.pad_bottom - (kernel_h - 1) * o.dilation_h - 1) / o.stride_h + 1;
  s.out_w = (in_w + o.pad_left + o.pad_right - (kernel_w - 1) * o.dilation_w - 1) / o.stride_w + 1;
  s.in_pixel_stride = in_c + o.extra_pixel_stride;
  s.in_row_stride = in_w * s.in_pixel_stride + o.extra_row_stride;
  s.in_image_stride = in_h * s.in_row_stride;
  return s;
}

inline bool is_possible(const ConvShape& s) { return s.out_h > 0 && s.out_w > 0; }

inline std::ptrdiff_t out_pixels(const ConvShape& s) { return std::ptrdiff_t{s.batch} * s.out_h * s.out_w; }

inline std::size_t input_size(const ConvShape& s) {
  return static_cast<std::size_t>(s.batch * s.in_image_stride);
}

// Calls visit(pixel, tap, input offset of channel 0) for every tap inside the image.
template <class F>
void for_each_tap(const ConvShape& s, const F& visit) {
  std::ptrdiff_t pixel = 0;
  for (int b = 0; b < s.batch; ++b) {
    for (int oh = 0; oh < s.out_h; ++oh) {
      for (int ow = 0; ow < s.out_w; ++ow, ++pixel) {
        for (int kh = 0; kh < s.kernel_h; ++kh) {
          for (int kw = 0; kw < s.kernel_w; ++kw) {
            const int y = oh * s.stride_h - s.pad_top + kh * s.dilation_h;
            const int x = ow * s.stride_w - s.pad_left + kw * s.dilation_w;
            if (y < 0 || y >= s.in_h || x < 0 || x >= s.in_w) continue;
            visit(pixel, kh * s.kernel_w + kw,
                  b * s.in_image_stride + y * s.in_row_stride + x * s.in_pixel_stride);
          }
        }
      }
    }
  }
}

// w: [tap][in_c / groups][out_c], out channels of all groups side by side.
template <class T>
std::vector<double> conv_reference(const ConvShape& s, const std::vector<T>& x, const std::vector<T>& w) {
  std::vector<double> y(static_cast<std::size_t>(out_pixels(s) * s.out_c), 0.0);
  const int channels = s.in_c / s.groups;
  const int columns = s.out_c / s.groups;
  for_each_tap(s, [&](std::ptrdiff_t pixel, int tap, std::ptrdiff_t offset) {
    for (int oc = 0; oc < s.out_c; ++oc) {
      for (int c = 0; c < channels; ++c) {
        const T value = x[static_cast<std::size_t>(offset + oc / columns * channels + c)];
        const T weight = w[static_cast<std::size_t>((tap * channels + c) * s.out_c + oc)];
        y[static_cast<std::size_t>(pixel * s.out_c + oc)] +=
            static_cast<double>(value) * static_cast<double>(weight);
      }
    }
  });
  return y;
}

inline ConvShape make_transposed(int in_h, int in_w, int in_c, int out_c, int kernel, const ConvOptions& o,
                                 int output_padding) {
  ConvShape s = make_shape(in_h, in_w, in_c, out_c, kernel, kernel, o);
  s.out_h =
      (in_h - 1) * o.stride_h + (kernel - 1) * o.dilation_h + 1 - o.pad_top - o.pad_bottom + output_padding;
  s.out_w =
      (in_w - 1) * o.stride_w + (kernel - 1) * o.dilation_w + 1 - o.pad_left - o.pad_right + output_padding;
  return s;
}

// The result of a transposed convolution with the weights [tap][channel of the group][output channel].
template <class T, class W>
std::vector<double> transposed_reference(const ConvShape& s, const std::vector<T>& x,
                                         const std::vector<W>& w) {
  const int channels = s.in_c / s.groups, columns = s.out_c / s.groups;
  std::vector<double> expected(static_cast<std::size_t>(out_pixels(s) * s.out_c), 0.0);
  for (int b = 0; b < s.batch; ++b) {
    for (int i = 0; i < s.in_h * s.in_w * s.kernel_h * s.kernel_w; ++i) {
      const int kw = i % s.kernel_w;
      const int kh = i / s.kernel_w % s.kernel_h;
      const int iw = i / (s.kernel_w * s.kernel_h) % s.in_w;
      const int ih = i / (s.kernel_w * s.kernel_h * s.in_w);
      const int oh = ih * s.stride_h + kh * s.dilation_h - s.pad_top;
      const int ow = iw * s.stride_w + kw * s.dilation_w - s.pad_left;
      if (oh < 0 || ow < 0 || oh >= s.out_h || ow >= s.out_w) continue;
      const std::ptrdiff_t in = b * s.in_image_stride + ih * s.in_row_stride + iw * s.in_pixel_stride;
      for (int oc = 0; oc < s.out_c; ++oc) {
        double& sum = expected[static_cast<std::size_t>(((b * s.out_h + oh) * s.out_w + ow) * s.out_c + oc)];
        for (int c = 0; c < channels; ++c) {
          sum += static_cast<double>(x[static_cast<std::size_t>(in + oc / columns * channels + c)]) *
                 static_cast<double>(
                     w[static_cast<std::size_t>(((kh * s.kernel_w + kw) * channels + c) * s.out_c + oc)]);
        }
      }
    }
  }
  return expected;
}

}  // namespace kernel_test

// Convolutions by plain loops, for the tests of every kind of them.
#pragma once

#include "cuda_kernel_test.h"
#include "gcrt/conv_shape.h"

namespace cuda_kernel_test {

// Geometry of a test; the rest of a ConvShape follows.
struct ConvCase {
  int batch = 1;
  int in_h = 1, in_w = 1, in_c = 1, out_c = 1;
  int kernel_h = 1, kernel_w = 1;
  int stride_h = 1, stride_w = 1;
  int pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  int dilation_h = 1, dilation_w = 1;
  int groups = 1;
  int pixel_padding = 0;  // channels of a wider tensor that are not read
};

inline ConvShape shape_of(const ConvCase& c) {
  ConvShape s{};
  s.batch = c.batch;
  s.in_h = c.in_h;
  s.in_w = c.in_w;
  s.in_c = c.in_c;
  s.out_c = c.out_c;
  s.kernel_h = c.kernel_h;
  s.kernel_w = c.kernel_w;
  s.stride_h = c.stride_h;
  s.stride_w = c.stride_w;
  s.pad_top = c.pad_top;
  s.pad_left = c.pad_left;
  s.dilation_h = c.dilation_h;
  s.dilation_w = c.dilation_w;
  s.groups = c.groups;
  s.out_h = (c.in_h + c.pad_top + c.pad_bottom - (c.kernel_h - 1) * c.dilation_h - 1) / c.stride_h + 1;
  s.out_w = (c.in_w + c.pad_left + c.pad_right - (c.kernel_w - 1) * c.dilation_w - 1) / c.stride_w + 1;
  s.in_pixel_stride = c.in_c + c.pixel_padding;
  s.in_row_stride = c.in_w * s.in_pixel_stride;
  s.in_image_stride = c.in_h * s.in_row_stride;
  return s;
}

// The same with input and output sizes exchanged, and `extra` output rows and columns:
// a transposed convolution.
inline ConvShape transposed_shape_of(const ConvCase& c, int extra) {
  ConvShape s = shape_of(c);
  s.out_h =
      (c.in_h - 1) * c.stride_h + (c.kernel_h - 1) * c.dilation_h + 1 - c.pad_top - c.pad_bottom + extra;
  s.out_w =
      (c.in_w - 1) * c.stride_w + (c.kernel_w - 1) * c.dilation_w + 1 - c.pad_left - c.pad_right + extra;
  return s;
}

template <class T>
std::vector<T> random_image(const ConvShape& s, std::uint32_t seed) {
  return random_values<T>(static_cast<std::size_t>(s.batch * s.in_image_stride), seed);
}

struct ConvReference {
  std::vector<double> sums;
  std::vector<double> magnitudes;
};

// Taps outside the image read `border`. w is [OC][kernel_h][kernel_w][in_c / groups].
template <class TX, class TW>
ConvReference convolve(const ConvShape& s, const std::vector<TX>& x, const std::vector<TW>& w,
                       double border) {
  ConvReference result;
  const int channels = s.in_c / s.groups;
  for (int b = 0; b < s.batch; ++b) {
    for (int oh = 0; oh < s.out_h; ++oh) {
      for (int ow = 0; ow < s.out_w; ++ow) {
        for (int n = 0; n < s.out_c; ++n) {
          double sum = 0;
          double magnitude = 0;
          for (int kh = 0; kh < s.kernel_h; ++kh) {
            for (int kw = 0; kw < s.kernel_w; ++kw) {
              const int ih = oh * s.stride_h - s.pad_top + kh * s.dilation_h;
              const int iw = ow * s.stride_w - s.pad_left + kw * s.dilation_w;
              const bool is_inside = ih >= 0 && ih < s.in_h && iw >= 0 && iw < s.in_w;
              for (int c = 0; c < channels; ++c) {
                const std::ptrdiff_t at = b * s.in_image_stride + ih * s.in_row_stride +
                                          iw * s.in_pixel_stride + n / (s.out_c / s.groups) * channels + c;
                const double value =
                    is_inside ? static_cast<double>(x[static_cast<std::size_t>(at)]) : border;
                const int k = ((n * s.kernel_h + kh) * s.kernel_w + kw) * channels + c;
                const double product = value * static_cast<double>(w[static_cast<std::size_t>(k)]);
                sum += product;
                magnitude += std::fabs(product);
              }
            }
          }
          result.sums.push_back(sum);
          result.magnitudes.push_back(magnitude);
        }
      }
    }
  }
  return result;
}

// Output pixel (oh, ow) sums the taps with oh + pad_top = ih * stride_h + kh * dilation_h.
inline ConvReference convolve_transposed(const ConvShape& s, const std::vector<float>& x,
                                         const std::vector<float>& w) {
  ConvReference result;
  const int channels = s.in_c / s.groups;
  for (int b = 0; b < s.batch; ++b) {
    for (int oh = 0; oh < s.out_h; ++oh) {
      for (int ow = 0; ow < s.out_w; ++ow) {
        for (int n = 0; n < s.out_c; ++n) {
          double sum = 0;
          double magnitude = 0;
          for (int kh = 0; kh < s.kernel_h; ++kh) {
            for (int kw = 0; kw < s.kernel_w; ++kw) {
              const int y = oh + s.pad_top - kh * s.dilation_h;
              const int z = ow + s.pad_left - kw * s.dilation_w;
              if (y < 0 || z < 0 || y % s.stride_h != 0 || z % s.stride_w != 0) continue;
              if (y / s.stride_h >= s.in_h || z / s.stride_w >= s.in_w) continue;
              for (int c = 0; c < channels; ++c) {
                const std::ptrdiff_t at = b * s.in_image_stride + y / s.stride_h * s.in_row_stride +
                                          z / s.stride_w * s.in_pixel_stride +
                                          n / (s.out_c / s.groups) * channels + c;
                const int k = ((n * s.kernel_h + kh) * s.kernel_w + kw) * channels + c;
                const double product =
                    double{x[static_cast<std::size_t>(at)]} * double{w[static_cast<std::size_t>(k)]};
                sum += product;
                magnitude += std::fabs(product);
              }
            }
          }
          result.sums.push_back(sum);
          result.magnitudes.push_back(magnitude);
        }
      }
    }
  }
  return result;
}

}  // namespace cuda_kernel_test

// Convolutions of integers as plain loops of 64 bits.
#pragma once

#include "conv_reference.h"
#include "integer_operands.h"

namespace kernel_test {

template <class TX, class TW>
std::vector<std::int64_t> integer_reference(const ConvShape& s, const Operands<TX, TW>& o) {
  std::vector<std::int64_t> y(static_cast<std::size_t>(out_pixels(s) * s.out_c), 0);
  const int channels = s.in_c / s.groups;
  const int columns = s.out_c / s.groups;
  for_each_tap(s, [&](std::ptrdiff_t pixel, int tap, std::ptrdiff_t offset) {
    for (int oc = 0; oc < s.out_c; ++oc) {
      std::int64_t sum = 0;
      for (int c = 0; c < channels; ++c) {
        const int x = o.x[static_cast<std::size_t>(offset + oc / columns * channels + c)];
        sum += std::int64_t{x - o.zero_point} *
               o.w[static_cast<std::size_t>((tap * channels + c) * s.out_c + oc)];
      }
      y[static_cast<std::size_t>(pixel * s.out_c + oc)] += sum;
    }
  });
  return y;
}

// Elements up to the last channel of the last pixel.
inline std::size_t used_size(const ConvShape& s) {
  return static_cast<std::size_t>((s.batch - 1) * s.in_image_stride + (s.in_h - 1) * s.in_row_stride +
                                  (s.in_w - 1) * s.in_pixel_stride + s.in_c);
}

}  // namespace kernel_test

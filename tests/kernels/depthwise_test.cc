// Depthwise convolution against plain loops:
// channel and pixel tails, borders, strides, dilations, multipliers.
#include "gcrt/cpu/image/depthwise.h"

#include "conv_reference.h"

namespace kernel_test {
namespace {

// With the window known at compile time, or found at run time where Kernel is 0.
template <class T = float, int Kernel = 0, int StrideW = 0>
void check_depthwise(ConvShape s, double tolerance = 1e-5) {
  s.groups = s.in_c;
  SCOPED_TRACE(::testing::Message() << "in " << s.batch << "x" << s.in_h << "x" << s.in_w << "x" << s.in_c
                                    << " out " << s.out_h << "x" << s.out_w << "x" << s.out_c << " kernel "
                                    << s.kernel_h << "x" << s.kernel_w << " stride " << s.stride_h << ","
                                    << s.stride_w << " pad " << s.pad_top << "," << s.pad_left << " dilation "
                                    << s.dilation_h << "," << s.dilation_w);
  const auto x = random_values<T>(input_size(s), 21);
  const auto w = random_values<T>(static_cast<std::size_t>(s.kernel_h * s.kernel_w * s.out_c), 22);
  const Recorded<T> result =
      in_any_pieces<T>(out_pixels(s), s.out_c, depthwise2d_work_items(s),
                       [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
                         if constexpr (Kernel == 0) {
                           depthwise2d(s, x.data(), w.data(), epilogue, begin, end);
                         } else {
                           depthwise2d_fixed<Kernel, StrideW, DepthwiseChannels::few>(s, x.data(), w.data(),
                                                                                      epilogue, begin, end);
                         }
                       });
  result.check(conv_reference(s, x, w), tolerance);
}

TEST(Depthwise, SizesAndChannels) {
  for (int size : {1, 2, 3, 5, 7, 10, 13, 20}) {
    for (int channels : {1, 2, 3, 7, 16, 17, 33, 58}) {
      ConvOptions o;
      o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 1;
      check_depthwise(make_shape(size, size + 1, channels, channels, 3, 3, o));
      o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 2;
      check_depthwise(make_shape(size + 1, size, channels, channels, 5, 5, o));
    }
  }
}

TEST(Depthwise, StridesDilationsPads) {
  for (int stride : {1, 2, 3}) {
    for (int dilation : {1, 2}) {
      for (int kernel : {1, 2, 3, 4, 5, 7}) {
        for (int pad : {0, 1, 4}) {
          ConvOptions o;
          o.stride_h = o.stride_w = stride;
          o.dilation_h = o.dilation_w = dilation;
          o.pad_top = o.pad_left = pad;
          o.pad_bottom = pad == 1 ? 0 : pad;
          o.pad_right = pad == 4 ? 1 : pad;
          const ConvShape s = make_shape(12, 19, 21, 21, kernel, kernel, o);
          if (is_possible(s)) check_depthwise(s);
        }
      }
    }
  }
}

// Pairs of output rows share rows of the image, if strides and dilation let them.
TEST(Depthwise, RowsOfATile) {
  for (int stride_h : {1, 2, 3}) {
    for (int stride_w : {1, 2}) {
      for (int dilation : {1, 2}) {
        for (int kernel : {3, 5, 7}) {
          for (int height : {7, 8, 13, 14}) {
            ConvOptions o;
            o.stride_h = stride_h;
            o.stride_w = stride_w;
            o.dilation_h = dilation;
            o.pad_top = kernel / 2;
            o.pad_left = o.pad_right = kernel / 2 + 1;
            const ConvShape s = make_shape(height, 17, 18, 18, kernel, kernel, o);
            if (is_possible(s)) check_depthwise(s);
          }
        }
      }
    }
  }
}

TEST(Depthwise, LargeKnownWindows) {
  for (int size : {7, 12, 21}) {
    for (int channels : {16, 35}) {
      ConvOptions o;
      o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 3;
      check_depthwise<float, 7, 1>(make_shape(size, size + 2, channels, channels, 7, 7, o));
      o.stride_h = o.stride_w = 2;
      check_depthwise<float, 7, 2>(make_shape(size + 1, size, channels, channels, 7, 7, o));
      check_depthwise<float, 5, 2>(make_shape(size, size + 6, channels, channels, 5, 5, o));
    }
  }
}

TEST(Depthwise, Multipliers) {
  for (int multiplier : {2, 3, 16}) {
    ConvOptions o;
    o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 1;
    check_depthwise(make_shape(6, 7, 5, 5 * multiplier, 3, 3, o));
    check_depthwise(make_shape(6, 7, 1, multiplier, 3, 3, o));
  }
}

TEST(Depthwise, SlicesBatchesDouble) {
  ConvOptions o;
  o.batch = 3;
  o.extra_pixel_stride = 6;
  o.extra_row_stride = 2;
  o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 1;
  check_depthwise(make_shape(6, 15, 22, 22, 3, 3, o));
  check_depthwise<double>(make_shape(6, 15, 22, 22, 3, 3, o), 1e-14);
}

TEST(Depthwise, BitsDoNotDependOnTheItems) {
  ConvOptions o;
  o.batch = 2;
  o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 1;
  check_depthwise(make_shape(13, 6, 20, 20, 3, 3, o));
}

}  // namespace
}  // namespace kernel_test

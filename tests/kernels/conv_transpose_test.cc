// Transposed convolution against a plain scatter.
#include "gcrt/cpu/image/conv_transpose.h"

#include "conv_reference.h"

namespace kernel_test {
namespace {

void check_transposed(const ConvShape& s) {
  SCOPED_TRACE(::testing::Message() << "in " << s.batch << "x" << s.in_h << "x" << s.in_w << "x" << s.in_c
                                    << " out " << s.out_h << "x" << s.out_w << "x" << s.out_c << " kernel "
                                    << s.kernel_h << " stride " << s.stride_h << "," << s.stride_w << " pad "
                                    << s.pad_top << "," << s.pad_left << " dilation " << s.dilation_h
                                    << " groups " << s.groups);
  const int channels = s.in_c / s.groups;
  const int columns = s.out_c / s.groups;
  const std::ptrdiff_t depth = std::ptrdiff_t{channels} * s.kernel_h * s.kernel_w;
  const auto x = random_values<float>(input_size(s), 41);
  const auto w = random_values<float>(static_cast<std::size_t>(depth * s.out_c), 42);
  std::vector<float> packed(static_cast<std::size_t>(packed_b_size(depth, columns) * s.groups));
  for (int g = 0; g < s.groups; ++g) {
    pack_b(depth, columns, w.data() + g * columns, s.out_c, 1,
           packed.data() + g * packed_b_size(depth, columns));
  }
  const std::vector<double> expected = transposed_reference(s, x, w);
  const std::vector<float> zeros(static_cast<std::size_t>(channels), 0.0f);
  const Recorded<float> result =
      in_any_pieces<float>(out_pixels(s), s.out_c, conv_transpose2d_work_items(s),
                           [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
                             conv_transpose2d(s, x.data(), packed.data(), zeros.data(), epilogue, begin, end);
                           });
  result.check(expected, 2e-5);
}

TEST(ConvTranspose, KernelsStridesPads) {
  for (int kernel : {1, 2, 3, 4, 5, 7}) {
    for (int stride : {1, 2, 3}) {
      for (int pad : {0, 1}) {
        for (int dilation : {1, 2}) {
          for (int extra : {0, 1}) {
            if (extra >= stride) continue;
            ConvOptions o;
            o.stride_h = o.stride_w = stride;
            o.pad_top = o.pad_left = pad;
            o.pad_bottom = 0;
            o.pad_right = pad;
            o.dilation_h = dilation;
            o.dilation_w = dilation;
            const ConvShape s = make_transposed(4, 5, 7, 19, kernel, o, extra);
            if (is_possible(s)) check_transposed(s);
          }
        }
      }
    }
  }
}

TEST(ConvTranspose, SizesAndChannels) {
  for (int size : {1, 2, 3, 9}) {
    for (int in_c : {1, 5, 16}) {
      for (int out_c : {1, 17, 40}) {
        ConvOptions o;
        o.stride_h = o.stride_w = 2;
        check_transposed(make_transposed(size, size + 2, in_c, out_c, 2, o, 0));
        o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 1;
        check_transposed(make_transposed(size, size + 2, in_c, out_c, 4, o, 0));
      }
    }
  }
}

TEST(ConvTranspose, GroupsBatchesSlices) {
  ConvOptions o;
  o.batch = 2;
  o.groups = 3;
  o.stride_h = 2;
  o.stride_w = 3;
  o.extra_pixel_stride = 5;
  o.extra_row_stride = 1;
  o.pad_top = 1;
  check_transposed(make_transposed(5, 4, 6, 60, 3, o, 1));
}

// Tiles that would span the bands of two items, in phases of equal and of different width.
TEST(ConvTranspose, BitsDoNotDependOnTheItems) {
  ConvOptions o;
  o.stride_h = o.stride_w = 2;
  for (int width : {1, 2, 3, 5, 7, 8}) {
    for (int extra : {0, 1}) {
      check_transposed(make_transposed(9, width, 9, 7, 3, o, extra));
      check_transposed(make_transposed(30, width, 33, 18, 2, o, extra));
    }
  }
}

TEST(ConvTranspose, ManyTaps) {
  ConvOptions o;
  check_transposed(make_transposed(3, 4, 3, 20, 6, o, 0));
  o.pad_left = o.pad_right = 4;
  check_transposed(make_transposed(3, 20, 3, 40, 9, o, 0));
}

}  // namespace
}  // namespace kernel_test

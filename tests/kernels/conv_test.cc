// Direct convolution against plain loops:
// tile edges, borders, strides, dilations, groups, slices, work items.
#include "gcrt/cpu/image/conv.h"

#include "conv_reference.h"

namespace kernel_test {
namespace {

void check_conv(const ConvShape& s) {
  SCOPED_TRACE(::testing::Message() << "in " << s.batch << "x" << s.in_h << "x" << s.in_w << "x" << s.in_c
                                    << " out " << s.out_h << "x" << s.out_w << "x" << s.out_c << " kernel "
                                    << s.kernel_h << "x" << s.kernel_w << " stride " << s.stride_h << ","
                                    << s.stride_w << " pad " << s.pad_top << "," << s.pad_left << " dilation "
                                    << s.dilation_h << "," << s.dilation_w << " groups " << s.groups);
  const int channels = s.in_c / s.groups;
  const int columns = s.out_c / s.groups;
  const std::ptrdiff_t depth = std::ptrdiff_t{channels} * s.kernel_h * s.kernel_w;
  const auto x = random_values<float>(input_size(s), 11);
  const auto w = random_values<float>(static_cast<std::size_t>(depth * s.out_c), 12);
  std::vector<float> packed(static_cast<std::size_t>(packed_b_size(depth, columns) * s.groups));
  for (int g = 0; g < s.groups; ++g) {
    pack_b(depth, columns, w.data() + g * columns, s.out_c, 1,
           packed.data() + g * packed_b_size(depth, columns));
  }
  const std::vector<float> zeros(static_cast<std::size_t>(channels), 0.0f);
  Recorded<float> whole(out_pixels(s), s.out_c);
  conv2d(s, x.data(), packed.data(), zeros.data(), whole.epilogue());
  whole.check(conv_reference(s, x, w), depth > 1000 ? 1e-4 : 2e-5);
  for (const Blocking& blocking : {Blocking{1, 1, 1, 0}, Blocking{25, 0, 1, 0}, Blocking{40, 20, 15, 0}}) {
    const Recorded<float> result = in_any_pieces<float>(
        out_pixels(s), s.out_c, conv2d_work_items(s, blocking),
        [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
          conv2d(s, x.data(), packed.data(), zeros.data(), blocking, epilogue, begin, end);
        });
    EXPECT_EQ(result.y, whole.y);
    EXPECT_EQ(result.calls, whole.calls);
  }
  if (s.batch != 1) return;
  Recorded<float> image(out_pixels(s), s.out_c);
  const auto rows = [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
    conv2d_rows(s, x.data(), packed.data(), zeros.data(), Blocking{}, epilogue, begin, end);
  };
  rows(image.epilogue(), 0, s.out_h);
  image.check(conv_reference(s, x, w), depth > 1000 ? 1e-4 : 2e-5);
  EXPECT_EQ(in_any_pieces<float>(out_pixels(s), s.out_c, s.out_h, rows).y, image.y);
}

TEST(Conv, SmallImagesAndAwkwardChannels) {
  for (int size : {1, 2, 3, 5, 7, 10}) {
    for (int in_c : {1, 3, 5, 16, 17}) {
      for (int out_c : {1, 7, 16, 33}) {
        ConvOptions o;
        o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 1;
        check_conv(make_shape(size, size + 1, in_c, out_c, 3, 3, o));
      }
    }
  }
}

TEST(Conv, StridesDilationsPads) {
  for (int stride : {1, 2, 3}) {
    for (int dilation : {1, 2}) {
      for (int kernel : {1, 2, 3, 5}) {
        for (int pad : {0, 1, 3}) {
          for (int in_c : {2, 18}) {
            ConvOptions o;
            o.stride_h = stride;
            o.stride_w = stride == 3 ? 1 : stride;
            o.dilation_h = dilation;
            o.dilation_w = kernel == 5 ? 1 : dilation;
            o.pad_top = pad;
            o.pad_left = pad == 3 ? 1 : pad;
            o.pad_right = pad == 1 ? 0 : pad;
            const ConvShape s = make_shape(11, 14, in_c, 20, kernel, kernel, o);
            if (is_possible(s)) check_conv(s);
          }
        }
      }
    }
  }
}

TEST(Conv, Pointwise) {
  ConvOptions o;
  check_conv(make_shape(1, 1, 19, 40, 1, 1, o));
  check_conv(make_shape(7, 9, 19, 40, 1, 1, o));
  check_conv(make_shape(20, 13, 33, 58, 1, 1, o));
  o.batch = 3;
  check_conv(make_shape(3, 4, 19, 40, 1, 1, o));
  o.extra_pixel_stride = 7;
  check_conv(make_shape(3, 4, 19, 40, 1, 1, o));
  o.extra_row_stride = 5;
  check_conv(make_shape(3, 4, 19, 40, 1, 1, o));
  o.stride_h = o.stride_w = 2;
  check_conv(make_shape(9, 8, 19, 40, 1, 1, o));
}

TEST(Conv, SlicesAndBatches) {
  for (int extra : {0, 5}) {
    ConvOptions o;
    o.batch = 2;
    o.extra_pixel_stride = extra;
    o.extra_row_stride = extra;
    o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 1;
    check_conv(make_shape(6, 5, 9, 21, 3, 3, o));
    check_conv(make_shape(6, 5, 3, 21, 3, 3, o));
  }
}

TEST(Conv, Groups) {
  for (int groups : {2, 3, 12}) {
    ConvOptions o;
    o.groups = groups;
    o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 1;
    check_conv(make_shape(6, 7, 12, 24, 3, 3, o));
    check_conv(make_shape(6, 7, 12, 60, 1, 1, o));
    check_conv(make_shape(17, 16, 24, 12, 3, 3, o));
  }
}

TEST(Conv, LongDepth) {
  ConvOptions o;
  o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 1;
  check_conv(make_shape(7, 7, 130, 50, 3, 3, o));
  check_conv(make_shape(16, 15, 260, 20, 3, 3, o));
  check_conv(make_shape(7, 8, 600, 20, 3, 3, o));
}

// Frames of a signal: windows of one row, of which some overlap and some leave a gap.
TEST(Conv, Framing) {
  for (int in_c : {1, 2, 3, 8}) {
    for (int kernel : {1, 3, 40, 300}) {
      for (int stride : {1, 7, 400}) {
        ConvOptions o;
        o.stride_w = stride;
        const ConvShape s = make_shape(1, 610, in_c, 19, 1, kernel, o);
        EXPECT_TRUE(is_framing(s));
        check_conv(s);
      }
    }
  }
}

TEST(Conv, ManyTaps) {
  ConvOptions o;
  o.pad_left = 40;
  o.pad_right = 20;
  o.stride_w = 3;
  check_conv(make_shape(1, 200, 1, 20, 1, 101, o));
  check_conv(make_shape(1, 200, 17, 20, 1, 101, o));
  o = {};
  o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 5;
  check_conv(make_shape(9, 12, 17, 20, 11, 11, o));
  check_conv(make_shape(9, 12, 3, 20, 7, 7, o));
  check_conv(make_shape(40, 1, 4, 9, 9, 1, o));
}

// By columns and by pixels, one pixel alone and as the last of many, a long depth with few pixels left over.
TEST(Conv, BitsDoNotDependOnTheItems) {
  ConvOptions o;
  o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 1;
  for (int groups : {1, 2}) {
    o.groups = groups;
    check_conv(make_shape(1, 1, 16, 96 * groups, 1, 1, ConvOptions{}));
    check_conv(make_shape(1, 1, 8, 112 * groups, 3, 3, o));
    check_conv(make_shape(4, 4, 8, 100 * groups, 3, 3, o));
    check_conv(make_shape(13, 13, 8, 20, 3, 3, o));
  }
  o.groups = 1;
  for (int rest : {1, 2, 4}) {
    check_conv(make_shape(1, 8 * UsualTile::kRows + rest, 24, 18, 1, 1, ConvOptions{}));
    check_conv(make_shape(1, 8 * UsualTile::kRows + rest, 130, 7, 3, 3, o));
  }
}

}  // namespace
}  // namespace kernel_test

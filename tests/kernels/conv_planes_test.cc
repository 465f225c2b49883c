// Convolutions of planes against plain loops: columns around a vector, borders on every side, dilations, strides of
// rows, groups, images and planes apart, work items.
#include "gcrt/cpu/image/conv_planes.h"

#include "conv_reference.h"

namespace kernel_test {
namespace {

template <int Channels>
void check_planes(int in_h, int in_w, int in_c, int out_c, int kernel_h, int kernel_w, const ConvOptions& o) {
  // Channels last, for the reference.
  const ConvShape pixels = make_shape(in_h, in_w, in_c, out_c, kernel_h, kernel_w, o);
  if (!is_possible(pixels)) return;
  SCOPED_TRACE(::testing::Message() << Channels << " of " << in_h << "x" << in_w << "x" << in_c << " to "
                                    << out_c << " kernel " << kernel_h << "x" << kernel_w << " stride "
                                    << o.stride_h << " pad " << o.pad_left << " dilation " << o.dilation_w
                                    << " groups " << o.groups);
  const auto x = random_values<float>(input_size(pixels), 21);
  const int depth = in_c / o.groups * kernel_h * kernel_w, outputs = out_c / o.groups;
  const auto w = random_values<float>(static_cast<std::size_t>(depth * out_c), 22);
  ConvShape s = pixels;
  s.in_pixel_stride = 1;
  s.in_row_stride = in_w + o.extra_row_stride;
  const std::ptrdiff_t plane = in_h * s.in_row_stride + 3;
  s.in_image_stride = in_c * plane + 2;
  std::vector<float> planes(static_cast<std::size_t>(o.batch * s.in_image_stride), std::nanf(""));
  for (int b = 0; b < o.batch; ++b) {
    for (int h = 0; h < in_h; ++h) {
      for (int at = 0; at < in_w * in_c; ++at) {
        const int c = at % in_c, column = at / in_c;
        planes[static_cast<std::size_t>(b * s.in_image_stride + c * plane + h * s.in_row_stride + column)] =
            x[static_cast<std::size_t>(b * pixels.in_image_stride + h * pixels.in_row_stride +
                                       column * pixels.in_pixel_stride + c)];
      }
    }
  }
  std::vector<float> packed;
  for (int block = 0; block < out_c; block += Channels) {
    for (int c = 0; c < in_c / o.groups; ++c) {
      for (int tap = 0; tap < kernel_h * kernel_w; ++tap) {
        for (int m = 0; m < Channels; ++m)
          packed.push_back(w[static_cast<std::size_t>((tap * (in_c / o.groups) + c) * out_c + block + m)]);
      }
    }
  }
  ASSERT_EQ(outputs % Channels, 0);
  const std::vector<double> expected = conv_reference(pixels, x, w);
  std::vector<double> turned(expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::size_t c = i % static_cast<std::size_t>(out_c), pixel = i / static_cast<std::size_t>(out_c);
    const auto image = static_cast<std::size_t>(s.out_h * s.out_w);
    turned[(pixel / image * static_cast<std::size_t>(out_c) + c) * image + pixel % image] = expected[i];
  }
  const auto check = [&](auto kernel) {
    const Recorded<float> result = in_any_pieces<float>(
        std::ptrdiff_t{o.batch} * out_c * s.out_h, s.out_w, conv2d_planes_work_items(s, Channels),
        [&](const auto& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
          conv2d_planes<Channels, decltype(kernel)::value>(s, plane, planes.data(), packed.data(), epilogue,
                                                           begin, end);
        });
    result.check(turned, 2e-5);
  };
  check(std::integral_constant<int, 0>{});
  if (o.stride_h != 1 || o.dilation_h != 1 || o.dilation_w != 1) return;
  if (kernel_h == 3 && kernel_w == 3) check(std::integral_constant<int, 3>{});
  if (kernel_h == 5 && kernel_w == 5) check(std::integral_constant<int, 5>{});
}

template <int Channels>
void check_sizes() {
  ConvOptions none, same, uneven;
  same.pad_top = same.pad_left = same.pad_bottom = same.pad_right = 1;
  uneven.pad_top = 4;
  uneven.pad_left = 2;
  uneven.pad_right = 7;
  uneven.stride_h = 2;
  uneven.dilation_h = 2;
  uneven.dilation_w = 3;
  uneven.batch = 2;
  uneven.extra_row_stride = 5;
  for (const int width : {1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 48, 50, 97, 150}) {
    for (const ConvOptions& o : {none, same, uneven}) {
      check_planes<Channels>(7, width, 2, 2 * Channels, 3, 3, o);
      check_planes<Channels>(5, width, 1, Channels, 2, 5, o);
      check_planes<Channels>(6, width, 2, Channels, 5, 5, o);
    }
    ConvOptions grouped = uneven;
    grouped.groups = 3;
    check_planes<Channels>(9, width, 3, 3 * Channels, 3, 3, grouped);
    check_planes<Channels>(6, width, 6, 6 * Channels, 3, 1, grouped);
  }
  check_planes<Channels>(70, 20, 1, Channels, 3, 3, same);
}

TEST(ConvPlanes, OneChannel) { check_sizes<1>(); }
TEST(ConvPlanes, TwoChannels) { check_sizes<2>(); }
TEST(ConvPlanes, ThreeChannels) { check_sizes<3>(); }
TEST(ConvPlanes, FourChannels) { check_sizes<4>(); }

TEST(ConvPlanes, LargeWindows) {
  ConvOptions o;
  o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 15;
  o.groups = 2;
  check_planes<1>(32, 32, 2, 2, 31, 31, o);
  check_planes<1>(10, 5, 2, 2, 31, 31, o);
  o.pad_top = 0;
  check_planes<1>(40, 70, 2, 2, 31, 31, o);
}

// Padding beyond the windows' reach: results of nothing but zeros.
TEST(ConvPlanes, WindowsBesideTheImage) {
  ConvOptions o;
  o.pad_top = o.pad_left = o.pad_bottom = o.pad_right = 9;
  check_planes<1>(4, 4, 1, 1, 3, 3, o);
  check_planes<2>(4, 40, 2, 2, 2, 2, o);
}

}  // namespace
}  // namespace kernel_test

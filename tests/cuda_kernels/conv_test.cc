// Convolutions on the emulator against plain loops: borders, strides, dilations, groups, narrow channels.
#include "gcrt/cuda/image/conv.h"

#include "conv_reference.h"
#include "gcrt/cuda/image/conv_transpose.h"

namespace cuda_kernel_test {
namespace {

std::size_t size(std::ptrdiff_t count) { return static_cast<std::size_t>(count); }

template <Precision P, Tile kTile, bool kIsPointwise = false, class TX = float, int kParts = 1>
void check_conv(const ConvCase& c) {
  using Weight = typename PrecisionOf<P>::Weight;
  const ConvShape s = shape_of(c);
  SCOPED_TRACE(::testing::Message() << s.in_h << " x " << s.in_w << " x " << s.in_c << " to " << s.out_h
                                    << " x " << s.out_w << " x " << s.out_c << ", kernel " << s.kernel_h
                                    << " x " << s.kernel_w << ", groups " << s.groups << ", parts "
                                    << kParts);
  if (!has_room(shared_bytes_of(kTile))) return;
  const int depth = s.kernel_h * s.kernel_w * (s.in_c / s.groups);
  auto x = random_image<float>(s, 1);
  const auto w = random_values<float>(size(s.out_c * depth), 2);
  const DeviceArray<TX> x_device(stored<TX>(x));
  const DeviceArray<Weight> w_device(pad_rows<Weight>(w, s.out_c, depth, 16));
  ASSERT_EQ(w_device.size(), size(s.out_c * conv_weight_stride(s)));
  DeviceArray<float> workspace(size(conv2d_workspace_size(s, kParts)));
  Recorded<float> result(output_pixels(s), s.out_c);
  CountingQueue queue;
  const auto run = [&](const auto& split, Recorded<float>& y) {
    with_copies(
        [&](auto from) {
          if constexpr (kIsPointwise) {
            ASSERT_TRUE(is_pointwise(s));
            conv2d_pointwise<P, kTile>(queue, s, from, w_device.data(), split, y.epilogue<4>());
          } else {
            conv2d<P, kTile>(queue, s, from, w_device.data(), split, y.epilogue<4>());
          }
        },
        static_cast<const TX*>(x_device.data()), s.in_c / s.groups, s.in_pixel_stride, s.in_row_stride,
        s.in_image_stride);
    expect_no_error(queue);
  };
  run(SplitDepth<kParts>{workspace.data()}, result);
  const ConvReference reference = convolve(s, x, w, 0);
  result.check(reference.sums, reference.magnitudes, PrecisionOf<P>::kTolerance);
  if constexpr (kParts > 1 && is_cluster(size_of(kTile), kParts)) {
    if (!has_clusters()) return;
    Recorded<float> of_clusters(output_pixels(s), s.out_c);
    run(SplitInCluster<kParts>{}, of_clusters);
    of_clusters.check(reference.sums, reference.magnitudes, PrecisionOf<P>::kTolerance);
    EXPECT_EQ(of_clusters.y.read(), result.y.read());
  }
}

ConvCase square(int batch, int image, int in_c, int out_c, int kernel, int stride, int pad) {
  ConvCase c;
  c.batch = batch;
  c.in_h = image;
  c.in_w = image + 1;
  c.in_c = in_c;
  c.out_c = out_c;
  c.kernel_h = c.kernel_w = kernel;
  c.stride_h = c.stride_w = stride;
  c.pad_top = c.pad_left = c.pad_bottom = c.pad_right = pad;
  return c;
}

// An image as memory holds it in 16 bits; channels for copies of 16, 8, 4 and 2 bytes.
TEST(CudaConv, StoredIn16Bits) {
  for (const int channels : {1, 2, 3, 4, 8, 12, 24}) {
    check_conv<Precision::kFp16, Tile::k64x64, false, Half>(square(2, 7, channels, 9, 3, 1, 1));
    check_conv<Precision::kBf16, Tile::k32x64, false, BFloat16>(square(1, 9, channels, 65, 3, 2, 1));
  }
  check_conv<Precision::kFp16, Tile::k64x64, true, Half>(square(1, 9, 40, 65, 1, 1, 0));
  check_conv<Precision::kFp16, Tile::k16x64, false, Half, 2>(square(1, 4, 64, 9, 3, 1, 1));
  // Taps of a whole step of the pipeline and of more, and steps that reach into the next tap.
  for (const int channels : {64, 96, 128}) {
    check_conv<Precision::kFp16, Tile::k64x64, false, Half>(square(1, 9, channels, 33, 3, 2, 1));
  }
}

TEST(CudaConv, ThreeByThree) {
  for (const int channels : {1, 3, 4, 6, 8, 16, 20, 33}) {
    check_conv<Precision::kFp32, Tile::k64x64>(square(2, 7, channels, 9, 3, 1, 1));
    check_conv<Precision::kFp32, Tile::k32x64>(square(1, 9, channels, 65, 3, 2, 1));
  }
}

TEST(CudaConv, OtherPrecisions) {
  for (const int channels : {3, 8, 20}) {
    check_conv<Precision::kTf32, Tile::k64x64>(square(1, 9, channels, 17, 3, 1, 1));
    check_conv<Precision::kFp16, Tile::k64x64>(square(1, 9, channels, 17, 3, 1, 1));
    check_conv<Precision::kBf16, Tile::k64x64>(square(1, 9, channels, 17, 3, 1, 1));
  }
}

TEST(CudaConv, OtherTiles) {
  check_conv<Precision::kFp32, Tile::k16x64>(square(1, 4, 8, 70, 3, 1, 1));
  check_conv<Precision::kFp32, Tile::k32x64>(square(1, 5, 32, 70, 3, 1, 1));
  check_conv<Precision::kFp32, Tile::k128x32>(square(1, 12, 8, 33, 3, 1, 1));
  check_conv<Precision::kTf32, Tile::k128x64>(square(1, 12, 3, 65, 5, 2, 2));
  check_conv<Precision::kTf32, Tile::k128x128>(square(2, 12, 8, 130, 3, 1, 0));
}

TEST(CudaConv, StemsWithFewChannels) {
  check_conv<Precision::kFp32, Tile::k128x32>(square(1, 19, 3, 24, 7, 2, 3));
  check_conv<Precision::kFp16, Tile::k64x64>(square(1, 11, 1, 8, 5, 1, 2));
  check_conv<Precision::kFp32, Tile::k64x64>(square(1, 16, 4, 24, 4, 4, 0));
}

TEST(CudaConv, OneDimension) {
  ConvCase c;
  c.in_w = 50;
  c.in_c = 12;
  c.out_c = 10;
  c.kernel_w = 9;
  c.dilation_w = 2;
  c.pad_left = 5;
  c.pad_right = 3;
  check_conv<Precision::kFp32, Tile::k64x64>(c);
}

TEST(CudaConv, DilationAndUnequalPads) {
  ConvCase c = square(1, 11, 8, 5, 3, 1, 0);
  c.kernel_w = 2;
  c.stride_h = 2;
  c.dilation_h = 3;
  c.dilation_w = 4;
  c.pad_top = 4;
  c.pad_right = 6;
  check_conv<Precision::kFp32, Tile::k64x64>(c);
  c.in_c = 5;
  check_conv<Precision::kFp32, Tile::k64x64>(c);
}

TEST(CudaConv, WholeWindowInThePadding) {
  check_conv<Precision::kFp32, Tile::k16x64>(square(1, 2, 4, 3, 2, 1, 3));
}

TEST(CudaConv, Groups) {
  for (const int groups : {2, 3, 4}) {
    for (const int channels : {1, 4, 5}) {
      for (const int columns : {1, 3, 8}) {
        ConvCase c = square(2, 5, groups * channels, groups * columns, 3, 1, 1);
        c.groups = groups;
        check_conv<Precision::kFp32, Tile::k64x64>(c);
      }
    }
  }
}

TEST(CudaConv, SlicesOfAWiderTensor) {
  for (const int padding : {1, 4}) {
    ConvCase c = square(2, 6, 8, 12, 3, 1, 1);
    c.pixel_padding = padding;
    check_conv<Precision::kFp32, Tile::k64x64>(c);
    c.kernel_h = c.kernel_w = 1;
    c.pad_top = c.pad_left = c.pad_bottom = c.pad_right = 0;
    check_conv<Precision::kFp32, Tile::k64x64, true>(c);
  }
}

TEST(CudaConv, Pointwise) {
  for (const int channels : {1, 7, 16, 65}) {
    check_conv<Precision::kFp32, Tile::k64x64, true>(square(2, 6, channels, 33, 1, 1, 0));
    check_conv<Precision::kFp16, Tile::k64x64, true>(square(2, 6, channels, 33, 1, 1, 0));
    check_conv<Precision::kFp32, Tile::k64x64>(square(2, 6, channels, 33, 1, 1, 0));
    check_conv<Precision::kFp32, Tile::k64x64>(square(2, 6, channels, 33, 1, 2, 0));
    check_conv<Precision::kFp32, Tile::kGemv2, true>(square(1, 1, channels, 33, 1, 1, 0));
  }
  ConvCase c = square(1, 1, 12, 20, 1, 1, 0);
  c.groups = 4;
  check_conv<Precision::kFp32, Tile::kGemv2, true>(c);
  check_conv<Precision::kFp32, Tile::k16x64, true>(c);
}

TEST(CudaConv, SplitDepth) {
  check_conv<Precision::kFp32, Tile::k32x64, false, float, 4>(square(1, 7, 64, 40, 3, 1, 1));
  ConvCase c = square(1, 5, 36, 30, 3, 1, 1);
  c.groups = 2;
  check_conv<Precision::kFp32, Tile::k16x64, false, float, 3>(c);
  check_conv<Precision::kFp32, Tile::k16x64, false, float, 2>(c);
  check_conv<Precision::kFp16, Tile::k64x64, true, Half, 8>(square(1, 9, 320, 65, 1, 1, 0));
}

TEST(CudaConv, PlanOfEveryLayerFits) {
  const DeviceModel device = device_model(87);
  const ConvShape stem = shape_of(square(1, 224, 3, 64, 7, 2, 3));
  EXPECT_FALSE(is_gemv(plan_conv2d(device, Precision::kFp32, stem, weighted(Precision::kFp32)).tile));
  const ConvShape squeeze = shape_of([] {
    ConvCase c = square(1, 1, 128, 32, 1, 1, 0);
    c.in_w = 1;
    return c;
  }());
  EXPECT_EQ(plan_conv2d(device, Precision::kFp32, squeeze, weighted(Precision::kFp32)).tile, Tile::kGemv1);
}

template <Precision P, Tile kTile>
void check_transposed(const ConvCase& c, int extra) {
  using Weight = typename PrecisionOf<P>::Weight;
  const ConvShape s = transposed_shape_of(c, extra);
  SCOPED_TRACE(::testing::Message() << s.in_h << " x " << s.in_w << " x " << s.in_c << " to " << s.out_h
                                    << " x " << s.out_w << " x " << s.out_c << ", kernel " << s.kernel_h
                                    << " x " << s.kernel_w << ", stride " << s.stride_h << " x "
                                    << s.stride_w);
  const int channels = s.in_c / s.groups;
  const auto x = random_image<float>(s, 1);
  const auto w = random_values<float>(size(s.out_c * s.kernel_h * s.kernel_w * channels), 2);
  std::vector<Weight> packed;
  for (int row = 0; row < s.stride_h; ++row) {
    for (int column = 0; column < s.stride_w; ++column) {
      const TransposePhase phase = transpose_phase(s, row, column);
      std::vector<float> rows;
      for (int n = 0; n < s.out_c; ++n) {
        for (int i = 0; i < phase.shape.kernel_h; ++i) {
          for (int j = 0; j < phase.shape.kernel_w; ++j) {
            const int kh = phase.rows.first + i * phase.rows.step;
            const int kw = phase.columns.first + j * phase.columns.step;
            for (int k = 0; k < channels; ++k) {
              rows.push_back(w[size(((n * s.kernel_h + kh) * s.kernel_w + kw) * channels + k)]);
            }
          }
        }
      }
      const int depth = phase.shape.kernel_h * phase.shape.kernel_w * channels;
      const auto padded = pad_rows<Weight>(rows, s.out_c, depth, 16);
      packed.insert(packed.end(), padded.begin(), padded.end());
    }
  }
  ASSERT_EQ(packed.size(), size(conv_transpose_weight_size(s)));
  const DeviceArray<float> x_device(x);
  const DeviceArray<Weight> w_device(packed);
  Recorded<float> result(output_pixels(s), s.out_c);
  Queue queue;
  conv_transpose2d<P, kTile>(queue, s, x_device.data(), w_device.data(), result.epilogue<2>());
  expect_no_error(queue);
  const ConvReference reference = convolve_transposed(s, x, w);
  result.check(reference.sums, reference.magnitudes, PrecisionOf<P>::kTolerance);
}

TEST(CudaConvTranspose, StridesAndKernels) {
  for (const int stride : {1, 2, 3}) {
    for (const int kernel : {1, 2, 3, 4}) {
      for (const int channels : {3, 8}) {
        check_transposed<Precision::kFp32, Tile::k32x64>(square(2, 4, channels, 6, kernel, stride, 0), 0);
      }
    }
  }
}

TEST(CudaConvTranspose, PadsDilationsAndOutputPadding) {
  check_transposed<Precision::kFp32, Tile::k32x64>(square(1, 5, 8, 6, 3, 2, 1), 1);
  check_transposed<Precision::kFp16, Tile::k32x64>(square(1, 5, 8, 6, 4, 2, 1), 0);
  check_transposed<Precision::kBf16, Tile::k32x64>(square(1, 5, 7, 6, 3, 2, 1), 1);
  check_transposed<Precision::kTf32, Tile::k32x64>(square(1, 5, 8, 6, 3, 2, 1), 1);
  ConvCase c = square(1, 5, 12, 6, 3, 2, 1);
  c.dilation_h = 2;
  c.dilation_w = 3;
  c.pad_bottom = 0;
  check_transposed<Precision::kFp32, Tile::k32x64>(c, 0);
  c.groups = 3;
  c.stride_w = 3;
  check_transposed<Precision::kFp32, Tile::k32x64>(c, 1);
}

}  // namespace
}  // namespace cuda_kernel_test

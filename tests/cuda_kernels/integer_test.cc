// Integer products and convolutions on the emulator against plain loops: exact.
#include "conv_reference.h"
#include "gcrt/cuda/image/conv_integer.h"
#include "gcrt/cuda/image/depthwise_integer.h"

namespace cuda_kernel_test {
namespace {

std::size_t size(std::ptrdiff_t count) { return static_cast<std::size_t>(count); }

// Rows padded with zeros to a multiple of 32.
template <class TW>
std::vector<TW> pad_integer_rows(const std::vector<TW>& values, int rows, int depth) {
  const int stride = static_cast<int>(integer_weight_stride(depth));
  std::vector<TW> padded(size(rows * stride));
  for (int r = 0; r < rows; ++r) {
    for (int k = 0; k < depth; ++k) padded[size(r * stride + k)] = values[size(r * depth + k)];
  }
  return padded;
}

template <class TW>
std::vector<TW> random_weights(std::size_t count) {
  std::vector<TW> values = random_values<TW>(count, 2);
  // The difference of two bytes, where weights have a zero point of their own.
  if constexpr (sizeof(TW) == 2) {
    for (TW& value : values) value = static_cast<TW>(value % 256);
  }
  return values;
}

// Modulo 2^32.
double wrapped(double sum, std::int32_t offset) {
  return static_cast<double>(static_cast<std::int32_t>(
      static_cast<std::uint32_t>(static_cast<std::int64_t>(sum)) + static_cast<std::uint32_t>(offset)));
}

template <Tile kTile, class TX, class TW, int kLanesTaken = 4, int kParts = 1>
void check_product(int rows, int columns, int depth, int padding = 0) {
  SCOPED_TRACE(::testing::Message() << rows << " x " << columns << " x " << depth << " + " << padding
                                    << " in " << kParts);
  if (!has_room(shared_bytes_of(kTile))) return;
  const int lda = depth + padding;
  const auto a = random_values<TX>(size((rows - 1) * lda + depth), 1);
  const auto b = random_weights<TW>(size(columns * depth));
  const auto offsets = random_values<std::int32_t>(size(columns), 3);
  const DeviceArray<TX> a_device(a);
  const DeviceArray<TW> b_device(pad_integer_rows(b, columns, depth));
  const DeviceArray<std::int32_t> offsets_device(offsets);
  DeviceArray<float> workspace(size(gemm_workspace_size(rows, columns, 1, kParts)));
  Recorded<std::int32_t> result(rows, columns);
  CountingQueue queue;
  gemm_integer<kTile>(queue, rows, columns, depth, a_device.data(), lda, b_device.data(),
                      integer_weight_stride(depth), offsets_device.data(),
                      SplitDepth<kParts>{workspace.data()}, result.epilogue<kLanesTaken>());
  expect_no_error(queue);
  std::vector<double> expected;
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n) {
      double sum = 0;
      for (int k = 0; k < depth; ++k) sum += double{1} * a[size(m * lda + k)] * b[size(n * depth + k)];
      expected.push_back(wrapped(sum, offsets[size(n)]));
    }
  }
  result.check_exact(expected);
  if constexpr (kParts > 1 && is_cluster(size_of(kTile), kParts)) {
    if (!has_clusters()) return;
    Recorded<std::int32_t> of_clusters(rows, columns);
    gemm_integer<kTile>(queue, rows, columns, depth, a_device.data(), lda, b_device.data(),
                        integer_weight_stride(depth), offsets_device.data(), SplitInCluster<kParts>{},
                        of_clusters.epilogue<kLanesTaken>());
    expect_no_error(queue);
    EXPECT_EQ(of_clusters.y.read(), result.y.read());
  }
}

template <Tile kTile, class TX, class TW>
void check_sizes() {
  for (const int size : {1, 7, 8, 9, 16, 17, 33, 63, 65, 129}) {
    check_product<kTile, TX, TW>(size, 33, 20);
    check_product<kTile, TX, TW>(17, size, 36);
    check_product<kTile, TX, TW>(17, 9, size, 1);
    check_product<kTile, TX, TW>(9, 65, size, (16 - size % 16) % 16);
  }
}

TEST(CudaGemmInteger, SignedBytes) { check_sizes<Tile::k64x64, std::int8_t, std::int8_t>(); }
TEST(CudaGemmInteger, UnsignedBytes) { check_sizes<Tile::k32x64, std::uint8_t, std::int8_t>(); }
TEST(CudaGemmInteger, Words) { check_sizes<Tile::k16x64, std::uint8_t, std::int16_t>(); }
TEST(CudaGemmInteger, SignedWords) { check_sizes<Tile::k64x64, std::int8_t, std::int16_t>(); }
TEST(CudaGemmInteger, OtherTiles) {
  check_product<Tile::k128x32, std::uint8_t, std::int8_t>(150, 40, 100);
  check_product<Tile::k128x64, std::int8_t, std::int8_t, 2>(150, 70, 96);
  check_product<Tile::k128x128, std::uint8_t, std::int8_t, 1>(150, 130, 65);
}
TEST(CudaGemmInteger, SplitDepth) {
  check_product<Tile::k16x64, std::uint8_t, std::int8_t, 4, 3>(9, 33, 500);
  check_product<Tile::k32x64, std::int8_t, std::int16_t, 4, 4>(20, 18, 500, 12);
}

template <class TX, class TW, Tile kTile = Tile::k64x64, bool kIsPointwise = false, int kParts = 1>
void check_conv(const ConvCase& c, TX border) {
  const ConvShape s = shape_of(c);
  SCOPED_TRACE(::testing::Message() << s.in_h << " x " << s.in_w << " x " << s.in_c << " to " << s.out_h
                                    << " x " << s.out_w << " x " << s.out_c << ", kernel " << s.kernel_h
                                    << " x " << s.kernel_w << ", groups " << s.groups);
  if (!has_room(shared_bytes_of(kTile))) return;
  const int depth = s.kernel_h * s.kernel_w * (s.in_c / s.groups);
  const auto x = random_image<TX>(s, 1);
  const auto w = random_weights<TW>(size(s.out_c * depth));
  const auto offsets = random_values<std::int32_t>(size(s.out_c), 3);
  const DeviceArray<TX> x_device(x);
  const DeviceArray<TW> w_device(pad_integer_rows(w, s.out_c, depth));
  const DeviceArray<std::int32_t> offsets_device(offsets);
  DeviceArray<float> workspace(size(conv2d_workspace_size(s, kParts)));
  Recorded<std::int32_t> result(output_pixels(s), s.out_c);
  const SplitDepth<kParts> split{workspace.data()};
  CountingQueue queue;
  if constexpr (kIsPointwise) {
    conv2d_integer_pointwise<kTile>(queue, s, x_device.data(), w_device.data(), offsets_device.data(), split,
                                    result.epilogue<4>());
  } else {
    conv2d_integer<kTile>(queue, s, x_device.data(), w_device.data(), offsets_device.data(), border, split,
                          result.epilogue<4>());
  }
  expect_no_error(queue);
  std::vector<double> expected = convolve(s, x, w, static_cast<double>(border)).sums;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = wrapped(expected[i], offsets[i % size(s.out_c)]);
  }
  result.check_exact(expected);
}

ConvCase square(int image, int in_c, int out_c, int kernel, int stride, int pad) {
  ConvCase c;
  c.in_h = image;
  c.in_w = image + 1;
  c.in_c = in_c;
  c.out_c = out_c;
  c.kernel_h = c.kernel_w = kernel;
  c.stride_h = c.stride_w = stride;
  c.pad_top = c.pad_left = c.pad_bottom = c.pad_right = pad;
  return c;
}

TEST(CudaConvInteger, BordersReadTheZeroPoint) {
  for (const int channels : {1, 3, 4, 8, 16, 20, 32, 33}) {
    check_conv<std::uint8_t, std::int8_t>(square(7, channels, 9, 3, 1, 1), 131);
    check_conv<std::int8_t, std::int8_t>(square(8, channels, 17, 3, 2, 1), -5);
    check_conv<std::uint8_t, std::int16_t>(square(5, channels, 9, 3, 1, 1), 7);
  }
}

TEST(CudaConvInteger, GroupsSlicesAndSplits) {
  for (const int channels : {1, 4, 16}) {
    ConvCase c = square(6, channels * 3, 15, 3, 1, 1);
    c.groups = 3;
    c.batch = 2;
    check_conv<std::uint8_t, std::int8_t>(c, 3);
    c.pixel_padding = 5;
    check_conv<std::uint8_t, std::int8_t, Tile::k32x64, false, 2>(c, 3);
  }
}

TEST(CudaConvInteger, Pointwise) {
  for (const int channels : {3, 16, 36}) {
    check_conv<std::uint8_t, std::int8_t, Tile::k64x64, true>(square(6, channels, 10, 1, 1, 0), 9);
  }
}

template <class TX, DepthwiseWindow kWindow = DepthwiseWindow::kAny>
void check_depthwise(const ConvCase& c, TX border) {
  const ConvShape s = shape_of(c);
  SCOPED_TRACE(::testing::Message() << s.in_c << " to " << s.out_c << " channels, kernel " << s.kernel_h);
  const auto x = random_image<TX>(s, 1);
  const int taps = s.kernel_h * s.kernel_w;
  const auto w = random_weights<std::int16_t>(size(s.out_c * taps));
  const auto offsets = random_values<std::int32_t>(size(s.out_c), 3);
  std::vector<std::int16_t> by_tap(w.size());
  for (int n = 0; n < s.out_c; ++n) {
    for (int tap = 0; tap < taps; ++tap) by_tap[size(tap * s.out_c + n)] = w[size(n * taps + tap)];
  }
  const DeviceArray<TX> x_device(x);
  const DeviceArray<std::int16_t> w_device(by_tap);
  const DeviceArray<std::int32_t> offsets_device(offsets);
  Recorded<std::int32_t> result(output_pixels(s), s.out_c);
  Queue queue;
  depthwise2d_integer<kWindow>(queue, s, x_device.data(), w_device.data(), offsets_device.data(), border,
                               result.epilogue<4>());
  expect_no_error(queue);
  std::vector<double> expected = convolve(s, x, w, static_cast<double>(border)).sums;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = wrapped(expected[i], offsets[i % size(s.out_c)]);
  }
  result.check_exact(expected);
}

TEST(CudaDepthwiseInteger, WindowsAndMultipliers) {
  for (const int channels : {1, 4, 6, 32}) {
    ConvCase c = square(9, channels, channels, 3, 1, 1);
    c.groups = channels;
    check_depthwise<std::uint8_t, DepthwiseWindow::k3>(c, 128);
    check_depthwise<std::int8_t>(c, -3);
    c.out_c = 2 * channels;
    check_depthwise<std::uint8_t>(c, 128);
    c.out_c = channels;
    c.stride_h = c.stride_w = 2;
    check_depthwise<std::int8_t, DepthwiseWindow::k3Stride2>(c, 3);
  }
}

}  // namespace
}  // namespace cuda_kernel_test

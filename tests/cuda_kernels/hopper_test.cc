// Matrix products by warpgroups on the emulator against three plain loops, over sizes around every tile edge.
#include "conv_reference.h"
#include "gcrt/cuda/image/hopper_conv.h"

namespace cuda_kernel_test {
namespace {

std::size_t size(int count) { return static_cast<std::size_t>(count); }

template <class T>
float value_of(T element) {
  return load_as_float(Lanes<1>{}, &element);
}
template <>
float value_of(float element) {
  return element;
}

// Batch entries outer x inner, of which A or B may lack an axis (0: they share a matrix).
struct Batch {
  int outer = 1;
  int inner = 1;
  bool a_outer = true, a_inner = true, b_outer = true, b_inner = true;
};

// How A and B lie: rows with a stride of whole 16 bytes, matrices behind each other.
template <class TA, class TW>
struct Operands {
  int rows, columns, depth, lda, ldb;
  Batch batch;
  std::vector<TA> a;
  std::vector<TW> b;

  Operands(int m, int n, int k, int padding, const Batch& entries)
      : rows(m), columns(n), depth(k), batch(entries) {
    const int unit = 16 / static_cast<int>(sizeof(TA));
    lda = (depth + unit - 1) / unit * unit + padding * unit;
    ldb = (depth + 15) / 16 * 16;
    const int matrices = batch.outer * batch.inner;
    for (const float value : random_values<float>(size(matrices * rows * lda), 1)) {
      a.push_back(to_weight<TA>(value));
    }
    const auto values = random_values<float>(size(matrices * columns * depth), 2);
    b = pad_rows<TW>(values, matrices * columns, depth, 16);
  }
  int index_a(int z) const { return matrix(z, batch.a_outer, batch.a_inner); }
  int index_b(int z) const { return matrix(z, batch.b_outer, batch.b_inner); }
  GemmBatch strides() const {
    const auto step = [](bool has, int matrices, int elements) {
      return has ? std::ptrdiff_t{matrices} * elements : std::ptrdiff_t{0};
    };
    return {batch.outer * batch.inner,
            batch.inner,
            step(batch.a_outer, batch.inner, rows * lda),
            step(batch.a_inner, 1, rows * lda),
            step(batch.b_outer, batch.inner, columns * ldb),
            step(batch.b_inner, 1, columns * ldb)};
  }

 private:
  int matrix(int z, bool has_outer, bool has_inner) const {
    return (has_outer ? z / batch.inner * batch.inner : 0) + (has_inner ? z % batch.inner : 0);
  }
};

template <class TA, class TW>
void reference(const Operands<TA, TW>& from, std::vector<double>& sums, std::vector<double>& magnitudes) {
  for (int z = 0; z < from.batch.outer * from.batch.inner; ++z) {
    const TA* a = from.a.data() + from.index_a(z) * from.rows * from.lda;
    const TW* b = from.b.data() + from.index_b(z) * from.columns * from.ldb;
    for (int m = 0; m < from.rows; ++m) {
      for (int n = 0; n < from.columns; ++n) {
        double sum = 0, magnitude = 0;
        for (int k = 0; k < from.depth; ++k) {
          const double product =
              double{value_of(a[m * from.lda + k])} * double{value_of(b[n * from.ldb + k])};
          sum += product;
          magnitude += std::fabs(product);
        }
        sums.push_back(sum);
        magnitudes.push_back(magnitude);
      }
    }
  }
}

template <Precision P, WgmmaTile kTile, int kParts, class TA, int kLanesTaken = 4>
void check_product(int rows, int columns, int depth, int padding = 0, const Batch& batch = {}) {
  SCOPED_TRACE(::testing::Message() << rows << " x " << columns << " x " << depth << " + " << padding << ", "
                                    << batch.outer << " x " << batch.inner);
  using Weight = typename WgmmaOf<P>::Weight;
  const Operands<TA, Weight> from(rows, columns, depth, padding, batch);
  const DeviceArray<TA> a(from.a);
  const DeviceArray<Weight> b(from.b);
  Recorded<float> result(rows, columns, batch.outer * batch.inner);
  Queue queue;
  gemm_wgmma<P, kTile, kParts>(queue, rows, columns, depth, a.data(), from.lda, b.data(), from.ldb,
                               from.strides(), result.template epilogue<kLanesTaken>());
  expect_no_error(queue);
  std::vector<double> sums, magnitudes;
  reference(from, sums, magnitudes);
  // Where A is of the precision already only sums are cut off.
  const double tolerance = sizeof(TA) == 2 ? 2e-5 : PrecisionOf<P>::kTolerance;
  result.check(sums, magnitudes, tolerance);
}

// Every edge of the tile alone, and a depth that is no whole number of steps, boxes or products.
template <Precision P, WgmmaTile kTile, int kParts, class TA>
void check_sizes() {
  constexpr WgmmaSize kSize = size_of(kTile);
  constexpr int kDepth = wgmma_depth(P);
  check_product<P, kTile, kParts, TA>(kSize.rows, kSize.columns, kDepth);
  check_product<P, kTile, kParts, TA>(kSize.rows + 1, kSize.columns + 1, kDepth + 1);
  check_product<P, kTile, kParts, TA>(2 * kSize.rows - 1, 7, 3, 1);
  check_product<P, kTile, kParts, TA>(5, kSize.columns - 2, kDepth * kSize.stages - 8);
  check_product<P, kTile, kParts, TA>(2 * kSize.rows + 9, 33, 2 * kDepth * kSize.stages + 9, 2);
}

TEST(CudaHopper, FloatsByHalves) { check_sizes<Precision::kFp16, WgmmaTile::k128x128, 1, float>(); }
TEST(CudaHopper, FloatsByBFloats) { check_sizes<Precision::kBf16, WgmmaTile::k128x64, 1, float>(); }
TEST(CudaHopper, FloatsByTf32) { check_sizes<Precision::kTf32, WgmmaTile::k64x128, 1, float>(); }
TEST(CudaHopper, Halves) { check_sizes<Precision::kFp16, WgmmaTile::k64x64, 1, Half>(); }
TEST(CudaHopper, BFloats) { check_sizes<Precision::kBf16, WgmmaTile::k128x128, 1, BFloat16>(); }
TEST(CudaHopper, WidestTile) {
  check_product<Precision::kFp16, WgmmaTile::k128x256, 2, float>(130, 260, 72);
  check_product<Precision::kBf16, WgmmaTile::k128x256, 1, BFloat16>(100, 256, 200);
}

// A step for each part, parts of unequal length, and parts that fill the ring more than once; rows that a block
// of the cluster finishes of whole tiles, of tiles at the edges, and none.
template <Precision P, WgmmaTile kTile, int kParts, class TA>
void check_parts() {
  constexpr WgmmaSize kSize = size_of(kTile);
  constexpr int kDepth = wgmma_depth(P);
  check_product<P, kTile, kParts, TA>(kSize.rows, kSize.columns, kParts * kDepth);
  check_product<P, kTile, kParts, TA>(kSize.rows + 9, 7, (2 * kParts - 1) * kDepth - 5, 1);
  check_product<P, kTile, kParts, TA>(1, kSize.columns + 6, (kParts + 1) * kDepth);
  check_product<P, kTile, kParts, TA>(13, kSize.columns - 3, (kParts * (2 * kSize.stages + 1) - 1) * kDepth);
}
TEST(CudaHopper, TwoParts) {
  check_parts<Precision::kFp16, WgmmaTile::k64x64, 2, Half>();
  check_parts<Precision::kBf16, WgmmaTile::k128x64, 2, float>();
  check_parts<Precision::kTf32, WgmmaTile::k64x128, 2, float>();
}
TEST(CudaHopper, FourParts) {
  check_parts<Precision::kFp16, WgmmaTile::k64x64, 4, float>();
  check_parts<Precision::kBf16, WgmmaTile::k128x128, 4, BFloat16>();
  check_parts<Precision::kTf32, WgmmaTile::k128x64, 4, float>();
}
TEST(CudaHopper, EightParts) {
  check_parts<Precision::kFp16, WgmmaTile::k64x128, 8, Half>();
  check_parts<Precision::kBf16, WgmmaTile::k64x64, 8, BFloat16>();
  check_parts<Precision::kTf32, WgmmaTile::k64x64, 8, float>();
}
TEST(CudaHopper, RowsOfParts) {
  for (const int rows : {1, 2, 63, 64, 65, 127, 129, 200}) {
    check_product<Precision::kFp16, WgmmaTile::k64x64, 4, Half>(rows, 72, 7 * 64);
  }
}

// Parts are added in their order, whichever block ends first: the same bits as of products of each part alone.
TEST(CudaHopper, PartsAreAddedInOrder) {
  constexpr int kRows = 70, kColumns = 72, kSteps = 7;
  const Operands<Half, Half> from(kRows, kColumns, kSteps * 64, 0, {});
  const DeviceArray<Half> a(from.a), b(from.b);
  const auto run = [&](auto parts, int first, int steps) {
    Recorded<float> result(kRows, kColumns);
    Queue queue;
    gemm_wgmma<Precision::kFp16, WgmmaTile::k64x64, decltype(parts)::value>(
        queue, kRows, kColumns, steps * 64, a.data() + first * 64, from.lda, b.data() + first * 64, from.ldb,
        GemmBatch{}, result.epilogue<4>());
    expect_no_error(queue);
    return result.y.read();
  };
  std::vector<float> sums = run(Lanes<1>{}, 0, 2);
  for (const auto& part : {std::pair<int, int>(2, 2), {4, 2}, {6, 1}}) {
    const std::vector<float> next = run(Lanes<1>{}, part.first, part.second);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += next[i];
  }
  EXPECT_EQ(run(Lanes<4>{}, 0, kSteps), sums);
}

// At most eight blocks, of 2048 threads together, share a depth, and each has two steps of it at least.
TEST(CudaHopper, PlansOfParts) {
  const DeviceModel device = device_model(90);
  const auto parts = [&](int rows, int columns, int depth, int bytes_of_a) {
    const WgmmaPlan plan = plan_wgmma(device, Precision::kFp16, rows, columns, depth, 1, bytes_of_a);
    EXPECT_TRUE(is_cluster(size_of(plan.tile), plan.parts)) << rows << " x " << columns << " x " << depth;
    EXPECT_GE(depth, (2 * plan.parts - 1) * 64 * (plan.parts > 1)) << rows << " x " << columns;
    return plan.parts;
  };
  EXPECT_FALSE(is_cluster(size_of(WgmmaTile::k128x128), 8));
  EXPECT_TRUE(is_cluster(size_of(WgmmaTile::k128x128), 4));
  EXPECT_TRUE(is_cluster(size_of(WgmmaTile::k64x128), 8));
  EXPECT_GE(parts(128, 768, 3072, 2), 4);
  EXPECT_GE(parts(128, 768, 768, 2), 2);
  EXPECT_GE(parts(49, 512, 4608, 2), 4);
  EXPECT_EQ(parts(4096, 4096, 4096, 2), 1);
  EXPECT_EQ(parts(128, 768, 64, 4), 1);
  for (const int depth : {128, 192, 256, 448, 512, 1024}) EXPECT_GE(parts(64, 64, depth, 4), 1);
  // What a cluster costs does not come with a short depth, and pays where the depth is long.
  const auto time = [&](int number, int depth) {
    return wgmma_time(device, Precision::kFp16, WgmmaTile::k64x64, number, 2, 128, 768, depth, 1, 2);
  };
  EXPECT_LT(time(4, 3072).microseconds(), 0.5 * time(1, 3072).microseconds());
  EXPECT_GT(time(4, 256).microseconds(), time(1, 256).microseconds());
  EXPECT_GT(time(2, 3072).join, 0.6);
}

// A depth of fewer steps than parts: the call says so and starts nothing.
TEST(CudaHopper, FewerStepsThanParts) {
  const DeviceArray<Half> a(std::vector<Half>(64 * 192)), b(std::vector<Half>(64 * 192));
  Recorded<float> result(64, 64);
  Queue queue;
  gemm_wgmma<Precision::kFp16, WgmmaTile::k64x64, 4>(queue, 64, 64, 192, a.data(), 192, b.data(), 192,
                                                     GemmBatch{}, result.epilogue<4>());
  EXPECT_EQ(queue.error, cudaErrorInvalidValue);
  EXPECT_EQ(result.calls.read().front(), 0);
}

// An epilogue in two parts, as of a residual, reads the rows that it writes.
struct ResidualEpilogue {
  static constexpr int kMaxLanes = 4;
  RecordingEpilogue<float, 4> to;
  const float* residual;
  template <class L, class V>
  GCRT_INLINE auto value(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    return sums + load(lane, residual + m * to.columns + n);
  }
  template <class L, class V>
  GCRT_INLINE void put(L lane, V result, std::ptrdiff_t m, std::ptrdiff_t n) const {
    to(lane, result, m, n);
  }
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    put(lane, value(lane, sums, m, n), m, n);
  }
  GCRT_INLINE ResidualEpilogue at_batch(std::ptrdiff_t) const { return *this; }
};

template <WgmmaTile kTile, int kParts, class TA>
void check_residual(int rows, int columns) {
  constexpr int kDepth = 9 * 64;
  const Operands<TA, Half> from(rows, columns, kDepth, 0, {});
  const std::vector<float> residual = random_values<float>(size(rows * columns), 5);
  const DeviceArray<TA> a(from.a);
  const DeviceArray<Half> b(from.b);
  const DeviceArray<float> added(residual);
  Recorded<float> result(rows, columns);
  Queue queue;
  gemm_wgmma<Precision::kFp16, kTile, kParts>(queue, rows, columns, kDepth, a.data(), from.lda, b.data(),
                                              from.ldb, GemmBatch{},
                                              ResidualEpilogue{result.epilogue<4>(), added.data()});
  expect_no_error(queue);
  std::vector<double> sums, magnitudes;
  reference(from, sums, magnitudes);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] += double{residual[i]};
    magnitudes[i] += std::fabs(double{residual[i]});
  }
  result.check(sums, magnitudes, PrecisionOf<Precision::kFp16>::kTolerance);
}
TEST(CudaHopper, ResidualsOfParts) {
  check_residual<WgmmaTile::k64x64, 8, Half>(128, 128);
  check_residual<WgmmaTile::k64x64, 4, float>(100, 76);
  check_residual<WgmmaTile::k128x128, 2, Half>(130, 260);
}

TEST(CudaHopper, FewerLanes) {
  for (const int columns : {1, 2, 66}) {
    check_product<Precision::kFp16, WgmmaTile::k64x64, 1, float, 1>(70, columns, 24);
    check_product<Precision::kFp16, WgmmaTile::k64x64, 1, Half, 2>(70, columns, 24);
  }
}

TEST(CudaHopper, Batches) {
  const auto check = [](const Batch& batch) {
    check_product<Precision::kFp16, WgmmaTile::k64x64, 1, float>(65, 40, 20, 1, batch);
    check_product<Precision::kBf16, WgmmaTile::k64x64, 2, BFloat16>(65, 40, 180, 0, batch);
  };
  check({3, 1});
  check({1, 3});
  check({2, 3});
  check({2, 3, true, true, false, false});  // one B for all
  check({2, 3, false, true, true, false});
  check({2, 3, true, false, false, true});
}

// What is not finite arrives, and zeros beyond the depth are zeros even beside a NaN that follows in memory.
TEST(CudaHopper, SpecialValues) {
  constexpr int kRows = 70, kColumns = 9, kDepth = 36;
  std::vector<float> a = random_values<float>(size(kRows * (kDepth + 4)), 3);
  std::vector<float> b = random_values<float>(size(kColumns * kDepth), 4);
  for (float& value : b) value = 0.5f + std::fabs(value);
  for (int m = 0; m < kRows; ++m) {
    for (int i = 0; i < 4; ++i) a[size(m * (kDepth + 4) + kDepth + i)] = bit_cast<float>(0x7fc00000u);
  }
  a[size(2 * (kDepth + 4) + 5)] = kInfinity<float>;
  a[size(3 * (kDepth + 4) + 35)] = -kInfinity<float>;
  a[size(4 * (kDepth + 4) + 33)] = bit_cast<float>(0x7fffffffu);
  const DeviceArray<float> a_device(a);
  const DeviceArray<Half> b_device(pad_rows<Half>(b, kColumns, kDepth, 16));
  Recorded<float> result(kRows, kColumns);
  Queue queue;
  gemm_wgmma<Precision::kFp16, WgmmaTile::k64x64, 1>(queue, kRows, kColumns, kDepth, a_device.data(),
                                                     kDepth + 4, b_device.data(), 48, GemmBatch{},
                                                     result.epilogue<4>());
  expect_no_error(queue);
  const std::vector<float> y = result.y.read();
  for (int n = 0; n < kColumns; ++n) {
    EXPECT_TRUE(std::isfinite(y[size(kColumns + n)]));
    EXPECT_EQ(y[size(2 * kColumns + n)], kInfinity<float>);
    EXPECT_EQ(y[size(3 * kColumns + n)], -kInfinity<float>);
    EXPECT_TRUE(std::isnan(y[size(4 * kColumns + n)]));
    EXPECT_TRUE(std::isfinite(y[size(69 * kColumns + n)]));
  }
}

// Rows that are no multiple of 16 bytes have no map: the call says so and starts nothing.
TEST(CudaHopper, StridesThatNoMapHas) {
  const DeviceArray<float> a(random_values<float>(70 * 37, 1));
  const DeviceArray<Half> b(std::vector<Half>(64 * 48));
  Recorded<float> result(70, 64);
  Queue queue;
  gemm_wgmma<Precision::kFp16, WgmmaTile::k64x64, 1>(queue, 70, 64, 36, a.data(), 37, b.data(), 48,
                                                     GemmBatch{}, result.epilogue<4>());
  EXPECT_EQ(queue.error, cudaErrorInvalidValue);
  EXPECT_EQ(result.calls.read().front(), 0);
}

template <Precision P, WgmmaTile kTile, int kParts, class TX>
void check_conv(const ConvCase& c) {
  using Weight = typename WgmmaOf<P>::Weight;
  const ConvShape s = shape_of(c);
  SCOPED_TRACE(::testing::Message() << s.batch << " x " << s.in_h << " x " << s.in_w << " x " << s.in_c
                                    << " to " << s.out_h << " x " << s.out_w << " x " << s.out_c
                                    << ", kernel " << s.kernel_h << " x " << s.kernel_w);
  const int depth = s.kernel_h * s.kernel_w * s.in_c;
  auto x = random_image<float>(s, 1);
  const auto w = random_values<float>(size(s.out_c * depth), 2);
  const DeviceArray<TX> x_device(stored<TX>(x));
  const DeviceArray<Weight> w_device(pad_rows<Weight>(w, s.out_c, depth, 16));
  Recorded<float> result(output_pixels(s), s.out_c);
  Queue queue;
  if (is_pointwise(s)) {
    conv2d_wgmma_pointwise<P, kTile, kParts>(queue, s, x_device.data(), w_device.data(),
                                             result.epilogue<4>());
  } else {
    conv2d_wgmma<P, kTile, kParts>(queue, s, x_device.data(), w_device.data(), result.epilogue<4>());
  }
  expect_no_error(queue);
  const ConvReference reference = convolve(s, x, w, 0);
  result.check(reference.sums, reference.magnitudes, PrecisionOf<P>::kTolerance);
}

ConvCase image(int batch, int height, int width, int in_c, int out_c, int kernel, int pad) {
  ConvCase c;
  c.batch = batch;
  c.in_h = height;
  c.in_w = width;
  c.in_c = in_c;
  c.out_c = out_c;
  c.kernel_h = c.kernel_w = kernel;
  c.pad_top = c.pad_left = c.pad_bottom = c.pad_right = pad;
  return c;
}

// Patches that fill images, that reach beyond them, and of several images; taps in the padding.
TEST(CudaHopper, Convolutions) {
  check_conv<Precision::kFp16, WgmmaTile::k64x64, 1, Half>(image(1, 8, 8, 64, 64, 3, 1));
  check_conv<Precision::kFp16, WgmmaTile::k64x64, 2, Half>(image(1, 13, 14, 64, 40, 3, 1));
  check_conv<Precision::kBf16, WgmmaTile::k128x64, 1, BFloat16>(image(5, 7, 7, 128, 66, 3, 1));
  check_conv<Precision::kFp16, WgmmaTile::k64x128, 1, float>(image(2, 5, 9, 64, 20, 2, 0));
  check_conv<Precision::kTf32, WgmmaTile::k64x64, 2, float>(image(1, 9, 11, 32, 17, 3, 2));
  check_conv<Precision::kFp16, WgmmaTile::k64x64, 1, Half>(image(3, 3, 130, 64, 9, 1, 1));
}
// Parts begin at any tap, and within one.
TEST(CudaHopper, ConvolutionsInParts) {
  check_conv<Precision::kFp16, WgmmaTile::k64x64, 4, Half>(image(1, 14, 14, 128, 70, 3, 1));
  check_conv<Precision::kFp16, WgmmaTile::k64x64, 8, Half>(image(1, 7, 7, 64, 64, 3, 1));
  check_conv<Precision::kFp16, WgmmaTile::k64x64, 8, float>(image(2, 7, 7, 192, 40, 3, 1));
  check_conv<Precision::kBf16, WgmmaTile::k128x64, 4, BFloat16>(image(3, 7, 7, 128, 66, 3, 1));
  check_conv<Precision::kTf32, WgmmaTile::k64x128, 8, float>(image(1, 9, 11, 32, 17, 5, 2));
}
TEST(CudaHopper, ConvolutionsOfUnequalTaps) {
  ConvCase c = image(1, 12, 10, 64, 24, 3, 0);
  c.kernel_h = 2;
  c.dilation_h = 3;
  c.dilation_w = 2;
  c.pad_top = 4;
  c.pad_right = 3;
  check_conv<Precision::kFp16, WgmmaTile::k64x64, 1, Half>(c);
  check_conv<Precision::kFp16, WgmmaTile::k64x64, 4, Half>(c);
}
TEST(CudaHopper, PointwiseConvolutions) {
  check_conv<Precision::kFp16, WgmmaTile::k64x64, 2, Half>(image(2, 9, 8, 72, 70, 1, 0));
  ConvCase slice = image(1, 9, 8, 64, 33, 1, 0);
  slice.pixel_padding = 8;
  check_conv<Precision::kBf16, WgmmaTile::k64x64, 1, BFloat16>(slice);
}
TEST(CudaHopper, PatchesCoverImages) {
  const auto patch = [](int batch, int height, int width, int rows) {
    return patch_of(rows, shape_of(image(batch, height, width, 64, 64, 3, 1)));
  };
  EXPECT_EQ(patch(1, 56, 56, 64).pixels(), 64);
  EXPECT_EQ(patch_count(patch(1, 28, 28, 64), shape_of(image(1, 28, 28, 64, 64, 3, 1))), 14);
  EXPECT_EQ(patch(4, 7, 7, 128).images, 2);
  EXPECT_EQ(patch(1, 7, 7, 128).images, 1);
  EXPECT_LE(patch(1, 1, 300, 128).pixels(), 128);
}

// A recorded run follows its operands: maps are encoded anew, and only nodes whose maps differ are changed.
TEST(CudaHopper, MapsOfARecordedRunFollowTheirOperands) {
  constexpr int kRows = 130, kColumns = 64, kDepth = 128;
  const Operands<Half, Half> one(kRows, kColumns, kDepth, 0, {});
  Operands<Half, Half> other = one;
  for (Half& element : other.a) element = to_weight<Half>(-2.0f * value_of(element));
  const DeviceArray<Half> a(one.a), moved(other.a), b(one.b);
  DeviceArray<float> y(std::vector<float>(size(kRows * kColumns)));
  Recorded<float> result(kRows, kColumns);
  GraphStep steps[2];
  Queue queue;
  queue.mode = QueueMode::kRecord;
  queue.steps = steps;
  queue.capacity = 2;
  ASSERT_EQ(cudaStreamCreate(&queue.stream), cudaSuccess);
  cudaGraph_t graph = nullptr;
  const auto multiply = [&](Queue& to, const Half* from) {
    gemm_wgmma<Precision::kFp16, WgmmaTile::k64x64, 2>(to, kRows, kColumns, kDepth, from, kDepth, b.data(),
                                                       kDepth, GemmBatch{}, result.epilogue<4>());
  };
  ASSERT_EQ(cudaStreamBeginCapture(queue.stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  multiply(queue, a.data());
  ASSERT_EQ(cudaStreamEndCapture(queue.stream, &graph), cudaSuccess);
  expect_no_error(queue);
  Queue update;
  update.mode = QueueMode::kUpdate;
  update.steps = steps;
  update.capacity = queue.count;
  ASSERT_EQ(cudaGraphInstantiateWithFlags(&update.exec, graph, 0), cudaSuccess);
  const std::uint64_t recorded = steps[0].fingerprint;
  multiply(update, a.data());
  EXPECT_EQ(steps[0].fingerprint, recorded);
  update.count = 0;
  multiply(update, moved.data());
  expect_no_error(update);
  EXPECT_NE(steps[0].fingerprint, recorded);
  ASSERT_EQ(cudaGraphLaunch(update.exec, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  std::vector<double> sums, magnitudes;
  reference(other, sums, magnitudes);
  result.check(sums, magnitudes, 2e-5);
  EXPECT_EQ(cudaGraphExecDestroy(update.exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(queue.stream), cudaSuccess);
}

}  // namespace
}  // namespace cuda_kernel_test

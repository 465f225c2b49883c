// Matrix products on the emulator against three plain loops, over sizes around every tile edge.
#include "cuda_kernel_test.h"
#include "gcrt/cuda/product/gemv_of_rows.h"

namespace cuda_kernel_test {
namespace {

struct Reference {
  std::vector<double> sums;
  std::vector<double> magnitudes;  // sums of absolute products
};

// b[n * depth + k].
void add_reference(Reference& reference, int rows, int columns, int depth, const float* a, int lda,
                   const float* b) {
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n) {
      double sum = 0;
      double magnitude = 0;
      for (int k = 0; k < depth; ++k) {
        const double product = double{a[m * lda + k]} * double{b[n * depth + k]};
        sum += product;
        magnitude += std::fabs(product);
      }
      reference.sums.push_back(sum);
      reference.magnitudes.push_back(magnitude);
    }
  }
}

std::size_t size(int count) { return static_cast<std::size_t>(count); }

// Constant weights. `padding` is added to the row stride of A.
template <Precision P, Tile kTile, int kLanesTaken = 4, class TA = float, int kParts = 1>
void check_product(int rows, int columns, int depth, int padding = 0) {
  SCOPED_TRACE(::testing::Message() << rows << " x " << columns << " x " << depth << " + " << padding
                                    << " in " << kParts);
  if (!has_room(shared_bytes_of(kTile))) return;
  using Weight = typename PrecisionOf<P>::Weight;
  const int lda = depth + padding;
  auto a = random_values<float>(size((rows - 1) * lda + depth), 1);
  const auto b = random_values<float>(size(columns * depth), 2);
  const DeviceArray<TA> a_device(stored<TA>(a));
  const DeviceArray<Weight> b_device(pad_rows<Weight>(b, columns, depth, 16));
  DeviceArray<float> workspace(size(static_cast<int>(gemm_workspace_size(rows, columns, 1, kParts))));
  Recorded<float> result(rows, columns);
  CountingQueue queue;
  const auto run = [&](const auto& split, Recorded<float>& y) {
    with_copies(
        [&](auto from) {
          gemm<P, kTile>(queue, rows, columns, depth, from, lda, copied_in<16>(b_device.data()),
                         (depth + 15) / 16 * 16, GemmBatch{}, split, y.epilogue<kLanesTaken>());
        },
        static_cast<const TA*>(a_device.data()), lda);
    expect_no_error(queue);
  };
  run(SplitDepth<kParts>{workspace.data()}, result);
  Reference reference;
  add_reference(reference, rows, columns, depth, a.data(), lda, b.data());
  result.check(reference.sums, reference.magnitudes, PrecisionOf<P>::kTolerance);
  if constexpr (kParts > 1 && is_cluster(size_of(kTile), kParts)) {
    if (!has_clusters()) return;
    // The blocks of a cluster add the same sums in the same order.
    Recorded<float> of_clusters(rows, columns);
    run(SplitInCluster<kParts>{}, of_clusters);
    of_clusters.check(reference.sums, reference.magnitudes, PrecisionOf<P>::kTolerance);
    EXPECT_EQ(of_clusters.y.read(), result.y.read());
  }
}

constexpr int kAwkward[] = {1, 7, 8, 9, 16, 17, 33, 63, 65, 129};

// Every tile with every size, one dimension at a time, and all small ones together.
template <Precision P, Tile kTile>
void check_sizes() {
  for (const int size : kAwkward) {
    check_product<P, kTile>(size, 33, 20);
    check_product<P, kTile>(17, size, 36);
    check_product<P, kTile>(17, 9, size, 1);
    check_product<P, kTile>(9, 65, size, (4 - size % 4) % 4);
  }
}

// Tensor cores cut off what they add to a sum:
// of thousands of products of one sign a part in 30000 would be lost.
TEST(CudaGemm, SumsOfFloatsAreNotCutOff) {
  constexpr int kRows = 16, kColumns = 8, kDepth = 4096;
  auto a = random_values<float>(size(kRows * kDepth), 3);
  auto b = random_values<float>(size(kColumns * kDepth), 4);
  for (float& value : a) value = std::fabs(value);
  for (float& value : b) value = std::fabs(value);
  const DeviceArray<float> a_device(a);
  const DeviceArray<float> b_device(b);
  Recorded<float> result(kRows, kColumns);
  Queue queue;
  gemm<Precision::kFp32, Tile::k16x64>(queue, kRows, kColumns, kDepth, a_device.data(), kDepth,
                                       b_device.data(), kDepth, result.epilogue<4>());
  expect_no_error(queue);
  Reference reference;
  add_reference(reference, kRows, kColumns, kDepth, a.data(), kDepth, b.data());
  result.check(reference.sums, reference.magnitudes, 4e-6);
}

TEST(CudaGemm, SmallTileFp32) { check_sizes<Precision::kFp32, Tile::k16x64>(); }
TEST(CudaGemm, FlatTileFp32) { check_sizes<Precision::kFp32, Tile::k32x64>(); }
TEST(CudaGemm, SquareTileFp32) { check_sizes<Precision::kFp32, Tile::k64x64>(); }
TEST(CudaGemm, TallTileFp32) { check_sizes<Precision::kFp32, Tile::k128x32>(); }
TEST(CudaGemm, LargeTileTf32) { check_sizes<Precision::kTf32, Tile::k128x64>(); }
TEST(CudaGemm, LargestTileTf32) {
  check_product<Precision::kTf32, Tile::k128x128>(129, 129, 68);
  check_product<Precision::kTf32, Tile::k128x128>(257, 130, 65, 2);
}
TEST(CudaGemm, Tf32) { check_sizes<Precision::kTf32, Tile::k64x64>(); }
TEST(CudaGemm, Fp16) { check_sizes<Precision::kFp16, Tile::k64x64>(); }
TEST(CudaGemm, Bf16) { check_sizes<Precision::kBf16, Tile::k64x64>(); }

// A as memory holds it in 16 bits, by copies of 16, 8, 4 and 2 bytes.
template <Precision P, Tile kTile, class T>
void check_stored_sizes() {
  for (const int size : kAwkward) {
    check_product<P, kTile, 4, T>(size, 33, 24);
    check_product<P, kTile, 4, T>(17, size, 40);
    check_product<P, kTile, 4, T>(17, 9, size, (8 - size % 8) % 8);
    check_product<P, kTile, 4, T>(9, 65, size, (4 - size % 4) % 4);
    check_product<P, kTile, 4, T>(9, 65, size, (2 - size % 2) % 2);
    check_product<P, kTile, 4, T>(9, 65, size, 1);
  }
  check_product<P, kTile, 4, T, 3>(70, 130, 600);
}
TEST(CudaGemm, StoredFp16) {
  check_stored_sizes<Precision::kFp16, Tile::k64x64, Half>();
  check_product<Precision::kFp16, Tile::k16x64, 4, Half>(33, 130, 72);
  check_product<Precision::kFp16, Tile::k32x64, 4, Half>(33, 130, 72);
  check_product<Precision::kFp16, Tile::k128x32, 4, Half>(257, 66, 72);
  check_product<Precision::kFp16, Tile::k128x64, 4, Half>(257, 130, 72);
  check_product<Precision::kFp16, Tile::k128x128, 4, Half>(257, 130, 72);
}
TEST(CudaGemm, StoredBf16) { check_stored_sizes<Precision::kBf16, Tile::k32x64, BFloat16>(); }

// Copies of every width give the same sums, whether the kernel has code for one of them or asks.
TEST(CudaGemm, WidthsOfCopies) {
  constexpr int kRows = 70, kColumns = 66, kDepth = 200;
  auto values = random_values<float>(size(kRows * kDepth), 1);
  const DeviceArray<Half> a(stored<Half>(values));
  const DeviceArray<Half> b(
      pad_rows<Half>(random_values<float>(size(kColumns * kDepth), 2), kColumns, kDepth, 16));
  const auto product = [&](auto from_a, auto from_b) {
    Recorded<float> result(kRows, kColumns);
    Queue queue;
    gemm<Precision::kFp16, Tile::k64x64>(queue, kRows, kColumns, kDepth, from_a, kDepth, from_b, 208,
                                         result.epilogue<4>());
    expect_no_error(queue);
    return result.y.read();
  };
  const std::vector<float> wide = product(copied_in<16>(a.data()), copied_in<16>(b.data()));
  EXPECT_EQ(product(copied_in<8>(a.data()), copied_in<16>(b.data())), wide);
  EXPECT_EQ(product(copied_in<4>(a.data()), copied_in<4>(b.data())), wide);
  EXPECT_EQ(product(copied_in<2>(a.data()), copied_in<8>(b.data())), wide);
  EXPECT_EQ(product(a.data(), b.data()), wide);
}

TEST(CudaGemm, LongDepth) {
  check_product<Precision::kFp32, Tile::k64x64>(65, 65, 1031, 1);
  check_product<Precision::kFp16, Tile::k32x64>(33, 65, 1032);
}

TEST(CudaGemm, FewerLanes) {
  for (const int columns : {1, 2, 7, 64, 66}) {
    check_product<Precision::kFp32, Tile::k32x64, 1>(33, columns, 24);
    check_product<Precision::kFp32, Tile::k32x64, 2>(33, columns, 24);
  }
}

TEST(CudaGemm, SplitDepthIsDeterministic) {
  check_product<Precision::kFp32, Tile::k64x64, 4, float, 2>(49, 70, 600);
  check_product<Precision::kFp32, Tile::k64x64, 4, float, 5>(49, 70, 600);
  check_product<Precision::kFp32, Tile::k16x64, 4, float, 3>(16, 33, 130, 1);
  // More parts than there are slabs, and several tiles.
  check_product<Precision::kFp16, Tile::k16x64, 4, float, 4>(16, 33, 20);
  check_product<Precision::kFp16, Tile::k16x64, 4, Half, 8>(50, 200, 300, 4);
}
// Rows that a block of a cluster finishes: of whole tiles, of tiles at the edges, and none.
TEST(CudaGemm, PartsOfClusters) {
  check_product<Precision::kFp32, Tile::k64x64, 4, float, 8>(130, 192, 1040);
  check_product<Precision::kTf32, Tile::k128x32, 2, float, 4>(140, 66, 600);
  check_product<Precision::kBf16, Tile::k32x64, 4, BFloat16, 4>(33, 65, 520);
  check_product<Precision::kFp16, Tile::k128x64, 1, Half, 8>(129, 64, 1024);
  check_product<Precision::kFp16, Tile::k128x128, 4, Half, 4>(256, 130, 512);
}
TEST(CudaGemm, PlansOfClusters) {
  bool has_any = false;
  for (const int capability : {90, 100, 120}) {
    for (const int rows : {9, 49, 128, 196, 3136}) {
      for (const int depth : {64, 768, 4608}) {
        const Plan plan = plan_gemm(device_model(capability), Precision::kFp16, rows, 512, depth);
        EXPECT_TRUE(is_cluster(size_of(plan.tile), plan.splits)) << rows << " x " << depth;
        has_any |= plan.splits > 1;
      }
    }
  }
  EXPECT_TRUE(has_any);
  EXPECT_FALSE(is_cluster(size_of(Tile::k64x64), 16));
  EXPECT_FALSE(is_cluster(size_of(Tile::k64x64), 6));
  EXPECT_EQ(product_launches(device_model(80), kMaxGridZ, 2), 2);
  EXPECT_EQ(product_launches(device_model(90), kMaxGridZ, 2), 1);
}

// What is not finite arrives: an infinite factor has no rest, and the rounding of the NaN that arithmetic
// gives would carry over into its sign.
template <Precision P, Tile kTile>
void check_special_values() {
  constexpr int kRows = 16, kColumns = 9, kDepth = 48;
  using Weight = typename PrecisionOf<P>::Weight;
  auto a = random_values<float>(size(kRows * kDepth), 3);
  auto b = random_values<float>(size(kColumns * kDepth), 4);
  for (float& value : b) value = 0.5f + std::fabs(value);
  a[size(2 * kDepth + 5)] = kInfinity<float>;
  a[size(3 * kDepth + 20)] = -kInfinity<float>;
  a[size(4 * kDepth + 33)] = bit_cast<float>(0x7fffffffu);
  a[size(5 * kDepth + 1)] = kInfinity<float>;
  a[size(5 * kDepth + 40)] = -kInfinity<float>;
  const DeviceArray<float> a_device(a);
  const DeviceArray<Weight> b_device(pad_rows<Weight>(b, kColumns, kDepth, 16));
  Recorded<float> result(kRows, kColumns);
  Queue queue;
  gemm<P, kTile>(queue, kRows, kColumns, kDepth, a_device.data(), kDepth, b_device.data(), kDepth,
                 result.epilogue<4>());
  expect_no_error(queue);
  const std::vector<float> y = result.y.read();
  for (int n = 0; n < kColumns; ++n) {
    EXPECT_TRUE(std::isfinite(y[size(kColumns + n)]));
    EXPECT_EQ(y[size(2 * kColumns + n)], kInfinity<float>);
    EXPECT_EQ(y[size(3 * kColumns + n)], -kInfinity<float>);
    EXPECT_TRUE(std::isnan(y[size(4 * kColumns + n)]));
    EXPECT_TRUE(std::isnan(y[size(5 * kColumns + n)]));
  }
}
TEST(CudaGemm, KeepsWhatIsNotFinite) {
  check_special_values<Precision::kFp32, Tile::k16x64>();
  check_special_values<Precision::kTf32, Tile::k16x64>();
  check_special_values<Precision::kFp16, Tile::k16x64>();
  check_special_values<Precision::kBf16, Tile::k16x64>();
}

// More column tiles than a grid has blocks along y.
TEST(CudaGemm, ManyColumns) { check_product<Precision::kTf32, Tile::k16x64>(1, 65536 * 64 + 3, 1); }

TEST(CudaGemm, EmptyDepthGivesZero) { check_product<Precision::kFp32, Tile::k16x64>(5, 5, 0, 1); }

template <Tile kTile, int kMostRows>
void check_vectors() {
  for (int rows = kMostRows / 2 + 1; rows <= kMostRows; ++rows) {
    for (const int size : kAwkward) {
      check_product<Precision::kFp32, kTile>(rows, size, 36);
      check_product<Precision::kFp32, kTile>(rows, 18, size, 1);
      check_product<Precision::kFp16, kTile>(rows, 18, size, 1);
    }
    check_product<Precision::kFp32, kTile>(rows, 37, 1000);
    check_product<Precision::kBf16, kTile, 2>(rows, 37, 2056);
  }
}
TEST(CudaGemv, OneRow) { check_vectors<Tile::kGemv1, 1>(); }
TEST(CudaGemv, TwoRows) { check_vectors<Tile::kGemv2, 2>(); }
TEST(CudaGemv, FourRows) { check_vectors<Tile::kGemv4, 4>(); }
TEST(CudaGemv, EightRows) { check_vectors<Tile::kGemv8, 8>(); }

// Run-time B: where element (k, n) of a batch entry lies.
struct Strides {
  int k;
  int n;
  int outer;
  int inner;
};

template <Precision P, Tile kTile, bool kIsColumns>
void check_batch(int rows, int columns, int depth, int outer, int inner, bool is_broadcast) {
  SCOPED_TRACE(::testing::Message() << rows << " x " << columns << " x " << depth << ", " << outer << " of "
                                    << inner << (is_broadcast ? " broadcast" : ""));
  const int entries = outer * inner;
  const int b_count = is_broadcast ? inner : entries;
  const auto a = random_values<float>(size(entries * rows * depth), 3);
  const auto b = random_values<float>(size(b_count * depth * columns), 4);  // [n][k] per entry
  std::vector<float> stored(b);
  if (!kIsColumns) {
    for (int e = 0; e < b_count; ++e) {
      for (int k = 0; k < depth; ++k) {
        for (int n = 0; n < columns; ++n) {
          stored[size((e * depth + k) * columns + n)] = b[size((e * columns + n) * depth + k)];
        }
      }
    }
  }
  const DeviceArray<float> a_device(a);
  const DeviceArray<float> b_device(stored);
  const int b_size = depth * columns;
  const GemmBatch batch{entries,
                        inner,
                        std::ptrdiff_t{inner} * rows * depth,
                        std::ptrdiff_t{rows} * depth,
                        is_broadcast ? 0 : std::ptrdiff_t{inner} * b_size,
                        b_size};
  Recorded<float> result(rows, columns, entries);
  Queue queue;
  if constexpr (kIsColumns) {
    gemm<P, kTile>(queue, rows, columns, depth, a_device.data(), depth, b_device.data(), depth, batch,
                   SplitDepth<>{}, result.epilogue<4>());
  } else {
    gemm_strided<P, kTile>(queue, rows, columns, depth, a_device.data(), depth, b_device.data(), columns, 1,
                           batch, SplitDepth<>{}, result.epilogue<4>());
  }
  expect_no_error(queue);
  Reference reference;
  for (int z = 0; z < entries; ++z) {
    const int e = is_broadcast ? z % inner : z;
    add_reference(reference, rows, columns, depth, a.data() + z * rows * depth, depth, b.data() + e * b_size);
  }
  result.check(reference.sums, reference.magnitudes, PrecisionOf<P>::kTolerance);
}

TEST(CudaGemm, BatchOfColumns) {
  check_batch<Precision::kFp32, Tile::k32x64, true>(33, 17, 20, 2, 3, false);
  check_batch<Precision::kFp16, Tile::k32x64, true>(17, 33, 19, 2, 3, true);
  check_batch<Precision::kFp32, Tile::kGemv1, true>(1, 33, 19, 2, 3, true);
}

TEST(CudaGemm, BatchOfRows) {
  for (const int columns : {1, 7, 16, 33, 65}) {
    check_batch<Precision::kFp32, Tile::k32x64, false>(33, columns, 20, 2, 2, false);
  }
  for (const int depth : {1, 7, 16, 33, 65}) {
    check_batch<Precision::kFp32, Tile::k64x64, false>(9, 40, depth, 1, 3, false);
    check_batch<Precision::kFp16, Tile::k128x32, false>(9, 17, depth, 3, 1, true);
  }
}

// B as every second element of every third row.
TEST(CudaGemm, AnyStrides) {
  const int rows = 18, columns = 35, depth = 21;
  const auto a = random_values<float>(size(rows * depth), 5);
  const auto wide = random_values<float>(size(depth * 3 * columns * 2), 6);
  std::vector<float> b(size(columns * depth));
  for (int k = 0; k < depth; ++k) {
    for (int n = 0; n < columns; ++n) {
      b[size(n * depth + k)] = wide[size(k * 3 * columns * 2 + n * 2)];
    }
  }
  const DeviceArray<float> a_device(a);
  const DeviceArray<float> b_device(wide);
  Recorded<float> result(rows, columns);
  Queue queue;
  gemm_strided<Precision::kFp32, Tile::k16x64>(queue, rows, columns, depth, a_device.data(), depth,
                                               b_device.data(), 6 * columns, 2, GemmBatch{}, SplitDepth<>{},
                                               result.epilogue<4>());
  expect_no_error(queue);
  Reference reference;
  add_reference(reference, rows, columns, depth, a.data(), depth, b.data());
  result.check(reference.sums, reference.magnitudes, PrecisionOf<Precision::kFp32>::kTolerance);
}

// Rows less their mean, as the blocks make them.
struct CentredRows {
  const float* x;
  int rows, depth;
  GCRT_DEVICE void operator()(float* y, std::ptrdiff_t scratch) const {
    auto group = make_group<kGemvThreads>(scratch);
    for (int m = 0; m < rows; ++m) {
      const float* const row = x + m * depth;
      const float mean = reduce_add<float, 4>(
                             group, depth, [&](auto lane, std::ptrdiff_t k) { return load(lane, row + k); }) /
                         static_cast<float>(depth);
      vectorize<4>(group, depth, [&](auto lane, std::ptrdiff_t k) {
        store(lane, y + m * depth + k, load(lane, row + k) - splat(lane, mean));
      });
    }
  }
};

template <Precision P, Tile kTile>
void check_made_rows(int rows, int columns, int depth) {
  SCOPED_TRACE(::testing::Message() << rows << " x " << columns << " x " << depth);
  using Weight = typename PrecisionOf<P>::Weight;
  auto a = random_values<float>(size(rows * depth), 1);
  const auto b = random_values<float>(size(columns * depth), 2);
  const DeviceArray<float> a_device(a);
  const DeviceArray<Weight> b_device(pad_rows<Weight>(b, columns, depth, 16));
  Recorded<float> result(rows, columns);
  Queue queue;
  gemv_of_rows<P, kTile>(queue, rows, columns, depth, CentredRows{a_device.data(), rows, depth},
                         b_device.data(), (depth + 15) / 16 * 16, result.epilogue<4>());
  expect_no_error(queue);
  for (int m = 0; m < rows; ++m) {
    float sum = 0;
    for (int k = 0; k < depth; ++k) sum += a[size(m * depth + k)];
    for (int k = 0; k < depth; ++k) a[size(m * depth + k)] -= sum / static_cast<float>(depth);
  }
  Reference reference;
  add_reference(reference, rows, columns, depth, a.data(), depth, b.data());
  result.check(reference.sums, reference.magnitudes, PrecisionOf<P>::kTolerance);
}
TEST(CudaGemv, RowsThatBlocksMake) {
  for (const int depth : {4, 36, 132, 1028}) {
    check_made_rows<Precision::kFp32, Tile::kGemv1>(1, 77, depth);
    check_made_rows<Precision::kFp16, Tile::kGemv4>(3, 9, depth);
  }
}

TEST(CudaGemm, ModelFitsDevices) {
  for (const DeviceModel& device : kDeviceModels) {
    for (const int rows : {1, 9, 128, 5000}) {
      const Plan plan = plan_gemm(device, Precision::kFp32, rows, 512, 768);
      EXPECT_EQ(is_gemv(plan.tile), rows <= 8);
      EXPECT_LE(shared_bytes_of(plan.tile), device.shared_bytes);
      EXPECT_GT(plan.time.microseconds(), 0);
    }
  }
  // Enough blocks for all multiprocessors need no split; few of them with a long depth do.
  const DeviceModel h100 = device_model(90);
  EXPECT_EQ(plan_gemm(h100, Precision::kFp16, 8192, 8192, 4096).tile, Tile::k128x128);
  EXPECT_EQ(plan_gemm(h100, Precision::kFp16, 8192, 8192, 4096).splits, 1);
  EXPECT_GT(plan_gemm(h100, Precision::kFp32, 49, 512, 4608).splits, 1);
  // Float32 by parts has no registers for the largest tiles; by FFMA it has.
  EXPECT_LE(plan_gemm(h100, Precision::kFp32, 8192, 8192, 4096).tile, Tile::k128x32);
  // Weights count at their size: where reading bounds a product, those of 16 bits take less time.
  const auto time = [&](int bytes) {
    return tile_time(h100, Precision::kFp16, Tile::k16x64, 1, 16, 65536, 8192, 1, {2, bytes}).microseconds();
  };
  EXPECT_LT(time(weight_bytes(Precision::kFp16)), 0.7 * time(4));
  EXPECT_TRUE(fits_registers(device_model(75), Precision::kFp32, Tile::k128x128));
}

}  // namespace
}  // namespace cuda_kernel_test

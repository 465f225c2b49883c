// ldmatrix, mma.sync and dot4 against plain loops. The fragments are filled through ldmatrix from matrices in
// shared memory, and also element by element from the tables of the PTX manual,
// so neither layout vouches for itself.
#include <cmath>
#include <cstring>

#include "device_memory.h"
#include "gcrt/cuda/device/device.h"
#include "gcrt/cuda/device/launch.h"
#include "gcrt/scalar/scalar.h"

namespace GCRT_NAMESPACE {
namespace {

using cuda_test::Device;

enum Kind { kF16, kBf16, kTf32, kS8S8, kS8U8, kU8S8, kU8U8 };

// Elements by type: how many bytes, the value of a pattern, the pattern of a small integer.
int bytes_of(int kind) { return kind == kTf32 ? 4 : kind < kS8S8 ? 2 : 1; }
double value_of(int kind, std::uint32_t bits, bool is_a) {
  switch (kind) {
    case kF16:
      return static_cast<double>(half_to_float(static_cast<std::uint16_t>(bits)));
    case kBf16:
      return static_cast<double>(bfloat16_to_float(static_cast<std::uint16_t>(bits)));
    case kTf32:
      return static_cast<double>(bit_cast<float>(bits & 0xffffe000u));
    default: {
      const bool is_signed = is_a ? kind == kS8S8 || kind == kS8U8 : kind == kS8S8 || kind == kU8S8;
      return is_signed ? static_cast<std::int8_t>(bits) : static_cast<std::uint8_t>(bits);
    }
  }
}

template <int K, class D>
GCRT_DEVICE void multiply_add(D (&d)[2][3][4], const std::uint32_t (&a)[2][4], const std::uint32_t (&b)[3][2],
                              bool tiles) {
  const auto each = [&](auto product) {
    for (int r = 0; r < 2; ++r) {
      for (int c = 0; c < 3; ++c) product(d[r][c], a[r], b[c]);
    }
  };
  if constexpr (K == kF16) {
    tiles ? mma_f16_tiles(d, a, b) : each([](auto& x, auto& y, auto& z) { mma_f16(x, y, z); });
  } else if constexpr (K == kBf16) {
    tiles ? mma_bf16_tiles(d, a, b) : each([](auto& x, auto& y, auto& z) { mma_bf16(x, y, z); });
  } else if constexpr (K == kTf32) {
    tiles ? mma_tf32_tiles(d, a, b) : each([](auto& x, auto& y, auto& z) { mma_tf32(x, y, z); });
  } else {
    using TA = std::conditional_t<K == kS8S8 || K == kS8U8, std::int8_t, std::uint8_t>;
    using TB = std::conditional_t<K == kS8S8 || K == kU8S8, std::int8_t, std::uint8_t>;
    tiles ? mma_int8_tiles<TA, TB>(d, a, b)
          : each([](auto& x, auto& y, auto& z) { mma_int8<TA, TB>(x, y, z); });
  }
}

// D[32][24] += A[32][k] * B[k][24], one warp.
// A row is 32 bytes; B is stored with its columns as rows of 32 bytes.
template <int K, class D>
GCRT_GLOBAL(32)
void product(const std::uint32_t* a, const std::uint32_t* b, D* d, bool tiles, bool by_ldmatrix) {
  GCRT_DYNAMIC_SHARED(std::uint32_t, shared);
  const int lane = lane_rank();
  for (int i = lane; i < 32 * 8; i += 32) shared[i] = a[i];
  for (int i = lane; i < 24 * 8; i += 32) shared[256 + i] = b[i];
  warp_sync();
  const int group = lane / 4;
  const int place = lane % 4;
  std::uint32_t fa[2][4];
  std::uint32_t fb[3][2];
  if (by_ldmatrix) {
    const void* rows[2];
    for (int r = 0; r < 2; ++r) rows[r] = shared + (r * 16 + lane % 16) * 8 + lane / 16 * 4;
    ldmatrix_x4_several<false>(fa, rows);
    for (int c = 0; c < 3; ++c) ldmatrix_x2(fb[c], shared + 256 + (c * 8 + lane % 8) * 8 + lane / 8 % 2 * 4);
  } else {
    for (int r = 0; r < 2; ++r) {
      for (int i = 0; i < 4; ++i) fa[r][i] = a[(r * 16 + group + i % 2 * 8) * 8 + place + i / 2 * 4];
    }
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < 2; ++i) fb[c][i] = b[(c * 8 + group) * 8 + place + i * 4];
    }
  }
  D sums[2][3][4];
  const auto at = [&](int r, int c, int i) {
    return d + (r * 16 + group + i / 2 * 8) * 24 + c * 8 + place * 2 + i % 2;
  };
  for (int i = 0; i < 24; ++i) sums[i / 12][i / 4 % 3][i % 4] = *at(i / 12, i / 4 % 3, i % 4);
  multiply_add<K>(sums, fa, fb, tiles);
  for (int i = 0; i < 24; ++i) *at(i / 12, i / 4 % 3, i % 4) = sums[i / 12][i / 4 % 3][i % 4];
}

// Matrices of patterns that mean values between -8 and 8 (any byte for integers), and the product in double.
template <int K, class D>
void check_product() {
  constexpr int bytes = K == kTf32 ? 4 : K < kS8S8 ? 2 : 1;
  ASSERT_EQ(bytes, bytes_of(K));
  constexpr int depth = 32 / bytes;
  std::uint32_t state = 1 + K;
  const auto pattern = [&]() -> std::uint32_t {
    state = state * 1664525u + 1013904223u;
    const float value = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-28f;
    if (K == kF16) return float_to_half(value);
    if (K == kBf16) return float_to_bfloat16(value);
    return K == kTf32 ? bit_cast<std::uint32_t>(value) : state >> 24;
  };
  std::vector<std::uint32_t> a(32 * 8, 0);
  std::vector<std::uint32_t> b(24 * 8, 0);
  std::vector<double> va(32 * depth);
  std::vector<double> vb(24 * depth);
  const auto fill = [&](std::vector<std::uint32_t>& words, std::vector<double>& values, bool is_a) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t bits = pattern();
      values[i] = value_of(K, bits, is_a);
      words[i * bytes / 4] |= bits << (i * bytes % 4 * 8);
    }
  };
  fill(a, va, true);
  fill(b, vb, false);
  std::vector<D> start(32 * 24);
  for (std::size_t i = 0; i < start.size(); ++i) start[i] = static_cast<D>(static_cast<int>(i % 17) - 8);
  for (int way = 0; way < 4; ++way) {
    Device<std::uint32_t> da(a);
    Device<std::uint32_t> db(b);
    Device<D> dd(start);
    Queue queue;
    launch(queue, 1, 32, (256 + 192) * 4, &product<K, D>, da.data(), db.data(), dd.data(), way % 2 == 1,
           way / 2 == 1);
    ASSERT_EQ(queue.error, cudaSuccess);
    const std::vector<D> got = dd.read();
    for (std::size_t i = 0; i < got.size(); ++i) {
      double sum = static_cast<double>(start[i]);
      double scale = 1;
      for (int k = 0; k < depth; ++k) {
        const double term = va[i / 24 * depth + static_cast<std::size_t>(k)] *
                            vb[i % 24 * depth + static_cast<std::size_t>(k)];
        sum += term;
        scale += std::fabs(term);
      }
      ASSERT_NEAR(static_cast<double>(got[i]), sum, K < kS8S8 ? scale * 1e-6 : 0.0)
          << "way " << way << " at " << i;
    }
  }
}

TEST(TensorCore, MultipliesFloats) {
  check_product<kF16, float>();
#if GCRT_SM_80
  check_product<kBf16, float>();
  check_product<kTf32, float>();
#endif
}
TEST(TensorCore, MultipliesBytes) {
  check_product<kS8S8, std::int32_t>();
  check_product<kS8U8, std::int32_t>();
  check_product<kU8S8, std::int32_t>();
  check_product<kU8U8, std::int32_t>();
}

#if GCRT_SM_80
// Fragments of random floats in two parts; the products by parts, and step by step.
GCRT_GLOBAL(32) void multiply_parts(const float* values, float* combined, float* steps) {
  std::uint32_t large[2][20];
  const int lane = lane_rank();
  for (int i = 0; i < 20; ++i) {
    const float value = values[lane * 20 + i];
    large[0][i] = bit_cast<std::uint32_t>(value);
    large[1][i] = rest_of_tf32(value);
  }
  std::uint32_t a[2][2][4];
  std::uint32_t b[2][3][2];
  for (int part = 0; part < 2; ++part) {
    for (int i = 0; i < 8; ++i) a[part][i / 4][i % 4] = large[part][i];
    for (int i = 0; i < 6; ++i) b[part][i / 2][i % 2] = large[part][8 + i];
  }
  float together[2][3][4] = {};
  float corrections[2][3][4] = {};
  float apart[2][2][3][4] = {};
  mma_tf32_by_parts(together, corrections, a[0], a[1], b[0], b[1]);
  mma_tf32_tiles(apart[0], a[0], b[0]);
  mma_tf32_tiles(apart[1], a[1], b[0]);
  mma_tf32_tiles(apart[1], a[0], b[1]);
  for (int i = 0; i < 24; ++i) {
    combined[lane * 24 + i] = together[i / 12][i / 4 % 3][i % 4] + corrections[i / 12][i / 4 % 3][i % 4];
    steps[lane * 24 + i] = apart[0][i / 12][i / 4 % 3][i % 4] + apart[1][i / 12][i / 4 % 3][i % 4];
  }
}

TEST(TensorCore, MultipliesFloatsByParts) {
  std::vector<float> values(32 * 20);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i) * 1.7f);
  Device<float> device_values(values);
  Device<float> combined(32 * 24);
  Device<float> steps(32 * 24);
  Queue queue;
  launch(queue, 1, 32, 0, &multiply_parts, device_values.data(), combined.data(), steps.data());
  ASSERT_EQ(queue.error, cudaSuccess);
  const std::vector<float> got = combined.read();
  EXPECT_EQ(got, steps.read());
  // Row 0 of A is a[0] and a[2] of lanes 0 to 3, column 0 of B is b[0] and b[1] of the same lanes.
  double sum = 0;
  for (std::size_t lane = 0; lane < 4; ++lane) {
    const float* mine = values.data() + lane * 20;
    sum += static_cast<double>(mine[0]) * static_cast<double>(mine[8]);
    sum += static_cast<double>(mine[2]) * static_cast<double>(mine[9]);
  }
  EXPECT_NEAR(static_cast<double>(got[0]), sum, 2e-6);
}
#endif

template <bool Transposed>
GCRT_GLOBAL(32)
void load_fragments(std::uint32_t* out) {
  GCRT_DYNAMIC_SHARED(std::uint16_t, shared);
  const int lane = lane_rank();
  for (int i = lane; i < 4 * 64; i += 32) shared[i] = static_cast<std::uint16_t>(i);
  warp_sync();
  std::uint32_t four[4];
  std::uint32_t two[2];
  const std::uint16_t* row = shared + lane * 8;
  if constexpr (Transposed) {
    ldmatrix_x4_trans(four, row);
    ldmatrix_x2_trans(two, row);
  } else {
    ldmatrix_x4(four, row);
    ldmatrix_x2(two, row);
  }
  for (int i = 0; i < 4; ++i) out[lane * 6 + i] = four[i];
  for (int i = 0; i < 2; ++i) out[lane * 6 + 4 + i] = two[i];
}

template <bool Transposed>
void check_fragments() {
  Device<std::uint32_t> out(32 * 6);
  Queue queue;
  launch(queue, 1, 32, 512, &load_fragments<Transposed>, out.data());
  const std::vector<std::uint32_t> got = out.read();
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    for (std::uint32_t i = 0; i < 6; ++i) {
      const std::uint32_t matrix = i % 4;
      const std::uint32_t row = lane / 4;
      const std::uint32_t column = lane % 4 * 2;
      const std::uint32_t low = Transposed ? column * 8 + row : row * 8 + column;
      const std::uint32_t high = Transposed ? low + 8 : low + 1;
      ASSERT_EQ(got[lane * 6 + i], (matrix * 64 + low) | (matrix * 64 + high) << 16);
    }
  }
}

TEST(LoadMatrix, GivesEachLaneItsPairs) {
  check_fragments<false>();
  check_fragments<true>();
}

GCRT_GLOBAL(32) void round_fours(const float* x, std::uint32_t* y) {
  float values[4];
  std::uint32_t bits[4];
  for (int i = 0; i < 4; ++i) values[i] = x[4 * thread_rank() + i];
  round_to_tf32(bits, values);
  for (int i = 0; i < 4; ++i) y[4 * thread_rank() + i] = bits[i] & 0xffffe000u;
}

TEST(Tf32, RoundsToNearestAwayAndTruncatesInTheProduct) {
  const float nan_of_arithmetic = bit_cast<float>(0x7fffffffu);
  const Device<float> x(std::vector<float>{1.0f, bit_cast<float>(0x3f800fffu), bit_cast<float>(0x3f801000u),
                                           bit_cast<float>(0xbf801000u), kInfinity<float>, -kInfinity<float>,
                                           kLargest<float>, 0.0f, nan_of_arithmetic, 1.0f, -nan_of_arithmetic,
                                           2.0f});
  const Device<std::uint32_t> y(x.size());
  Queue queue;
  launch(queue, 1, static_cast<unsigned>(x.size() / 4), 0, &round_fours, x.data(), y.data());
  ASSERT_EQ(queue.error, cudaSuccess);
  EXPECT_EQ(y.read(), (std::vector<std::uint32_t>{0x3f800000u, 0x3f800000u, 0x3f802000u, 0xbf802000u,
                                                  0x7f800000u, 0xff800000u, 0x7f800000u, 0u, 0x7fffe000u,
                                                  0x3f800000u, 0xffffe000u, 0x40000000u}));
}

GCRT_GLOBAL(32) void take_rests(const float* x, float* y) {
  y[thread_rank()] = bit_cast<float>(rest_of_tf32(x[thread_rank()]));
}

TEST(Tf32, TheRestIsExactAndNoNumberWhereThereIsNone) {
  const Device<float> x(std::vector<float>{1.0f, bit_cast<float>(0x3f801fffu), bit_cast<float>(0xc0002001u),
                                           kInfinity<float>, kNan<float>});
  const Device<float> y(x.size());
  Queue queue;
  launch(queue, 1, static_cast<unsigned>(x.size()), 0, &take_rests, x.data(), y.data());
  ASSERT_EQ(queue.error, cudaSuccess);
  const std::vector<float> rest = y.read();
  EXPECT_EQ(rest[0], 0.0f);
  EXPECT_EQ(rest[1], 8191.0f * 0x1p-23f);
  EXPECT_EQ(rest[2], -0x1p-22f);
  EXPECT_TRUE(std::isnan(rest[3]) && std::isnan(rest[4]));
}

constexpr std::int32_t kDotStart = 2147483000;

template <class TA, class TB>
GCRT_GLOBAL(64)
void dot_all(const std::uint32_t* a, const std::uint32_t* b, std::int32_t* y) {
  const int i = thread_rank();
  y[i] = dot4<TA, TB>(kDotStart, a[i], b[i]);
}

template <class TA, class TB>
void check_dot() {
  constexpr std::size_t kCount = 64;
  std::vector<std::uint32_t> a;
  std::vector<std::uint32_t> b;
  std::vector<std::int32_t> expected;
  std::uint32_t state = 99;
  const auto next = [&] {
    state = state * 1664525u + 1013904223u;
    return state ^ state >> 15;
  };
  for (std::size_t n = 0; n < kCount; ++n) {
    a.push_back(next());
    b.push_back(next());
    std::int64_t sum = kDotStart;
    for (int i = 0; i < 4; ++i) sum += static_cast<TA>(a[n] >> (8 * i)) * static_cast<TB>(b[n] >> (8 * i));
    expected.push_back(static_cast<std::int32_t>(sum));
  }
  const Device<std::uint32_t> a_device(a);
  const Device<std::uint32_t> b_device(b);
  const Device<std::int32_t> y(kCount);
  Queue queue;
  launch(queue, 1, kCount, 0, &dot_all<TA, TB>, a_device.data(), b_device.data(), y.data());
  ASSERT_EQ(queue.error, cudaSuccess);
  EXPECT_EQ(y.read(), expected);
}

TEST(Dot4, IsExactModulo32Bits) {
  check_dot<std::int8_t, std::int8_t>();
  check_dot<std::int8_t, std::uint8_t>();
  check_dot<std::uint8_t, std::int8_t>();
  check_dot<std::uint8_t, std::uint8_t>();
}

}  // namespace
}  // namespace GCRT_NAMESPACE

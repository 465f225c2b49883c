// Fused attention on the emulator against the formula in double.
#include "attention_case.h"

namespace cuda_kernel_test {
namespace {

// How queries, and keys and values, lie in memory.
template <class Q = float, class K = float>
struct StoredAs {
  using TQ = Q;
  using TK = K;
};

template <Precision P, AttentionTile kTile, int kHeadSize, int kValueSize,
          AttentionMaskKind kMask = AttentionMaskKind::kNone, class Types = StoredAs<>, int kParts = 1>
void check_attention(const AttentionCase& c, const HostMask& mask = {}) {
  using TQ = typename Types::TQ;
  using TK = typename Types::TK;
  SCOPED_TRACE(::testing::Message() << c.heads << " heads of " << c.kv_heads << ", " << c.queries
                                    << " queries, " << c.keys << " keys, sizes " << c.head_size << " and "
                                    << c.value_size << ", parts " << kParts
                                    << (c.is_causal ? ", causal" : ""));
  if (!has_room(AttentionConfig<P, kTile, kHeadSize, kValueSize, TQ, TK>::kSharedBytes)) return;
  const AttentionShape s = shape_of(c);
  ASSERT_EQ(kHeadSize, attention_padded(c.head_size));
  ASSERT_EQ(kValueSize, attention_padded(c.value_size));
  auto q = random_values<float>(size(c.batch * c.heads * c.queries * c.head_size), 1);
  auto k = random_values<float>(size(c.batch * c.kv_heads * c.keys * c.head_size), 2);
  auto v = random_values<float>(size(c.batch * c.kv_heads * c.keys * c.value_size), 3);
  const DeviceArray<TQ> q_device(stored<TQ>(q));
  const DeviceArray<TK> k_device(stored<TK>(k));
  const DeviceArray<TK> v_device(stored<TK>(v));
  const DeviceArray<float> additive(mask.additive);
  const DeviceArray<std::uint8_t> keep(mask.keep);
  DeviceArray<float> workspace(size(attention_workspace_size(s, kParts)));
  AttentionMask device_mask = mask.strides;
  device_mask.data = nullptr;
  if (kMask == AttentionMaskKind::kAdditive) device_mask.data = additive.data();
  if (kMask == AttentionMaskKind::kBoolean) device_mask.data = keep.data();
  if (kMask == AttentionMaskKind::kBooleanThenAdditive) {
    device_mask.data = keep.data();
    device_mask.behind = {additive.data(), device_mask.batch, device_mask.head, device_mask.query,
                          device_mask.key};
  }
  std::vector<double> expected, bound;
  add_reference(s, q, k, v, mask, expected, bound);
  const double tolerance = P == Precision::kFp32 ? 3e-6 : PrecisionOf<P>::kTolerance * 2;
  // What one copy moves is known when the kernel is compiled, or late.
  const auto check = [&](auto copied) {
    Recorded<float> result(c.queries, c.value_size, c.batch * c.heads);
    CountingQueue queue;
    attention<P, kTile, kHeadSize, kValueSize, kMask, decltype(copied)::value>(
        queue, s, q_device.data(), k_device.data(), v_device.data(), device_mask,
        SplitDepth<kParts>{workspace.data()}, result.epilogue<4>());
    expect_no_error(queue);
    result.check(expected, bound, tolerance);
  };
  check(std::integral_constant<int, 0>());
  if constexpr (kHeadSize % 64 == 0 || kHeadSize == 80) {
    const bool is_padded = c.head_size != kHeadSize || c.value_size != attention_columns(kTile, kValueSize);
    const auto fits = [](const auto* data, const AttentionStrides& strides) {
      return attention_copy_bytes(data, strides) == 16;
    };
    if (!is_padded && fits(q_device.data(), s.q) && fits(k_device.data(), s.k) && fits(v_device.data(), s.v))
      check(std::integral_constant<int, 16>());
  }
}

TEST(CudaAttention, TokensAroundTheTiles) {
  for (const int tokens : {1, 7, 8, 16, 17, 31, 32, 33, 63, 64, 65, 129}) {
    check_attention<Precision::kFp32, AttentionTile::k64, 32, 32>(self_attention(2, tokens, 32));
    check_attention<Precision::kFp32, AttentionTile::k16, 32, 32>(self_attention(2, tokens, 32));
    check_attention<Precision::kFp32, AttentionTile::k16ByKeys, 32, 32>(self_attention(2, tokens, 32));
    check_attention<Precision::kTf32, AttentionTile::k16ByColumns, 32, 32>(self_attention(2, tokens, 32));
  }
}

TEST(CudaAttention, HeadSizes) {
  check_attention<Precision::kFp32, AttentionTile::k64, 16, 16>(self_attention(1, 40, 7));
  check_attention<Precision::kFp32, AttentionTile::k64, 64, 64>(self_attention(1, 40, 64));
  check_attention<Precision::kFp32, AttentionTile::k64, 80, 80>(self_attention(1, 40, 72));
  check_attention<Precision::kFp32, AttentionTile::k64, 80, 80>(self_attention(1, 40, 80));
  check_attention<Precision::kFp32, AttentionTile::k64, 96, 96>(self_attention(1, 40, 90));
  check_attention<Precision::kFp32, AttentionTile::k64, 128, 128>(self_attention(1, 70, 128));
  check_attention<Precision::kFp32, AttentionTile::k16ByColumns, 192, 192>(self_attention(1, 40, 192));
  check_attention<Precision::kFp32, AttentionTile::k16ByColumns, 256, 256>(self_attention(1, 40, 256));
  check_attention<Precision::kFp32, AttentionTile::k16ByColumns, 512, 512>(self_attention(1, 20, 500));
  check_attention<Precision::kTf32, AttentionTile::k64, 256, 256>(self_attention(1, 40, 256));
  AttentionCase c = self_attention(2, 50, 64);
  c.value_size = 30;
  check_attention<Precision::kFp32, AttentionTile::k64, 64, 32>(c);
}

TEST(CudaAttention, OtherPrecisions) {
  const AttentionCase c = self_attention(2, 70, 64);
  check_attention<Precision::kTf32, AttentionTile::k64, 64, 64>(c);
  check_attention<Precision::kFp16, AttentionTile::k64, 64, 64>(c);
  check_attention<Precision::kBf16, AttentionTile::k64, 64, 64>(c);
}

// Operands that memory holds in 16 bits, all or some of them.
template <Precision P, class T>
void check_stored() {
  constexpr auto kNone = AttentionMaskKind::kNone;
  AttentionCase c = self_attention(2, 70, 64);
  check_attention<P, AttentionTile::k64, 64, 64, kNone, StoredAs<T, T>>(c);
  check_attention<P, AttentionTile::k64, 64, 64, kNone, StoredAs<T, float>>(c);
  check_attention<P, AttentionTile::k64, 64, 64, kNone, StoredAs<float, T>>(c);
  check_attention<P, AttentionTile::k16ByKeys, 64, 64, kNone, StoredAs<T, T>, 2>(c);
  c.is_heads_inside = true;
  c.head_size = 50;  // copies of 4 bytes
  check_attention<P, AttentionTile::k16, 64, 64, kNone, StoredAs<T, T>>(c);
  c.head_size = c.value_size = 39;  // and of 2
  check_attention<P, AttentionTile::k16ByKeys, 48, 48, kNone, StoredAs<T, T>>(c);
  c.is_k_transposed = true;
  check_attention<P, AttentionTile::k16ByColumns, 48, 48, kNone, StoredAs<T, T>>(c);
}
TEST(CudaAttention, StoredFp16) {
  check_stored<Precision::kFp16, Half>();
  check_attention<Precision::kFp16, AttentionTile::k16ByColumns, 512, 512, AttentionMaskKind::kNone,
                  StoredAs<Half, Half>>(self_attention(1, 20, 512));
}
TEST(CudaAttention, StoredBf16) { check_stored<Precision::kBf16, BFloat16>(); }

TEST(CudaAttention, Layouts) {
  AttentionCase c = self_attention(3, 37, 32);
  c.batch = 2;
  c.is_heads_inside = true;
  check_attention<Precision::kFp32, AttentionTile::k64, 32, 32>(c);
  c.is_k_transposed = true;
  check_attention<Precision::kFp32, AttentionTile::k64, 32, 32>(c);
  c.queries = 21;
  c.keys = 75;
  check_attention<Precision::kFp32, AttentionTile::k16, 32, 32>(c);
}

TEST(CudaAttention, Causal) {
  for (const int tokens : {1, 31, 64, 100}) {
    AttentionCase c = self_attention(2, tokens, 32);
    c.is_causal = true;
    check_attention<Precision::kFp32, AttentionTile::k64, 32, 32>(c);
    check_attention<Precision::kFp32, AttentionTile::k16, 32, 32>(c);
    c.keys = tokens + 20;  // 20 keys of the past
    c.causal_offset = 20;
    check_attention<Precision::kFp32, AttentionTile::k64, 32, 32>(c);
    c.keys = tokens;  // the first queries see nothing
    c.causal_offset = -5;
    check_attention<Precision::kFp32, AttentionTile::k64, 32, 32>(c);
    c.is_zero_where_empty = false;
    check_attention<Precision::kFp32, AttentionTile::k64, 32, 32>(c);
  }
}

TEST(CudaAttention, GroupedQueries) {
  for (const bool is_causal : {false, true}) {
    AttentionCase c = self_attention(6, 45, 32);
    c.kv_heads = 2;
    c.batch = 2;
    c.is_causal = is_causal;
    check_attention<Precision::kFp32, AttentionTile::k64, 32, 32>(c);
    check_attention<Precision::kFp32, AttentionTile::k16, 32, 32>(c);
  }
}

template <AttentionTile kTile, int kParts>
void check_split() {
  constexpr auto kNone = AttentionMaskKind::kNone;
  AttentionCase c = self_attention(8, 300, 64);
  c.kv_heads = 2;
  c.queries = 1;
  check_attention<Precision::kFp32, kTile, 64, 64, kNone, StoredAs<>, kParts>(c);
  c.value_size = 30;
  c.queries = 5;
  c.is_causal = true;
  c.causal_offset = 40;  // the last parts see nothing
  check_attention<Precision::kFp32, kTile, 64, 32, kNone, StoredAs<>, kParts>(c);
  c.causal_offset = -2;  // and the first queries see nothing at all
  c.is_zero_where_empty = false;
  check_attention<Precision::kFp32, kTile, 64, 32, kNone, StoredAs<>, kParts>(c);
}
// A few queries, whose keys lanes divide: of every number of rows, width of an access, head and mask.
template <AttentionTile kTile, class Types>
void check_lanes() {
  constexpr auto kNone = AttentionMaskKind::kNone;
  constexpr Precision P = sizeof(typename Types::TK) == 4 ? Precision::kFp32 : Precision::kFp16;
  for (const int keys : {1, 31, 129, 300}) {
    AttentionCase c = self_attention(2, keys, 64);
    c.queries = 1;
    check_attention<P, kTile, 64, 64, kNone, Types>(c);
    c.heads = 8;  // four rows share keys: beyond one block or in one
    c.batch = 2;
    check_attention<P, kTile, 64, 64, kNone, Types, 2>(c);
    c.head_size = 128;
    c.value_size = 48;
    check_attention<P, kTile, 128, 48, kNone, Types>(c);
    c.head_size = 30;  // accesses of one element
    c.value_size = 21;
    check_attention<P, kTile, 32, 32, kNone, Types, 3>(c);
    c.is_causal = true;
    c.queries = 3;
    c.causal_offset = keys - 4;  // the first row may see nothing
    check_attention<P, kTile, 32, 32, kNone, Types>(c);
  }
  AttentionCase wide = self_attention(2, 40, 256);
  wide.queries = 2;
  wide.is_k_transposed = true;
  check_attention<P, kTile, 256, 256, kNone, Types>(wide);
}
TEST(CudaAttention, FewRowsByLanes) {
  check_lanes<AttentionTile::k1ByLanes, StoredAs<>>();
  check_lanes<AttentionTile::k2ByLanes, StoredAs<Half, Half>>();
  check_lanes<AttentionTile::k4ByLanes, StoredAs<float, Half>>();
  check_lanes<AttentionTile::k8ByLanes, StoredAs<>>();
  check_lanes<AttentionTile::k1ByLanes, StoredAs<Half, Half>>();
}

TEST(CudaAttention, SplitKeys) {
  check_split<AttentionTile::k1ByLanes, 2>();
  check_split<AttentionTile::k8ByLanes, 3>();
  check_split<AttentionTile::k16, 2>();
  check_split<AttentionTile::k16, 3>();
  check_split<AttentionTile::k16, 8>();
  check_split<AttentionTile::k16ByKeys, 1>();
  check_split<AttentionTile::k16ByKeys, 3>();
}

// Every combination of broadcast axes.
template <AttentionMaskKind kMask>
void check_masks() {
  AttentionCase c = self_attention(2, 40, 32);
  c.batch = 2;
  c.keys = 70;
  for (int axes = 0; axes < 16; ++axes) {
    HostMask mask;
    std::ptrdiff_t count = 1;
    const auto stride = [&](int axis, int length) {
      if ((axes >> axis & 1) == 0) return std::ptrdiff_t{0};
      const std::ptrdiff_t result = count;
      count *= length;
      return result;
    };
    mask.strides.key = stride(0, c.keys);
    mask.strides.query = stride(1, c.queries);
    mask.strides.head = stride(2, c.heads);
    mask.strides.batch = stride(3, c.batch);
    if (kMask != AttentionMaskKind::kBoolean) {
      mask.additive = random_values<float>(size(count), 9);
      // Not on all keys of a row: float forgets the scores beside 1e9.
      for (std::size_t i = 0; axes % 2 == 1 && i < mask.additive.size(); i += 3) mask.additive[i] = -1e9f;
    }
    if (kMask != AttentionMaskKind::kAdditive) {
      mask.strides.fill = 0.5f;
      Random random(static_cast<std::uint32_t>(axes) + 3);
      for (std::ptrdiff_t i = 0; i < count; ++i) mask.keep.push_back(random.unit() > 0 ? 1 : 0);
    }
    check_attention<Precision::kFp32, AttentionTile::k64, 32, 32, kMask>(c, mask);
    if (axes % 3 == 0) check_attention<Precision::kFp32, AttentionTile::k8ByLanes, 32, 32, kMask>(c, mask);
  }
}
TEST(CudaAttention, AdditiveMask) { check_masks<AttentionMaskKind::kAdditive>(); }
TEST(CudaAttention, BooleanMask) { check_masks<AttentionMaskKind::kBoolean>(); }
TEST(CudaAttention, BooleanThenAdditiveMask) { check_masks<AttentionMaskKind::kBooleanThenAdditive>(); }

// The lowest float as exporters add it: beside other keys as good as none, alone every key weighs the same.
TEST(CudaAttention, RowsHiddenByTheLowestFloat) {
  AttentionCase c = self_attention(1, 40, 16);
  c.is_zero_where_empty = false;
  HostMask mask;
  mask.strides.query = c.keys;
  mask.strides.key = 1;
  for (int i = 0; i < c.queries; ++i) {
    for (int j = 0; j < c.keys; ++j) mask.additive.push_back(j < i % 3 * 20 ? 0.0f : kLowest<float>);
  }
  constexpr auto kAdditive = AttentionMaskKind::kAdditive;
  check_attention<Precision::kFp32, AttentionTile::k16, 16, 16, kAdditive>(c, mask);
  check_attention<Precision::kFp32, AttentionTile::k16, 16, 16, kAdditive, StoredAs<>, 2>(c, mask);
  check_attention<Precision::kFp32, AttentionTile::k16ByKeys, 16, 16, kAdditive>(c, mask);
}

TEST(CudaAttention, LargeScoresDoNotOverflow) {
  AttentionCase c = self_attention(1, 40, 32);
  HostMask mask;
  mask.strides.key = 1;
  for (int i = 0; i < c.keys; ++i) mask.additive.push_back(i % 2 == 0 ? 3e4f : 3e4f - static_cast<float>(i));
  check_attention<Precision::kTf32, AttentionTile::k64, 32, 32, AttentionMaskKind::kAdditive>(c, mask);
}

TEST(CudaAttention, PlanFillsTheDevice) {
  AttentionCase c = self_attention(12, 4096, 64);
  const DeviceModel h100 = device_model(90);
  const auto plan = [&] { return plan_attention(h100, Precision::kFp16, shape_of(c), 2, 2); };
  EXPECT_EQ(plan().tile, AttentionTile::k64);
  // With 128 queries 64 rows would be 24 blocks.
  c.queries = c.keys = 128;
  EXPECT_EQ(plan().tile, AttentionTile::k16ByKeys);
  EXPECT_EQ(plan().splits, 1);
  c.queries = 1;
  EXPECT_EQ(plan().tile, AttentionTile::k1ByLanes);
  EXPECT_EQ(plan().splits, 1);
  c.keys = 2048;
  EXPECT_EQ(plan().tile, AttentionTile::k1ByLanes);
  EXPECT_GT(plan().splits, 2);
  c.kv_heads = 4;  // three rows read each key
  EXPECT_EQ(plan_attention(h100, Precision::kFp16, shape_of(c), 4, 4).tile, AttentionTile::k4ByLanes);
  c.kv_heads = 2;  // six: of halves a lane would hold too much
  EXPECT_EQ(plan().tile, AttentionTile::k16ByKeys);
  EXPECT_GT(plan().splits, 4);
  // A prompt has blocks enough: parts would be a workspace and nothing else.
  for (const int queries : {2048, 4096, 8192}) {
    c = self_attention(32, queries, 128);
    EXPECT_EQ(plan().splits, 1) << queries;
    c.kv_heads = 8;
    EXPECT_EQ(plan().splits, 1) << queries;
  }
  // What the parts move is in the time: through the cache,
  // and through memory where they are more than it holds.
  c = self_attention(32, 4096, 128);
  const auto in_parts = [&](int parts) {
    return attention_time(h100, Precision::kFp16, shape_of(c), AttentionTile::k64, parts, 2, 2);
  };
  const double part_bytes = 4.0 * 32 * 4096 * static_cast<double>(attention_part_floats(128));
  EXPECT_EQ(in_parts(1).memory, 0);
  EXPECT_GE(in_parts(4).memory, memory_microseconds(h100, 2 * 4 * part_bytes) * 0.999);
  EXPECT_GT(in_parts(4).cache, in_parts(1).cache + cache_microseconds(h100, 7 * part_bytes, 8192));
  for (const DeviceModel& device : kDeviceModels) {
    for (const int head_size : {16, 64, 128, 192, 256, 512}) {
      const AttentionShape s = shape_of(self_attention(4, 200, head_size));
      const std::pair<Precision, int> kinds[] = {
          {Precision::kFp32, 4}, {Precision::kTf32, 4}, {Precision::kFp16, 4}, {Precision::kFp16, 2}};
      for (const auto& [precision, bytes] : kinds) {
        const AttentionPlan best = plan_attention(device, precision, s, bytes, bytes);
        const bool fits = attention_fits(device, best.tile, precision, s, bytes, bytes);
        EXPECT_TRUE(fits || (device.capability == 75 && head_size > 128)) << device.capability << head_size;
        // A device of 8.6 runs the code of sm_80, one of 12.0 the PTX of 9.0.
        EXPECT_TRUE(!fits || attention_shared_bytes(best.tile, precision, head_size, head_size, bytes,
                                                    bytes) <= device_model(86).shared_bytes);
      }
    }
  }
}

}  // namespace
}  // namespace cuda_kernel_test

// Attention beside a cache on the emulator: rows of earlier runs, new ones, and where the kernel joins them.
#include "attention_case.h"

namespace cuda_kernel_test {
namespace {

// Rows of a cache and new ones, in layouts of their own, and where the kernel joins them.
template <class T>
struct CachedOperand {
  static constexpr int kRoom = 3;  // rows behind those of a head that stay as they are
  std::vector<T> past, fresh, joined;
  AttentionStrides past_strides, fresh_strides, joined_strides;

  // `all`: dense [batch][head][row][column].
  CachedOperand(const AttentionCase& c, int past_rows, int columns, const std::vector<T>& all, bool grows)
      : past_strides(strides_of(c.kv_heads, past_rows, columns, false)),
        fresh_strides(strides_of(c.kv_heads, c.keys - past_rows, columns, true)),
        joined_strides(strides_of(c.kv_heads, c.keys + kRoom, columns, false)) {
    past.resize(size(c.batch * past_strides.batch));
    fresh.resize(size(c.batch * fresh_strides.batch));
    joined.resize(size(c.batch * joined_strides.batch), T{});
    each(c, columns, [&](int b, int h, int row, int d, std::size_t at) {
      const bool is_past = row < past_rows;
      const AttentionStrides& to = is_past ? past_strides : fresh_strides;
      const int own = is_past ? row : row - past_rows;
      (is_past ? past : fresh)[size(b * to.batch + h * to.head + own * to.row + d)] = all[at];
      if (is_past && grows) joined[place(b, h, row, d)] = all[at];
    });
  }
  template <class Visit>
  static void each(const AttentionCase& c, int columns, const Visit& visit) {
    std::size_t at = 0;
    for (int b = 0; b < c.batch; ++b)
      for (int h = 0; h < c.kv_heads; ++h)
        for (int row = 0; row < c.keys; ++row)
          for (int d = 0; d < columns; ++d) visit(b, h, row, d, at++);
  }
  std::size_t place(int b, int h, int row, int d) const {
    return size(b * joined_strides.batch + h * joined_strides.head + row * joined_strides.row + d);
  }
  // What `joined` should be in the end.
  std::vector<T> expected(const AttentionCase& c, int columns, const std::vector<T>& all) const {
    std::vector<T> out(joined.size(), T{});
    each(c, columns,
         [&](int b, int h, int row, int d, std::size_t at) { out[place(b, h, row, d)] = all[at]; });
    return out;
  }
};

// What grows has its past where the joined rows belong.
enum class Grows { kNone, kBoth, kKeys };
template <Precision P, AttentionTile kTile, int kHeadSize, int kValueSize, int kParts = 1>
void check_cached(const AttentionCase& c, int past, Grows grows) {
  SCOPED_TRACE(::testing::Message() << c.queries << " queries, " << past << " of " << c.keys
                                    << " keys cached, " << kParts << " parts"
                                    << (grows != Grows::kNone ? ", in place" : "")
                                    << (c.is_causal ? ", causal" : ""));
  if (!has_room(AttentionConfig<P, kTile, kHeadSize, kValueSize, float, float>::kSharedBytes)) return;
  AttentionShape s = shape_of(c);
  auto q = random_values<float>(size(c.batch * c.heads * c.queries * c.head_size), 1);
  auto k = random_values<float>(size(c.batch * c.kv_heads * c.keys * c.head_size), 2);
  auto v = random_values<float>(size(c.batch * c.kv_heads * c.keys * c.value_size), 3);
  std::vector<double> expected, bound;
  add_reference(s, q, k, v, {}, expected, bound);
  const CachedOperand<float> keys(c, past, c.head_size, k, grows != Grows::kNone),
      values(c, past, c.value_size, v, grows == Grows::kBoth);
  const DeviceArray<float> device_q(q), past_k(keys.past), past_v(values.past), new_k(keys.fresh),
      new_v(values.fresh), joined_k(keys.joined), joined_v(values.joined);
  const auto cached = [&](const CachedOperand<float>& rows, const DeviceArray<float>& apart,
                          const DeviceArray<float>& joined, bool in_place) {
    return CachedRows<float>{in_place ? joined.data() : apart.data(),
                             in_place ? rows.joined_strides : rows.past_strides,
                             joined.data(),
                             rows.joined_strides,
                             in_place ? past : 0,
                             c.keys};
  };
  const AttentionCache<float> cache{past, cached(keys, past_k, joined_k, grows != Grows::kNone),
                                    cached(values, past_v, joined_v, grows == Grows::kBoth)};
  s.k = keys.fresh_strides;
  s.v = values.fresh_strides;
  DeviceArray<float> workspace(size(attention_workspace_size(s, kParts)));
  Recorded<float> result(c.queries, c.value_size, c.batch * c.heads);
  CountingQueue queue;
  constexpr int kCopied = kHeadSize == 64 ? 16 : 0;
  attention<P, kTile, kHeadSize, kValueSize, AttentionMaskKind::kNone, kCopied>(
      queue, s, device_q.data(), new_k.data(), new_v.data(), AttentionMask{},
      SplitDepth<kParts>{workspace.data()}, result.epilogue<4>(), cache);
  expect_no_error(queue);
  result.check(expected, bound, 3e-6);
  EXPECT_EQ(joined_k.read(), keys.expected(c, c.head_size, k));
  EXPECT_EQ(joined_v.read(), values.expected(c, c.value_size, v));
}

TEST(CudaAttention, Cache) {
  constexpr auto kFp32 = Precision::kFp32;
  for (const Grows grows : {Grows::kNone, Grows::kBoth, Grows::kKeys}) {
    AttentionCase c = self_attention(4, 129, 64);
    c.queries = 1;
    check_cached<kFp32, AttentionTile::k16ByKeys, 64, 64>(c, 128, grows);
    check_cached<kFp32, AttentionTile::k16ByKeys, 64, 64, 3>(c, 128, grows);
    check_cached<kFp32, AttentionTile::k1ByLanes, 64, 64>(c, 128, grows);
    check_cached<kFp32, AttentionTile::k1ByLanes, 64, 64, 3>(c, 128, grows);
    check_cached<kFp32, AttentionTile::k16, 64, 64>(c, 0, grows);
    c.is_causal = true;  // a prompt behind a cache, of heads that share keys, beyond one block
    c.batch = 2;
    c.kv_heads = 2;
    c.queries = 50;
    c.causal_offset = 79;
    check_cached<kFp32, AttentionTile::k64, 64, 64>(c, 79, grows);
    check_cached<kFp32, AttentionTile::k16, 64, 64, 4>(c, 79, grows);
    c.causal_offset = 20;  // the last keys are seen by nobody, and are kept all the same
    check_cached<kFp32, AttentionTile::k16, 64, 64>(c, 79, grows);
    c.head_size = 30;  // copies of four bytes
    c.value_size = 21;
    check_cached<kFp32, AttentionTile::k16, 32, 32>(c, 33, grows);
    check_cached<kFp32, AttentionTile::k4ByLanes, 32, 32>(c, 33, grows);
  }
}

}  // namespace
}  // namespace cuda_kernel_test

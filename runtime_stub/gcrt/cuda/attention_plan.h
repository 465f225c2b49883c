// The sizes of fused attention, which the compiler shares with the kernels. Needs no CUDA header.
#pragma once

#include "gcrt/cuda/tile_model.h"

namespace GCRT_NAMESPACE {

// Where element (batch, head, row, column) of an operand lies, in elements.
struct AttentionStrides {
  std::ptrdiff_t batch;
  std::ptrdiff_t head;
  std::ptrdiff_t row;     // query or key
  std::ptrdiff_t column;  // inside a head
};

// out(b, h, i) = sum over j of softmax over j (scale * q(b, h, i) . k(b, h / group, j) + mask) * v(b, h /
// group, j) with group = heads / kv_heads. With is_causal query i sees keys j <= i + causal_offset only. A
// query that sees no key gets 0.
struct AttentionShape {
  int batch;
  int heads;
  int kv_heads;
  int queries;
  int keys;
  int head_size;
  int value_size;
  float scale;
  bool is_causal;
  int causal_offset;
  bool is_zero_where_empty;  // a row that sees no key is zero, not NaN
  AttentionStrides q;
  AttentionStrides k;
  AttentionStrides v;

  // Rows of one product: the queries of all heads that share keys and values.
  GCRT_INLINE constexpr int rows() const { return heads / kv_heads * queries; }
};

// Rows of queries per block: 64, or 16 where there are few of them or little shared memory.
enum class AttentionTile { k16, k64 };

// A head size as the kernel is compiled for it.
constexpr int attention_padded(int size) { return (size + 15) / 16 * 16; }

constexpr int attention_rows(AttentionTile tile) { return tile == AttentionTile::k16 ? 16 : 64; }
// Keys per step.
constexpr int attention_keys(int head_size, int value_size) {
  return head_size > 128 || value_size > 128 ? 16 : 32;
}
// Floats between the rows of V and of the result in shared memory; they avoid bank conflicts.
constexpr int attention_value_stride(int value_size) { return attention_padded(value_size) + 4; }
constexpr int attention_result_stride(int value_size) { return attention_padded(value_size) + 8; }

constexpr int attention_shared_bytes(AttentionTile tile, int head_size, int value_size) {
  const int keys = attention_keys(head_size, value_size);
  const int head = attention_padded(head_size);
  const int operands = attention_rows(tile) * head + keys * head + keys * attention_value_stride(value_size);
  const int result = attention_rows(tile) * attention_result_stride(value_size);
  return 4 * (operands > result ? operands : result);
}

struct AttentionPlan {
  AttentionTile tile;
  int splits;  // parts of the keys, each attended to by its own blocks
};

// Keys are split while blocks are fewer than multiprocessors and a part keeps 128 keys.
constexpr AttentionPlan plan_attention(const DeviceModel& device, const AttentionShape& s) {
  const bool is_small = s.rows() <= 16 || attention_shared_bytes(AttentionTile::k64, s.head_size,
                                                                 s.value_size) > device.shared_bytes;
  const AttentionTile tile = is_small ? AttentionTile::k16 : AttentionTile::k64;
  const std::ptrdiff_t blocks = ceil_div(s.rows(), attention_rows(tile)) * s.batch * s.kv_heads;
  int splits = 1;
  while (blocks * splits < device.multiprocessors && s.keys >= 256 * splits) splits *= 2;
  return {tile, splits};
}

// Floats of workspace of a row in a part of the keys.
constexpr std::ptrdiff_t attention_part_floats(int value_size) { return ceil_div(value_size, 4) * 4 + 2; }

// Floats of workspace; 0 where keys are not split.
constexpr std::ptrdiff_t attention_workspace_size(const AttentionShape& s, int splits) {
  const std::ptrdiff_t rows = std::ptrdiff_t{s.batch} * s.kv_heads * splits * s.rows();
  return splits > 1 ? rows * attention_part_floats(s.value_size) : 0;
}

}  // namespace GCRT_NAMESPACE

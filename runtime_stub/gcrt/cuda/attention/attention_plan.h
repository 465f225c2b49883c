// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The sizes of fused attention, which the compiler shares with the kernels. Needs no CUDA header.
#pragma once

#include "gcrt/cuda/product/tile_model.h"

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

// Rows of queries of a block, and what its warps divide: rows of 16, keys (each attends to a quarter of those
// of a step, and the sums of all are joined), or the columns of the result, which else has no room in
// registers. By lanes: keys, without tensor cores (attention_lanes.h).
enum class AttentionTile { k16, k16ByKeys, k16ByColumns, k64, k1ByLanes, k2ByLanes, k4ByLanes, k8ByLanes };

constexpr bool is_by_lanes(AttentionTile tile) { return tile >= AttentionTile::k1ByLanes; }

// The warps of a block along each.
struct AttentionWarps {
  int rows, keys, columns;
  constexpr int count() const { return rows * keys * columns; }
};
constexpr AttentionWarps attention_warps(AttentionTile tile) {
  switch (tile) {
    case AttentionTile::k16:
      return {1, 1, 1};
    case AttentionTile::k16ByKeys:
      return {1, 4, 1};
    case AttentionTile::k16ByColumns:
      return {1, 1, 4};
    case AttentionTile::k64:
      return {4, 1, 1};
    case AttentionTile::k1ByLanes:
      return {1, 16, 1};
    case AttentionTile::k2ByLanes:
    case AttentionTile::k4ByLanes:
    case AttentionTile::k8ByLanes:
      return {1, 8, 1};
  }
  return {};
}

// A head size as the kernel is compiled for it.
constexpr int attention_padded(int size) { return (size + 15) / 16 * 16; }
// The size of the result as the kernel is compiled for it: every warp has as many columns.
constexpr int attention_columns(AttentionTile tile, int value_size) {
  const int unit = 16 * attention_warps(tile).columns;
  return (value_size + unit - 1) / unit * unit;
}

constexpr int attention_rows(AttentionTile tile) {
  return is_by_lanes(tile) ? 1 << (static_cast<int>(tile) - static_cast<int>(AttentionTile::k1ByLanes))
                           : 16 * attention_warps(tile).rows;
}

// By lanes: those that have the same key, with 16 bytes of it each, or several times 16; keys that a lane
// asks for at once, fewer where many rows or bytes are held beside them.
constexpr int attention_lanes(int head_size, int value_size, int bytes) {
  const std::ptrdiff_t chunks = ceil_div(head_size > value_size ? head_size : value_size, 16 / bytes);
  int lanes = 1;
  while (lanes < chunks && lanes < 32) lanes *= 2;
  return lanes;
}
constexpr int attention_lane_chunks(int head_size, int value_size, int bytes) {
  const int longest = head_size > value_size ? head_size : value_size;
  return static_cast<int>(ceil_div(longest, attention_lanes(head_size, value_size, bytes) * (16 / bytes)));
}
constexpr int attention_lane_loads(AttentionTile tile, int head_size, int value_size, int bytes) {
  const int held = attention_rows(tile) * attention_lane_chunks(head_size, value_size, bytes) * (16 / bytes);
  return held <= 4 ? 4 : 2;
}
// Keys of a warp per step. Beside a long result, and the sums of floats by parts,
// fewer have room in registers.
constexpr int attention_keys(AttentionTile tile, Precision precision, int head_size, int value_size,
                             int kv_bytes) {
  if (is_by_lanes(tile)) {
    const int head = attention_padded(head_size), columns = attention_columns(tile, value_size);
    return 32 / attention_lanes(head, columns, kv_bytes) *
           attention_lane_loads(tile, head, columns, kv_bytes);
  }
  const int longest = head_size > value_size ? head_size : value_size;
  return longest > (precision == Precision::kFp32 ? 64 : 128) ? 16 : 32;
}
// Elements between the rows of V in shared memory, and floats between those of the result;
// they avoid bank conflicts.
constexpr int attention_value_stride(int columns, int bytes) { return columns + 16 / bytes; }
constexpr int attention_result_stride(int columns) { return columns + 8; }

// The keys and values of one step, and of all that are on their way at once: those of the next step too,
// where several blocks have room for that.
constexpr int attention_step_bytes(AttentionTile tile, Precision precision, int head_size, int value_size,
                                   int kv_bytes) {
  const int keys =
      attention_keys(tile, precision, head_size, value_size, kv_bytes) * attention_warps(tile).keys;
  const int columns = attention_columns(tile, value_size);
  return keys * (attention_padded(head_size) + attention_value_stride(columns, kv_bytes)) * kv_bytes;
}
constexpr int attention_stages(AttentionTile tile, Precision precision, int head_size, int value_size,
                               int q_bytes, int kv_bytes) {
  constexpr int kRoom = 52 * 1024;
  const int queries = attention_rows(tile) * attention_padded(head_size) * q_bytes;
  return queries + 2 * attention_step_bytes(tile, precision, head_size, value_size, kv_bytes) <= kRoom ? 2
                                                                                                       : 1;
}

// `q_bytes`, `kv_bytes`: of an element.
constexpr int attention_shared_bytes(AttentionTile tile, Precision precision, int head_size, int value_size,
                                     int q_bytes, int kv_bytes) {
  const int rows = attention_rows(tile);
  const int result = 4 * rows * attention_warps(tile).keys *
                     (attention_result_stride(attention_columns(tile, value_size)) + 2);
  if (is_by_lanes(tile)) return result;
  const int operands = rows * attention_padded(head_size) * q_bytes +
                       attention_stages(tile, precision, head_size, value_size, q_bytes, kv_bytes) *
                           attention_step_bytes(tile, precision, head_size, value_size, kv_bytes);
  return operands > result ? operands : result;
}

struct AttentionPlan {
  AttentionTile tile;
  int splits;       // parts of the keys, each attended to by its own blocks
  KernelTime time;  // predicted
};

// What a thread of k16, k16ByKeys and k64 holds of the result, without running out of registers.
constexpr int attention_largest_columns(Precision precision) {
  return precision == Precision::kFp32 ? 128 : 256;
}

// By lanes: registers of a thread, for queries and sums of its columns, keys and values that are on their way
// and are converted, and some 44 more; a third on top of them is what ptxas needs beyond. All threads of a
// block share 65536.
constexpr bool attention_fits_lanes(AttentionTile tile, int head_size, int value_size, int bytes) {
  const int head = attention_padded(head_size), columns = attention_columns(tile, value_size);
  const int held = attention_lane_chunks(head, columns, bytes) * (16 / bytes);
  const int registers =
      2 * held * (attention_rows(tile) + attention_lane_loads(tile, head, columns, bytes)) + 44;
  const int available = 65536 / (32 * attention_warps(tile).count());
  return registers * 27 / 20 <= (available < 255 ? available : 255);
}

constexpr bool attention_fits(const DeviceModel& device, AttentionTile tile, Precision precision,
                              const AttentionShape& s, int q_bytes, int kv_bytes) {
  const int bytes = attention_shared_bytes(tile, precision, s.head_size, s.value_size, q_bytes, kv_bytes);
  if (is_by_lanes(tile) && !attention_fits_lanes(tile, s.head_size, s.value_size, kv_bytes)) return false;
  return bytes <= device.shared_bytes && bytes <= kMostSharedBytes;
}

// Floats of workspace of a row in a part of the keys.
constexpr std::ptrdiff_t attention_part_floats(int value_size) { return ceil_div(value_size, 4) * 4 + 2; }

// Clocks for which a warp keeps its scheduler busy for one mma of fp16, softmax and conversions included,
// where others wait beside it, how many times as long it takes alone, and what a block takes before its first
// product and behind its last: of 12 heads of 64 on an H200, 4096 queries in 441 us, 512 in 18, 128 of one
// batch in 4 and of eight in 11 by blocks of 16 rows. Floats, which are converted, take three times as long:
// a step of decoding by tiles behind 128 keys 9.8.
constexpr double kAttentionIssue = 32;
constexpr double kAttentionAlone = 1.8;
constexpr double kAttentionSetup = 2000;

// The time of one launch. A block loads K, then V, and waits for either in every step, or in the first alone.
constexpr KernelTime attention_time(const DeviceModel& device, Precision precision, const AttentionShape& s,
                                    AttentionTile tile, int splits, int q_bytes, int kv_bytes) {
  constexpr double kFp16Products = 2048;  // of one mma
  const AttentionWarps warps = attention_warps(tile);
  const int warp_keys = attention_keys(tile, precision, s.head_size, s.value_size, kv_bytes);
  const int step_keys = warp_keys * warps.keys;
  const int head = attention_padded(s.head_size), columns = attention_columns(tile, s.value_size);
  const std::ptrdiff_t blocks =
      ceil_div(s.rows(), attention_rows(tile)) * std::ptrdiff_t{s.batch} * s.kv_heads * splits;
  const double steps = real(ceil_div(ceil_div(s.keys, step_keys), splits));
  const double slower = products_per_clock(device, Precision::kFp16) / products_per_clock(device, precision);
  // By lanes a score and a value take two instructions for each element of a lane, with the conversion, and
  // as many to be summed over the lanes as the logarithm of their number, twice; a turn's own come to 60.
  const double lanes = attention_lanes(head, columns, kv_bytes);
  double logarithm = 0;
  for (int n = 1; n < lanes; n *= 2) logarithm += 2;
  const double of_key =
      real(attention_lane_chunks(head, columns, kv_bytes)) * (16.0 / kv_bytes) * 4 + logarithm + 12;
  const double issue = is_by_lanes(tile) ? 60 + warp_keys * lanes / 32 * (16 + attention_rows(tile) * of_key)
                                         : 16.0 * warp_keys * (head + columns / warps.columns) /
                                               kFp16Products * slower * kAttentionIssue;
  const double step_bytes = 1.0 * step_keys * (s.head_size + s.value_size) * kv_bytes;
  const double row_bytes = 1.0 * attention_rows(tile) * (s.head_size * q_bytes + 4 * s.value_size);
  int resident = device.shared_bytes /
                 attention_shared_bytes(tile, precision, s.head_size, s.value_size, q_bytes, kv_bytes);
  constexpr int kResidentWarps = 12;  // with 160 registers for each thread
  if (resident > kResidentWarps / warps.count()) resident = kResidentWarps / warps.count();
  if (resident < 1) resident = 1;
  const double turns = real(ceil_div(blocks, device.multiprocessors));
  const double rounds = real(ceil_div(blocks, device.multiprocessors * resident));
  KernelTime time = started(device, true);
  time.blocks = blocks;
  time.cache = cache_microseconds(device, real(blocks) * (steps * step_bytes + row_bytes), blocks);
  // By lanes all warps of a block begin and end together.
  const double setup = is_by_lanes(tile) ? 0 : kAttentionSetup;
  time.math = clocks_to_microseconds(device, turns * (steps * issue + setup) * warps.count() / 4);
  // Warps of a scheduler that hide each other's waits.
  const double beside = (turns < resident ? turns : resident) * warps.count() / 4;
  const double slowed = (kv_bytes == 4 ? 3 : 1) * kAttentionAlone / (beside > 1 ? beside : 1);
  // By lanes all warps of a block ask at the same time, and wait together.
  const double alone = is_by_lanes(tile) ? warps.count() / 4.0 : slowed < 1 ? 1 : slowed;
  const bool is_ahead = !is_by_lanes(tile) &&
                        attention_stages(tile, precision, s.head_size, s.value_size, q_bytes, kv_bytes) == 2;
  const double waits = (is_ahead ? 1 : steps) * (kCacheLatency + kSetupClocks);
  time.latency = clocks_to_microseconds(device, rounds * (steps * alone * issue + waits + kAttentionSetup)) +
                 (rounds - 1) * time.fill;
  if (warps.keys > 1) time.join = clocks_to_microseconds(device, kReductionClocks);
  if (splits > 1) {
    // Sums and statistics of all parts are written to the workspace and read again, by blocks that come and
    // go in rounds like the others; what the second-level cache does not hold goes through memory.
    const double sums = 4.0 * real(attention_rows(tile) * attention_part_floats(s.value_size));
    const double parts = real(blocks) * sums;
    time.cache += cache_microseconds(device, 2 * parts, blocks);
    if (!stays_in_cache(device, parts)) time.memory = memory_microseconds(device, 2 * parts);
    time.join +=
        clocks_to_microseconds(device, real(ceil_div(blocks / splits, device.multiprocessors * resident)) *
                                           (kArrivalClocks + splits * sums / kCacheBytesPerClock));
  }
  return time;
}

// The fastest by the model. A part keeps what a block attends to in one step. Where blocks of whole rows of
// keys keep every multiprocessor busy for several rounds, all that parts could gain is a shorter last round,
// and they cost a workspace: keys are not split.
constexpr AttentionPlan plan_attention(const DeviceModel& device, Precision precision,
                                       const AttentionShape& s, int q_bytes, int kv_bytes) {
  // Those that read the keys least often come first: they stay where others are as fast.
  constexpr AttentionTile kTiles[] = {AttentionTile::k64,       AttentionTile::k16ByKeys,
                                      AttentionTile::k16,       AttentionTile::k16ByColumns,
                                      AttentionTile::k1ByLanes, AttentionTile::k2ByLanes,
                                      AttentionTile::k4ByLanes, AttentionTile::k8ByLanes};
  constexpr int kMostParts = 16;
  constexpr int kBusyRounds = 4;
  constexpr double kWorthOfWorkspace = 1.1;  // what parts gain has to be more than the model may err
  const bool is_long = s.value_size > attention_largest_columns(precision);
  AttentionPlan best{is_long ? AttentionTile::k16ByColumns : AttentionTile::k16, 1, {}};
  double least = 0;
  bool is_first = true;
  for (const AttentionTile tile : kTiles) {
    if (is_by_lanes(tile)) {
      // All rows in one block, or the keys are read again; the least such tile.
      const int rows = attention_rows(tile);
      if (s.rows() > rows || (rows > 1 && s.rows() <= rows / 2)) continue;
    } else if ((tile == AttentionTile::k16ByColumns) != is_long) {
      continue;
    }
    if (!attention_fits(device, tile, precision, s, q_bytes, kv_bytes)) continue;
    const int keys =
        attention_keys(tile, precision, s.head_size, s.value_size, kv_bytes) * attention_warps(tile).keys;
    const std::ptrdiff_t whole =
        ceil_div(s.rows(), attention_rows(tile)) * std::ptrdiff_t{s.batch} * s.kv_heads;
    const int most = whole >= kBusyRounds * device.multiprocessors ? 1 : kMostParts;
    for (int splits = 1; splits <= most && (splits == 1 || s.keys >= splits * keys); splits *= 2) {
      const KernelTime time = attention_time(device, precision, s, tile, splits, q_bytes, kv_bytes);
      const double worth = time.microseconds() * (splits > 1 ? kWorthOfWorkspace : 1);
      if (!is_first && worth >= least) continue;
      best = {tile, splits, time};
      least = worth;
      is_first = false;
    }
  }
  return best;
}

// Floats of workspace; 0 where keys are not split.
constexpr std::ptrdiff_t attention_workspace_size(const AttentionShape& s, int splits) {
  const std::ptrdiff_t rows = std::ptrdiff_t{s.batch} * s.kv_heads * splits * s.rows();
  return splits > 1 ? rows * attention_part_floats(s.value_size) : 0;
}

// Words of Queue::counters.
constexpr std::ptrdiff_t attention_counters(AttentionTile tile, const AttentionShape& s, int splits) {
  return splits > 1 ? ceil_div(s.rows(), attention_rows(tile)) * s.batch * s.kv_heads : 0;
}

}  // namespace GCRT_NAMESPACE

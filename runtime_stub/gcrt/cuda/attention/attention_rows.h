// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Where rows of queries, keys and values lie, and how they come to shared memory.
// Included by cuda/attention/attention.h.
//
// Keys and values may lie in two places: those of earlier runs, and new ones behind them. Attention reads
// both where they are, and writes them joined, for the next run, from the copies that it makes in shared
// memory: that costs no launch, and no byte is read twice.
#pragma once

#include "gcrt/cuda/attention/attention_plan.h"
#include "gcrt/cuda/product/tile_load.h"

namespace GCRT_NAMESPACE {

// Keys or values beside the new ones, with dense columns. Rows [first_written, end_written) are those that
// `joined` does not have yet: what grows in place has its past.
template <class T>
struct CachedRows {
  const T* past;
  AttentionStrides past_strides;
  T* joined;
  AttentionStrides joined_strides;
  int first_written;
  int end_written;

  GCRT_DEVICE T* joined_row(int b, int head, int row) const {
    return joined + b * joined_strides.batch + head * joined_strides.head + row * joined_strides.row;
  }
  GCRT_INLINE bool writes(int row) const { return row >= first_written && row < end_written; }
};

// The cache of attention whose operands k and v are new rows alone.
template <class T>
struct AttentionCache {
  static constexpr bool kIsThere = true;
  int past;  // rows in front of the new ones
  CachedRows<T> k;
  CachedRows<T> v;
};

// All rows lie in one place, and are nobody else's.
struct NoAttentionCache {
  static constexpr bool kIsThere = false;
  static constexpr int past = 0;
  struct Rows {
  } k, v;
};

// The rows of one head.
template <class T>
struct HeadRows {
  const T* data;
  std::ptrdiff_t stride;
  GCRT_DEVICE const T* row(int i) const { return data + i * stride; }
};
template <class T>
struct JoinedHeadRows {
  HeadRows<T> past;
  HeadRows<T> fresh;
  int count;  // of the past
  GCRT_DEVICE const T* row(int i) const { return i < count ? past.row(i) : fresh.row(i - count); }
};

template <class T>
GCRT_DEVICE HeadRows<T> head_rows(const T* data, const AttentionStrides& strides, int b, int head) {
  return {data + b * strides.batch + head * strides.head, strides.row};
}
template <class T>
GCRT_DEVICE HeadRows<T> head_rows(const T* data, const AttentionStrides& strides, NoAttentionCache::Rows, int,
                                  int b, int head) {
  return head_rows(data, strides, b, head);
}
template <class T>
GCRT_DEVICE JoinedHeadRows<T> head_rows(const T* data, const AttentionStrides& strides,
                                        const CachedRows<T>& cached, int past, int b, int head) {
  return {head_rows(cached.past, cached.past_strides, b, head), head_rows(data, strides, b, head), past};
}

// Writes 16 bytes of a row of `size` that lie in shared memory, from `column` on. kCopied 16: it has them,
// and they begin at a multiple of 16 bytes; 0: `bytes` of them do.
template <int kCopied, class T>
GCRT_DEVICE void store_columns(T* row, const T* shared, int column, int size, int bytes) {
  constexpr int kElements = 16 / static_cast<int>(sizeof(T));
  if (kCopied == 16 || (bytes == 16 && column + kElements <= size)) {
    store_aligned<T, kElements>(row + column, load_aligned<T, kElements>(shared));
    return;
  }
  GCRT_UNROLL
  for (int i = 0; i < kElements; ++i) {
    if (column + i < size) row[column + i] = shared[i];
  }
}

// Starts the copy of 16 bytes of a row of `size`, from `column` on; what does not exist becomes zeros.
template <int kCopied, class T>
GCRT_DEVICE void copy_columns(T* shared, const T* row, int column, int size, std::ptrdiff_t stride, int bytes,
                              bool exists) {
  if constexpr (kCopied == 16) {
    cp_async<16>(shared, row + column, exists ? 16 : 0);
    return;
  }
  constexpr int kElements = 16 / static_cast<int>(sizeof(T));
  const int left = exists ? size - column : 0;
  const int valid = left < 0 ? 0 : (left < kElements ? left : kElements);
  if (stride == 1) {
    copy_chunk(shared, valid > 0 ? row + column : row, valid, bytes);
  } else {
    GCRT_UNROLL
    for (int i = 0; i < kElements; ++i) {
      const T* const from = i < valid ? row + (column + i) * stride : row;
      if constexpr (sizeof(T) == 4) {
        cp_async<4>(shared + i, from, i < valid ? 4 : 0);
      } else {
        shared[i] = i < valid ? *from : T{};
      }
    }
  }
}

// visit(row, column) of each 16 bytes of a tile of kRows rows of kColumns elements of T that are the
// thread's: the same ones each time. Neighbours are neighbours in memory. The loop is written out where
// a copy is one instruction.
template <int kCopied, class T, int kRows, int kColumns, int kThreads, class F>
GCRT_DEVICE void each_chunk(int thread, const F& visit) {
  constexpr int kElements = 16 / static_cast<int>(sizeof(T));
  constexpr int kChunks = kColumns / kElements;  // of a row
  constexpr int kCount = kRows * kChunks;
  const auto visit_from = [&](int first) GCRT_LAMBDA_INLINE {
    const int chunk = first + thread;
    if (kCount % kThreads != 0 && chunk >= kCount) return;
    if constexpr (kThreads % kChunks == 0) {
      visit(first / kChunks + thread / kChunks, thread % kChunks * kElements);
    } else {
      visit(chunk / kChunks, chunk % kChunks * kElements);
    }
  };
  if constexpr (kCopied == 16) {
    GCRT_UNROLL
    for (int first = 0; first < kCount; first += kThreads) visit_from(first);
  } else {
    GCRT_NO_UNROLL
    for (int first = 0; first < kCount; first += kThreads) visit_from(first);
  }
}

// Bytes of one copy of each operand, and of one store to a cache.
struct AttentionCopies {
  int q, k, v, joined;
};

template <class T>
inline int attention_copy_bytes(const T* data, const AttentionStrides& strides) {
  return strides.column == 1 ? copy_bytes(data, strides.batch, strides.head, strides.row)
                             : static_cast<int>(sizeof(T));
}

// The least width for what may lie in two places.
template <class T>
inline int least_copy_bytes(int bytes, const CachedRows<T>& rows) {
  const int of_past = attention_copy_bytes(rows.past, rows.past_strides);
  return of_past < bytes ? of_past : bytes;
}
template <class T, class Cache>
inline AttentionCopies attention_copies(int q, const AttentionShape& s, const T* k, const T* v,
                                        const Cache& cache) {
  const AttentionCopies copies{q, attention_copy_bytes(k, s.k), attention_copy_bytes(v, s.v), 0};
  if constexpr (Cache::kIsThere) {
    const int of_k = attention_copy_bytes(cache.k.joined, cache.k.joined_strides);
    const int of_v = attention_copy_bytes(cache.v.joined, cache.v.joined_strides);
    return {q, least_copy_bytes(copies.k, cache.k), least_copy_bytes(copies.v, cache.v),
            of_k < of_v ? of_k : of_v};
  } else {
    static_cast<void>(cache);
    return copies;
  }
}

}  // namespace GCRT_NAMESPACE

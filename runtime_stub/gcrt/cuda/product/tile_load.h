// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// How a matrix comes into shared memory: sources describe an operand, their cursors copy it slab by slab.
//
// A source is passed to the kernel by value. Its cursor belongs to one thread of one block: it is made for
// the tile's first row and a first k. load() starts the asynchronous copies of the next slab; what lies
// beyond the depth is filled with zeros, so that products need no bounds. load_whole() does so for several
// slabs that all lie inside the depth.
#pragma once

#include "gcrt/cuda/device/device.h"
#include "gcrt/cuda/product/tile.h"

namespace GCRT_NAMESPACE {

// Offset of batch entry z: two nested batch axes, so that one of them can be broadcast (stride 0).
struct BatchStrides {
  int inner_count = 1;
  std::ptrdiff_t outer = 0;
  std::ptrdiff_t inner = 0;

  GCRT_INLINE std::ptrdiff_t offset(int z) const {
    return inner_count == 1 ? z * outer : z / inner_count * outer + z % inner_count * inner;
  }
};

// An operand of which one copy moves kBytes, 16, 8, 4 or those of an element: address and all strides are
// multiples of that. Kernels for a plain pointer ask at run time.
template <int kBytes, class T>
struct CopiedIn {
  const T* data;
};
template <int kBytes, class T>
constexpr CopiedIn<kBytes, T> copied_in(const T* data) {
  return {data};
}

// The same of weights, which no kernel of a run writes: they are read before the kernel in front has ended.
template <int kBytes, class T>
struct WeightsIn {
  const T* data;
};
template <int kBytes, class T>
constexpr WeightsIn<kBytes, T> weights_in(const T* data) {
  return {data};
}

// The element behind a pointer, or behind what copied_in() or weights_in() makes of it.
template <class A>
struct OperandElement;
template <class T>
struct OperandElement<T*> {
  using Type = std::remove_const_t<T>;
};
template <int kBytes, class T>
struct OperandElement<CopiedIn<kBytes, T>> {
  using Type = T;
};
template <int kBytes, class T>
struct OperandElement<WeightsIn<kBytes, T>> {
  using Type = T;
};
template <class A>
using ElementOfOperand = typename OperandElement<A>::Type;

// Bytes that one copy may move where address and all strides (in elements) allow it.
template <class T, class... Strides>
inline int copy_bytes(const T* data, Strides... strides) {
  constexpr int kSize = static_cast<int>(sizeof(T));
  return copy_bytes_of(kSize, static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(data) / kSize),
                       static_cast<std::ptrdiff_t>(strides)...);
}

// What one copy of an operand moves.
template <int kBytes>
struct CopyWidth {
  constexpr explicit CopyWidth(int) {}
  GCRT_INLINE static int bytes() { return kBytes; }
};
template <>
struct CopyWidth<0> {
  int known_late;
  constexpr explicit CopyWidth(int bytes) : known_late(bytes) {}
  GCRT_INLINE int bytes() const { return known_late; }
};

// Starts copies of the first `valid` of 16 / sizeof(T) elements and zeros the rest. A single element of less
// than 4 bytes has no asynchronous copy.
template <int kBytes, class T>
GCRT_DEVICE void copy_in_pieces(T* shared, const T* source, int valid) {
  constexpr int kSize = static_cast<int>(sizeof(T));
  GCRT_UNROLL
  for (int i = 0; i < 16 / kBytes; ++i) {
    const int left = valid * kSize - kBytes * i;
    cp_async<kBytes>(shared + i * kBytes / kSize, source + i * kBytes / kSize,
                     left < 0 ? 0 : (left < kBytes ? left : kBytes));
  }
}
template <class T>
GCRT_DEVICE void copy_chunk(T* shared, const T* source, int valid, int bytes) {
  constexpr int kSize = static_cast<int>(sizeof(T));
  if (bytes == 16) {
    cp_async<16>(shared, source, valid * kSize);
  } else if (bytes == 8) {
    if constexpr (kSize < 4) copy_in_pieces<8>(shared, source, valid);
  } else if (bytes == 4) {
    copy_in_pieces<4>(shared, source, valid);
  } else if constexpr (kSize < 4) {
    GCRT_UNROLL
    for (int i = 0; i < 16 / kSize; ++i) shared[i] = i < valid ? source[i] : T{};
  }
}

// Which chunks of 16 bytes of a slab a thread copies: the same part of rows first, first + step, ...
template <class T, int kRows, int kThreads, int kDepth>
struct ChunkShare {
  static constexpr int kElements = 16 / static_cast<int>(sizeof(T));
  static constexpr int kChunks = kDepth / kElements;  // per row
  static constexpr int kRowStep = kThreads / kChunks;
  static constexpr int kCopies = (kRows + kRowStep - 1) / kRowStep;
  static constexpr bool kIsExact = kRows % kRowStep == 0;

  int row;     // of the first chunk
  int offset;  // in elements from the start of the row

  GCRT_DEVICE ChunkShare() {
    const int thread = static_cast<int>(threadIdx.x);
    row = thread / kChunks;
    offset = thread % kChunks * kElements;
  }
  GCRT_INLINE bool has(int copy) const { return kIsExact || row + copy * kRowStep < kRows; }
  GCRT_INLINE int row_of(int copy) const { return row + copy * kRowStep; }
  // Where the first chunk lies in a slab; the others follow kRowStep rows further on each.
  GCRT_INLINE int place() const {
    static_assert(kRowStep % 8 == 0, "see slab_offset");
    return slab_offset<T, kDepth>(row, offset);
  }
};

// A matrix whose rows are contiguous along k: A, and B stored as [columns][k]. kBytes: of one copy; 0: known
// at run time.
template <class T, int kBytes = 0, bool kAreWeights = false>
struct DenseSource {
  using Element = T;
  static constexpr bool kIsConstant = kAreWeights;
  static constexpr bool kIsDepthMajor = false;

  const T* data;
  std::ptrdiff_t row_stride;
  int rows;
  int depth;  // elements of a row that may be read
  CopyWidth<kBytes> width;
  BatchStrides batch;

  // Fetches the lines of `count` rows that a block will copy, from first_k on: at most kMostLines by a
  // thread. B is mostly weights, which are there before the kernel in front has ended; of others nothing is
  // read here.
  template <int kThreads>
  GCRT_DEVICE void prefetch_rows(int z, int first_row, int count, int first_k, int length) const {
    constexpr int kLine = 128 / static_cast<int>(sizeof(T));
    constexpr int kMostLines = 8;
    const int end = first_k + length < depth ? first_k + length : depth;
    const int most = rows - first_row < count ? rows - first_row : count;
    const int lines = (end - first_k + kLine - 1) / kLine;
    int line = static_cast<int>(threadIdx.x);
    for (int i = 0; i < kMostLines && line < lines * most; ++i, line += kThreads) {
      const int k = line / most;
      prefetch(data + batch.offset(z) + (first_row + line - k * most) * row_stride + (first_k + k * kLine));
    }
  }

  // Rows beyond the last are copies of it: nothing reads their products.
  // Only the end of the depth has bounds.
  template <int kRows, int kThreads, int kDepth>
  struct Cursor {
    using Share = ChunkShare<T, kRows, kThreads, kDepth>;
    Share share;
    const T* from[Share::kCopies];  // the next chunk of each row of this thread
    int left;                       // elements of the rows from the slab on
    CopyWidth<kBytes> width;

    GCRT_DEVICE Cursor(const DenseSource& s, int z, int first_row, int first_k) : width(s.width) {
      const T* const entry = s.data + s.batch.offset(z) + (first_k + share.offset);
      GCRT_UNROLL
      for (int i = 0; i < Share::kCopies; ++i) {
        const int row = first_row + share.row_of(i);
        from[i] = entry + (row < s.rows ? row : s.rows - 1) * s.row_stride;
      }
      left = s.depth - first_k;
    }
    template <int kSlabs>
    GCRT_DEVICE void load_whole(T* shared) {
      if (width.bytes() == 16) {
        copy_slabs<kSlabs>(shared, 16);
      } else {
        copy_slabs<kSlabs>(shared, width.bytes());
      }
      advance(kSlabs * kDepth);
    }
    GCRT_DEVICE void load(T* shared) {
      T* const to = shared + share.place();
      const int rest = left - share.offset;
      const int valid = rest < 0 ? 0 : (rest < Share::kElements ? rest : Share::kElements);
      GCRT_UNROLL
      for (int i = 0; i < Share::kCopies; ++i) {
        if (share.has(i)) copy_chunk(to + i * Share::kRowStep * kDepth, from[i], valid, width.bytes());
      }
      advance(kDepth);
    }

   private:
    template <int kSlabs>
    GCRT_DEVICE void copy_slabs(T* shared, int bytes) {
      T* const to = shared + share.place();
      GCRT_UNROLL
      for (int slab = 0; slab < kSlabs; ++slab) {
        GCRT_UNROLL
        for (int i = 0; i < Share::kCopies; ++i) {
          T* const place = to + (slab * kRows + i * Share::kRowStep) * kDepth;
          if (share.has(i)) copy_chunk(place, from[i] + slab * kDepth, Share::kElements, bytes);
        }
      }
    }
    GCRT_INLINE void advance(int count) {
      GCRT_UNROLL
      for (int i = 0; i < Share::kCopies; ++i) from[i] += count;
      left -= count;
    }
  };
};

// B of any strides, kept as [k][columns] in shared memory.
struct StridedSource {
  using Element = float;
  static constexpr bool kIsDepthMajor = true;

  const float* data;
  std::ptrdiff_t stride_k;
  std::ptrdiff_t stride_n;
  int columns;
  int depth;
  int bytes;  // 16 only where stride_n is 1
  BatchStrides batch;

  // Known at run time: nothing is there to be fetched.
  template <int kThreads>
  GCRT_DEVICE void prefetch_rows(int, int, int, int, int) const {}

  template <int kColumns, int kThreads, int kDepth>
  struct Cursor {
    static constexpr int kQuads = kColumns / 4;
    static constexpr int kStep = kThreads / kQuads;  // of k, between the copies of one thread
    static constexpr int kCopies = (kDepth + kStep - 1) / kStep;
    const float* data;
    std::ptrdiff_t stride_k;
    std::ptrdiff_t stride_n;
    int k;
    int column;
    int columns_left;
    int left;
    int bytes;

    GCRT_DEVICE Cursor(const StridedSource& s, int z, int first_column, int first_k) {
      const int thread = static_cast<int>(threadIdx.x);
      k = thread / kQuads;
      column = thread % kQuads * 4;
      stride_k = s.stride_k;
      stride_n = s.stride_n;
      data = s.data + s.batch.offset(z) + (first_k + k) * stride_k + (first_column + column) * stride_n;
      columns_left = s.columns - first_column - column;
      left = s.depth - first_k - k;
      bytes = s.bytes;
    }
    template <int kSlabs>
    GCRT_DEVICE void load_whole(float* shared) {
      GCRT_NO_UNROLL
      for (int slab = 0; slab < kSlabs; ++slab) load(shared + slab * kColumns * kDepth);
    }
    GCRT_DEVICE void load(float* shared) {
      const int valid = columns_left < 0 ? 0 : (columns_left < 4 ? columns_left : 4);
      GCRT_UNROLL
      for (int i = 0; i < kCopies; ++i) {
        if (kDepth % kStep != 0 && k + i * kStep >= kDepth) continue;
        const int count = i * kStep < left ? valid : 0;
        const float* const source = data + i * kStep * stride_k;
        float* const to = shared + depth_major_offset<kColumns>(k + i * kStep, column);
        if (bytes == 16) {
          cp_async<16>(to, source, count * 4);
        } else {
          GCRT_UNROLL
          for (int j = 0; j < 4; ++j) cp_async<4>(to + j, source + j * stride_n, j < count ? 4 : 0);
        }
      }
      data += kDepth * stride_k;
      left -= kDepth;
    }
  };
};

}  // namespace GCRT_NAMESPACE

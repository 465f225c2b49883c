// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Kernels with their own control: TopK, ScatterND, ScatterElements, CumSum. Dense row-major tensors; nothing
// is allocated. Functions that take run-time indices return false when one is out of range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "gcrt/config.h"
#include "gcrt/pack.h"
#include "gcrt/scalar/scalar.h"
#include "gcrt/scatter_combine.h"
#include "gcrt/top_k_order.h"

namespace GCRT_NAMESPACE {

// A binary heap in the output itself whose root is the worst of the values kept so far.
template <class T, bool Largest>
class TopKHeap {
 public:
  TopKHeap(T* values, std::int64_t* positions, std::ptrdiff_t stride)
      : values_(values), positions_(positions), stride_(stride) {}

  void push(std::ptrdiff_t count, T value, std::int64_t position) {
    std::ptrdiff_t at = count;
    while (at > 0) {
      const std::ptrdiff_t parent = (at - 1) / 2;
      if (!before(parent, value, position)) break;
      move(parent, at);
      at = parent;
    }
    set(at, value, position);
  }
  bool better_than_worst(T value, std::int64_t position) const { return !before(0, value, position); }
  void replace_worst(std::ptrdiff_t count, T value, std::int64_t position) { sift(count, value, position); }
  // Best first.
  void sort(std::ptrdiff_t count) {
    for (std::ptrdiff_t last = count - 1; last > 0; --last) {
      const T value = values_[last * stride_];
      const std::int64_t position = positions_[last * stride_];
      move(0, last);
      sift(last, value, position);
    }
  }

 private:
  // Whether the entry at `at` comes before (value, position) in the result.
  bool before(std::ptrdiff_t at, T value, std::int64_t position) const {
    return TopKOrder<T, Largest>::before(values_[at * stride_], positions_[at * stride_], value, position);
  }
  void set(std::ptrdiff_t at, T value, std::int64_t position) {
    values_[at * stride_] = value;
    positions_[at * stride_] = position;
  }
  void move(std::ptrdiff_t from, std::ptrdiff_t to) {
    set(to, values_[from * stride_], positions_[from * stride_]);
  }
  void sift(std::ptrdiff_t count, T value, std::int64_t position) {
    std::ptrdiff_t at = 0;
    for (;;) {
      std::ptrdiff_t child = 2 * at + 1;
      if (child >= count) break;
      if (child + 1 < count &&
          before(child, values_[(child + 1) * stride_], positions_[(child + 1) * stride_]))
        ++child;
      // A child that comes before the new entry is better than it: the worst must be on top.
      if (before(child, value, position)) break;
      move(child, at);
      at = child;
    }
    set(at, value, position);
  }
  T* values_;
  std::int64_t* positions_;
  std::ptrdiff_t stride_;
};

// x [outer][extent][inner] -> values, positions [outer][k][inner], best first.
template <bool Largest, class T>
inline void top_k(std::ptrdiff_t outer, std::ptrdiff_t extent, std::ptrdiff_t inner, std::ptrdiff_t k,
                  const T* x, T* values, std::int64_t* positions) {
  if (k == 0) return;
  for (std::ptrdiff_t o = 0; o < outer; ++o) {
    for (std::ptrdiff_t i = 0; i < inner; ++i) {
      const T* line = x + o * extent * inner + i;
      TopKHeap<T, Largest> heap(values + o * k * inner + i, positions + o * k * inner + i, inner);
      for (std::ptrdiff_t j = 0; j < k; ++j) heap.push(j, line[j * inner], j);
      for (std::ptrdiff_t j = k; j < extent; ++j) {
        if (heap.better_than_worst(line[j * inner], j)) heap.replace_worst(k, line[j * inner], j);
      }
      heap.sort(k);
    }
  }
}

// Combines a row of y with a row of updates, which is no part of it.
template <class Combine, class T>
inline void combine_row(std::ptrdiff_t count, const T* updates, T* y) {
  if constexpr (std::is_same<Combine, ScatterReplace>::value) {
    __builtin_memcpy(y, updates, static_cast<std::size_t>(count) * sizeof(T));
  } else if constexpr (std::is_arithmetic<T>::value && !std::is_same<T, bool>::value) {
    vectorize<kLanesFor<T>>(count, [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE {
      store(lane, y + i, Combine()(load(lane, y + i), load(lane, updates + i)));
    });
  } else {
    for (std::ptrdiff_t i = 0; i < count; ++i) y[i] = Combine()(y[i], updates[i]);
  }
}

// y = data with y[indices[t]...] combined with updates[t]: `tuples` index tuples of `depth` axes with extents
// and strides, each addressing `slice` consecutive elements. data may be y. Nothing is written when an index
// is bad.
template <class Combine, class T, class I>
inline bool scatter_nd(std::ptrdiff_t count, std::ptrdiff_t tuples, std::ptrdiff_t depth,
                       std::ptrdiff_t slice, const std::int64_t* extents, const std::int64_t* strides,
                       const T* data, const I* indices, const T* updates, T* y) {
  for (std::ptrdiff_t t = 0; t < tuples; ++t) {
    for (std::ptrdiff_t d = 0; d < depth; ++d) {
      if (wrapped_index(static_cast<std::int64_t>(indices[t * depth + d]), extents[d]) < 0) return false;
    }
  }
  if (data != y) __builtin_memcpy(y, data, static_cast<std::size_t>(count) * sizeof(T));
  for (std::ptrdiff_t t = 0; t < tuples; ++t) {
    std::int64_t base = 0;
    for (std::ptrdiff_t d = 0; d < depth; ++d) {
      base += wrapped_index(static_cast<std::int64_t>(indices[t * depth + d]), extents[d]) * strides[d];
    }
    combine_row<Combine>(slice, updates + t * slice, y + base);
  }
  return true;
}

// y = data with y[..., indices[p], ...] combined with updates[p] along `axis`;
// p runs over the box of the indices.
template <class Combine, class T, class I>
inline bool scatter_elements(std::ptrdiff_t count, int rank, int axis, const std::int64_t* extents,
                             const std::int64_t* strides, const std::int64_t* box, const T* data,
                             const I* indices, const T* updates, T* y) {
  std::int64_t positions = 1;
  for (int i = 0; i < rank; ++i) positions *= box[i];
  for (std::int64_t p = 0; p < positions; ++p) {
    if (wrapped_index(static_cast<std::int64_t>(indices[p]), extents[axis]) < 0) return false;
  }
  if (data != y) __builtin_memcpy(y, data, static_cast<std::size_t>(count) * sizeof(T));
  const std::int64_t row = positions > 0 ? box[rank - 1] : 1, step = axis == rank - 1 ? 0 : strides[rank - 1];
  for (std::int64_t first = 0; first < positions; first += row) {
    std::int64_t rest = first / row, start = 0;
    for (int i = rank - 1; i-- > 0;) {
      if (i != axis) start += rest % box[i] * strides[i];
      rest /= box[i];
    }
    for (std::int64_t j = 0; j < row; ++j) {
      const auto index = static_cast<std::int64_t>(indices[first + j]);
      const std::int64_t at = start + wrapped_index(index, extents[axis]) * strides[axis] + j * step;
      y[at] = Combine()(y[at], updates[first + j]);
    }
  }
  return true;
}

}  // namespace GCRT_NAMESPACE

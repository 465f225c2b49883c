// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// ScatterND and ScatterElements on dense row-major tensors.
//
// Updates of the same place are combined in their order, so the results are those of the CPU, bit for bit.
// Indices out of range set the queue's trap word and write nothing.
#pragma once

#include "gcrt/cuda/scatter_plan.h"
#include "gcrt/cuda/sort.h"
#include "gcrt/scatter_combine.h"

namespace GCRT_NAMESPACE {

// The place that update t goes to, or -1. ScatterND: index tuples of the leading axes, whose coordinates are
// `steps` places apart.
template <class I, int kAxes>
struct TupleAddress {
  const I* indices;
  int depth;
  std::int64_t extents[kAxes];
  std::int64_t steps[kAxes];
  GCRT_DEVICE std::int64_t operator()(int t) const {
    std::int64_t place = 0;
    GCRT_UNROLL
    for (int d = 0; d < kAxes; ++d) {
      if (d >= depth) break;
      const std::int64_t index = static_cast<std::int64_t>(indices[std::ptrdiff_t{t} * depth + d]);
      const std::int64_t wrapped = wrapped_index(index, extents[d]);
      if (wrapped < 0) return -1;
      place += wrapped * steps[d];
    }
    return place;
  }
};

// ScatterElements: update t lies in a box, and its index replaces the coordinate along one axis.
template <class I, int kAxes>
struct ElementAddress {
  const I* indices;
  int rank;
  int axis;
  std::int64_t extent;  // along the axis
  std::int64_t strides[kAxes];
  std::int64_t box[kAxes];
  GCRT_DEVICE std::int64_t operator()(int t) const {
    const std::int64_t wrapped = wrapped_index(static_cast<std::int64_t>(indices[t]), extent);
    if (wrapped < 0) return -1;
    std::int64_t rest = t;
    std::int64_t place = 0;
    GCRT_UNROLL
    for (int i = kAxes - 1; i >= 0; --i) {
      if (i >= rank) continue;
      place += (i == axis ? wrapped : rest % box[i]) * strides[i];
      rest /= box[i];
    }
    return place;
  }
};

constexpr int kScatterThreads = 256;

GCRT_DEVICE std::ptrdiff_t scatter_thread() {
  return std::ptrdiff_t{blockIdx.x} * kScatterThreads + threadIdx.x;
}

// ---- Replacing: the last update of a place wins.

// last[place]: the last update of it, -1 before. places[t]: of update t, or -1.
template <class Address>
GCRT_GLOBAL(kScatterThreads)
void find_last_kernel(int updates, Address address, std::int32_t* last, std::int32_t* places, int* trap) {
  if (scatter_thread() >= updates) return;
  const int t = static_cast<int>(scatter_thread());
  const std::int32_t place = static_cast<std::int32_t>(address(t));
  places[t] = place;
  if (place < 0) {
    *trap = 1;
  } else {
    atomic_max(last + place, t);
  }
}

template <class T>
GCRT_GLOBAL(kScatterThreads)
void store_last_kernel(std::ptrdiff_t count, std::ptrdiff_t slice, const std::int32_t* last,
                       const std::int32_t* places, const T* updates, T* y, const int* trap) {
  const std::ptrdiff_t i = scatter_thread();
  if (i >= count || *trap != 0) return;
  const std::int32_t t = static_cast<std::int32_t>(i / slice);
  const std::int32_t place = places[t];
  if (last[place] == t) y[place * slice + i % slice] = updates[i];
}

// ---- Combining: updates are sorted by place, and the first of each place folds all of them.

// Places as keys, `targets` for an index out of range, which is sorted to the end.
template <class Address>
GCRT_DEVICE std::uint32_t place_key(const Address& address, int t, std::uint32_t targets, int* trap) {
  const std::int64_t place = address(t);
  if (place < 0) *trap = 1;
  return place < 0 ? targets : static_cast<std::uint32_t>(place);
}

template <class Address>
GCRT_GLOBAL(kScatterThreads)
void place_keys_kernel(int updates, Address address, std::uint32_t targets, SortPairs pairs, int* trap) {
  if (scatter_thread() >= updates) return;
  const int t = static_cast<int>(scatter_thread());
  pairs.keys[t] = place_key(address, t, targets, trap);
  pairs.values[t] = static_cast<std::uint32_t>(t);
}

// The same and sorted, by one block.
template <class Address>
GCRT_GLOBAL(kScanThreads)
void sort_places_kernel(int updates, Address address, std::uint32_t targets, SortPairs pairs, int* trap) {
  GCRT_DYNAMIC_SHARED(std::uint64_t, entries);
  const int threads = static_cast<int>(blockDim.x);
  for (int t = thread_rank(); t < updates; t += threads) {
    entries[t] = std::uint64_t{place_key(address, t, targets, trap)} << 32 | static_cast<std::uint64_t>(t);
  }
  barrier();
  sort_in_block(
      updates, [&](int i, int j) { return entries[i] < entries[j]; },
      [&](int i, int j) {
        const std::uint64_t entry = entries[i];
        entries[i] = entries[j];
        entries[j] = entry;
      });
  for (int i = thread_rank(); i < updates; i += threads) {
    pairs.keys[i] = static_cast<std::uint32_t>(entries[i] >> 32);
    pairs.values[i] = static_cast<std::uint32_t>(entries[i]);
  }
}

template <class Combine, class T>
GCRT_GLOBAL(kScatterThreads)
void fold_updates_kernel(int updates, std::ptrdiff_t slice, SortPairs sorted, const T* values, T* y,
                         const int* trap) {
  const std::ptrdiff_t i = scatter_thread();
  if (i >= updates * slice || *trap != 0) return;
  int at = static_cast<int>(i / slice);
  const std::ptrdiff_t within = i % slice;
  const std::uint32_t place = sorted.keys[at];
  if (at > 0 && sorted.keys[at - 1] == place) return;
  T* const target = y + std::ptrdiff_t{place} * slice + within;
  T result = *target;
  for (; at < updates && sorted.keys[at] == place; ++at) {
    result = Combine()(result, values[std::ptrdiff_t{sorted.values[at]} * slice + within]);
  }
  *target = result;
}

// ---- Host side.

struct ScatterSize {
  std::ptrdiff_t count;    // elements of the data
  std::ptrdiff_t targets;  // places, of `slice` elements each
  std::ptrdiff_t slice;
  int updates;
};

template <class Combine, class Address, class T>
inline void scatter(Queue& queue, const ScatterSize& s, const Address& address, const T* data,
                    const T* updates, T* y, std::uint32_t* scratch) {
  if (data != y)
    copy(queue, y, data, static_cast<std::size_t>(s.count) * sizeof(T), cudaMemcpyDeviceToDevice);
  const dim3 threads(kScatterThreads);
  const dim3 blocks(blocks_for(s.updates, kScatterThreads));
  const dim3 element_blocks(blocks_for(s.updates * s.slice, kScatterThreads));
  if (s.updates == 0) return;
  if constexpr (std::is_same<Combine, ScatterReplace>::value) {
    std::int32_t* const last = reinterpret_cast<std::int32_t*>(scratch);
    std::int32_t* const places = last + s.targets;
    fill_bytes(queue, last, 0xff, static_cast<std::size_t>(s.targets) * 4);
    launch(queue, blocks, threads, 0, find_last_kernel<Address>, s.updates, address, last, places,
           queue.trap);
    launch(queue, element_blocks, threads, 0, store_last_kernel<T>, s.updates * s.slice, s.slice, last,
           places, updates, y, queue.trap);
  } else {
    const std::uint32_t targets = static_cast<std::uint32_t>(s.targets);
    SortPairs pairs{scratch, scratch + s.updates};
    if (s.updates <= kSortInBlock) {
      launch(queue, dim3(1), dim3(kScanThreads), static_cast<std::size_t>(s.updates) * 8,
             sort_places_kernel<Address>, s.updates, address, targets, pairs, queue.trap);
    } else {
      launch(queue, blocks, threads, 0, place_keys_kernel<Address>, s.updates, address, targets, pairs,
             queue.trap);
      const SortPairs other{scratch + 2 * std::ptrdiff_t{s.updates}, scratch + 3 * std::ptrdiff_t{s.updates}};
      pairs = sort_pairs(queue, s.updates, key_bits(s.targets), pairs, other,
                         scratch + 4 * std::ptrdiff_t{s.updates});
    }
    launch(queue, element_blocks, threads, 0, fold_updates_kernel<Combine, T>, s.updates, s.slice, pairs,
           updates, y, queue.trap);
  }
}

// y = data with y[indices[t]...] combined with updates[t]: `tuples` index tuples of `depth` axes with
// extents, each addressing `slice` consecutive elements. data may be y. scratch: scatter_scratch_words with
// the product of the extents as targets, which is below 2^31, and tuples as updates;
// at most scatter_launches launches.
template <class Combine, class T, class I, int kAxes>
inline void scatter_nd(Queue& queue, std::ptrdiff_t count, int tuples, int depth, std::ptrdiff_t slice,
                       const std::int64_t (&extents)[kAxes], const T* data, const I* indices,
                       const T* updates, T* y, std::uint32_t* scratch) {
  TupleAddress<I, kAxes> address{indices, depth, {}, {}};
  std::ptrdiff_t targets = 1;
  for (int d = depth - 1; d >= 0; --d) {
    address.extents[d] = extents[d];
    address.steps[d] = targets;
    targets *= extents[d];
  }
  scatter<Combine>(queue, ScatterSize{count, targets, slice, tuples}, address, data, updates, y, scratch);
}

// The same where the data lies with room between its rows, and the result is written: coordinates are
// `strides` elements apart, multiples of the slice. Places without data count as targets.
template <class Combine, class T, class I, int kAxes>
inline void scatter_nd(Queue& queue, std::ptrdiff_t count, int tuples, int depth, std::ptrdiff_t slice,
                       const std::int64_t (&extents)[kAxes], const std::int64_t (&strides)[kAxes],
                       const T* data, const I* indices, const T* updates, T* y, std::uint32_t* scratch) {
  if (slice == 0) return;
  TupleAddress<I, kAxes> address{indices, depth, {}, {}};
  for (int d = 0; d < depth; ++d) {
    address.extents[d] = extents[d];
    address.steps[d] = strides[d] / slice;
  }
  scatter<Combine>(queue, ScatterSize{count, extents[0] * address.steps[0], slice, tuples}, address, data,
                   updates, y, scratch);
}

// y = data with y[..., indices[p], ...] combined with updates[p] along `axis`; p runs over the box of the
// indices. scratch: scatter_scratch_words with `count` targets, below 2^31,
// and the size of the box as updates.
template <class Combine, class T, class I, int kAxes>
inline void scatter_elements(Queue& queue, std::ptrdiff_t count, int rank, int axis,
                             const std::int64_t (&extents)[kAxes], const std::int64_t (&strides)[kAxes],
                             const std::int64_t (&box)[kAxes], const T* data, const I* indices,
                             const T* updates, T* y, std::uint32_t* scratch) {
  ElementAddress<I, kAxes> address{indices, rank, axis, extents[axis], {}, {}};
  std::ptrdiff_t positions = 1;
  for (int i = 0; i < rank; ++i) {
    address.strides[i] = strides[i];
    address.box[i] = box[i];
    positions *= box[i];
  }
  scatter<Combine>(queue, ScatterSize{count, count, 1, static_cast<int>(positions)}, address, data, updates,
                   y, scratch);
}

}  // namespace GCRT_NAMESPACE

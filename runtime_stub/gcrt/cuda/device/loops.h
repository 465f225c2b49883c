// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Loops and reductions of the threads that work on one row together: the lanes of a warp, or a whole block.
// They stand where the CPU has vectorize, reduce_add and so on of gcrt/loops.h, with the group as first
// argument and the same bodies: body(lane, i) handles the elements i to i + lane - 1.
//
// Every thread of the group calls them, in the same order, and knows the results. The order of a reduction
// depends on the size of the group, the lanes and the count only.
#pragma once

#include "gcrt/cuda/device/device.h"
#include "gcrt/loops.h"

namespace GCRT_NAMESPACE {

// Threads is 32, or the number of threads of the block: a power of two up to 1024. A block's group needs
// kScratchBytes of shared memory of its own.
template <int Threads>
class Group {
 public:
  static_assert(Threads >= kWarpThreads && Threads <= 1024 && (Threads & (Threads - 1)) == 0,
                "a warp or a block");
  static constexpr int kThreads = Threads;
  static constexpr int kWarps = Threads / kWarpThreads;
  // One value of up to 16 bytes for each warp, in two sets: while some threads still read the results of one
  // reduction, others may write those of the next, but none can be two ahead.
  static constexpr int kScratchBytes = kWarps == 1 ? 0 : 2 * kWarps * 16;

  GCRT_DEVICE explicit Group(void* scratch) : scratch_(static_cast<unsigned char*>(scratch)) {}

  // 0 to Threads - 1.
  GCRT_DEVICE int rank() const { return kWarps == 1 ? lane_rank() : thread_rank(); }

  // What the threads of the group wrote to shared memory before is visible to them after.
  GCRT_DEVICE void sync() const {
    if constexpr (kWarps == 1) {
      warp_sync();
    } else {
      barrier();
    }
  }

  // combine(earlier, later) over the values of all threads in the order of their ranks, up to association.
  template <class T, class Combine>
  GCRT_DEVICE T combine(T value, const Combine& combine_two) {
    value = combine_lanes<kWarpThreads>(value, combine_two);
    if constexpr (kWarps > 1) {
      static_assert(sizeof(T) <= 16, "the size of a slot");
      T* slots = reinterpret_cast<T*>(scratch_ + set_ * kWarps * 16);
      set_ ^= 1;
      if (lane_rank() == 0) slots[warp_rank()] = value;
      barrier();
      value = combine_lanes<kWarps>(slots[lane_rank() % kWarps], combine_two);
    }
    return value;
  }

 private:
  unsigned char* scratch_;
  int set_ = 0;
};

// The group of the calling thread. Its scratch lies in the dynamic shared memory, `offset` bytes from the
// start; a multiple of 16.
template <int Threads>
GCRT_DEVICE Group<Threads> make_group(std::ptrdiff_t offset = 0) {
  if constexpr (Group<Threads>::kScratchBytes == 0) {
    static_cast<void>(offset);
    return Group<Threads>(nullptr);
  } else {
    GCRT_DYNAMIC_SHARED(unsigned char, shared);
    return Group<Threads>(shared + offset);
  }
}

// body(Lanes<L>{}, i) for the full packs of [0, count), then body(Lanes<1>{}, i) for the rest, spread over
// the group so that neighbouring threads handle neighbouring packs.
template <int L = kLanes, int Threads, class F>
GCRT_DEVICE void vectorize(const Group<Threads>& group, std::ptrdiff_t count, const F& body) {
  const std::ptrdiff_t full = count - count % L;
  for (std::ptrdiff_t i = std::ptrdiff_t{group.rank()} * L; i < full; i += Threads * L) body(Lanes<L>{}, i);
  if constexpr (L > 1) {
    for (std::ptrdiff_t i = full + group.rank(); i < count; i += Threads) body(Lanes<1>{}, i);
  }
}

// This thread's part of a reduction of [0, count): for sums over several axes, whose outer ones are loops,
// the parts are combined in the loops, and the group once at the end.
template <class T, int L = kLanesFor<T>, int Threads, class Combine, class F>
GCRT_DEVICE T reduce_part(const Group<Threads>& group, std::ptrdiff_t count, T identity,
                          const Combine& combine, const F& body) {
  constexpr std::ptrdiff_t step = std::ptrdiff_t{Threads} * L;
  const Lanes<L> lane{};
  const std::ptrdiff_t full = count - count % L;
  std::ptrdiff_t i = std::ptrdiff_t{group.rank()} * L;
  T result = identity;
  if (i < full) {
    auto a = body(lane, i);
    i += step;
    // Four packs on their way at a time hide the latency of memory.
    if (i + 2 * step < full) {
      auto b = body(lane, i);
      auto c = body(lane, i + step);
      auto d = body(lane, i + 2 * step);
      for (i += 3 * step; i + 3 * step < full; i += 4 * step) {
        a = combine(a, body(lane, i));
        b = combine(b, body(lane, i + step));
        c = combine(c, body(lane, i + 2 * step));
        d = combine(d, body(lane, i + 3 * step));
      }
      a = combine(combine(a, b), combine(c, d));
    }
    for (; i < full; i += step) a = combine(a, body(lane, i));
    result = combine(result, reduce_lanes(combine, a));
  }
  if constexpr (L > 1) {
    for (i = full + group.rank(); i < count; i += Threads) result = combine(result, body(Lanes<1>{}, i));
  }
  return result;
}

// reduce_add<T, L>(group, count, body): the whole reduction. reduce_add_part: this thread's part of it.
// combine_add(group, value): the reduction of one value per thread.
#define GCRT_GROUP_REDUCTION(name, function, identity)                                                   \
  template <class T, int Threads>                                                                        \
  GCRT_DEVICE T combine_##name(Group<Threads>& group, T value) {                                         \
    return group.combine(value, [](T a, T b) GCRT_LAMBDA_INLINE { return function(a, b); });             \
  }                                                                                                      \
  template <class T, int L = kLanesFor<T>, int Threads, class F>                                         \
  GCRT_DEVICE T reduce_##name##_part(const Group<Threads>& group, std::ptrdiff_t count, const F& body) { \
    return reduce_part<T, L>(                                                                            \
        group, count, identity, [](auto a, auto b) GCRT_LAMBDA_INLINE { return function(a, b); }, body); \
  }                                                                                                      \
  template <class T, int L = kLanesFor<T>, int Threads, class F>                                         \
  GCRT_DEVICE T reduce_##name(Group<Threads>& group, std::ptrdiff_t count, const F& body) {              \
    return combine_##name(group, reduce_##name##_part<T, L>(group, count, body));                        \
  }
GCRT_GROUP_REDUCTION(add, add, T(0))
GCRT_GROUP_REDUCTION(mul, mul, T(1))
GCRT_GROUP_REDUCTION(max, max, std::numeric_limits<T>::has_infinity ? T(-kInfinity<T>) : kLowest<T>)
GCRT_GROUP_REDUCTION(min, min, std::numeric_limits<T>::has_infinity ? kInfinity<T> : kLargest<T>)
#undef GCRT_GROUP_REDUCTION

// A value, and where it stands; -1: nowhere, for there was none.
template <class T>
struct ArgExtremum {
  T value;
  std::int64_t position;
};

// Position of the extremum of the values that a group offers, each thread in rising positions. The rules are
// those of ArgReduction: NaN counts as the extremum, and the first one wins; equal values keep the first
// position unless Last.
template <class T, bool Max, bool Last>
class GroupArgReduction {
 public:
  using Best = ArgExtremum<T>;

  GCRT_DEVICE void offer(T value, std::int64_t position) { best_ = better(best_, {value, position}); }

  // The extremum of all threads.
  template <int Threads>
  GCRT_DEVICE Best extremum(Group<Threads>& group) const {
    return group.combine(best_, [](Best a, Best b) GCRT_LAMBDA_INLINE { return better(a, b); });
  }

  // Which of the two the rules choose, wherever each stands.
  static GCRT_DEVICE Best better(Best a, Best b) {
    if (a.position < 0 || b.position < 0) return a.position < 0 ? b : a;
    const Best first = a.position < b.position ? a : b;
    const Best second = a.position < b.position ? b : a;
    if (first.value != first.value) return first;
    const bool wins = Max ? second.value > first.value : second.value < first.value;
    return second.value != second.value || wins || (Last && second.value == first.value) ? second : first;
  }

 private:
  Best best_ = {T(0), -1};
};

// The extremum of body(Lanes<1>{}, i) for i in [0, count), and its position there.
template <class T, bool Max, bool Last, int Threads, class F>
GCRT_DEVICE ArgExtremum<T> arg_extremum(Group<Threads>& group, std::ptrdiff_t count, const F& body) {
  GroupArgReduction<T, Max, Last> best;
  std::ptrdiff_t i = group.rank();
  for (; i + 3 * Threads < count; i += 4 * Threads) {
    // Four elements on their way at a time hide the latency of memory.
    T values[4];
    GCRT_UNROLL
    for (int k = 0; k < 4; ++k) values[k] = body(Lanes<1>{}, i + k * Threads);
    GCRT_UNROLL
    for (int k = 0; k < 4; ++k) best.offer(values[k], i + k * Threads);
  }
  for (; i < count; i += Threads) best.offer(body(Lanes<1>{}, i), i);
  return best.extremum(group);
}
template <class T, bool Max, bool Last, int Threads, class F>
GCRT_DEVICE std::int64_t arg_reduce(Group<Threads>& group, std::ptrdiff_t count, const F& body) {
  return arg_extremum<T, Max, Last>(group, count, body).position;
}

}  // namespace GCRT_NAMESPACE

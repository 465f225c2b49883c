// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Rows that several blocks share: each reduces a part, and the block that ends last joins what all of them
// have left in memory, in the order of the parts. So a result depends on the sizes alone, never on which
// block was the last one. The calls are those of cuda/device/loops.h with a RowPart in place of the count:
//
//     const RowPart<int, 1> row(/*elements*/ 6220800, /*parts*/ 264, /*of whole*/ 128, workspace);
//     const float part0 = reduce_max<float, 4>(group, row, [&](auto lane, int i) { return load(lane, x + i);
//     }); row.leave(group, 0, part0); if (!row.arrives_last(counters)) return; const float acc0 =
//     join_max(group, row, 0, part0);
//
// What a later kernel needs of a row is kept in memory: row.keep(group, 0, acc0), row.kept<float>(0).
#pragma once

#include "gcrt/cuda/device/loops.h"
#include "gcrt/cuda/device/parts_plan.h"

namespace GCRT_NAMESPACE {

// The part of the calling block, of a grid in which the parts of a row follow each other. Index: of elements.
// `workspace` has kStages cells for each row, and behind them kStages for each block where rows have parts.
template <class Index, int kStages>
class RowPart {
 public:
  // `grain`: all parts but the last one of a row are multiples of it.
  GCRT_DEVICE RowPart(Index count, int parts, int grain, float* workspace)
      : parts_(parts), cells_(reinterpret_cast<unsigned char*>(workspace)) {
    const int part = static_cast<int>(blockIdx.x) % parts;
    const Index grains = (count + grain - 1) / grain;
    const Index each = (grains + parts - 1) / parts;
    // A product of grains may pass the end by less than what `count` counts.
    const Index begin = each * part < grains ? each * part * grain : count;
    first_ = begin < count ? begin : count;
    count_ = count - first_ < each * grain ? count - first_ : each * grain;
  }

  GCRT_DEVICE Index first() const { return first_; }
  GCRT_DEVICE Index count() const { return count_; }
  GCRT_DEVICE int parts() const { return parts_; }

  template <int Threads, class T>
  GCRT_DEVICE void leave(const Group<Threads>& group, int stage, const T& value) const {
    if (parts_ > 1 && group.rank() == 0) *cell<T>(rows() * kStages + stage * blocks() + block()) = value;
  }
  // Whether all other parts of the row are left, and seen.
  // `counters`: a word for each row, zero between kernels.
  GCRT_DEVICE bool arrives_last(std::uint32_t* counters) const {
    return parts_ == 1 || GCRT_NAMESPACE::arrives_last(counters + row(), static_cast<std::uint32_t>(parts_));
  }
  // What the block of a part left.
  template <class T>
  GCRT_DEVICE T left(int stage, int part) const {
    return *cell<T>(rows() * kStages + stage * blocks() + row() * parts_ + part);
  }

  template <int Threads, class T>
  GCRT_DEVICE void keep(const Group<Threads>& group, int stage, T value) const {
    if (group.rank() == 0) *cell<T>(stage * rows() + row()) = value;
  }
  template <class T>
  GCRT_DEVICE T kept(int stage) const {
    return *cell<T>(stage * rows() + row());
  }

 private:
  GCRT_DEVICE static int block() { return static_cast<int>(blockIdx.x); }
  GCRT_DEVICE static int blocks() { return static_cast<int>(gridDim.x); }
  GCRT_DEVICE int row() const { return block() / parts_; }
  GCRT_DEVICE int rows() const { return blocks() / parts_; }
  template <class T>
  GCRT_DEVICE T* cell(int i) const {
    static_assert(sizeof(T) <= kRowCellBytes, "the size of a cell");
    return reinterpret_cast<T*>(cells_ + std::ptrdiff_t{i} * kRowCellBytes);
  }

  int parts_;
  unsigned char* cells_;
  Index first_, count_;
};

template <int L, int Threads, class Index, int kStages, class F>
GCRT_DEVICE void vectorize(const Group<Threads>& group, const RowPart<Index, kStages>& row, const F& body) {
  vectorize<L>(group, static_cast<std::ptrdiff_t>(row.count()),
               [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE {
                 body(lane, static_cast<Index>(row.first() + static_cast<Index>(i)));
               });
}

// The values that the parts left, combined by a group in their order.
template <class T, int Threads, class Index, int kStages, class Combine>
GCRT_DEVICE T join_left(Group<Threads>& group, const RowPart<Index, kStages>& row, int stage, T value,
                        T identity, const Combine& combine) {
  if (row.parts() == 1) return value;
  // Neighbouring parts are a thread's own, so that positions rise with the ranks.
  const int each = (row.parts() + Threads - 1) / Threads;
  const int begin = group.rank() * each;
  T joined = identity;
  for (int part = begin; part < begin + each && part < row.parts(); ++part) {
    joined = combine(joined, row.template left<T>(stage, part));
  }
  return group.combine(joined, combine);
}

// reduce_add<T, L>(group, row, body): of the part of the calling block. join_add(group, row, stage, value):
// of all parts, where the block has arrived last.
#define GCRT_PART_REDUCTION(name, function, identity)                                                        \
  template <class T, int L, int Threads, class Index, int kStages, class F>                                  \
  GCRT_DEVICE T reduce_##name(Group<Threads>& group, const RowPart<Index, kStages>& row, const F& body) {    \
    return reduce_##name<T, L>(group, static_cast<std::ptrdiff_t>(row.count()),                              \
                               [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE {                         \
                                 return body(lane, static_cast<Index>(row.first() + static_cast<Index>(i))); \
                               });                                                                           \
  }                                                                                                          \
  template <class T, int Threads, class Index, int kStages>                                                  \
  GCRT_DEVICE T join_##name(Group<Threads>& group, const RowPart<Index, kStages>& row, int stage, T value) { \
    return join_left(group, row, stage, value, T(identity),                                                  \
                     [](T a, T b) GCRT_LAMBDA_INLINE { return function(a, b); });                            \
  }
GCRT_PART_REDUCTION(add, add, 0)
GCRT_PART_REDUCTION(mul, mul, 1)
GCRT_PART_REDUCTION(max, max, (std::numeric_limits<T>::has_infinity ? T(-kInfinity<T>) : kLowest<T>))
GCRT_PART_REDUCTION(min, min, (std::numeric_limits<T>::has_infinity ? kInfinity<T> : kLargest<T>))
#undef GCRT_PART_REDUCTION

// The extremum of the part of the calling block, and the position in the row of that of all parts.
template <class T, bool Max, bool Last, int Threads, class Index, int kStages, class F>
GCRT_DEVICE ArgExtremum<T> arg_reduce(Group<Threads>& group, const RowPart<Index, kStages>& row,
                                      const F& body) {
  ArgExtremum<T> found = arg_extremum<T, Max, Last>(
      group, static_cast<std::ptrdiff_t>(row.count()), [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE {
        return body(lane, static_cast<Index>(row.first() + static_cast<Index>(i)));
      });
  if (found.position >= 0) found.position += row.first();
  return found;
}
template <class T, bool Max, bool Last, int Threads, class Index, int kStages>
GCRT_DEVICE std::int64_t join_arg(Group<Threads>& group, const RowPart<Index, kStages>& row, int stage,
                                  ArgExtremum<T> value) {
  return join_left(group, row, stage, value, ArgExtremum<T>{T(0), -1},
                   [](ArgExtremum<T> a, ArgExtremum<T> b)
                       GCRT_LAMBDA_INLINE { return GroupArgReduction<T, Max, Last>::better(a, b); })
      .position;
}

}  // namespace GCRT_NAMESPACE

// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// NonMaxSuppression: boxes that overlap others of their class with higher scores go. The scores of a class
// that are high enough lie in buckets, the highest first, and each bucket is a heap once its turn has come:
// what the largest number of boxes leaves out is never sorted. A box is compared with a vector of kept ones
// at a time.
#pragma once

#include "gcrt/cpu/suppress_plan.h"
#include "gcrt/isa/lane_bits.h"
#include "gcrt/pack.h"
#include "gcrt/parallel.h"
#include "gcrt/scalar/boxes.h"

namespace GCRT_NAMESPACE {

// Positions of scores, the highest first, of equal ones the smaller position.
class ScoreHeap {
 public:
  ScoreHeap(const float* scores, std::int32_t* entries, std::ptrdiff_t count)
      : scores_(scores), entries_(entries), count_(count) {
    for (std::ptrdiff_t at = count / 2; at-- > 0;) sink(at, entries[at]);
  }
  bool empty() const { return count_ == 0; }
  std::int32_t pop() {
    const std::int32_t first = entries_[0];
    --count_;
    if (count_ > 0) sink(0, entries_[count_]);
    return first;
  }

 private:
  bool before(std::int32_t i, std::int32_t j) const {
    return scores_[i] > scores_[j] || (scores_[i] == scores_[j] && i < j);
  }
  void sink(std::ptrdiff_t at, std::int32_t entry) {
    for (;;) {
      std::ptrdiff_t child = 2 * at + 1;
      if (child >= count_) break;
      if (child + 1 < count_ && before(entries_[child + 1], entries_[child])) ++child;
      if (before(entry, entries_[child])) break;
      entries_[at] = entries_[child];
      at = child;
    }
    entries_[at] = entry;
  }
  const float* scores_;
  std::int32_t* entries_;
  std::ptrdiff_t count_;
};

// The positions of scores that are high enough, in their order; returns how many.
inline std::ptrdiff_t gather_candidates(const ScoreFilter& filter, const float* scores, std::ptrdiff_t boxes,
                                        std::int32_t* list) {
  std::ptrdiff_t count = 0;
  vectorize(boxes, [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE {
    for (std::uint32_t bits = lane_bits(filter.takes(load(lane, scores + i))); bits != 0; bits &= bits - 1) {
      list[count] = static_cast<std::int32_t>(i + __builtin_ctz(bits));
      ++count;
    }
  });
  return count;
}

// Candidates in buckets of score_key(), whose order is that of scores; few candidates in one.
class ScoreBuckets {
 public:
  // `room` has places for 2 * boxes + kScoreBuckets + 1 numbers.
  ScoreBuckets(const ScoreFilter& filter, const float* scores, std::ptrdiff_t boxes, std::int32_t* room)
      : starts_(room), entries_(room + kScoreBuckets + 1) {
    constexpr std::ptrdiff_t kFew = 64;
    const std::ptrdiff_t count = gather_candidates(filter, scores, boxes, entries_);
    if (count <= kFew) {
      starts_[0] = 0;
      starts_[1] = static_cast<std::int32_t>(count);
    } else {
      spread(scores, count, entries_ + boxes);
    }
  }

  int count() const { return count_; }
  ScoreHeap heap(const float* scores, int bucket) const {
    return ScoreHeap(scores, entries_ + starts_[bucket], starts_[bucket + 1] - starts_[bucket]);
  }

 private:
  void spread(const float* scores, std::ptrdiff_t count, std::int32_t* spread) {
    std::uint32_t highest = 0, lowest = ~std::uint32_t{0};
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const std::uint32_t key = score_key(scores[entries_[i]]);
      highest = key > highest ? key : highest;
      lowest = key < lowest ? key : lowest;
    }
    int shift = 0;
    while ((highest - lowest) >> shift >= kScoreBuckets) ++shift;
    count_ = static_cast<int>((highest - lowest) >> shift) + 1;
    for (int b = 0; b <= count_; ++b) starts_[b] = 0;
    const auto bucket = [&](std::int32_t i) { return (highest - score_key(scores[i])) >> shift; };
    for (std::ptrdiff_t i = 0; i < count; ++i) ++starts_[bucket(entries_[i])];
    std::int32_t sum = 0;
    for (int b = 0; b <= count_; ++b) {
      sum += starts_[b];
      starts_[b] = sum;
    }
    // From the last one on, so that a bucket's start is right when all are there.
    for (std::ptrdiff_t i = count; i-- > 0;) spread[--starts_[bucket(entries_[i])]] = entries_[i];
    entries_ = spread;
  }

  std::int32_t* starts_;
  std::int32_t* entries_;
  int count_ = 1;
};

// The boxes that a class has kept, in whole vectors, the last of which ends with boxes without points.
class KeptBoxes {
 public:
  KeptBoxes(float* numbers, std::ptrdiff_t room) : numbers_(numbers), room_(room) {}

  void add(const Box<float>& box) {
    if (count_ % kLanes == 0) {
      for (int i = 0; i < kLanes; ++i) {
        put(count_ + i, {kInfinity<float>, kInfinity<float>, -kInfinity<float>, -kInfinity<float>, 0});
      }
    }
    put(count_, box);
    ++count_;
  }

  bool suppress(const Box<float>& box, float threshold) const {
    constexpr Lanes<kLanes> lane{};
    const auto wide = [&](float value) { return splat(lane, value); };
    using V = Pack<float, kLanes>;
    const Box<V> candidate = {wide(box.left), wide(box.top), wide(box.right), wide(box.bottom),
                              wide(box.area)};
    for (std::ptrdiff_t i = 0; i < count_; i += kLanes) {
      const float* const p = numbers_ + i;
      const Box<V> kept = {load(lane, p), load(lane, p + room_), load(lane, p + 2 * room_),
                           load(lane, p + 3 * room_), load(lane, p + 4 * room_)};
      const Overlap<V> overlap(candidate, kept);
      if (lane_bits(overlap.exists()) == 0) continue;
      if (lane_bits(overlap.exceeds(candidate.area, kept.area, wide(threshold))) != 0) return true;
    }
    return false;
  }

 private:
  void put(std::ptrdiff_t at, const Box<float>& box) {
    const float values[] = {box.left, box.top, box.right, box.bottom, box.area};
    for (int k = 0; k < 5; ++k) numbers_[k * room_ + at] = values[k];
  }
  float* numbers_;
  std::ptrdiff_t room_;
  std::ptrdiff_t count_ = 0;
};

// One class of one image: the positions of the boxes that it keeps; returns how many.
template <class Boxes>
inline std::ptrdiff_t suppress_line(const SuppressShape& shape, const SuppressLimits& limits,
                                    const float* boxes, const float* scores, std::int32_t* room,
                                    std::int32_t* selected) {
  const std::ptrdiff_t most = limits.most_of(shape);
  const float threshold = limits.overlap.get();
  if (most == 0) return 0;
  const ScoreBuckets buckets(ScoreFilter(limits), scores, shape.boxes, room);
  std::int32_t* const numbers = room + kScoreBuckets + 1 + 2 * shape.boxes;
  KeptBoxes kept(static_cast<float*>(static_cast<void*>(numbers)), kept_room(shape.most));
  std::ptrdiff_t count = 0;
  for (int b = 0; b < buckets.count(); ++b) {
    for (ScoreHeap heap = buckets.heap(scores, b); !heap.empty();) {
      const std::int32_t position = heap.pop();
      const Box<float> box = Boxes::at(boxes + std::ptrdiff_t{4} * position);
      const bool has_area = box.area > 0;
      if (has_area && kept.suppress(box, threshold)) continue;
      selected[count] = position;
      if (++count == most) return count;
      if (has_area) kept.add(box);
    }
  }
  return count;
}

// selected: rows of (image, class, box), image by image and class by class, each with its highest scores
// first; behind the last of `count` lie zeros. `scratch` has suppress_words() words.
template <class Boxes>
inline void suppress(const Threads* threads, const SuppressShape& shape, const SuppressLimits& limits,
                     const float* boxes, const float* scores, std::int64_t* selected, std::int64_t* count,
                     std::int32_t* scratch, std::ptrdiff_t parts) {
  const std::ptrdiff_t words = suppress_part_words(shape.boxes, shape.most), lines = shape.lines();
  std::int32_t* const counts = scratch + parts * words;
  std::int32_t* const positions = counts + lines;
  parallel_parts(threads, lines, lines, parts,
                 [&](std::ptrdiff_t part, std::ptrdiff_t begin, std::ptrdiff_t end) {
                   for (std::ptrdiff_t line = begin; line < end; ++line) {
                     counts[line] = static_cast<std::int32_t>(suppress_line<Boxes>(
                         shape, limits, boxes + line / shape.classes * shape.boxes * 4,
                         scores + line * shape.boxes, scratch + part * words, positions + line * shape.most));
                   }
                 });
  std::int64_t* row = selected;
  for (std::ptrdiff_t line = 0; line < lines; ++line) {
    for (std::ptrdiff_t i = 0; i < counts[line]; ++i, row += 3) {
      row[0] = line / shape.classes;
      row[1] = line % shape.classes;
      row[2] = positions[line * shape.most + i];
    }
  }
  *count = (row - selected) / 3;
  std::int64_t* const end = selected + lines * shape.most * 3;
  __builtin_memset(row, 0, static_cast<std::size_t>(end - row) * sizeof(*row));
}

}  // namespace GCRT_NAMESPACE

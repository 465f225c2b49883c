// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// NonMaxSuppression: a block for each class of an image sorts the scores that are high enough, and walks
// them; then all blocks write their rows behind each other.
#pragma once

#include "gcrt/cuda/sort.h"
#include "gcrt/cuda/suppress_plan.h"
#include "gcrt/scalar/boxes.h"

namespace GCRT_NAMESPACE {

constexpr int kSuppressThreads = 512;
constexpr int kSuppressSlots = 4;  // candidates found, and three of which each is the next box by turns
constexpr std::size_t kSuppressSharedBytes = (kSuppressSlots + 2 * kSortInBlock) * 4;

// Candidates of one class, the highest scores first. What a kept box suppresses has its position
// complemented, which is below 0.
struct Candidates {
  std::uint32_t* keys;
  std::int32_t* positions;

  GCRT_DEVICE void sort(int count) const {
    sort_in_block(
        count,
        [&](int i, int j) { return keys[i] != keys[j] ? keys[i] > keys[j] : positions[i] < positions[j]; },
        [&](int i, int j) {
          const std::uint32_t key = keys[i];
          const std::int32_t position = positions[i];
          keys[i] = keys[j];
          positions[i] = positions[j];
          keys[j] = key;
          positions[j] = position;
        });
  }
};

// Walks `count` sorted candidates; the positions of boxes that are kept come to lie in front, over what has
// been walked. Returns how many they are.
template <class Boxes>
GCRT_DEVICE int walk_candidates(const float* boxes, const Candidates& sorted, int count, int most,
                                float threshold, int* slots) {
  const int thread = thread_rank();
  int kept = 0;
  if (thread < 3) slots[thread] = count;
  barrier();
  for (int at = 0; at < count && kept < most; ++kept) {
    // While the threads agree on the next one in this slot, the one of the turn before was read by all.
    int* const next = slots + kept % 3;
    const std::int32_t position = sorted.positions[at];
    const Box<float> box = Boxes::at(boxes + std::ptrdiff_t{4} * position);
    int first = count;
    for (int j = at + 1 + thread; j < count; j += kSuppressThreads) {
      const std::int32_t other = sorted.positions[j];
      if (other < 0) continue;
      const Box<float> candidate = Boxes::at(boxes + std::ptrdiff_t{4} * other);
      const bool have_areas = box.area > 0 && candidate.area > 0;
      if (have_areas && Overlap<float>(candidate, box).exceeds(candidate.area, box.area, threshold)) {
        sorted.positions[j] = ~other;
      } else {
        first = j < first ? j : first;
      }
    }
    if (first < count) atomic_min(next, first);
    barrier();
    if (thread == 0) {
      sorted.positions[kept] = position;
      slots[(kept + 2) % 3] = count;
    }
    at = *next;
  }
  barrier();
  return kept;
}

// Block: one class of one image. counts[line], and positions[line * boxes...] of what it keeps.
template <class Boxes>
GCRT_GLOBAL(kSuppressThreads)
void suppress_kernel(SuppressShape shape, SuppressLimits limits, const float* boxes, const float* scores,
                     std::int32_t* counts, std::int32_t* positions, std::uint32_t* keys) {
  GCRT_DYNAMIC_SHARED(std::int32_t, shared);
  const int thread = thread_rank();
  const std::ptrdiff_t line = blockIdx.x;
  const float* const own_boxes = boxes + line / shape.classes * shape.boxes * 4;
  const float* const own_scores = scores + line * shape.boxes;
  const Candidates all = {keys + line * shape.boxes, positions + line * shape.boxes};
  const int most = static_cast<int>(limits.most_of(shape)), extent = static_cast<int>(shape.boxes);
  const ScoreFilter filter(limits);
  int* const found = shared;
  if (thread == 0) *found = 0;
  barrier();
  for (int j = thread; j < extent && most > 0; j += kSuppressThreads) {
    if (!filter.takes(own_scores[j])) continue;
    const int slot = atomic_add(found, 1);
    all.positions[slot] = j;
    all.keys[slot] = score_key(own_scores[j]);
  }
  barrier();
  const int count = *found;
  Candidates sorted = all;
  if (count <= kSortInBlock) {
    sorted.positions = shared + kSuppressSlots;
    sorted.keys = reinterpret_cast<std::uint32_t*>(sorted.positions + kSortInBlock);
    for (int i = thread; i < count; i += kSuppressThreads) {
      sorted.positions[i] = all.positions[i];
      sorted.keys[i] = all.keys[i];
    }
    barrier();
  }
  sorted.sort(count);
  const int kept = walk_candidates<Boxes>(own_boxes, sorted, count, most, limits.overlap.get(), shared + 1);
  if (thread == 0) counts[line] = kept;
  if (count > kSortInBlock) return;
  for (int i = thread; i < kept; i += kSuppressThreads) all.positions[i] = sorted.positions[i];
}

// Block: the rows of one line, and its share of the zeros behind all rows.
template <class Count>
GCRT_GLOBAL(kSuppressThreads)
void write_selected_kernel(SuppressShape shape, const std::int32_t* counts, const std::int32_t* positions,
                           std::int64_t* selected, Count* count) {
  GCRT_DYNAMIC_SHARED(int, sums);  // rows before those of this line, and all
  const int thread = thread_rank();
  const std::ptrdiff_t line = blockIdx.x, lines = shape.lines();
  if (thread < 2) sums[thread] = 0;
  barrier();
  int before = 0, all = 0;
  for (std::ptrdiff_t other = thread; other < lines; other += kSuppressThreads) {
    if (other < line) before += counts[other];
    all += counts[other];
  }
  atomic_add(sums, before);
  atomic_add(sums + 1, all);
  barrier();
  if (line == 0 && thread == 0) *count = sums[1];
  const int own = line < lines ? counts[line] : 0;
  for (int i = thread; i < own; i += kSuppressThreads) {
    std::int64_t* const row = selected + std::ptrdiff_t{3} * (sums[0] + i);
    row[0] = line / shape.classes;
    row[1] = line % shape.classes;
    row[2] = positions[line * shape.boxes + i];
  }
  const std::ptrdiff_t end = lines * shape.most * 3, step = std::ptrdiff_t{gridDim.x} * kSuppressThreads;
  for (std::ptrdiff_t i = std::ptrdiff_t{3} * sums[1] + line * kSuppressThreads + thread; i < end; i += step)
    selected[i] = 0;
}

// selected: rows of (image, class, box), image by image and class by class, each with its highest scores
// first; behind the last of `count` lie zeros. `scratch` has suppress_device_words() words. Two launches.
template <class Boxes>
inline void suppress(Queue& queue, const SuppressShape& shape, const SuppressLimits& limits,
                     const float* boxes, const float* scores, std::int64_t* selected, std::int64_t* count,
                     std::int32_t* scratch) {
  const std::ptrdiff_t lines = shape.lines();
  std::int32_t* const positions = scratch + lines;
  std::uint32_t* const keys = reinterpret_cast<std::uint32_t*>(positions + lines * shape.boxes);
  if (lines > 0) {
    launch(queue, dim3(static_cast<unsigned>(lines)), dim3(kSuppressThreads), kSuppressSharedBytes,
           suppress_kernel<Boxes>, shape, limits, boxes, scores, scratch, positions, keys);
  }
  launch(queue, dim3(static_cast<unsigned>(lines > 0 ? lines : 1)), dim3(kSuppressThreads), 2 * sizeof(int),
         write_selected_kernel<std::int64_t>, shape, scratch, positions, selected, count);
}

}  // namespace GCRT_NAMESPACE

// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Masks of attention, and what a key's score becomes by them. Included by cuda/attention/attention.h.
#pragma once

#include "gcrt/cuda/attention/attention_join.h"

namespace GCRT_NAMESPACE {

constexpr float kLog2E = 1.44269504f;

enum class AttentionMaskKind {
  kNone,
  kAdditive,             // float, added to the scaled scores
  kBoolean,              // uint8_t, 0 hides the key
  kBooleanThenAdditive,  // uint8_t, 0 leaves another score; float, added to that or to the key's own
};

// A mask of the shape (batch, heads, queries, keys) by strides in elements, 0 where it is broadcast.
struct AddedAttentionMask {
  const float* data = nullptr;
  std::ptrdiff_t batch = 0;
  std::ptrdiff_t head = 0;
  std::ptrdiff_t query = 0;
  std::ptrdiff_t key = 0;
};
struct AttentionMask {
  const void* data = nullptr;
  std::ptrdiff_t batch = 0;
  std::ptrdiff_t head = 0;
  std::ptrdiff_t query = 0;
  std::ptrdiff_t key = 0;
  float fill = 0;  // of kBooleanThenAdditive: the score of keys whose mask is 0
  AddedAttentionMask behind = {};
};

// The score in base 2 and what a mask adds to it.
GCRT_DEVICE float masked_score(float score, float added) {
  // The lowest float stays one in base 2: a row of nothing else is the mean of V, not empty.
  const float in_base_2 = kLog2E * added;
  return score + (in_base_2 < kLowest<float> && added >= kLowest<float> ? kLowest<float> : in_base_2);
}

// The keys that a row sees of those before `end_key`.
GCRT_DEVICE int seen_keys(const AttentionShape& s, const AttentionRow& at, int end_key) {
  const int seen = at.query + s.causal_offset + 1;
  return s.is_causal && seen < end_key ? seen : end_key;
}

// The masks of one row, from one key on: addresses are made once, and keys are counted in 32 bits.
template <AttentionMaskKind kMask>
struct RowMask {
  static constexpr bool kIsAdded = kMask == AttentionMaskKind::kAdditive;
  static constexpr bool kIsBoth = kMask == AttentionMaskKind::kBooleanThenAdditive;
  const float* added = nullptr;
  const std::uint8_t* kept = nullptr;
  int added_step = 0;
  int kept_step = 0;
  float fill = 0;

  GCRT_DEVICE RowMask(const AttentionMask& mask, int b, const AttentionRow& at, int first_key) {
    const std::ptrdiff_t line = line_of(mask, b, at, first_key);
    if constexpr (kIsAdded) {
      added = static_cast<const float*>(mask.data) + line;
      added_step = static_cast<int>(mask.key);
    } else if constexpr (kMask != AttentionMaskKind::kNone) {
      kept = static_cast<const std::uint8_t*>(mask.data) + line;
      kept_step = static_cast<int>(mask.key);
    }
    if constexpr (kIsBoth) {
      added = mask.behind.data + line_of(mask.behind, b, at, first_key);
      added_step = static_cast<int>(mask.behind.key);
      fill = kLog2E * mask.fill;
    }
    static_cast<void>(line);
  }

  // The score of a key in base 2 as the masks leave it, minus infinity where the row, which sees the first
  // `count` of its keys, does not see it.
  GCRT_DEVICE float seen(float score, int key, int count) const {
    bool is_seen = key < count;
    if constexpr (kIsAdded) {
      if (is_seen) score = masked_score(score, added[key * added_step]);
    } else if constexpr (kIsBoth) {
      if (is_seen) score = masked_score(kept[key * kept_step] != 0 ? score : fill, added[key * added_step]);
    } else if constexpr (kMask == AttentionMaskKind::kBoolean) {
      is_seen = is_seen && kept[key * kept_step] != 0;
    }
    return is_seen ? score : -kInfinity<float>;
  }

 private:
  template <class Mask>
  GCRT_DEVICE static std::ptrdiff_t line_of(const Mask& mask, int b, const AttentionRow& at, int first_key) {
    return b * mask.batch + at.head * mask.head + at.query * mask.query + first_key * mask.key;
  }
};

}  // namespace GCRT_NAMESPACE

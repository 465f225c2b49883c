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

// Where the masks of a row begin.
GCRT_DEVICE std::ptrdiff_t mask_line(const AttentionMask& mask, int b, const AttentionRow& at) {
  return b * mask.batch + at.head * mask.head + at.query * mask.query;
}

// A score in base 2 as the mask leaves it, minus infinity where the row does not see the key.
template <AttentionMaskKind kMask>
GCRT_DEVICE float seen_score(float score, const AttentionMask& mask, std::ptrdiff_t line, int b,
                             const AttentionRow& at, int key, int limit) {
  bool is_seen = key < limit;
  if constexpr (kMask == AttentionMaskKind::kAdditive) {
    if (is_seen) score = masked_score(score, static_cast<const float*>(mask.data)[line + key * mask.key]);
  } else if constexpr (kMask == AttentionMaskKind::kBooleanThenAdditive) {
    if (is_seen) {
      const bool is_kept = static_cast<const std::uint8_t*>(mask.data)[line + key * mask.key] != 0;
      const AddedAttentionMask& behind = mask.behind;
      score = masked_score(
          is_kept ? score : kLog2E * mask.fill,
          behind.data[b * behind.batch + at.head * behind.head + at.query * behind.query + key * behind.key]);
    }
  } else if constexpr (kMask == AttentionMaskKind::kBoolean) {
    is_seen = is_seen && static_cast<const std::uint8_t*>(mask.data)[line + key * mask.key] != 0;
  }
  static_cast<void>(line), static_cast<void>(b), static_cast<void>(at), static_cast<void>(mask);
  return is_seen ? score : -kInfinity<float>;
}

}  // namespace GCRT_NAMESPACE

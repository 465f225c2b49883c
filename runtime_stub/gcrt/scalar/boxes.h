// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Boxes, and which of two with the same class is one too many: by the comparisons and roundings of ONNX
// Runtime (NonMaxSuppression on the CPU), so that a decision is the same wherever it is made.
#pragma once

#include "gcrt/pack.h"

namespace GCRT_NAMESPACE {

template <class V>
struct Box {
  V left, top, right, bottom, area;
};

// Two corners (y, x, y, x), in any order.
struct CornerBoxes {
  static GCRT_INLINE Box<float> at(const float* p) {
    Box<float> box = {};
    box.left = p[1] >= p[3] ? p[3] : p[1];
    box.right = p[1] >= p[3] ? p[1] : p[3];
    box.top = p[0] >= p[2] ? p[2] : p[0];
    box.bottom = p[0] >= p[2] ? p[0] : p[2];
    box.area = (box.right - box.left) * (box.bottom - box.top);
    return box;
  }
};

// The centre and the size (x, y, width, height).
struct CenteredBoxes {
  static GCRT_INLINE Box<float> at(const float* p) {
    const float half_width = p[2] / 2, half_height = p[3] / 2;
    Box<float> box = {};
    box.left = p[0] - half_width;
    box.right = p[0] + half_width;
    box.top = p[1] - half_height;
    box.bottom = p[1] + half_height;
    box.area = (box.right - box.left) * (box.bottom - box.top);
    return box;
  }
};

// Where two boxes have points in common.
template <class V>
struct Overlap {
  V left, top, right, bottom;

  GCRT_INLINE Overlap(const Box<V>& a, const Box<V>& b)
      : left(at_least(a.left, b.left)),
        top(at_least(a.top, b.top)),
        right(at_most(a.right, b.right)),
        bottom(at_most(a.bottom, b.bottom)) {}

  GCRT_INLINE auto exists() const { return (right > left) & (bottom > top); }

  // Whether the share of the common area in that of both is above the threshold. Both boxes have areas above
  // 0: as no side of the overlap is longer than those of the boxes, what is divided by is above 0 as well.
  GCRT_INLINE auto exceeds(V area_a, V area_b, V threshold) const {
    const V common = (right - left) * (bottom - top);
    return exists() & (common > splat_like<V>(0)) & (common / (area_a + area_b - common) > threshold);
  }
};

// Larger scores have larger keys, zeros of both signs the same.
GCRT_INLINE std::uint32_t score_key(float score) {
  constexpr std::uint32_t kSign = 0x80000000u;
  if (score == 0.0f) return kSign;
  const std::uint32_t bits = bit_cast<std::uint32_t>(score);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

// A number that the model has, or that a run gives.
template <class T>
struct Given {
  T value;
  const T* given;

  GCRT_INLINE Given(T number) : value(number), given(nullptr) {}
  GCRT_INLINE Given(const T* number) : value(0), given(number) {}
  GCRT_INLINE T get() const { return given != nullptr ? *given : value; }
};

// Boxes (batch, boxes, 4), scores (batch, classes, boxes); of each class at most `most` are kept.
struct SuppressShape {
  std::ptrdiff_t batch, classes, boxes, most;
  GCRT_INLINE std::ptrdiff_t lines() const { return batch * classes; }
};

// The overlap above which a box goes, the score that a box must exceed, if there is one, and how many boxes
// of a class a run asks for, if it does. A score that is no number selects nothing.
struct SuppressLimits {
  Given<float> overlap, score;
  bool has_score;
  const std::int64_t* most;

  GCRT_INLINE std::ptrdiff_t most_of(const SuppressShape& shape) const {
    if (most == nullptr || *most > shape.most) return shape.most;
    return static_cast<std::ptrdiff_t>(*most < 0 ? 0 : *most);
  }
};

// Which scores are high enough.
struct ScoreFilter {
  float above, from;

  explicit GCRT_INLINE ScoreFilter(const SuppressLimits& limits)
      : above(limits.has_score ? limits.score.get() : kInfinity<float>),
        from(limits.has_score ? kNan<float> : -kInfinity<float>) {}
  template <class V>
  GCRT_INLINE auto takes(V scores) const {
    return (scores > splat_like<V>(above)) | (scores >= splat_like<V>(from));
  }
};

}  // namespace GCRT_NAMESPACE

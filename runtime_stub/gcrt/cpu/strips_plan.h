// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Strips of images whose sizes only a run knows: planned for the largest ones, and fitted into their memory.
#pragma once

#include "gcrt/cpu/strip_plan.h"

namespace GCRT_NAMESPACE {

// Two parts both make the rows between them: at most that share of their own rows.
constexpr int kPartsPerOverlap = 4;

// So many parts, or as many as make few rows twice; at least one.
constexpr int most_parts(const StripImage* images, int count, int rows, int parts) {
  if (rows < parts) parts = rows;
  for (int i = 0; i < count; ++i) {
    const int twice = images[i].span - images[i].stride;
    const int few = twice > 0 ? images[i].rows / (kPartsPerOverlap * twice) : parts;
    if (few < parts) parts = few;
  }
  return parts < 1 ? 1 : parts;
}

// The same in strips of `step` rows, with as many rows of each image as these need.
template <int Images>
constexpr Strips<Images> in_steps(Strips<Images> strips, int step) {
  strips.step = step;
  int rows = step;
  for (int i = Images; i-- > 0;) {
    StripImage& image = strips.images[i];
    rows = (rows - 1) * image.stride + image.span;
    if (rows > image.rows) rows = image.rows;
    image.held = rows;
  }
  return strips;
}

// `strips`: of this run, with step and parts of the largest sizes, of which a part takes `bytes`. Smaller
// images take more rows to a strip: the parts are as large as planned, so that they lie in the same cache.
template <int Images>
constexpr Strips<Images> strips_fit(Strips<Images> strips, std::ptrdiff_t bytes) {
  strips.parts = most_parts(strips.images, Images, strips.rows, strips.parts);
  int fits = strips.step;
  for (int most = strips.rows; fits < most;) {
    const int tried = fits + (most - fits + 1) / 2;
    if (part_bytes(in_steps(strips, tried)) <= bytes) {
      fits = tried;
    } else {
      most = tried - 1;
    }
  }
  return in_steps(strips, fits);
}

}  // namespace GCRT_NAMESPACE

#pragma once
// Loops over boxes of memory whose addresses are affine: what evaluation of maps walks.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "ir/tensors/tensor.h"

namespace gcompile::ir {

/// Elements along each side of a block that is copied across the grain.
constexpr std::int64_t kTile = 32;

template <class T>
T read(const std::byte* base, std::int64_t i) {
  T value;
  std::memcpy(&value, base + i * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

template <class T>
void write(std::byte* base, std::int64_t i, T value) {
  std::memcpy(base + i * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
}

/// An integer that is affine in the axes: the address of a load or of the store, or an iota.
struct Affine {
  std::int64_t base = 0;
  std::vector<std::int64_t> steps;  // of each axis of the nest
};

/// The axes of a region that are longer than one, with neighbours merged where every Affine allows it.
struct Nest {
  std::vector<std::int64_t> extents;
  std::vector<Affine> affine;

  std::int64_t count() const { return element_count(shape_of(extents)); }
};

inline bool can_merge(const Nest& nest, std::size_t outer) {
  return std::all_of(nest.affine.begin(), nest.affine.end(), [&](const Affine& a) {
    return a.steps[outer] == a.steps[outer + 1] * nest.extents[outer + 1];
  });
}

inline void merge_axes(Nest& nest) {
  for (std::size_t outer = nest.extents.size(); outer-- > 1;) {
    if (!can_merge(nest, outer - 1)) continue;
    const auto at = static_cast<std::ptrdiff_t>(outer - 1);
    nest.extents[outer] *= nest.extents[outer - 1];
    nest.extents.erase(nest.extents.begin() + at);
    for (Affine& a : nest.affine) a.steps.erase(a.steps.begin() + at);
  }
}

/// Walks all but the innermost axis; `bases` are the values of the Affines where the innermost is at 0.
template <class F>
void for_each_row(const Nest& nest, F f) {
  std::vector<std::int64_t> bases;
  for (const Affine& a : nest.affine) bases.push_back(a.base);
  const std::size_t outer = nest.extents.size() - 1;
  std::vector<std::int64_t> position(outer, 0);
  while (true) {
    f(position, bases);
    std::size_t axis = outer;
    for (; axis-- > 0;) {
      const bool carries = ++position[axis] == nest.extents[axis];
      const std::int64_t steps = carries ? 1 - nest.extents[axis] : 1;
      for (std::size_t i = 0; i < bases.size(); ++i) bases[i] += steps * nest.affine[i].steps[axis];
      if (!carries) break;
      position[axis] = 0;
    }
    if (axis == static_cast<std::size_t>(-1)) return;
  }
}

/// Copies elements of type T; affine[0] addresses `from`, affine[1] `to`.
template <class T>
void copy_rows(const Nest& nest, const std::byte* from, std::byte* to) {
  // The source's contiguous axis, if the innermost is not: both are walked in tiles.
  const std::size_t last = nest.extents.size() - 1;
  std::size_t across = last;
  for (std::size_t axis = 0; axis < last && nest.affine[0].steps[last] != 1; ++axis) {
    if (nest.affine[0].steps[axis] == 1) across = axis;
  }
  Nest rows = nest;
  const std::int64_t height = across == last ? 1 : nest.extents[across];
  if (across != last) rows.extents[across] = 1;
  const std::int64_t width = nest.extents[last];
  const std::int64_t from_step = nest.affine[0].steps[last], to_step = nest.affine[1].steps[last];
  const std::int64_t from_across = nest.affine[0].steps[across], to_across = nest.affine[1].steps[across];
  for_each_row(rows, [&](const std::vector<std::int64_t>&, const std::vector<std::int64_t>& bases) {
    if (height == 1 && from_step == 1 && to_step == 1) {
      constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
      std::memcpy(to + bases[1] * kSize, from + bases[0] * kSize,
                  static_cast<std::size_t>(width) * sizeof(T));
      return;
    }
    for (std::int64_t j0 = 0; j0 < width; j0 += kTile) {
      for (std::int64_t i0 = 0; i0 < height; i0 += kTile) {
        for (std::int64_t i = i0; i < std::min(height, i0 + kTile); ++i) {
          for (std::int64_t j = j0; j < std::min(width, j0 + kTile); ++j) {
            write(to, bases[1] + i * to_across + j * to_step,
                  read<T>(from, bases[0] + i * from_across + j * from_step));
          }
        }
      }
    }
  });
}

}  // namespace gcompile::ir

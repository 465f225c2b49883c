// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// States that grow: rows one after another outside, with room for more of them inside.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// Calls move(dense, placed, bytes), all in bytes, for every part of a tensor that lies in one piece both
// among its elements one after another and in a memory for `room`.
// Both have `rank` sizes; none of `shape` is larger.
template <class Move>
void for_each_row(const std::int64_t* shape, const std::int64_t* room, int rank, std::size_t element_bytes,
                  const Move& move) {
  int axes = rank;  // outside of what lies in one piece
  std::int64_t piece = 1;
  while (axes > 0) {
    --axes;
    piece *= shape[axes];
    if (shape[axes] != room[axes]) break;
  }
  std::int64_t pieces = piece > 0 ? 1 : 0;
  for (int axis = 0; axis < axes; ++axis) pieces *= shape[axis];
  const std::size_t bytes = static_cast<std::size_t>(piece) * element_bytes;
  for (std::int64_t i = 0; i < pieces; ++i) {
    std::int64_t rest = i, place = 0, stride = 1;
    for (int axis = rank - 1; axis >= 0; --axis) {
      if (axis < axes) {
        place += rest % shape[axis] * stride;
        rest /= shape[axis];
      }
      stride *= room[axis];
    }
    move(static_cast<std::size_t>(i) * bytes, static_cast<std::size_t>(place) * element_bytes, bytes);
  }
}

}  // namespace GCRT_NAMESPACE

// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// How kernels that follow each other are cut into strips of image rows (cpu/strips.h): what the compiler
// plans with and the library runs by.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// The image between a kernel and the next, which reads it through windows along its rows.
struct StripImage {
  int rows;
  int span, stride, pad;     // of the windows: rows from the first to the last tap, and rows above the image
  std::ptrdiff_t row_bytes;  // from a row to the next
  int held;                  // rows that are kept at a time: enough for every strip
};

// With room behind it, since kernels of bytes read whole words.
constexpr std::ptrdiff_t bytes_of(const StripImage& image) {
  return (image.held * image.row_bytes + 4 + 63) / 64 * 64;
}

// `Images` + 1 kernels. The last one makes `rows` rows, `step` to a strip. Parts of them are made
// independently of each other, with buffers of their own; rows that two parts need are made twice.
template <int Images>
struct Strips {
  int rows, step, parts;
  StripImage images[Images];
};

template <int Images>
constexpr std::ptrdiff_t part_bytes(const Strips<Images>& strips) {
  std::ptrdiff_t bytes = 0;
  for (int i = 0; i < Images; ++i) bytes += bytes_of(strips.images[i]);
  return bytes;
}

}  // namespace GCRT_NAMESPACE

// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Kernels that follow each other, run in strips of image rows: of what one hands to the next, only the rows
// that the next strip reads exist, so that they stay in a cache and no memory holds whole images.
#pragma once

#include "gcrt/cpu/strip_plan.h"
#include "gcrt/parallel.h"

namespace GCRT_NAMESPACE {

// Kernel i makes the rows [begin[i], end[i]) of its result; there may be none.
template <int Images>
struct Strip {
  std::ptrdiff_t begin[Images + 1], end[Images + 1];
  std::byte* first[Images];  // where row 0 would lie
  template <class T>
  GCRT_INLINE T* image(int i) const {
    return reinterpret_cast<T*>(first[i]);
  }
};

// The rows of all images that lie in the buffers of a part.
template <int Images>
class StripRows {
 public:
  StripRows(const Strips<Images>& strips, std::byte* buffers) : strips_(strips), buffers_(buffers) {}

  // Makes room for what the last kernel's rows [begin, end) need; what earlier strips left is kept.
  Strip<Images> advance(int begin, int end) {
    Strip<Images> strip;
    strip.begin[Images] = begin;
    strip.end[Images] = end;
    std::byte* buffer = buffers_ + part_bytes(strips_);
    for (int i = Images; i-- > 0;) {
      const StripImage& image = strips_.images[i];
      buffer -= bytes_of(image);
      if (begin < end) {
        const int need = clamped(begin * image.stride - image.pad, image.rows);
        const int until =
            larger(need, clamped((end - 1) * image.stride - image.pad + image.span, image.rows));
        const int kept = larger(0, end_[i] - need);
        if (kept > 0 && need > begin_[i]) {
          __builtin_memmove(buffer, buffer + (need - begin_[i]) * image.row_bytes,
                            static_cast<std::size_t>(kept * image.row_bytes));
        }
        begin = need + kept;
        end = larger(begin, until);
        begin_[i] = need;
        end_[i] = end;
      } else {
        begin = end = end_[i];
      }
      strip.begin[i] = begin;
      strip.end[i] = end;
      strip.first[i] = buffer - begin_[i] * image.row_bytes;
    }
    return strip;
  }

 private:
  static int larger(int a, int b) { return a > b ? a : b; }
  static int clamped(int row, int rows) { return row < 0 ? 0 : row < rows ? row : rows; }

  const Strips<Images>& strips_;
  std::byte* buffers_;
  int begin_[Images] = {}, end_[Images] = {};
};

// Calls run(strip) for strips that cover all rows; those of a part in order. `buffers`: part_bytes(strips)
// for each part.
template <int Images, class Run>
inline void in_strips(const Threads* threads, const Strips<Images>& strips, std::byte* buffers,
                      const Run& run) {
  const auto first_row = [&](std::ptrdiff_t part) {
    return static_cast<int>(part * strips.rows / strips.parts);
  };
  parallel_for(threads, strips.parts, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    StripRows<Images> rows(strips, buffers + begin * part_bytes(strips));
    const int last = first_row(end);
    for (int row = first_row(begin); row < last; row += strips.step) {
      run(rows.advance(row, row + strips.step < last ? row + strips.step : last));
    }
  });
}

}  // namespace GCRT_NAMESPACE

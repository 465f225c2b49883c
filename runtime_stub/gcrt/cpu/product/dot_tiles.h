// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Products of bytes in the registers of the tile unit (isa/tiles.h), for the drivers of gemm.h and conv.h: a
// policy, and what sums a task of up to 64 rows and two panels of columns.
//
// Registers 0 to 3 hold the sums of two parts of the rows by two panels, 4 and 5 words of A, 6 and 7 words of
// B. All parts of a task are as high, so that it needs one shape of the registers: the last begins earlier
// where rows do not fill it. A run of words is as many equal steps of at most 16; the last begins earlier,
// too, and B is then a copy in which the words that come twice are zeros once. What SplitWords have taken out
// of B is added in a copy as well. Sums wait in the task's memory between blocks of steps, whose B stays in
// the first cache for all parts, and go to the epilogue from there.
#pragma once

#include "gcrt/cpu/product/dot_int8.h"
#include "gcrt/cpu/product/tile.h"
#include "gcrt/isa/tiles.h"

namespace GCRT_NAMESPACE {

#if GCRT_HAS_TILES

constexpr int kTileWords = kTileRowBytes / 4;  // of a step, at most
constexpr int kTaskParts = 4;                  // of the rows of a task
constexpr int kBlockSteps = 8;                 // whose B is multiplied by all parts before the next ones
static_assert(kPanelColumns * 4 == kTileRowBytes, "a word of a panel is a row of a register");

// What a work item has of the tile unit, and gives back when it ends.
struct ShapedTiles {
  TileUnit unit;
  int height = 0, words = 0;  // of the registers of A as they are now

  void shape(int rows, int step_words) {
    if (rows == height && step_words == words) return;
    height = rows;
    words = step_words;
    TileShapes shapes;
    for (int i = 0; i < kTileRegisters; ++i) {
      const bool is_a = i == 4 || i == 5;
      shapes.rows[i] = static_cast<std::uint8_t>(i < 6 ? rows : step_words);
      shapes.row_bytes[i] = static_cast<std::uint16_t>(is_a ? 4 * step_words : kTileRowBytes);
    }
    unit.configure(shapes);
  }
};
struct ByteTiles : ShapedTiles {
  alignas(64) std::uint8_t a[2][kTileRows * kTileRowBytes];
  alignas(64) std::int8_t b[kBlockSteps * 2 * kTileWords * kTileRowBytes];
};

template <class Dot>
class TiledSum;

// Bytes of A are read as they lie, signed or not, and B is whole words of bytes.
template <class TX>
struct TiledByteDot : IntegerDot<TX, std::int8_t> {
  static_assert(sizeof(TX) == 1, "the tile unit multiplies bytes");
  using Unit = ByteTiles;
  using TaskSum = TiledSum<TiledByteDot>;
  static constexpr bool kInTiles = true;
  static constexpr int kRows = kTaskParts * kTileRows;
  static constexpr int kItemRows = 2 * kTileRows;
  static constexpr int kVectors = 2;
  static constexpr bool kStepIsWord = true;
  static constexpr int kPrefetches = 0;
  static constexpr bool kHasPairs = false;
  static constexpr int kMaxTaps = 16;
  static constexpr bool kReadsSigned = std::is_signed<TX>::value;
  static constexpr bool kIsFlipped = false;

  // Tiles that are about as high, so that few need another shape of the registers.
  static constexpr int next_rows(std::ptrdiff_t remaining) {
    return static_cast<int>(ceil_div(remaining, ceil_div(remaining, kRows)));
  }
};

// The sums of one or two parts of the rows and one or two panels, in the registers; `stride` in bytes.
template <int Parts, int Panels, class T>
GCRT_INLINE void load_sums(TileUnit& unit, const T* sums0, const T* sums1, std::ptrdiff_t stride) {
  unit.template load<0>(sums0, stride);
  if constexpr (Panels == 2) unit.template load<1>(sums0 + kPanelColumns, stride);
  if constexpr (Parts == 2) unit.template load<2>(sums1, stride);
  if constexpr (Parts * Panels == 4) unit.template load<3>(sums1 + kPanelColumns, stride);
}
template <int Parts, int Panels, class T>
GCRT_INLINE void store_sums(TileUnit& unit, T* sums0, T* sums1, std::ptrdiff_t stride) {
  unit.template store<0>(sums0, stride);
  if constexpr (Panels == 2) unit.template store<1>(sums0 + kPanelColumns, stride);
  if constexpr (Parts == 2) unit.template store<2>(sums1, stride);
  if constexpr (Parts * Panels == 4) unit.template store<3>(sums1 + kPanelColumns, stride);
}

// call(parts, panels), both as constants.
template <class F>
GCRT_INLINE void with_registers(bool two_parts, bool two_panels, const F& call) {
  if (two_parts && two_panels) {
    call(Lanes<2>{}, Lanes<2>{});
  } else if (two_parts) {
    call(Lanes<2>{}, Lanes<1>{});
  } else if (two_panels) {
    call(Lanes<1>{}, Lanes<2>{});
  } else {
    call(Lanes<1>{}, Lanes<1>{});
  }
}

// The parts of a task's rows, and where their sums lie.
template <class Dot>
class TaskParts {
 public:
  using Sum = typename Dot::Sum;

  TaskParts(const TileTask<Dot>& task, int rows, int columns)
      : task_(task),
        rows_(rows),
        panels_(columns / kPanelColumns),
        parts_(static_cast<int>(ceil_div(rows, kTileRows))),
        height_(static_cast<int>(ceil_div(rows, parts_))) {}

  template <class F>
  void for_each_part(const F& finish) const {
    for (int part = 0; part < parts_; ++part) {
      const int done = part * height_ - first_row(part);
      finish(sums_of(part) + done * columns(), first_row(part) + done, height_ - done);
    }
  }

 protected:
  int columns() const { return panels_ * kPanelColumns; }
  int first_row(int part) const { return part + 1 == parts_ ? rows_ - height_ : part * height_; }
  Sum* sums_of(int part) const { return task_.sums + part * height_ * columns(); }

  const TileTask<Dot>& task_;
  int rows_, panels_, parts_, height_;
};

// Steps that follow each other; pointers and distances in bytes.
struct TileSteps {
  const std::uint8_t* a[2];    // of each part
  std::ptrdiff_t a_stride[2];  // from row to row
  std::ptrdiff_t a_step;
  const std::int8_t* b;
  std::ptrdiff_t b_panel, b_step;
  std::ptrdiff_t count;  // at least 1
};

template <bool Signed, int Parts, int Panels>
GCRT_NOINLINE void multiply_steps(ByteTiles& tiles, const TileSteps& steps) {
  TileUnit& unit = tiles.unit;
  const std::uint8_t* a0 = steps.a[0];
  const std::uint8_t* a1 = steps.a[Parts - 1];
  const std::int8_t* b0 = steps.b;
  const std::int8_t* b1 = steps.b + steps.b_panel;
  const std::ptrdiff_t stride0 = steps.a_stride[0], stride1 = steps.a_stride[Parts - 1];
  const std::ptrdiff_t a_step = steps.a_step, b_step = steps.b_step;
  std::ptrdiff_t count = steps.count;
  do {
    unit.template load<6>(b0, kTileRowBytes);
    unit.template load<4>(a0, stride0);
    unit.template multiply_add<Signed, 0, 4, 6>();
    if constexpr (Panels == 2) {
      unit.template load<7>(b1, kTileRowBytes);
      unit.template multiply_add<Signed, 1, 4, 7>();
    }
    if constexpr (Parts == 2) {
      unit.template load<5>(a1, stride1);
      unit.template multiply_add<Signed, 2, 5, 6>();
      if constexpr (Panels == 2) unit.template multiply_add<Signed, 3, 5, 7>();
    }
    a0 += a_step;
    a1 += a_step;
    b0 += b_step;
    b1 += b_step;
  } while (--count != 0);
}

// One task, which it is handed as a register tile of `rows` by `columns`.
template <class Dot>
class TiledSum : public TaskParts<Dot> {
 public:
  using Left = typename Dot::Left;

  TiledSum(ByteTiles& tiles, const TileTask<Dot>& task, int rows, int columns)
      : TaskParts<Dot>(task, rows, columns),
        tiles_(tiles),
        words_(task.run_words + (task.tail > 0 ? 1 : 0)),
        run_steps_(ceil_div(words_, kTileWords)),
        step_words_(static_cast<int>(ceil_div(words_, run_steps_))),
        twice_(static_cast<int>(run_steps_ * step_words_ - words_)) {}

  void sum() {
    tiles_.shape(height_, step_words_);
    const std::ptrdiff_t total = task_.run_count * run_steps_;
    const std::ptrdiff_t block = ceil_div(total, ceil_div(total, kBlockSteps));
    const bool copies_b = twice_ > 0 || task_.split.starts != nullptr;
    std::int32_t next[2] = {};
    for (std::ptrdiff_t begin = 0; begin < total; begin += block) {
      const std::ptrdiff_t end = smaller(total, begin + block);
      if (copies_b) copy_b(begin, end, next);
      for (int part = 0; part < parts_; part += 2) {
        with_registers(part + 1 < parts_, panels_ == 2, [&](auto parts, auto panels) {
          sum_parts<decltype(parts)::value, decltype(panels)::value>(part, begin, end, copies_b);
        });
      }
    }
  }

 private:
  using TaskParts<Dot>::task_;
  using TaskParts<Dot>::panels_;
  using TaskParts<Dot>::parts_;
  using TaskParts<Dot>::height_;
  using TaskParts<Dot>::first_row;
  using TaskParts<Dot>::sums_of;

  std::ptrdiff_t first_word(std::ptrdiff_t step) const {
    return step + 1 == run_steps_ ? words_ - step_words_ : step * step_words_;
  }

  // B of steps [begin, end), those of all runs counted together. `next`: the first split word of each panel
  // that no step before them had.
  void copy_b(std::ptrdiff_t begin, std::ptrdiff_t end, std::int32_t (&next)[2]) const {
    using V = Pack<std::int8_t, kTileRowBytes>;
    constexpr Lanes<kTileRowBytes> lane{};
    std::int8_t* to = tiles_.b;
    for (std::ptrdiff_t at = begin; at < end; ++at) {
      const TileRun& run = task_.runs[at / run_steps_];
      const std::ptrdiff_t step = at % run_steps_;
      const std::ptrdiff_t word = run.b_offset / kTileRowBytes + first_word(step);
      const int zeros = step + 1 == run_steps_ ? twice_ : 0;
      for (int p = 0; p < panels_; ++p, to += step_words_ * kTileRowBytes) {
        const std::int8_t* const from = task_.b + p * task_.panel_stride + word * kTileRowBytes;
        for (int i = 0; i < step_words_; ++i) {
          store(lane, to + i * kTileRowBytes, i < zeros ? V{} : load(lane, from + i * kTileRowBytes));
        }
        if (task_.split.starts != nullptr)
          add_rests(p, word + zeros, word + step_words_, to - word * kTileRowBytes, next[p]);
      }
    }
  }
  // Words [begin, end) of panel p, word w of which is at `to` + w * 64, become whole. Runs come in the order
  // of their words.
  void add_rests(int p, std::ptrdiff_t begin, std::ptrdiff_t end, std::int8_t* to, std::int32_t& next) const {
    constexpr Lanes<kTileRowBytes> lane{};
    const std::int32_t first = task_.split.starts[p], last = task_.split.starts[p + 1];
    std::int32_t i = first + next;
    while (i < last && task_.split.words[i] < begin) ++i;
    for (; i < last && task_.split.words[i] < end; ++i) {
      std::int8_t* const word = to + task_.split.words[i] * kTileRowBytes;
      store(lane, word, load(lane, word) + load(lane, task_.split.rests + std::ptrdiff_t{i} * kTileRowBytes));
    }
    next = i - first;
  }

  // The words of one part of the rows, in one run.
  struct Rows {
    const Left* const* pointers;  // null: evenly spaced
    const Left* base;
    std::ptrdiff_t stride;
  };
  Rows rows_of(int part, std::ptrdiff_t run) const {
    const int first = first_row(part);
    const std::ptrdiff_t offset = task_.runs[run].a_offset;
    if (task_.rows == nullptr)
      return {nullptr, task_.base + first * task_.row_stride + offset, task_.row_stride};
    const Left* const* const pointers = task_.rows + run * task_.rows_step + first;
    const std::intptr_t base = reinterpret_cast<std::intptr_t>(pointers[0]);
    const std::intptr_t stride = height_ > 1 ? reinterpret_cast<std::intptr_t>(pointers[1]) - base : 0;
    bool is_even = true;
    for (int i = 2; i < height_; ++i) {
      is_even &= reinterpret_cast<std::intptr_t>(pointers[i]) == base + i * stride;
    }
    return {is_even ? nullptr : pointers, pointers[0] + offset, stride};
  }

  // Copies the words of a step, of which the last has `tail` bytes if that is not 0.
  void gather(const Rows& rows, std::ptrdiff_t offset, std::ptrdiff_t word, int tail,
              std::uint8_t* to) const {
    constexpr Lanes<kTileRowBytes> row_piece{};
    constexpr Lanes<kTileWords> piece{};
    const int whole = 4 * (step_words_ - (tail > 0 ? 1 : 0));
    for (int i = 0; i < height_; ++i, to += kTileRowBytes) {
      const Left* const from =
          (rows.pointers != nullptr ? rows.pointers[i] + offset : rows.base + i * rows.stride) + word * 4;
      Left* const row = reinterpret_cast<Left*>(to);
      int j = 0;
      if (whole == kTileRowBytes) {
        store(row_piece, row, load(row_piece, from));
        continue;
      }
      for (; j + piece.value <= whole; j += piece.value) store(piece, row + j, load(piece, from + j));
      for (; j < whole; j += 4) store(Lanes<4>{}, row + j, load(Lanes<4>{}, from + j));
      if (tail > 0) {
        const std::int32_t last = Dot::read(from + whole, tail);
        __builtin_memcpy(to + whole, &last, 4);
      }
    }
  }

  template <int Parts, int Panels>
  void sum_parts(int part, std::ptrdiff_t begin, std::ptrdiff_t end, bool copies_b) const {
    TileUnit& unit = tiles_.unit;
    constexpr std::ptrdiff_t kRow = Panels * kTileRowBytes;
    std::int32_t* const sums0 = sums_of(part);
    std::int32_t* const sums1 = sums_of(part + Parts - 1);
    const bool begins = begin == 0 && !task_.resume;
    const std::int32_t* const from0 = begins ? task_.offsets : sums0;
    const std::int32_t* const from1 = begins ? task_.offsets : sums1;
    const std::ptrdiff_t stride = begins ? 0 : kRow;
    load_sums<Parts, Panels>(unit, from0, from1, stride);
    for (std::ptrdiff_t at = begin; at < end;) {
      const std::ptrdiff_t run = at / run_steps_;
      const std::ptrdiff_t count = smaller(end, (run + 1) * run_steps_) - at;
      sum_run<Parts, Panels>(part, run, at - run * run_steps_, count, copies_b ? at - begin : -1);
      at += count;
    }
    store_sums<Parts, Panels>(unit, sums0, sums1, kRow);
  }

  // Steps [first, first + count) of a run. `copied`: the step from which on B is copied; -1: it is not.
  template <int Parts, int Panels>
  void sum_run(int part, std::ptrdiff_t run, std::ptrdiff_t first, std::ptrdiff_t count,
               std::ptrdiff_t copied) const {
    constexpr bool kSigned = std::is_signed<Left>::value;
    const std::ptrdiff_t offset = task_.runs[run].a_offset;
    Rows rows[Parts];
    bool is_even = true;
    for (int i = 0; i < Parts; ++i) {
      rows[i] = rows_of(part + i, run);
      is_even &= rows[i].pointers == nullptr;
    }
    TileSteps steps;
    const std::ptrdiff_t step_bytes = step_words_ * kTileRowBytes;
    steps.a_step = 4 * step_words_;
    steps.b_panel = copied >= 0 ? step_bytes : task_.panel_stride;
    steps.b_step = copied >= 0 ? Panels * step_bytes : step_bytes;
    steps.b = copied >= 0 ? tiles_.b + copied * steps.b_step
                          : task_.b + task_.runs[run].b_offset + first * step_bytes;
    while (count > 0) {
      const bool is_last = first + 1 == run_steps_;
      const int tail = is_last ? task_.tail : 0;
      const std::ptrdiff_t word = first_word(first);
      // Those that follow each other without a copy;
      // a last one that begins earlier, or has a tail, is by itself.
      const std::ptrdiff_t together = is_even ? smaller(count, run_steps_ - 1 - first) : 0;
      steps.count = larger(1, together);
      if (together == count - 1 && twice_ == 0 && task_.tail == 0 && is_even) steps.count = count;
      for (int i = 0; i < Parts; ++i) {
        if (rows[i].pointers == nullptr && tail == 0) {
          steps.a[i] = reinterpret_cast<const std::uint8_t*>(rows[i].base + 4 * word);
          steps.a_stride[i] = rows[i].stride;
        } else {
          gather(rows[i], offset, word, tail, tiles_.a[i]);
          steps.a[i] = tiles_.a[i];
          steps.a_stride[i] = kTileRowBytes;
        }
      }
      multiply_steps<kSigned, Parts, Panels>(tiles_, steps);
      steps.b += steps.count * steps.b_step;
      first += steps.count;
      count -= steps.count;
    }
  }

  ByteTiles& tiles_;
  std::ptrdiff_t words_, run_steps_;  // of a run
  int step_words_;
  int twice_;  // words of a run that come in its last two steps
};

template <class Dot>
GCRT_NOINLINE void run_in_tiles(int rows, int columns, const TileTask<Dot>& task,
                                const TileEpilogue<Dot>& epilogue) {
  typename Dot::TaskSum tiled(*epilogue.unit, task, rows, columns);
  tiled.sum();
  if (!task.finish) return;
  tiled.for_each_part([&](const typename Dot::Sum* sums, int row, int count) {
    epilogue.block(sums, columns, count, task.valid_columns, task.m + row, task.n, epilogue.epilogue);
  });
}

#endif

// The policy of a product of int8 words: `InTiles`, which is at most kInTiles, or by vectors.
#if GCRT_HAS_TILES
template <class TX, class TW, bool InTiles>
using WordDot = std::conditional_t<InTiles, TiledByteDot<TX>, IntegerDot<TX, TW>>;
#else
template <class TX, class TW, bool InTiles>
using WordDot = IntegerDot<TX, TW>;
#endif

}  // namespace GCRT_NAMESPACE

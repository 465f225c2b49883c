#pragma once
// Memory-planning instances made by the tests themselves.

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "codegen/memory/plan.h"

namespace gcompile::memory_instances {

/// std::uniform_int_distribution differs between libraries; this does not.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  /// In [low, high].
  int64_t roll(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  std::mt19937_64 engine_;
};

inline Buffer make_buffer(int64_t size, int64_t begin, int64_t end, int64_t alignment = 1) {
  Buffer buffer;
  buffer.size = size;
  buffer.begin_step = begin;
  buffer.end_step = end;
  buffer.alignment = alignment;
  buffer.name = "b" + std::to_string(begin) + "_" + std::to_string(end) + "_" + std::to_string(size);
  return buffer;
}

inline std::vector<Buffer> random_buffers(Dice& dice, int count, int64_t steps, int64_t longest,
                                          int64_t largest, int largest_alignment_log2) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < count; ++i) {
    const int64_t begin = dice.roll(0, steps - 1);
    const int64_t end = begin + dice.roll(1, longest);
    const int64_t alignment = int64_t{1} << dice.roll(0, largest_alignment_log2);
    buffers.push_back(make_buffer(dice.roll(0, largest), begin, end, alignment));
  }
  return buffers;
}

/// Cuts a rectangle of `steps` x `height` into at most `pieces` rectangles and shuffles them: every step is
/// full, so the optimum is `height`, and it is the lower bound.
inline std::vector<Buffer> cut_rectangle(Dice& dice, int pieces, int64_t steps, int64_t height,
                                         int64_t unit = 1) {
  struct Rectangle {
    int64_t begin, end, bottom, top;
  };
  std::vector<Rectangle> rectangles{{0, steps, 0, height / unit}};
  for (int cuts = 0; cuts < 4 * pieces && static_cast<int>(rectangles.size()) < pieces; ++cuts) {
    // The largest of three, so that no piece stays huge.
    size_t pick = 0;
    int64_t area = -1;
    for (int k = 0; k < 3; ++k) {
      const auto i = static_cast<size_t>(dice.roll(0, static_cast<int64_t>(rectangles.size()) - 1));
      const Rectangle& r = rectangles[i];
      if ((r.end - r.begin) * (r.top - r.bottom) > area)
        area = (r.end - r.begin) * (r.top - r.bottom), pick = i;
    }
    Rectangle& r = rectangles[pick];
    Rectangle other = r;
    if (dice.roll(0, 1) == 0 && r.end - r.begin > 1) {
      r.end = other.begin = dice.roll(r.begin + 1, r.end - 1);
    } else if (r.top - r.bottom > 1) {
      r.top = other.bottom = dice.roll(r.bottom + 1, r.top - 1);
    } else {
      continue;
    }
    rectangles.push_back(other);
  }
  for (size_t i = rectangles.size(); i > 1; --i) {
    std::swap(rectangles[i - 1], rectangles[static_cast<size_t>(dice.roll(0, static_cast<int64_t>(i) - 1))]);
  }
  std::vector<Buffer> buffers;
  for (const Rectangle& r : rectangles) {
    buffers.push_back(make_buffer((r.top - r.bottom) * unit, r.begin, r.end, unit & -unit));
  }
  return buffers;
}

/// Two cut rectangles one after the other, with pieces of equal size that meet at the seam welded together
/// whatever their offsets: every step is full, but often no plan is as low as that.
inline std::vector<Buffer> weld_rectangles(Dice& dice, int pieces, int64_t steps, int64_t height) {
  std::vector<Buffer> buffers = cut_rectangle(dice, pieces, steps, height);
  for (Buffer& right : cut_rectangle(dice, pieces, steps, height)) {
    const bool at_seam = right.begin_step == 0;
    auto left = std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& b) {
      return at_seam && b.end_step == steps && b.size == right.size;
    });
    if (left != buffers.end()) {
      left->end_step = steps + right.end_step;
    } else {
      buffers.push_back(make_buffer(right.size, steps + right.begin_step, steps + right.end_step));
    }
  }
  return buffers;
}

/// Cut rectangles one after the other, with one block under them all that lives throughout: the optimum is
/// `height` plus the size of that block, and it is the lower bound.
inline std::vector<Buffer> stages(Dice& dice, int count, int pieces, int64_t steps, int64_t height) {
  std::vector<Buffer> buffers{make_buffer(height / 8, 0, count * steps)};
  for (int stage = 0; stage < count; ++stage) {
    for (const Buffer& piece : cut_rectangle(dice, pieces, steps, height)) {
      const int64_t begin = stage * steps;
      buffers.push_back(make_buffer(piece.size, begin + piece.begin_step, begin + piece.end_step));
    }
  }
  return buffers;
}

/// What a residual network looks like: a chain with skip connections, scratch of one step,
/// and a few long lives.
inline std::vector<Buffer> network_buffers(Dice& dice, int layers) {
  std::vector<Buffer> buffers;
  for (int64_t step = 0; step < layers; ++step) {
    const int64_t size = 64 * dice.roll(1, 4096);
    const int64_t life = dice.roll(0, 3) == 0 ? dice.roll(3, 7) : 2;
    buffers.push_back(make_buffer(size, step, step + life, 64));
    if (dice.roll(0, 1) == 0) {
      buffers.push_back(make_buffer(64 * dice.roll(1, 1024), step, step + 1, 64));
      buffers.back().kind = BufferKind::kScratch;
    }
    if (dice.roll(0, 49) == 0) buffers.push_back(make_buffer(64 * dice.roll(1, 16), step, layers + 1, 64));
  }
  return buffers;
}

}  // namespace gcompile::memory_instances

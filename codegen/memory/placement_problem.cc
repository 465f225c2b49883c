#include "codegen/memory/placement_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/diagnostics.h"

namespace gcompile::memory {
namespace {

/// With all sizes, paddings and fixed offsets below it together, no sum of the planner can overflow.
constexpr int64_t kTotalLimit = int64_t{1} << 62;

[[noreturn]] void fail(const Buffer& buffer, const std::string& what, ExitCode code = ExitCode::kInternal) {
  throw CompileError(code, fmt::format("memory plan: buffer '{}' {}", printable(buffer.name), what));
}

void check_buffer(const Buffer& buffer) {
  if (buffer.size < 0) fail(buffer, fmt::format("has the negative size {}", buffer.size));
  if (buffer.end_step <= buffer.begin_step) {
    fail(buffer, fmt::format("has the empty life [{}, {})", buffer.begin_step, buffer.end_step));
  }
  if (buffer.alignment <= 0 || (buffer.alignment & (buffer.alignment - 1)) != 0) {
    fail(buffer, fmt::format("has the alignment {}, which is no power of two", buffer.alignment));
  }
  if (buffer.fixed_offset && (*buffer.fixed_offset < 0 || *buffer.fixed_offset % buffer.alignment != 0)) {
    fail(buffer, fmt::format("is fixed at {}, which is negative or no multiple of its alignment {}",
                             *buffer.fixed_offset, buffer.alignment));
  }
}

/// The largest byte position that any placement of these buffers could reach stays below kTotalLimit.
void check_total(const std::vector<Buffer>& buffers) {
  int64_t total = 0;
  for (const Buffer& buffer : buffers) {
    // A step of at most `alignment - 1` padding, and the size rounded up by as much again.
    int64_t reach = 0;
    bool overflow = __builtin_add_overflow(buffer.size, buffer.alignment, &reach) ||
                    __builtin_add_overflow(reach, buffer.alignment, &reach) ||
                    __builtin_add_overflow(reach, buffer.fixed_offset.value_or(0), &reach) ||
                    __builtin_add_overflow(total, reach, &total);
    if (overflow || total > kTotalLimit) fail(buffer, "takes the total beyond 2^62 bytes", ExitCode::kModel);
  }
}

int64_t life_of(const Buffer& buffer) {
  int64_t life = 0;
  if (__builtin_sub_overflow(buffer.end_step, buffer.begin_step, &life))
    fail(buffer, "lives beyond 2^63 steps");
  return life;
}

/// Sets begin and end of the blocks. A new section opens with the first begin after an end.
int32_t assign_sections(const std::vector<Life>& lives, std::vector<Block>& blocks) {
  struct Event {
    int64_t step;
    bool begins;
    size_t block;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < blocks.size(); ++i) {
    events.push_back({lives[i].begin, true, i});
    events.push_back({lives[i].end, false, i});
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.step != b.step ? a.step < b.step : a.begins < b.begins;
  });
  int32_t section = 0;
  bool ended = false;
  for (const Event& event : events) {
    if (event.begins) {
      section += ended ? 1 : 0;
      ended = false;
      blocks[event.block].begin = section;
    } else {
      ended = true;
      blocks[event.block].end = section + 1;
    }
  }
  return blocks.empty() ? 0 : section + 1;
}

/// Fixed blocks that are live together must not overlap: sweep over time with the live ones sorted by offset.
void check_fixed(const std::vector<Buffer>& buffers, const PlacementProblem& problem) {
  struct Event {
    int32_t section;
    bool begins;
    const Block* block;
  };
  std::vector<Event> events;
  for (const Block& block : problem.blocks) {
    if (block.fixed_offset < 0) continue;
    events.push_back({block.begin, true, &block});
    events.push_back({block.end, false, &block});
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.section != b.section ? a.section < b.section : a.begins < b.begins;
  });
  std::map<int64_t, const Block*> live;
  auto name = [&](const Block& block) { return buffers[static_cast<size_t>(block.source)].name; };
  for (const Event& event : events) {
    const Block& block = *event.block;
    if (!event.begins) {
      live.erase(block.fixed_offset);
      continue;
    }
    auto after = live.lower_bound(block.fixed_offset);
    const Block* hit = nullptr;
    if (after != live.end() && after->first < block.fixed_offset + block.size) hit = after->second;
    if (after != live.begin() &&
        std::prev(after)->first + std::prev(after)->second->size > block.fixed_offset) {
      hit = std::prev(after)->second;
    }
    if (hit != nullptr) {
      fail(buffers[static_cast<size_t>(block.source)],
           fmt::format("is fixed where '{}' is, at the same time", name(*hit)));
    }
    live.emplace(block.fixed_offset, &block);
  }
}

}  // namespace

PlacementProblem squeeze_time(std::vector<Block> blocks, const std::vector<Life>& lives) {
  PlacementProblem problem;
  problem.blocks = std::move(blocks);
  problem.section_count = assign_sections(lives, problem.blocks);
  std::vector<int64_t> change(static_cast<size_t>(problem.section_count) + 1, 0);
  for (const Block& block : problem.blocks) {
    change[static_cast<size_t>(block.begin)] += block.size;
    change[static_cast<size_t>(block.end)] -= block.size;
    problem.has_fixed = problem.has_fixed || block.fixed_offset >= 0;
    problem.has_hints = problem.has_hints || block.hint >= 0;
  }
  int64_t live = 0;
  for (size_t section = 0; section + 1 < change.size(); ++section) {
    live += change[section];
    problem.section_bytes.push_back(live);
    problem.lower_bound = std::max(problem.lower_bound, live);
  }
  return problem;
}

PlacementProblem make_problem(const std::vector<Buffer>& buffers) {
  for (const Buffer& buffer : buffers) check_buffer(buffer);
  check_total(buffers);
  std::vector<Block> blocks;
  std::vector<Life> lives;
  int64_t fixed_top = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    const int64_t lifetime = life_of(buffer);
    fixed_top = std::max(fixed_top, buffer.fixed_offset.value_or(0));
    if (buffer.size == 0) continue;
    Block block;
    block.size = align_up(buffer.size, buffer.alignment);
    block.alignment = buffer.alignment;
    block.source = static_cast<int32_t>(i);
    block.lifetime = lifetime;
    if (buffer.fixed_offset) {
      block.fixed_offset = *buffer.fixed_offset;
      fixed_top = std::max(fixed_top, block.fixed_offset + block.size);
    } else if (buffer.hint && *buffer.hint >= 0 && *buffer.hint <= kTotalLimit - block.size) {
      block.hint = *buffer.hint;
    }
    blocks.push_back(block);
    lives.push_back({buffer.begin_step, buffer.end_step});
  }
  PlacementProblem problem = squeeze_time(std::move(blocks), lives);
  problem.lower_bound = std::max(problem.lower_bound, fixed_top);
  check_fixed(buffers, problem);
  return problem;
}

}  // namespace gcompile::memory

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gcompile {

enum class BufferKind { kActivation, kScratch, kInput, kOutput, kState };

/// One thing that needs bytes of the arena for a while.
struct Buffer {
  std::string name;
  BufferKind kind = BufferKind::kActivation;
  /// Bytes. A buffer owns its size rounded up to its alignment, so a kernel may touch the padding.
  int64_t size = 0;
  /// Life in schedule steps, half-open: [begin_step, end_step). A value nobody reads still lives one step.
  int64_t begin_step = 0;
  int64_t end_step = 1;
  /// The alignment of the offset, in bytes; a power of two.
  int64_t alignment = 64;
  /// The planner must put it here.
  std::optional<int64_t> fixed_offset;
  /// The planner puts it here if the arena gets no larger by it (keeps plans stable between
  /// versions of a model).
  std::optional<int64_t> hint;
};

struct MemoryPlan {
  /// Bytes from the start of the arena, one for each buffer.
  std::vector<int64_t> offsets;
  int64_t arena_bytes = 0;
  /// No plan for these lives can be smaller: the most bytes live in any one step.
  int64_t lower_bound = 0;
  /// The arena is known to be as small as it can be: at the bound, or all smaller ones were searched.
  bool proven_optimal = false;
  /// Which rule found it, as text for the report: "size/first-fit".
  std::string order_used;
  /// Work done by the search, in its own deterministic unit; 0 if the greedy rules reached the bound.
  int64_t search_work = 0;
};

struct MemoryPlanOptions {
  /// Elementary steps the search may take once the greedy rules miss the bound (about 2 * 10^8 per second). A
  /// count and not a time, so that the same model gives the same bytes on every machine.
  /// 0 turns the search off.
  int64_t search_budget = 200'000'000;
};

/// Gives every buffer an offset such that no two that live at the same time share a byte, in as small an
/// arena as it can: an ensemble of greedy rules, then a search (improve.h) if none reaches the bound. Never
/// worse than greedy-by-size first-fit (TensorFlow Lite Micro's planner) within kFirstFitLimit (ensemble.h).
/// Throws CompileError: exit code 70 if the buffers contradict themselves (negative size, empty life,
/// alignment not a power of two, fixed offsets that collide), 1 if they need more than 2^62 bytes together.
/// The text names the buffer.
MemoryPlan plan_memory(const std::vector<Buffer>& buffers, const MemoryPlanOptions& options = {});

/// The arena that the same buffers need without planning ahead: each is placed first-fit when its life begins
/// (ties in the given order) and freed after its last use. In bytes; the report prints it beside the plan.
/// Fixed offsets and hints are ignored. Throws like plan_memory().
int64_t first_fit_reference(const std::vector<Buffer>& buffers);

/// "activation", "scratch", "input", "output", "state".
const char* buffer_kind_name(BufferKind kind);

}  // namespace gcompile

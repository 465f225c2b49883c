#pragma once
// Which kernels run in strips of image rows (gcrt/cpu/strips.h), so that what one hands to the next need not
// exist as a whole: for time where whole images leave the caches, for size always.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/choice/machine.h"
#include "gcrt/cpu/strip_plan.h"
#include "ir/sizes/sizes.h"

namespace gcompile {

/// A kernel of a chain, as far as its price depends on it.
struct StripKernel {
  ir::Dim rows = 0;  // of its result
  /// The windows through which it reads what the kernel before it makes: see gcrt::StripImage.
  std::int64_t span = 1, stride = 1, pad = 0;
  ir::Dim row_bytes = 0;          // of its result
  std::int64_t weight_bytes = 0;  // that every strip reads again
  /// Sizes of the buffers of the arena that it reads from outside the chain, and the buffer of its result; -1: that is
  /// memory of the caller.
  std::map<int, std::int64_t> reads;
  int result = -1;
  std::int64_t bytes() const { return ir::highest(rows) * ir::highest(row_bytes); }
};

/// How a chain is cut at its largest sizes; fields as in gcrt::Strips.
struct StripPlan {
  std::int64_t rows = 0, step = 1, parts = 1;
  std::vector<gcrt::StripImage> images;  // between the kernels
  /// The sizes of the results of all kernels, in a run.
  struct Size {
    ir::Dim rows, row_bytes;
  };
  std::vector<Size> sizes;
  std::int64_t saved_picoseconds = 0;
  std::int64_t whole_bytes = 0;  // of the images, were they whole

  /// Only a run knows its sizes.
  bool is_open() const;
  std::int64_t part_bytes() const;
  std::int64_t saved_bytes() const { return whole_bytes - parts * part_bytes(); }
};

/// The plan that saves most time, or with machine.smallest_scratch most memory; nullopt: none saves any.
/// `kernels`: at least two.
std::optional<StripPlan> plan_strips(std::span<const StripKernel> kernels, const Machine& machine);

/// Kernels of a chain that run in strips; one by itself has no plan.
struct StripGroup {
  std::size_t length = 1;
  std::optional<StripPlan> plan;
};

/// Cuts a chain into groups, such that most time is saved; with machine.smallest_scratch, such that no group
/// needs more memory than it must for what it reads, makes and holds, and then all of them least.
/// `may_run(first, length, plan)`: what else a group needs.
std::vector<StripGroup> cut_into_groups(
    std::span<const StripKernel> chain, const Machine& machine,
    const std::function<bool(std::size_t, std::size_t, const StripPlan&)>& may_run);

/// "56 rows, 2 at a time, in 8 parts: 860,160 bytes in place of 4,816,896".
std::string to_string(const StripPlan& plan);

}  // namespace gcompile

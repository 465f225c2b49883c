#pragma once
// Rows of a reduction that are so few that a block for each would leave most of the device idle: several
// blocks share each row, and what a later stage needs of a whole row it gets from a kernel
// of its own (gcrt/cuda/row_parts.h).

#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/loops/loop_nest.h"
#include "gcrt/cuda/device/parts_plan.h"
#include "gcrt/cuda/product/tile_model.h"

namespace gcompile {

struct CudaLoopPlan;

struct SharedRows {
  ir::Dim rows = 0, count = 0;  // and elements of each
  int blocks = 0;               // in all, that rows are divided for
  std::int64_t least = 0;       // elements of a part
  std::int64_t grain = 0;       // of which parts are multiples
  /// The stages [first, second) of each kernel; none of the last one where that walks rows to store results.
  std::vector<std::pair<int, int>> kernels;

  bool is_empty() const { return kernels.empty(); }
  /// Whether a run alone knows how many parts there are.
  bool is_open() const { return !rows.is_constant() || !count.is_constant(); }
  /// At the typical sizes.
  int parts() const;
  int stages() const;
  /// Bytes of the workspace, and words in which blocks count, at the largest sizes.
  std::int64_t workspace_bytes() const;
  std::int64_t counters() const;
};

/// What a reduction reads of its rows.
struct RowWalks {
  double bytes = 0;  // of all walks
  double again = 0;  // of them, what a walk before has read
  int walks = 0;     // stages, and the final expression where that is over the reduced axes
};
/// `keeps`: registers hold what is wanted again. At the largest sizes, or at the typical ones.
RowWalks row_walks(const LoopNest& nest, int region_root, bool keeps, bool at_largest);

/// How often a thread waits for memory, one time behind the other, at the typical sizes.
double rounds_of(const LoopNest& nest, const CudaLoopPlan& plan, int walks);

/// Lets several blocks share the rows of a group where that is faster by the model of time.
void share_rows(CudaLoopPlan& plan, const LoopNest& nest, int region_root, const gcrt::DeviceModel& device);

}  // namespace gcompile

#pragma once
// How one loop nest is spread over a grid of threads: who works on what, in packs of how many elements, and
// what stays in registers or goes through shared memory.

#include <optional>
#include <string>
#include <vector>

#include "codegen/loops/cuda/cuda_shared_rows.h"
#include "codegen/loops/cuda/kept_row.h"
#include "codegen/loops/loop_nest.h"
#include "gcrt/cuda/product/tile_model.h"

namespace gcompile {

/// A map whose reads run along one axis and whose writes run along another: the values of some nodes are read
/// or computed in the order of the reads, and pass through a tile in shared memory.
struct TilePlan {
  int read_axis = -1, write_axis = -1;
  int read_side = 0, write_side = 0;  // elements of a tile along them
  std::int64_t read_lanes = 1;        // of a pack along the axis of the reads
  std::vector<int> staged;            // dag nodes, ascending
};

struct CudaLoopPlan {
  /// Who computes one point of the parallel axes (kThread: or some packs of points; kTile: a block, one tile
  /// of points).
  enum class Worker { kThread, kWarp, kBlock, kTile };
  Worker worker = Worker::kThread;
  std::int64_t lanes = 1;  // of a pack
  std::int64_t packs = 1;  // kThread: of one worker
  ir::Dim workers = 1;     // in all
  int threads = 1;         // of one worker
  KeptRow kept;            // kWarp and kBlock
  SharedRows shared;       // kBlock: by blocks, of which each has a part of the row
  TilePlan tile;           // kTile

  /// Whether the body says from where on it reads what other kernels write; else it does from the beginning.
  bool awaits_itself() const { return !kept.ahead.empty(); }
  /// "warp per row, kept in registers": for the report.
  std::string summary() const;
};

/// May change the nest's vector axis and the order of its axes. What has to be right (packs that divide an
/// axis, and are aligned) holds at all sizes; what is fast is weighed at the typical ones.
CudaLoopPlan plan_cuda_loops(LoopNest& nest, int region_root, const std::vector<KernelTensor>& operands,
                             const KernelTensor& result, const gcrt::DeviceModel& device);

/// The same for rows that one block of so many threads makes one after the other; nullopt: they are no rows
/// that a group can share.
std::optional<CudaLoopPlan> plan_rows_of_block(LoopNest& nest, int region_root,
                                               const std::vector<KernelTensor>& operands,
                                               const KernelTensor& result, const gcrt::DeviceModel& device,
                                               int threads);

/// Product of the axes' extents.
ir::Dim extent_of(const LoopNest& nest, const std::vector<int>& axes);

/// Bytes in shared memory of an element of the node's type.
int staged_bytes(const LoopNest& nest, int node);

}  // namespace gcompile

#include "codegen/loops/cuda/cuda_shared_rows.h"

#include <algorithm>
#include <set>

#include "codegen/loops/cuda/cuda_loop_plan.h"
#include "ir/sizes/sizes.h"

namespace gcompile {

using Worker = CudaLoopPlan::Worker;

namespace {

constexpr int kWarpThreads = 32;
/// Threads of a block that shares a row: two of them fill a multiprocessor's queue of loads.
constexpr int kPartThreads = 512;
constexpr int kBlocksOfMultiprocessor = 2;
/// Packs that a thread has on their way at a time (reduce_part of gcrt/cuda/device/loops.h).
constexpr std::int64_t kPacksInFlight = 4;
/// Blocks of a warp's rows have so many of them.
constexpr std::int64_t kWarpsOfBlock = 4;
/// More rows than that have no cells of their own.
constexpr std::int64_t kMostRows = std::int64_t{1} << 16;

double ceil_div(double a, double b) {
  return static_cast<double>(static_cast<std::int64_t>((a + b - 1) / b));
}

std::vector<int> walked_roots(const LoopNest& nest, int region_root) {
  std::vector<int> roots;
  for (const ir::Stage& stage : nest.form->stages) roots.push_back(stage.root);
  if (nest.form->final_over_reduced) roots.push_back(region_root);
  return roots;
}

std::int64_t depth_of(const LoopNest& nest) { return ir::typical(extent_of(nest, nest.reduced)); }

/// Stages of which none needs what another one of them makes share a kernel.
std::vector<std::pair<int, int>> kernels_of(const LoopNest& nest) {
  const std::vector<std::uint64_t> dependence = nest.dependence();
  std::vector<std::pair<int, int>> kernels;
  int first = 0;
  const int count = static_cast<int>(nest.form->stages.size());
  for (int k = 0; k < count; ++k) {
    const int root = nest.form->stages[static_cast<std::size_t>(k)].root;
    const std::uint64_t needed = dependence[static_cast<std::size_t>(root)] >> 32;
    if (k > first && needed >> first != 0) {
      kernels.emplace_back(first, k);
      first = k;
    }
  }
  kernels.emplace_back(first, count);
  if (nest.form->final_over_reduced) kernels.emplace_back(count, count);
  return kernels;
}

}  // namespace

int SharedRows::parts() const {
  return gcrt::row_parts(ir::typical(rows), ir::typical(count), blocks, least);
}

int SharedRows::stages() const {
  int stages = 0;
  for (const auto& [first, end] : kernels) stages = std::max(stages, end);
  return stages;
}

std::int64_t SharedRows::workspace_bytes() const {
  const std::int64_t parts = is_open() ? blocks : ir::typical(rows) * this->parts();
  return stages() * (ir::highest(rows) + parts) * gcrt::kRowCellBytes;
}

std::int64_t SharedRows::counters() const {
  return is_open() ? std::min<std::int64_t>(ir::highest(rows), blocks) : ir::typical(rows);
}

RowWalks row_walks(const LoopNest& nest, int region_root, bool keeps, bool at_largest) {
  RowWalks out;
  const std::vector<std::uint64_t> dependence = nest.dependence();
  std::uint64_t reduced = 0;
  for (const int a : nest.reduced) reduced |= std::uint64_t{1} << a;
  std::set<int> seen;
  for (const int root : walked_roots(nest, region_root)) {
    ++out.walks;
    for (const int id : nest.form->dag.reachable(std::vector<int>{root})) {
      const std::uint64_t axes = dependence[static_cast<std::size_t>(id)];
      if (nest.form->dag[id].op != ir::ScalarOp::kLoad || (axes & reduced) == 0) continue;
      double bytes = static_cast<double>(bits_of(nest.form->dag.type(id))) / 8;
      for (std::size_t a = 0; a < nest.axes.size(); ++a) {
        const ir::Dim extent = nest.axes[a].extent();
        if ((axes >> a & 1) != 0)
          bytes *= static_cast<double>(at_largest ? ir::highest(extent) : ir::typical(extent));
      }
      const bool is_new = seen.insert(id).second;
      if (!is_new && keeps) continue;
      out.bytes += bytes;
      if (!is_new) out.again += bytes;
    }
  }
  return out;
}

double rounds_of(const LoopNest& nest, const CudaLoopPlan& plan, int walks) {
  if (nest.form->is_map()) return 0;
  const auto depth = static_cast<double>(depth_of(nest));
  if (plan.worker == Worker::kThread) return walks * ceil_div(depth, kPacksInFlight);
  if (!plan.kept.is_empty()) return 0;  // all packs at once
  const auto in_flight = static_cast<double>(plan.threads * plan.lanes * kPacksInFlight);
  const double parts = plan.shared.is_empty() ? 1 : plan.shared.parts();
  return walks * ceil_div(depth / parts, in_flight);
}

void share_rows(CudaLoopPlan& plan, const LoopNest& nest, int region_root, const gcrt::DeviceModel& device) {
  const bool is_group = plan.worker == Worker::kWarp || plan.worker == Worker::kBlock;
  if (!is_group || nest.form->regions.size() != 1) return;
  if (ir::highest(plan.workers) > kMostRows) return;
  CudaLoopPlan shared = plan;
  shared.worker = Worker::kBlock;
  shared.threads = kPartThreads;
  shared.kept = {};
  SharedRows& rows = shared.shared;
  rows.rows = plan.workers;
  rows.count = extent_of(nest, nest.reduced);
  rows.blocks = device.multiprocessors * kBlocksOfMultiprocessor;
  rows.least = kPartThreads * plan.lanes * kPacksInFlight;
  rows.grain = kWarpThreads * plan.lanes;
  rows.kernels = kernels_of(nest);
  if (rows.parts() <= 1) return;

  const std::int64_t workers = ir::typical(plan.workers);
  const auto time = [&](const CudaLoopPlan& of, std::int64_t blocks, std::size_t launches) {
    const RowWalks walks = row_walks(nest, region_root, !of.kept.is_empty(), false);
    return gcrt::walking_time(device, static_cast<std::ptrdiff_t>(launches), walks.bytes, walks.again, blocks,
                              rounds_of(nest, of, walks.walks));
  };
  const gcrt::KernelTime alone =
      time(plan, plan.worker == Worker::kWarp ? (workers + kWarpsOfBlock - 1) / kWarpsOfBlock : workers, 1);
  gcrt::KernelTime together = time(shared, workers * rows.parts(), rows.kernels.size());
  together.join =
      gcrt::clocks_to_microseconds(device, gcrt::kArrivalClocks * static_cast<double>(rows.kernels.size()));
  if (together.microseconds() < alone.microseconds()) plan = std::move(shared);
}

}  // namespace gcompile

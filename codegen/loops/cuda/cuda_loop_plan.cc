#include "codegen/loops/cuda/cuda_loop_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "gcrt/cuda/transpose_plan.h"
#include "ir/sizes/sizes.h"

namespace gcompile {

using ir::ElementType;
using ir::Index;
using ir::ScalarNode;
using ir::ScalarOp;
using Worker = CudaLoopPlan::Worker;

namespace {

/// Bytes that one thread moves by one instruction.
constexpr std::int64_t kAccessBytes = 16;
constexpr int kWarpThreads = 32;
constexpr int kBlockThreads = 256;
constexpr int kMostThreads = 1024;
/// Rows up to this length are reduced by one warp: shuffles alone, no barrier.
constexpr std::int64_t kWarpRow = 1024;
/// A grid of fewer threads leaves most of a large GPU idle: then a reduction is shared by a whole group.
constexpr std::int64_t kFewThreads = 4096;
constexpr std::int64_t kLongReduction = 64;
/// Registers of a thread for what it keeps of a row; as many again are left for everything else even in
/// blocks of 512.
constexpr std::int64_t kKeptWords = 32;
/// So many rows give every multiprocessor of a large GPU work when each has a warp; fewer are given to more
/// threads, down to this many packs for each.
constexpr std::int64_t kManyRows = 1024;
constexpr std::int64_t kFewPacks = 2;
/// Rows of this length of which there are not enough for the multiprocessors take all threads of theirs.
constexpr std::int64_t kLongRow = 8192;
constexpr std::int64_t kFewRows = 128;

/// Bytes that a thread of a map has on their way from memory at a time. Bandwidth times latency (4 TB/s, 1
/// us) over the threads that a large GPU has resident (132 x 2048) is 15; four times as much serves loaded
/// memory and kernels whose registers leave room for half as many threads.
constexpr std::int64_t kBytesInFlight = 64;
constexpr std::int64_t kMostPacks = 4;
/// Elements whose values a thread may hold.
constexpr std::int64_t kHeldElements = 32;
/// Threads that a multiprocessor holds. Maps of fewer packs than that are on their way at once in any case.
constexpr std::int64_t kResidentThreads = 2048;

/// Tensors of fewer elements are in the cache whatever the order; shorter axes leave a tile half empty.
constexpr std::int64_t kTiledElements = 4096;
constexpr std::int64_t kTiledExtent = 16;
constexpr std::int64_t kTileLanes = 4;
constexpr int kLongestSide = 64;
/// Two blocks for each multiprocessor of a large GPU.
constexpr std::int64_t kManyTiles = 256;
/// Without asking for more.
constexpr int kSharedBytes = 48 * 1024;

std::int64_t bytes_of_element(ElementType type) { return bits_of(type) / 8; }

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Whether packs of `lanes` elements along the axis are aligned at every point: the stride is one, and
/// everything else moves by whole packs.
bool is_aligned(const Index& address, int axis, std::int64_t lanes, std::int64_t alignment,
                std::int64_t element_bytes) {
  if (alignment % (lanes * element_bytes) != 0 || content(address.constant()) % lanes != 0) return false;
  return std::all_of(address.terms().begin(), address.terms().end(), [&](const Index::Term& t) {
    const bool own = t.atom.kind == ir::IndexAtom::Kind::kAxis && t.atom.axis == axis;
    return own ? t.coefficient == 1 : content(t.coefficient) % lanes == 0;
  });
}

/// Whether the address depends on the axis otherwise than by a constant stride. `dependence`: the nest's.
bool is_gathered(const std::vector<std::uint64_t>& dependence, const Index& address, int axis) {
  return std::any_of(address.terms().begin(), address.terms().end(), [&](const Index::Term& t) {
    const bool loaded = t.atom.kind == ir::IndexAtom::Kind::kLoaded;
    return loaded ? (dependence[static_cast<std::size_t>(t.atom.axis)] >> axis & 1) != 0
                  : t.atom.inner && t.atom.inner->mentions(axis);
  });
}

/// Elements that one thread handles at a time along the axis: as many as one aligned access of every stream
/// holds. Streams are the loads among `nodes` and, if it `stores`, the result.
std::int64_t lanes_along(const LoopNest& nest, int axis, const std::vector<int>& nodes, bool stores,
                         const std::vector<KernelTensor>& operands, const KernelTensor& result) {
  struct Stream {
    const Index* address;
    const KernelTensor* tensor;
  };
  std::vector<Stream> streams;
  const std::vector<std::uint64_t> dependence = nest.dependence();
  for (const int id : nodes) {
    const ScalarNode& node = nest.form->dag[id];
    if (node.op != ScalarOp::kLoad) continue;
    const Index& address = nest.address[static_cast<std::size_t>(id)];
    if (!is_gathered(dependence, address, axis) && address.coefficient_of(axis) == 1)
      streams.push_back({&address, &operands[static_cast<std::size_t>(node.operand)]});
  }
  if (stores && nest.store.coefficient_of(axis) == 1) streams.push_back({&nest.store, &result});
  if (streams.empty()) return 1;
  std::int64_t widest = 1;
  for (const Stream& s : streams) widest = std::max(widest, bytes_of_element(s.tensor->element));
  std::int64_t lanes = kAccessBytes / widest;
  const auto fits = [&] {
    return content(nest.axes[static_cast<std::size_t>(axis)].extent()) % lanes == 0 &&
           std::all_of(streams.begin(), streams.end(), [&](const Stream& s) {
             return is_aligned(*s.address, axis, lanes, s.tensor->alignment,
                               bytes_of_element(s.tensor->element));
           });
  };
  while (lanes > 1 && !fits()) lanes /= 2;
  return lanes;
}

/// Divides maps into what is read along one axis and what is written along another.
class TilePlanner {
 public:
  TilePlanner(const LoopNest& nest, int region_root, const std::vector<KernelTensor>& operands,
              const KernelTensor& result)
      : nest_(nest),
        root_(region_root),
        operands_(operands),
        result_(result),
        dependence_(nest.dependence()) {}

  std::optional<CudaLoopPlan> plan() {
    if (!nest_.form->is_map() || ir::typical(extent_of(nest_, nest_.parallel)) < kTiledElements ||
        !choose_axes()) {
      return {};
    }
    classify();
    CudaLoopPlan plan;
    plan.worker = Worker::kTile;
    plan.threads = gcrt::kTileThreads;
    plan.tile.read_axis = read_;
    plan.tile.write_axis = write_;
    // The outermost values that can be had in the order of the reads.
    std::vector<int> direct, open = {root_};
    std::set<int> staged, seen;
    while (!open.empty()) {
      const int id = open.back();
      open.pop_back();
      if (!seen.insert(id).second) continue;
      if (kind_[static_cast<std::size_t>(id)] == Kind::kStaged) {
        staged.insert(id);
        continue;
      }
      direct.push_back(id);
      for (const int source : sources_of(nest_.form->dag[id])) open.push_back(source);
    }
    if (staged.empty()) return {};
    plan.tile.staged.assign(staged.begin(), staged.end());
    plan.lanes = std::min(kTileLanes, lanes_along(nest_, write_, direct, true, operands_, result_));
    plan.tile.read_lanes = std::min(
        kTileLanes,
        lanes_along(nest_, read_, nest_.form->dag.reachable(plan.tile.staged), false, operands_, result_));
    if (!choose_sides(plan)) return {};
    return plan;
  }

 private:
  enum class Kind {
    kFree,    // the same in both orders: constants, what does not vary along either axis or only along one
    kStaged,  // reads along the axis of the reads, and nothing that is better read otherwise
    kDirect
  };

  ir::Dim size(int axis) const { return nest_.axes[static_cast<std::size_t>(axis)].extent(); }
  std::int64_t extent(int axis) const { return ir::typical(size(axis)); }
  bool varies(int id, int axis) const { return (dependence_[static_cast<std::size_t>(id)] >> axis & 1) != 0; }

  /// A read along an axis other than that of the writes, along which it jumps.
  bool is_transposed(int id, int read) const {
    const Index& address = nest_.address[static_cast<std::size_t>(id)];
    return nest_.form->dag[id].op == ScalarOp::kLoad && address.coefficient_of(read) == 1 &&
           magnitude(address.coefficient_of(write_)) > 1 && !is_gathered(dependence_, address, read) &&
           !is_gathered(dependence_, address, write_);
  }

  bool choose_axes() {
    for (const int a : nest_.parallel) {
      if (nest_.store.coefficient_of(a) == 1 && !is_gathered(dependence_, nest_.store, a)) write_ = a;
    }
    if (write_ < 0 || extent(write_) < kTiledExtent) return false;
    std::ptrdiff_t most = 0;
    for (const int a : nest_.parallel) {
      if (a == write_ || extent(a) < kTiledExtent || is_gathered(dependence_, nest_.store, a)) continue;
      const std::ptrdiff_t loads =
          std::count_if(nest_.nodes.begin(), nest_.nodes.end(), [&](int id) { return is_transposed(id, a); });
      if (loads > most) read_ = a;
      most = std::max(most, loads);
    }
    return read_ >= 0;
  }

  void classify() {
    kind_.resize(nest_.form->dag.nodes().size(), Kind::kFree);
    for (const int id : nest_.nodes) {
      const ScalarNode& node = nest_.form->dag[id];
      Kind kind = Kind::kFree;
      if (node.op == ScalarOp::kLoad && varies(id, read_) && varies(id, write_)) {
        kind = is_transposed(id, read_) ? Kind::kStaged : Kind::kDirect;
      }
      for (const int source : sources_of(node)) {
        kind = std::max(kind, kind_[static_cast<std::size_t>(source)]);
      }
      // An index that is read along the axis serves a load that is not.
      if (node.op == ScalarOp::kLoad && kind == Kind::kStaged && !is_transposed(id, read_))
        kind = Kind::kDirect;
      kind_[static_cast<std::size_t>(id)] = kind;
    }
  }

  /// False when the tiles do not fit the shared memory.
  bool choose_sides(CudaLoopPlan& plan) const {
    TilePlan& tile = plan.tile;
    const auto side_of = [&](int axis) {
      // Shorter ones where they leave much less of the last tile empty.
      const auto walked = [&](int side) { return ceil_div(extent(axis), side) * side; };
      int side = kLongestSide;
      while (side > kTiledExtent && walked(side / 2) * 4 <= walked(side) * 3) side /= 2;
      return side;
    };
    std::vector<int> others;
    std::copy_if(nest_.parallel.begin(), nest_.parallel.end(), std::back_inserter(others),
                 [&](int a) { return a != read_ && a != write_; });
    const auto tiles = [&] {
      return extent_of(nest_, others) * ceil_div(size(read_), tile.read_side) *
             ceil_div(size(write_), tile.write_side);
    };
    const auto bytes = [&] {
      int sum = 0;
      for (const int id : tile.staged)
        sum += gcrt::tile_bytes(tile.read_side, tile.write_side, staged_bytes(nest_, id));
      return sum;
    };
    tile.read_side = side_of(read_);
    tile.write_side = side_of(write_);
    const auto shorten = [&] {
      int& longer = tile.read_side > tile.write_side ? tile.read_side : tile.write_side;
      longer /= 2;
    };
    while (ir::typical(tiles()) < kManyTiles && std::max(tile.read_side, tile.write_side) > kLongestSide / 2)
      shorten();
    while (bytes() > kSharedBytes && tile.read_side * tile.write_side > kTiledExtent * kTiledExtent)
      shorten();
    plan.workers = tiles();
    return bytes() <= kSharedBytes;
  }

  const LoopNest& nest_;
  int root_;
  const std::vector<KernelTensor>& operands_;
  const KernelTensor& result_;
  std::vector<std::uint64_t> dependence_;
  int read_ = -1, write_ = -1;
  std::vector<Kind> kind_;
};

/// Gives every thread as many packs of a map as keep kBytesInFlight on their way, while there is work for all
/// threads of the device.
void choose_packs(CudaLoopPlan& plan, const LoopNest& nest, const gcrt::DeviceModel& device) {
  const std::int64_t total = ir::typical(plan.workers);
  const std::vector<std::uint64_t> dependence = nest.dependence();
  std::int64_t bytes = 0;
  for (const int id : nest.nodes) {
    const ScalarNode& node = nest.form->dag[id];
    const std::uint64_t axes = dependence[static_cast<std::size_t>(id)];
    if (node.op != ScalarOp::kLoad || axes == 0) continue;
    const bool is_pack = nest.vector_axis >= 0 && (axes >> nest.vector_axis & 1) != 0;
    bytes += bytes_of_element(node.type) * (is_pack ? plan.lanes : 1);
  }
  if (bytes == 0) return;
  while (plan.packs < kMostPacks && bytes * plan.packs < kBytesInFlight &&
         plan.lanes * plan.packs * 2 <= kHeldElements &&
         total >= device.multiprocessors * kResidentThreads * plan.packs * 2) {
    plan.packs *= 2;
  }
  // Whole warps, so that each begins at a line of memory in every round.
  if (plan.packs > 1)
    plan.workers = ceil_div(ceil_div(plan.workers, plan.packs), kWarpThreads) * kWarpThreads;
}

/// Chooses the group for rows of `depth` elements, walked along an axis of `row`, and whether it keeps them,
/// and the weights that all of them take.
void choose_group(CudaLoopPlan& plan, KeptRow kept, std::vector<int> weights, std::int64_t row,
                  std::int64_t depth) {
  const std::int64_t rows = ir::typical(plan.workers);
  const std::int64_t packs = depth / plan.lanes;
  for (const int threads : {kWarpThreads, 128, 256, 512}) {
    if (kept.is_empty() || depth == 0) break;
    const std::int64_t each = ceil_div(packs, threads);
    if (each * plan.lanes * kept.words > kKeptWords) continue;
    if (each > kFewPacks && rows < kManyRows && threads < 512) continue;
    plan.threads = threads;
    plan.worker = threads == kWarpThreads ? Worker::kWarp : Worker::kBlock;
    plan.kept = std::move(kept);
    const auto words = plan.kept.words + static_cast<std::int64_t>(weights.size());
    if (each * plan.lanes * words <= kKeptWords) plan.kept.ahead = std::move(weights);
    return;
  }
  plan.worker = row <= kWarpRow ? Worker::kWarp : Worker::kBlock;
  plan.threads = plan.worker == Worker::kWarp          ? kWarpThreads
                 : row >= kLongRow && rows <= kFewRows ? kMostThreads
                                                       : kBlockThreads;
}

}  // namespace

std::string CudaLoopPlan::summary() const {
  const char* what = kept.is_empty() ? "" : ", kept in registers";
  switch (worker) {
    case Worker::kThread:
      if (packs > 1) return fmt::format("{} x {} per thread", packs, lanes);
      return lanes > 1 ? fmt::format("{} per thread", lanes) : "";
    case Worker::kWarp:
      return fmt::format("warp per row{}", what);
    case Worker::kBlock:
      return shared.is_empty() ? fmt::format("{} threads per row{}", threads, what)
                               : fmt::format("{} blocks of {} threads per row", shared.parts(), threads);
    case Worker::kTile:
      return fmt::format("{}x{}, transposed", tile.read_side, tile.write_side);
  }
  return "";
}

ir::Dim extent_of(const LoopNest& nest, const std::vector<int>& axes) {
  ir::Dim product = 1;
  for (const int a : axes) product *= nest.axes[static_cast<std::size_t>(a)].extent();
  return product;
}

int staged_bytes(const LoopNest& nest, int node) {
  return static_cast<int>(bytes_of_element(ir::compute_type(nest.form->dag.type(node))));
}

CudaLoopPlan plan_cuda_loops(LoopNest& nest, int region_root, const std::vector<KernelTensor>& operands,
                             const KernelTensor& result, const gcrt::DeviceModel& device) {
  if (auto tiled = TilePlanner(nest, region_root, operands, result).plan()) return *tiled;
  CudaLoopPlan plan;
  const auto extent = [&](int axis) {
    return ir::typical(nest.axes[static_cast<std::size_t>(axis)].extent());
  };
  const auto is_reduced = [&](int axis) { return nest.axes[static_cast<std::size_t>(axis)].reduced; };
  const bool arg = std::any_of(nest.form->stages.begin(), nest.form->stages.end(), [](const ir::Stage& s) {
    return s.combine == ir::Combine::kArgMax || s.combine == ir::Combine::kArgMin;
  });
  const ir::Dim points = extent_of(nest, nest.parallel), depth = extent_of(nest, nest.reduced);
  const bool reduces = !nest.form->is_map() && !nest.reduced.empty();
  bool shared = reduces && nest.vector_axis >= 0 && is_reduced(nest.vector_axis);
  shared = shared || (reduces && ir::typical(points) < kFewThreads && ir::typical(depth) >= kLongReduction);
  // Positions count along one axis.
  if (arg && nest.reduced.size() != 1) shared = false;
  if (shared) {
    if (nest.vector_axis < 0 || !is_reduced(nest.vector_axis)) {
      // The longest reduced axis is shared among the group's threads.
      const auto longest = std::max_element(nest.reduced.begin(), nest.reduced.end(),
                                            [&](int a, int b) { return extent(a) < extent(b); });
      nest.vector_axis = *longest;
      std::rotate(longest, longest + 1, nest.reduced.end());
    }
    plan.lanes =
        lanes_along(nest, nest.vector_axis, nest.nodes, nest.form->final_over_reduced, operands, result);
    plan.workers = points;
    // What is kept has a register for each element.
    const bool keeps = !arg && depth.is_constant();
    choose_group(plan, keeps ? keep_row(nest, region_root) : KeptRow{}, weights_of_rows(nest, operands),
                 extent(nest.vector_axis), ir::typical(depth));
    return plan;
  }
  const bool parallel = nest.vector_axis >= 0 && !is_reduced(nest.vector_axis);
  if (parallel && !arg) plan.lanes = lanes_along(nest, nest.vector_axis, nest.nodes, true, operands, result);
  if (plan.lanes == 1) nest.vector_axis = -1;
  plan.workers = points / plan.lanes;
  if (nest.form->is_map()) choose_packs(plan, nest, device);
  return plan;
}

std::optional<CudaLoopPlan> plan_rows_of_block(LoopNest& nest, int region_root,
                                               const std::vector<KernelTensor>& operands,
                                               const KernelTensor& result, const gcrt::DeviceModel& device,
                                               int threads) {
  CudaLoopPlan plan = plan_cuda_loops(nest, region_root, operands, result, device);
  if (plan.worker != Worker::kWarp && plan.worker != Worker::kBlock) return std::nullopt;
  plan.worker = Worker::kBlock;
  plan.threads = threads;
  plan.kept.ahead.clear();
  const std::int64_t each = ceil_div(extent_of(nest, nest.reduced) / plan.lanes, threads);
  if (each * plan.lanes * plan.kept.words > kKeptWords) plan.kept = {};
  return plan;
}

}  // namespace gcompile

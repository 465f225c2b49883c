// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Copies land when no thread of the cluster can run. From their issue on the target holds NaN, so whoever
// reads too early, or has it overwritten while it is still read, gets no number.
#include "async_copies.h"

#include <cstring>

#include "block_runner.h"

namespace cuda_on_cpu {
namespace {

// What an mbarrier leaves in its 8 bytes.
std::uint64_t mark_of(std::size_t offset) { return 0x726569727261626du ^ offset << 32; }

constexpr int kMostBytesOfBarrier = (1 << 20) - 1;  // "Tx-count": PTX ISA, "mbarrier"

std::size_t shared_offset(const void* pointer, std::size_t bytes) {
  check_shared_access(pointer, bytes);
  return static_cast<std::size_t>(static_cast<const unsigned char*>(pointer) - runner->shared());
}

AsyncCopies& mine() { return runner->block().async; }

// A box that is outside the tensor altogether is zeros.
bool is_inside(const TensorMapFields& map, const std::int64_t (&at)[kMostAxes]) {
  for (int axis = 0; axis < map.rank; ++axis) {
    if (at[axis] < 0 || at[axis] >= std::int64_t{map.sizes[axis]}) return false;
  }
  return true;
}

}  // namespace

std::size_t TensorCopy::bytes() const {
  std::size_t total = map.element_bytes;
  for (int axis = 0; axis < map.rank; ++axis) total *= map.box[axis];
  return total;
}

void AsyncCopies::reset(unsigned char* shared, std::size_t bytes) {
  shared_ = shared;
  bytes_ = bytes;
  barriers_.clear();
  shown_ = 0;
  copies_.clear();
  has_view_ = false;
  landed_ = 0;
}

unsigned char* AsyncCopies::async_view() {
  if (!has_view_) view_.assign(bytes_, static_cast<unsigned char>(kPoison));
  has_view_ = true;
  return view_.data();
}
void AsyncCopies::fence() { std::memcpy(async_view(), shared_, bytes_); }

AsyncCopies::Barrier& AsyncCopies::find(std::size_t offset) {
  for (Barrier& barrier : barriers_) {
    if (barrier.offset != offset) continue;
    std::uint64_t mark;
    std::memcpy(&mark, shared_ + offset, sizeof(mark));
    if (mark != mark_of(offset)) die("the mbarrier at %zu of shared memory was written over", offset);
    return barrier;
  }
  die("no mbarrier at %zu of shared memory", offset);
}

void AsyncCopies::init(std::size_t offset, int arrivals) {
  if (arrivals < 1 || arrivals > kMostBytesOfBarrier) die("an mbarrier of %d arrivals", arrivals);
  for (const Barrier& barrier : barriers_) {
    if (barrier.offset == offset) die("the mbarrier at %zu of shared memory is initialised twice", offset);
  }
  const std::uint64_t mark = mark_of(offset);
  std::memcpy(shared_ + offset, &mark, sizeof(mark));
  barriers_.push_back({offset, arrivals, arrivals, 0, 0});
}

void AsyncCopies::require_shown(std::size_t offset) const {
  for (std::size_t i = 0; i < shown_; ++i) {
    if (barriers_[i].offset == offset) return;
  }
  die("an mbarrier at %zu of shared memory that no fence has shown to copies", offset);
}

void AsyncCopies::settle(Barrier& barrier) {
  if (barrier.bytes > kMostBytesOfBarrier || barrier.bytes < -kMostBytesOfBarrier) {
    die("an mbarrier counts %d bytes", barrier.bytes);
  }
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  barrier.phase ^= 1;
  barrier.pending = barrier.expected;
}
void AsyncCopies::arrive(std::size_t offset) {
  Barrier& barrier = find(offset);
  if (barrier.pending == 0) die("more than %d arrivals in one phase of an mbarrier", barrier.expected);
  --barrier.pending;
  settle(barrier);
}
void AsyncCopies::expect(std::size_t offset, int bytes) {
  find(offset).bytes += bytes;
  arrive(offset);
}
bool AsyncCopies::is_complete(std::size_t offset, int parity) const {
  return const_cast<AsyncCopies*>(this)->find(offset).phase != parity;
}

void AsyncCopies::issue(const TensorCopy& copy) {
  require_shown(copy.barrier);
  std::memset(shared_ + copy.target, kPoison, copy.bytes());
  std::memset(async_view() + copy.target, kPoison, copy.bytes());
  copies_.push_back(copy);
}

bool AsyncCopies::land_one(std::uint32_t seed) {
  if (copies_.empty()) return false;
  const std::size_t i = seed == 0 ? 0 : mix(seed, ++landed_) % copies_.size();
  const TensorCopy copy = copies_[i];
  copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(i));
  land(copy);
  return true;
}

void AsyncCopies::land(const TensorCopy& copy) {
  const TensorMapFields& map = copy.map;
  const std::size_t row_bytes = std::size_t{map.box[0]} * map.element_bytes;
  const std::size_t rows = copy.bytes() / row_bytes;
  unsigned char* const view = async_view();
  const std::uint32_t base = kSharedAddress + static_cast<std::uint32_t>(copy.target);
  for (std::size_t row = 0; row < rows; ++row) {
    std::int64_t at[kMostAxes] = {copy.at[0]};
    std::size_t rest = row;
    for (int axis = 1; axis < map.rank; ++axis) {
      at[axis] = copy.at[axis] + static_cast<std::int64_t>(rest % map.box[axis]);
      rest /= map.box[axis];
    }
    unsigned char values[256 * 16] = {};
    std::int64_t first = 0, end = map.box[0];  // of the row's elements that are inside
    if (at[0] < 0) first = -at[0], at[0] = 0;
    if (copy.at[0] + end > std::int64_t{map.sizes[0]}) end = std::int64_t{map.sizes[0]} - copy.at[0];
    if (first < end && is_inside(map, at)) {
      const unsigned char* from = map.address + at[0] * map.element_bytes;
      for (int axis = 1; axis < map.rank; ++axis)
        from += static_cast<std::size_t>(at[axis]) * map.strides[axis - 1];
      const auto bytes = static_cast<std::size_t>(end - first) * map.element_bytes;
      if (!is_device_memory(from, bytes)) die("a tensor map reaches beyond its block of device memory");
      std::memcpy(values + first * map.element_bytes, from, bytes);
    }
    for (std::size_t chunk = 0; chunk < row_bytes; chunk += 16) {
      const auto plain = base + static_cast<std::uint32_t>(row * row_bytes + chunk);
      const std::size_t to = swizzled(plain, map.swizzle) - kSharedAddress;
      std::memcpy(shared_ + to, values + chunk, 16);
      std::memcpy(view + to, values + chunk, 16);
    }
  }
  Barrier& barrier = find(copy.barrier);
  barrier.bytes -= static_cast<int>(copy.bytes());
  settle(barrier);
}

std::uint32_t shared_address(const void* pointer) {
  return kSharedAddress +
         static_cast<std::uint32_t>(static_cast<const unsigned char*>(pointer) - runner->shared());
}

void barrier_init(void* barrier, int arrivals) { mine().init(shared_offset(barrier, 8), arrivals); }
void fence_barrier_init() { mine().show_barriers(); }
void barrier_arrive(void* barrier) { mine().arrive(shared_offset(barrier, 8)); }
void barrier_expect(void* barrier, int bytes) { mine().expect(shared_offset(barrier, 8), bytes); }

void barrier_wait(void* barrier, int parity) {
  struct Wanted {
    const AsyncCopies* copies;
    std::size_t offset;
    int parity;
  } wanted = {&mine(), shared_offset(barrier, 8), parity};
  const auto is_there = [](void* context) {
    const auto* phase = static_cast<const Wanted*>(context);
    return phase->copies->is_complete(phase->offset, phase->parity);
  };
  runner->poll(parity == 0 ? "mbarrier, phase 0" : "mbarrier, phase 1", {is_there, &wanted});
}

void copy_tensor(void* shared, const void* map, const int (&at)[4], void* barrier) {
  require_capability(90, "cp.async.bulk.tensor");
  TensorCopy copy = {fields_of(map), {at[0], at[1], at[2], at[3]}, 0, shared_offset(barrier, 8)};
  if (copy.map.rank != 4) die("a copy of 4 axes by a tensor map of %d", copy.map.rank);
  const std::size_t alignment = copy.map.swizzle == 0 ? 16 : 128;
  if (shared_address(shared) % alignment != 0)
    die("a tensor is copied to a place that is no multiple of %zu", alignment);
  copy.target = shared_offset(shared, 1);
  if (copy.target + copy.bytes() > runner->shared_bytes()) {
    die("a copy of %zu bytes to %zu of %zu bytes of shared memory", copy.bytes(), copy.target,
        runner->shared_bytes());
  }
  mine().issue(copy);
}

void fence_async_proxy() { mine().fence(); }

void load_from_block(void* to, const void* shared, std::size_t bytes, unsigned rank) {
  const std::size_t offset = shared_offset(shared, bytes);
  if (rank >= runner->cluster_size()) die("block %u of a cluster of %u", rank, runner->cluster_size());
  const Block& block = runner->block(rank);
  if (block.live == 0) die("shared memory of block %u of the cluster, which has ended, is used", rank);
  for (std::size_t i = 0; i < bytes; ++i) {
    const unsigned char now = block.shared[offset + i];
    static_cast<unsigned char*>(to)[i] =
        now == block.shown.at(offset + i) ? now : static_cast<unsigned char>(kPoison);
  }
}

unsigned cluster_rank() { return runner->current()->block; }
void cluster_barrier() {
  const unsigned threads = runner->threads_per_block() * runner->cluster_size();
  const auto show = [] {
    for (unsigned rank = 0; rank < runner->cluster_size(); ++rank) {
      Block& block = runner->block(rank);
      if (!block.shown.empty()) std::memcpy(block.shown.data(), block.shared, block.shown.size());
    }
  };
  runner->meet("cluster_barrier", runner->block(0).cluster, threads, show);
}
void named_barrier(int id, int threads) {
  if (id < 1 || id > 15 || threads % 32 != 0) die("named barrier %d of %d threads", id, threads);
  runner->meet("named barrier", runner->block().named_barriers[static_cast<std::size_t>(id)],
               static_cast<unsigned>(threads), nullptr);
}

}  // namespace cuda_on_cpu

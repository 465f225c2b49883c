// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
#include "block_runner.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

__thread uint3 threadIdx = {0, 0, 0};
__thread uint3 blockIdx = {0, 0, 0};
__thread dim3 blockDim = {0, 0, 0};
__thread dim3 gridDim = {0, 0, 0};

namespace cuda_on_cpu {

__thread BlockRunner* runner = nullptr;
__thread unsigned linear_thread = 0;

namespace {

// The first set bit of `mask` at or after `from`, around the end. `mask` is not 0, `from` at most 63.
inline unsigned first_from(std::uint64_t mask, unsigned from) {
  const std::uint64_t later = mask & (~std::uint64_t{0} << from);
  return static_cast<unsigned>(__builtin_ctzll(later != 0 ? later : mask));
}

}  // namespace

BlockRunner::~BlockRunner() {
  for (const Block& block : blocks_) {
    if (block.shared != nullptr) free_exact(block.shared);
  }
}

Fiber* BlockRunner::take_fiber() {
  if (idle_fibers_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>());
    create_fiber(*fibers_.back(), static_cast<unsigned>(fibers_.size()), &BlockRunner::fiber_main, this);
    return fibers_.back().get();
  }
  Fiber* fiber = idle_fibers_.back();
  idle_fibers_.pop_back();
  return fiber;
}

void BlockRunner::make_runnable(unsigned position, std::uint32_t lanes) {
  warps_[position].runnable |= lanes;
  if (warps_[position].runnable != 0) ready_warps_ |= std::uint64_t{1} << position;
}

// Whether a thread that polled can run now. Copies to shared memory land when nothing else can happen: the
// oldest first, or in any order.
bool BlockRunner::wake_pollers() {
  for (;;) {
    std::size_t kept = 0;
    for (Thread* thread : polling_) {
      if (thread->poll.holds(thread->poll.context)) {
        make_runnable(thread->position, 1u << (thread->linear % kWarp));
      } else {
        polling_[kept++] = thread;
      }
    }
    const bool is_awake = kept != polling_.size();
    polling_.resize(kept);
    if (is_awake) return true;
    bool has_landed = false;
    for (unsigned rank = 0; rank < cluster_ && !has_landed; ++rank) {
      has_landed = blocks_[(rank + random(5)) % cluster_].async.land_one(seed_);
    }
    if (!has_landed) return false;
  }
}

// Stays in a warp as long as one of its lanes can run; the lanes of a warp take turns.
inline Thread* BlockRunner::choose() {
  if (ready_warps_ == 0 && (polling_.empty() || !wake_pollers())) return nullptr;
  position_ = first_from(ready_warps_, position_);
  Warp& warp = warps_[position_];
  const unsigned lane = first_from(warp.runnable, warp.next_lane);
  warp.next_lane = lane + 1;
  warp.runnable &= ~(1u << lane);
  if (warp.runnable == 0) ready_warps_ &= ~(std::uint64_t{1} << position_);
  return &threads_[warp.first_thread + lane];
}

void BlockRunner::start(Thread& thread, Fiber* fiber) {
  const dim3 size = blockDim;
  const unsigned row = size.y == 1 && size.z == 1 ? 0 : thread.linear / size.x;
  thread.index = {thread.linear - row * size.x, row % size.y, row / size.y};
  thread.fiber = fiber;
  thread.has_awaited = false;
  thread.copies.clear();
  thread.groups.clear();
  thread.products.clear();
  warps_[position_].unstarted &= ~(1u << (thread.linear % kWarp));
  resume(thread, position_);
}

// The state of the host thread that belongs to the running thread.
inline void BlockRunner::resume(Thread& self, unsigned position) {
  position_ = position;
  current_ = &self;
  threadIdx = self.index;
  linear_thread = self.linear;
  if (cluster_ > 1) blockIdx = blocks_[self.block].index;
}

// What every fiber does: run threads until none is left that can run here.
void BlockRunner::run_threads() {
  for (;;) {
    Fiber* self = running_fiber_;
    Thread* next = next_ != nullptr ? next_ : choose();
    next_ = nullptr;
    if (next == nullptr || next->fiber != nullptr) {
      if (next == nullptr && live_ != 0) report_deadlock();
      idle_fibers_.push_back(self);
      running_fiber_ = next == nullptr ? nullptr : next->fiber;
      switch_fiber(*self, next == nullptr ? host_ : *next->fiber);
      continue;
    }
    start(*next, self);
    launch_->signature->call(launch_->kernel, launch_->arguments);
    finish(*next);
  }
}

// A thread that has returned no longer counts in barriers and collectives.
void BlockRunner::finish(Thread& thread) {
  if (launch_->starts_early && !thread.has_awaited) {
    die("a thread of a kernel that may start early has not waited for the grid before it");
  }
  if (!thread.products.is_empty()) die("a thread returns while products of its warpgroup are under way");
  Warp& warp = warps_[position_];
  Block& block = blocks_[thread.block];
  thread.fiber = nullptr;
  warp.alive &= ~(1u << (thread.linear % kWarp));
  --live_;
  --block.live;
  current_ = nullptr;
  if (warp.at_collective != 0 && warp.at_collective == warp.alive) complete_collective(warp, position_, 0);
  if (block.at_barrier != 0 && block.at_barrier == block.live) release_barrier(thread.block, nullptr, 0);
}

void BlockRunner::wait(const char* name) {
  Thread& self = *current_;
  const unsigned position = position_;
  self.waits_at = name;
  Thread* next = choose();
  if (next == nullptr) report_deadlock();
  Fiber* target = next->fiber;
  if (target == nullptr) {
    target = take_fiber();
    next_ = next;
  }
  running_fiber_ = target;
  switch_fiber(*self.fiber, *target);
  resume(self, position);
}

void BlockRunner::poll(const char* name, const Poll& condition) {
  if (condition.holds(condition.context)) return;
  Thread& self = *current_;
  self.poll = condition;
  self.position = position_;
  polling_.push_back(&self);
  wait(name);
}

void BlockRunner::meet(const char* name, Meeting& meeting, unsigned count, void (*function)()) {
  if (++meeting.arrived == count) {
    if (function != nullptr) function();
    meeting.arrived = 0;
    ++meeting.generation;
    return;
  }
  struct Next {
    const Meeting* meeting;
    unsigned long generation;
  } next = {&meeting, meeting.generation};
  const auto is_over = [](void* context) {
    const auto* mine = static_cast<const Next*>(context);
    return mine->meeting->generation != mine->generation;
  };
  poll(name, {is_over, &next});
}

void BlockRunner::complete_collective(Warp& warp, unsigned position, std::uint32_t running) {
  if (warp.function != nullptr) {
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      if ((warp.alive >> lane & 1u) == 0) warp.lanes[lane] = nullptr;
    }
    warp.function(warp.lanes);
  }
  const std::uint32_t waiting = warp.at_collective & ~running;
  warp.at_collective = 0;
  make_runnable(position, waiting);
}

void BlockRunner::collective(const char* name, void* operands, Collective function) {
  Warp& warp = warps_[position_];
  const unsigned lane = current_->linear % kWarp;
  if (warp.at_collective == 0) {
    warp.name = name;
    warp.function = function;
  } else if (warp.name != name && std::strcmp(warp.name, name) != 0) {
    die("the lanes of a warp meet in %s and %s", warp.name, name);
  }
  warp.lanes[lane] = operands;
  warp.at_collective |= 1u << lane;
  if (warp.at_collective == warp.alive) {
    complete_collective(warp, position_, 1u << lane);
  } else {
    wait(name);
  }
}

void BlockRunner::release_barrier(unsigned block, Warp* running_warp, std::uint32_t running) {
  for (unsigned position = 0; position < warps_.size(); ++position) {
    Warp& warp = warps_[position];
    if (threads_[warp.first_thread].block != block) continue;
    const std::uint32_t waiting = warp.at_barrier & ~(&warp == running_warp ? running : 0);
    warp.at_barrier = 0;
    if (waiting != 0) make_runnable(position, waiting);
  }
  blocks_[block].at_barrier = 0;
  blocks_[block].barrier_result = blocks_[block].barrier_sum;
  blocks_[block].barrier_sum = 0;
}

void BlockRunner::barrier(const char* name, bool condition) {
  Warp& warp = warps_[position_];
  const std::uint32_t lane = 1u << (current_->linear % kWarp);
  Block& mine = block();
  warp.at_barrier |= lane;
  mine.barrier_sum += condition ? 1 : 0;
  if (++mine.at_barrier == mine.live) {
    release_barrier(current_->block, &warp, lane);
  } else {
    wait(name);
  }
}

void BlockRunner::report_deadlock() {
  std::fprintf(stderr, "cuda_on_cpu: deadlock in block (%u, %u, %u): %u of %zu threads wait for ever",
               blockIdx.x, blockIdx.y, blockIdx.z, live_, threads_.size());
  std::vector<const char*> told;
  for (const Thread& thread : threads_) {
    if (thread.fiber == nullptr) continue;
    const auto same = [&](const char* name) { return std::strcmp(name, thread.waits_at) == 0; };
    if (std::any_of(told.begin(), told.end(), same)) continue;
    told.push_back(thread.waits_at);
    std::fprintf(stderr, "; thread (%u, %u, %u) at %s", thread.index.x, thread.index.y, thread.index.z,
                 thread.waits_at);
  }
  std::fprintf(stderr, "\n");
  std::_Exit(1);
}

// `index`: of the block in its grid, x fastest.
void BlockRunner::prepare_block(Block& block, unsigned index, std::size_t bytes) {
  const dim3 grid = gridDim;
  block.index = {index % grid.x, index / grid.x % grid.y, index / grid.x / grid.y};
  block.live = threads_per_block_;
  block.at_barrier = 0;
  block.barrier_sum = 0;
  if (bytes != block.shared_bytes || (bytes != 0 && block.shared == nullptr)) {
    if (block.shared != nullptr) free_exact(block.shared);
    block.shared = bytes == 0 ? nullptr : allocate_exact(bytes, 1024);
    block.shared_bytes = bytes;
  } else if (bytes != 0) {
    std::memset(block.shared, kPoison, bytes);
  }
  block.async.reset(block.shared, bytes);
  block.warpgroups = {};
  block.named_barriers = {};
  block.cluster = {};
  if (cluster_ > 1) block.shown.assign(bytes, static_cast<unsigned char>(kPoison));
}

void BlockRunner::prepare_threads(unsigned count) {
  const unsigned all = count * cluster_;
  if (threads_.size() == all && threads_per_block_ == count) return;
  threads_per_block_ = count;
  threads_.resize(all);
  for (unsigned i = 0; i < all; ++i) {
    threads_[i].linear = i % count;
    threads_[i].block = i / count;
  }
}

void BlockRunner::prepare(const Launch& launch, unsigned index, std::uint32_t seed) {
  const unsigned count = launch.block.x * launch.block.y * launch.block.z;
  launch_ = &launch;
  seed_ = seed;
  cluster_ = launch.cluster;
  blockDim = launch.block;
  gridDim = launch.grid;
  prepare_threads(count);
  if (blocks_.size() < cluster_) blocks_.resize(cluster_);
  for (unsigned i = 0; i < cluster_; ++i)
    prepare_block(blocks_[i], index * cluster_ + i, launch.shared_bytes);
  blockIdx = blocks_[0].index;
  const unsigned warps_per_block = (count + kWarp - 1) / kWarp;
  const unsigned warps = warps_per_block * cluster_;
  warps_.assign(warps, Warp());
  position_of_.resize(warps);
  for (unsigned i = 0; i < warps; ++i) position_of_[i] = i;
  for (unsigned i = warps; seed != 0 && i > 1; --i) {
    std::swap(position_of_[i - 1], position_of_[mix(seed, index * 64 + i) % i]);
  }
  for (unsigned i = 0; i < warps; ++i) {
    Warp& warp = warps_[position_of_[i]];
    const unsigned first = i % warps_per_block * kWarp;  // in its block
    const unsigned lanes = std::min(kWarp, count - first);
    warp.alive = lanes == kWarp ? ~0u : (1u << lanes) - 1;
    warp.unstarted = warp.alive;
    warp.runnable = warp.alive;
    warp.first_thread = i / warps_per_block * count + first;
    warp.next_lane = seed == 0 ? 0 : mix(seed, index * 64 + 32 + i) % kWarp;
  }
  ready_warps_ = ~std::uint64_t{0} >> (64 - warps);
  position_ = 0;
  live_ = count * cluster_;
  polling_.clear();
}

void BlockRunner::finish_block(const Block& block) const {
  if (!end_is_whole(block.shared, block.shared_bytes)) {
    die("the kernel wrote beyond its %zu bytes of shared memory", block.shared_bytes);
  }
  if (block.async.is_under_way()) die("the kernel ended while copies to its shared memory are under way");
}

void BlockRunner::run_cluster(const Launch& launch, unsigned index, std::uint32_t seed) {
  prepare(launch, index, seed);
  runner = this;
  running_fiber_ = take_fiber();
  switch_fiber(host_, *running_fiber_);
  for (unsigned i = 0; i < cluster_; ++i) finish_block(blocks_[i]);
  runner = nullptr;
}

bool in_kernel() { return runner != nullptr; }

unsigned char* shared_memory() {
  if (runner->shared() == nullptr) die("the kernel was launched without shared memory");
  return runner->shared();
}

void check_shared_access(const void* pointer, std::size_t bytes) {
  check_alignment(pointer, bytes);
  const std::size_t offset =
      reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(runner->shared());
  const std::size_t have = runner->shared() == nullptr ? 0 : runner->shared_bytes();
  if (offset > have || offset + bytes > have) {
    die("access to %zu bytes at %td of %zu bytes of shared memory", bytes,
        static_cast<std::ptrdiff_t>(offset), have);
  }
}

void block_barrier() { runner->barrier("barrier", false); }
void await_previous_grid() { runner->current()->has_awaited = true; }

int block_barrier_count(bool condition) {
  runner->barrier("barrier_count", condition);
  return runner->barrier_count();
}
void warp_barrier() { runner->collective("warp_sync", nullptr, nullptr); }
void warp_collective(const char* name, void* operands, Collective function) {
  runner->collective(name, operands, function);
}

void copy_async(void* shared, const void* global, int bytes, int valid) {
  require_capability(80, "cp.async");
  check_shared_access(shared, static_cast<std::size_t>(bytes));
  if (valid > 0) check_alignment(global, static_cast<std::size_t>(bytes));
  if (valid < 0 || valid > bytes) die("cp_async of %d bytes of which %d are valid", bytes, valid);
  runner->current()->copies.push_back({shared, global, bytes, valid});
}

void commit_copies() {
  Thread& thread = *runner->current();
  thread.groups.push_back(thread.copies.size());
}

void wait_copies(int groups_left) {
  Thread& thread = *runner->current();
  const std::size_t left = static_cast<std::size_t>(groups_left);
  if (thread.groups.size() <= left) return;
  const std::size_t landing = thread.groups.size() - left;
  const std::size_t end = thread.groups[landing - 1];
  for (std::size_t i = 0; i < end; ++i) {
    const Copy& copy = thread.copies[i];
    const std::size_t valid = static_cast<std::size_t>(copy.valid);
    if (valid > 0) std::memcpy(copy.target, copy.source, valid);
    std::memset(static_cast<char*>(copy.target) + valid, 0, static_cast<std::size_t>(copy.bytes) - valid);
  }
  thread.copies.erase(thread.copies.begin(), thread.copies.begin() + static_cast<std::ptrdiff_t>(end));
  thread.groups.erase(thread.groups.begin(), thread.groups.begin() + static_cast<std::ptrdiff_t>(landing));
  for (std::size_t& group : thread.groups) group -= end;
}

}  // namespace cuda_on_cpu

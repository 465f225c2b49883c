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

// The first set bit of `mask` at or after `from`, around the end. `mask` is not 0, `from` at most 32.
inline unsigned first_from(std::uint32_t mask, unsigned from) {
  const std::uint32_t later = from < 32 ? mask & (~0u << from) : 0;
  return static_cast<unsigned>(__builtin_ctz(later != 0 ? later : mask));
}

}  // namespace

BlockRunner::~BlockRunner() {
  if (shared_ != nullptr) free_exact(shared_);
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
  if (warps_[position].runnable != 0) ready_warps_ |= 1u << position;
}

// Stays in a warp as long as one of its lanes can run; the lanes of a warp take turns.
inline Thread* BlockRunner::choose() {
  if (ready_warps_ == 0) return nullptr;
  position_ = first_from(ready_warps_, position_);
  Warp& warp = warps_[position_];
  const unsigned lane = first_from(warp.runnable, warp.next_lane);
  warp.next_lane = lane + 1;
  warp.runnable &= ~(1u << lane);
  if (warp.runnable == 0) ready_warps_ &= ~(1u << position_);
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
  warps_[position_].unstarted &= ~(1u << (thread.linear % kWarp));
  current_ = &thread;
  threadIdx = thread.index;
  linear_thread = thread.linear;
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
  Warp& warp = warps_[position_];
  thread.fiber = nullptr;
  warp.alive &= ~(1u << (thread.linear % kWarp));
  --live_;
  current_ = nullptr;
  if (warp.at_collective != 0 && warp.at_collective == warp.alive) complete_collective(warp, position_, 0);
  if (at_barrier_ != 0 && at_barrier_ == live_) release_barrier(nullptr, 0);
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
  position_ = position;
  current_ = &self;
  threadIdx = self.index;
  linear_thread = self.linear;
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

void BlockRunner::release_barrier(Warp* running_warp, std::uint32_t running) {
  for (unsigned position = 0; position < warps_.size(); ++position) {
    Warp& warp = warps_[position];
    const std::uint32_t waiting = warp.at_barrier & ~(&warp == running_warp ? running : 0);
    warp.at_barrier = 0;
    if (waiting != 0) make_runnable(position, waiting);
  }
  at_barrier_ = 0;
  barrier_result_ = barrier_sum_;
  barrier_sum_ = 0;
}

void BlockRunner::barrier(const char* name, bool condition) {
  Warp& warp = warps_[position_];
  const std::uint32_t lane = 1u << (current_->linear % kWarp);
  warp.at_barrier |= lane;
  barrier_sum_ += condition ? 1 : 0;
  if (++at_barrier_ == live_) {
    release_barrier(&warp, lane);
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

void BlockRunner::prepare_shared(std::size_t bytes) {
  if (bytes != shared_bytes_ || (bytes != 0 && shared_ == nullptr)) {
    if (shared_ != nullptr) free_exact(shared_);
    shared_ = bytes == 0 ? nullptr : allocate_exact(bytes, 1024);
    shared_bytes_ = bytes;
  } else if (bytes != 0) {
    std::memset(shared_, kPoison, bytes);
  }
}

void BlockRunner::prepare(const Launch& launch, unsigned index, std::uint32_t seed) {
  const dim3 grid = launch.grid;
  const unsigned count = launch.block.x * launch.block.y * launch.block.z;
  launch_ = &launch;
  blockIdx = {index % grid.x, index / grid.x % grid.y, index / grid.x / grid.y};
  blockDim = launch.block;
  gridDim = grid;
  prepare_shared(launch.shared_bytes);
  if (threads_.size() != count) {
    threads_.resize(count);
    for (unsigned i = 0; i < count; ++i) threads_[i].linear = i;
  }
  const unsigned warps = (count + kWarp - 1) / kWarp;
  warps_.assign(warps, Warp());
  position_of_.resize(warps);
  for (unsigned i = 0; i < warps; ++i) position_of_[i] = i;
  for (unsigned i = warps; seed != 0 && i > 1; --i) {
    std::swap(position_of_[i - 1], position_of_[mix(seed, index * 64 + i) % i]);
  }
  for (unsigned i = 0; i < warps; ++i) {
    Warp& warp = warps_[position_of_[i]];
    const unsigned lanes = std::min(kWarp, count - i * kWarp);
    warp.alive = lanes == kWarp ? ~0u : (1u << lanes) - 1;
    warp.unstarted = warp.alive;
    warp.runnable = warp.alive;
    warp.first_thread = i * kWarp;
    warp.next_lane = seed == 0 ? 0 : mix(seed, index * 64 + 32 + i) % kWarp;
  }
  ready_warps_ = warps == 32 ? ~0u : (1u << warps) - 1;
  position_ = 0;
  live_ = count;
  at_barrier_ = 0;
  barrier_sum_ = 0;
}

void BlockRunner::run_block(const Launch& launch, unsigned index, std::uint32_t seed) {
  prepare(launch, index, seed);
  runner = this;
  running_fiber_ = take_fiber();
  switch_fiber(host_, *running_fiber_);
  if (!end_is_whole(shared_, shared_bytes_)) {
    die("the kernel wrote beyond its %zu bytes of shared memory", shared_bytes_);
  }
  runner = nullptr;
}

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

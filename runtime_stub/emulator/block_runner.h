// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Runs the threads of one block, or of the blocks of one cluster, at a time over fibers.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "async_copies.h"
#include "cuda_on_cpu.h"
#include "fiber.h"
#include "warpgroup.h"

namespace cuda_on_cpu {

constexpr unsigned kWarp = 32;

struct Copy {
  void* target;
  const void* source;
  int bytes;
  int valid;
};

struct Thread {
  uint3 index = {0, 0, 0};
  unsigned linear = 0;     // in its block
  unsigned block = 0;      // of the cluster
  unsigned position = 0;   // of its warp, while it polls
  Fiber* fiber = nullptr;  // null before the thread starts and after it returns
  const char* waits_at = nullptr;
  bool has_awaited = false;         // the grid before
  std::vector<Copy> copies;         // in the order of issue
  std::vector<std::size_t> groups;  // how many of the copies each committed group ends after
  Poll poll = {};                   // what it waits for while it polls
  ThreadProducts products;          // of its warpgroup
};

// A block of the cluster that runs.
struct Block {
  uint3 index = {0, 0, 0};
  unsigned live = 0;  // threads that have not returned
  unsigned at_barrier = 0;
  int barrier_sum = 0;
  int barrier_result = 0;
  unsigned char* shared = nullptr;
  std::size_t shared_bytes = 0;
  AsyncCopies async;
  std::array<Meeting, 8> warpgroups;       // of wgmma_wait
  std::array<Meeting, 16> named_barriers;  // by id
  Meeting cluster;                         // of block 0: all threads of the cluster
  std::vector<unsigned char> shown;        // shared memory as it was at the last barrier of the cluster
};

// A mask has one bit per lane. Of the lanes that have not returned, each either runs, can run, or waits.
struct Warp {
  std::uint32_t alive = 0;
  std::uint32_t unstarted = 0;
  std::uint32_t runnable = 0;
  std::uint32_t at_collective = 0;
  std::uint32_t at_barrier = 0;
  unsigned first_thread = 0;  // among those of the cluster
  unsigned next_lane = 0;
  const char* name = nullptr;
  Collective function = nullptr;
  void* lanes[kWarp] = {};
};

/// Spreads two numbers over 32 bits.
inline std::uint32_t mix(std::uint32_t a, std::uint32_t b) {
  std::uint32_t h = (a ^ (b * 0x9e3779b9u)) * 0x85ebca6bu;
  h = (h ^ (h >> 13)) * 0xc2b2ae35u;
  return h ^ (h >> 16);
}

// Runs clusters of blocks, one at a time, on one host thread. A launch without clusters has clusters of one.
//
// A fiber runs one thread after another to its end and is left behind only when a thread waits, so a kernel
// without barriers costs one call per thread, and one with barriers one switch of stacks per wait.
class BlockRunner {
 public:
  void run_cluster(const Launch& launch, unsigned index, std::uint32_t seed);
  void barrier(const char* name, bool condition);
  int barrier_count() { return block().barrier_result; }
  void collective(const char* name, void* operands, Collective function);
  /// Waits, as long as other threads can run, until the condition holds. What is under way to shared memory
  /// lands only when nobody can run, and then one copy at a time.
  void poll(const char* name, const Poll& condition);
  /// Waits until `count` threads have come to `meeting`; the last one runs `function` first.
  void meet(const char* name, Meeting& meeting, unsigned count, void (*function)());
  Thread* current() { return current_; }
  Thread& thread(unsigned linear) { return threads_[block_start() + linear]; }  // of the running block
  Block& block() { return blocks_[current_->block]; }
  Block& block(unsigned rank) { return blocks_[rank]; }
  unsigned cluster_size() const { return cluster_; }
  unsigned threads_per_block() const { return threads_per_block_; }
  std::uint32_t random(std::uint32_t salt) const { return seed_ == 0 ? 0 : mix(seed_, salt); }
  unsigned char* shared() { return block().shared; }
  std::size_t shared_bytes() { return block().shared_bytes; }
  ~BlockRunner();

 private:
  static void fiber_main(void* runner) { static_cast<BlockRunner*>(runner)->run_threads(); }
  void run_threads();
  void prepare(const Launch& launch, unsigned index, std::uint32_t seed);
  void prepare_threads(unsigned count);
  void prepare_block(Block& block, unsigned index, std::size_t bytes);
  void finish_block(const Block& block) const;
  unsigned block_start() const { return current_->block * threads_per_block_; }
  bool wake_pollers();
  void resume(Thread& self, unsigned position);
  Thread* choose();
  void start(Thread& thread, Fiber* fiber);
  void finish(Thread& thread);
  void wait(const char* name);
  void complete_collective(Warp& warp, unsigned position, std::uint32_t running);
  void release_barrier(unsigned block, Warp* running_warp, std::uint32_t running);
  void make_runnable(unsigned position, std::uint32_t lanes);
  Fiber* take_fiber();
  [[noreturn]] void report_deadlock();

  const Launch* launch_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;            // in the order in which they run
  std::vector<unsigned> position_of_;  // of a warp in warps_
  std::uint64_t ready_warps_ = 0;      // positions of warps that have a runnable lane
  std::vector<Block> blocks_;
  std::vector<Thread*> polling_;
  unsigned cluster_ = 1;
  unsigned threads_per_block_ = 0;
  std::uint32_t seed_ = 0;
  unsigned position_ = 0;  // of the warp that runs
  unsigned live_ = 0;      // threads that have not returned
  Thread* current_ = nullptr;
  Thread* next_ = nullptr;  // to be started by the fiber that is switched to
  Fiber host_;
  Fiber* running_fiber_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_fibers_;
};

/// The one whose block this host thread runs; null outside kernels.
extern __thread BlockRunner* runner;

}  // namespace cuda_on_cpu

// Runs the threads of one block at a time over fibers.
#pragma once

#include <memory>
#include <vector>

#include "cuda_on_cpu.h"
#include "fiber.h"

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
  unsigned linear = 0;
  Fiber* fiber = nullptr;  // null before the thread starts and after it returns
  const char* waits_at = nullptr;
  bool has_awaited = false;         // the grid before
  std::vector<Copy> copies;         // in the order of issue
  std::vector<std::size_t> groups;  // how many of the copies each committed group ends after
};

// A mask has one bit per lane. Of the lanes that have not returned, each either runs, can run, or waits.
struct Warp {
  std::uint32_t alive = 0;
  std::uint32_t unstarted = 0;
  std::uint32_t runnable = 0;
  std::uint32_t at_collective = 0;
  std::uint32_t at_barrier = 0;
  unsigned first_thread = 0;
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

// Runs blocks, one at a time, on one host thread.
//
// A fiber runs one thread after another to its end and is left behind only when a thread waits, so a kernel
// without barriers costs one call per thread, and one with barriers one switch of stacks per wait.
class BlockRunner {
 public:
  void run_block(const Launch& launch, unsigned index, std::uint32_t seed);
  void barrier(const char* name, bool condition);
  int barrier_count() const { return barrier_result_; }
  void collective(const char* name, void* operands, Collective function);
  Thread* current() { return current_; }
  unsigned char* shared() { return shared_; }
  std::size_t shared_bytes() const { return shared_bytes_; }
  ~BlockRunner();

 private:
  static void fiber_main(void* runner) { static_cast<BlockRunner*>(runner)->run_threads(); }
  void run_threads();
  void prepare(const Launch& launch, unsigned index, std::uint32_t seed);
  void prepare_shared(std::size_t bytes);
  Thread* choose();
  void start(Thread& thread, Fiber* fiber);
  void finish(Thread& thread);
  void wait(const char* name);
  void complete_collective(Warp& warp, unsigned position, std::uint32_t running);
  void release_barrier(Warp* running_warp, std::uint32_t running);
  void make_runnable(unsigned position, std::uint32_t lanes);
  Fiber* take_fiber();
  [[noreturn]] void report_deadlock();

  const Launch* launch_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;            // in the order in which they run
  std::vector<unsigned> position_of_;  // of a warp in warps_
  std::uint32_t ready_warps_ = 0;      // positions of warps that have a runnable lane
  unsigned position_ = 0;              // of the warp that runs
  unsigned live_ = 0;                  // threads that have not returned
  unsigned at_barrier_ = 0;
  int barrier_sum_ = 0;
  int barrier_result_ = 0;
  Thread* current_ = nullptr;
  Thread* next_ = nullptr;  // to be started by the fiber that is switched to
  Fiber host_;
  Fiber* running_fiber_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_fibers_;
  unsigned char* shared_ = nullptr;
  std::size_t shared_bytes_ = 0;
};

/// The one whose block this host thread runs; null outside kernels.
extern __thread BlockRunner* runner;

}  // namespace cuda_on_cpu

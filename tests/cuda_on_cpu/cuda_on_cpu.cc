// The scheduler: blocks over host threads, the threads of a block over fibers. A fiber runs one thread after
// another to its end and is left behind only when a thread waits, so a kernel without barriers costs one call
// per thread, and one with barriers one switch of stacks per wait.
#include "cuda_on_cpu.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "fiber.h"

__thread uint3 threadIdx = {0, 0, 0};
__thread uint3 blockIdx = {0, 0, 0};
__thread dim3 blockDim = {0, 0, 0};
__thread dim3 gridDim = {0, 0, 0};

namespace cuda_on_cpu {
namespace {

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

// The first set bit of `mask` at or after `from`, around the end. `mask` is not 0, `from` at most 32.
unsigned first_from(std::uint32_t mask, unsigned from) {
  const std::uint32_t later = from < 32 ? mask & (~0u << from) : 0;
  return static_cast<unsigned>(__builtin_ctz(later != 0 ? later : mask));
}

std::uint32_t mix(std::uint32_t a, std::uint32_t b) {
  std::uint32_t h = (a ^ (b * 0x9e3779b9u)) * 0x85ebca6bu;
  h = (h ^ (h >> 13)) * 0xc2b2ae35u;
  return h ^ (h >> 16);
}

// Runs blocks, one at a time, on one host thread.
class Runner {
 public:
  void run_block(const Launch& launch, unsigned index, std::uint32_t seed);
  void barrier(const char* name, bool condition);
  int barrier_count() const { return barrier_result_; }
  void collective(const char* name, void* operands, Collective function);
  Thread* current() { return current_; }
  unsigned char* shared() { return shared_; }
  std::size_t shared_bytes() const { return shared_bytes_; }
  ~Runner();

 private:
  static void fiber_main(void* runner) { static_cast<Runner*>(runner)->run_threads(); }
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

__thread Runner* runner = nullptr;

Runner::~Runner() {
  if (shared_ != nullptr) free_exact(shared_);
}

Fiber* Runner::take_fiber() {
  if (idle_fibers_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>());
    create_fiber(*fibers_.back(), static_cast<unsigned>(fibers_.size()), &Runner::fiber_main, this);
    return fibers_.back().get();
  }
  Fiber* fiber = idle_fibers_.back();
  idle_fibers_.pop_back();
  return fiber;
}

void Runner::make_runnable(unsigned position, std::uint32_t lanes) {
  warps_[position].runnable |= lanes;
  if (warps_[position].runnable != 0) ready_warps_ |= 1u << position;
}

// Stays in a warp as long as one of its lanes can run; the lanes of a warp take turns.
Thread* Runner::choose() {
  if (ready_warps_ == 0) return nullptr;
  position_ = first_from(ready_warps_, position_);
  Warp& warp = warps_[position_];
  const unsigned lane = first_from(warp.runnable, warp.next_lane);
  warp.next_lane = lane + 1;
  warp.runnable &= ~(1u << lane);
  if (warp.runnable == 0) ready_warps_ &= ~(1u << position_);
  return &threads_[warp.first_thread + lane];
}

void Runner::start(Thread& thread, Fiber* fiber) {
  const dim3 size = blockDim;
  const unsigned row = size.y == 1 && size.z == 1 ? 0 : thread.linear / size.x;
  thread.index = {thread.linear - row * size.x, row % size.y, row / size.y};
  thread.fiber = fiber;
  thread.copies.clear();
  thread.groups.clear();
  warps_[position_].unstarted &= ~(1u << (thread.linear % kWarp));
  current_ = &thread;
  threadIdx = thread.index;
}

// What every fiber does: run threads until none is left that can run here.
void Runner::run_threads() {
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
void Runner::finish(Thread& thread) {
  Warp& warp = warps_[position_];
  thread.fiber = nullptr;
  warp.alive &= ~(1u << (thread.linear % kWarp));
  --live_;
  current_ = nullptr;
  if (warp.at_collective != 0 && warp.at_collective == warp.alive) complete_collective(warp, position_, 0);
  if (at_barrier_ != 0 && at_barrier_ == live_) release_barrier(nullptr, 0);
}

void Runner::wait(const char* name) {
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
}

void Runner::complete_collective(Warp& warp, unsigned position, std::uint32_t running) {
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

void Runner::collective(const char* name, void* operands, Collective function) {
  Warp& warp = warps_[position_];
  const unsigned lane = current_->linear % kWarp;
  if (warp.at_collective == 0) {
    warp.name = name;
    warp.function = function;
  } else if (std::strcmp(warp.name, name) != 0) {
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

void Runner::release_barrier(Warp* running_warp, std::uint32_t running) {
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

void Runner::barrier(const char* name, bool condition) {
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

void Runner::report_deadlock() {
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
  std::abort();
}

void Runner::prepare_shared(std::size_t bytes) {
  if (bytes != shared_bytes_ || (bytes != 0 && shared_ == nullptr)) {
    if (shared_ != nullptr) free_exact(shared_);
    shared_ = bytes == 0 ? nullptr : allocate_exact(bytes, 1024);
    shared_bytes_ = bytes;
  } else if (bytes != 0) {
    std::memset(shared_, kPoison, bytes);
  }
}

void Runner::prepare(const Launch& launch, unsigned index, std::uint32_t seed) {
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

void Runner::run_block(const Launch& launch, unsigned index, std::uint32_t seed) {
  prepare(launch, index, seed);
  runner = this;
  running_fiber_ = take_fiber();
  switch_fiber(host_, *running_fiber_);
  if (!end_is_whole(shared_, shared_bytes_)) {
    die("the kernel wrote beyond its %zu bytes of shared memory", shared_bytes_);
  }
  runner = nullptr;
}

// The host threads. The caller of run_grid is one of them.
class Pool {
 public:
  Pool() {
    const long set = environment_number("CUDA_ON_CPU_THREADS", 0);
    const unsigned count =
        set > 0 ? static_cast<unsigned>(set) : std::max(1u, std::thread::hardware_concurrency());
    runners_.resize(count);
    for (auto& entry : runners_) entry = std::make_unique<Runner>();
    for (unsigned i = 1; i < count; ++i) workers_.emplace_back([this, i] { work(i); });
  }
  ~Pool() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void run(const Launch& launch, std::uint32_t seed) {
    const std::lock_guard<std::mutex> one_grid(grid_mutex_);
    const unsigned blocks = launch.grid.x * launch.grid.y * launch.grid.z;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      launch_ = &launch;
      seed_ = seed;
      next_block_ = 0;
      blocks_ = blocks;
      ++generation_;
      busy_ = blocks > 1 ? static_cast<unsigned>(workers_.size()) : 0;
    }
    if (blocks > 1) wake_.notify_all();
    run_blocks(*runners_[0]);
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void run_blocks(Runner& my) {
    const unsigned shift = seed_ == 0 ? 0 : mix(seed_, 77) % blocks_;
    for (unsigned i = next_block_++; i < blocks_; i = next_block_++) {
      my.run_block(*launch_, i < blocks_ - shift ? i + shift : i + shift - blocks_, seed_);
    }
  }
  void work(unsigned index) {
    unsigned seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stopping_ || (generation_ != seen && busy_ != 0); });
      if (stopping_) return;
      seen = generation_;
      lock.unlock();
      run_blocks(*runners_[index]);
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::mutex grid_mutex_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<std::thread> workers_;
  std::atomic<unsigned> next_block_{0};
  const Launch* launch_ = nullptr;
  unsigned blocks_ = 0;
  unsigned generation_ = 0;
  unsigned busy_ = 0;
  std::uint32_t seed_ = 0;
  bool stopping_ = false;
};

}  // namespace

long environment_number(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtol(text, nullptr, 10);
}

void run_grid(const Launch& launch) {
  static Pool pool;
  static const std::uint32_t seed = static_cast<std::uint32_t>(environment_number("CUDA_ON_CPU_SEED", 0));
  if (runner != nullptr) die("a kernel launches a kernel");
  pool.run(launch, seed);
}

void die(const char* format, ...) {
  char message[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "cuda_on_cpu: %s", message);
  if (runner != nullptr) {
    std::fprintf(stderr, " in block (%u, %u, %u)", blockIdx.x, blockIdx.y, blockIdx.z);
    if (runner->current() != nullptr) {
      std::fprintf(stderr, ", thread (%u, %u, %u)", threadIdx.x, threadIdx.y, threadIdx.z);
    }
  }
  std::fprintf(stderr, "\n");
  std::abort();
}

unsigned char* shared_memory() {
  if (runner->shared() == nullptr) die("the kernel was launched without shared memory");
  return runner->shared();
}
unsigned linear_thread() { return runner->current()->linear; }

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

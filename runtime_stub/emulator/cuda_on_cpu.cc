// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The host threads over which the blocks of a grid are spread, and how a broken rule is reported.
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

#include "block_runner.h"

namespace cuda_on_cpu {
namespace {

// The host threads. The caller of run_grid is one of them.
class Pool {
 public:
  Pool() {
    const long set = environment_number("CUDA_ON_CPU_THREADS", 0);
    const unsigned count =
        set > 0 ? static_cast<unsigned>(set) : std::max(1u, std::thread::hardware_concurrency());
    runners_.resize(count);
    for (auto& entry : runners_) entry = std::make_unique<BlockRunner>();
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
    const unsigned blocks = launch.grid.x * launch.grid.y * launch.grid.z / launch.cluster;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      launch_ = &launch;
      seed_ = seed;
      next_block_ = 0;
      blocks_ = blocks;
      ++generation_;
    }
    if (blocks > 1) wake_.notify_all();
    run_blocks(*runners_[0], launch);
    // Workers that have not woken up by now find nothing to do; the others finish their blocks.
    std::unique_lock<std::mutex> lock(mutex_);
    launch_ = nullptr;
    done_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void run_blocks(BlockRunner& my, const Launch& launch) {
    const unsigned shift = seed_ == 0 ? 0 : mix(seed_, 77) % blocks_;
    for (unsigned i = next_block_++; i < blocks_; i = next_block_++) {
      my.run_cluster(launch, i < blocks_ - shift ? i + shift : i + shift - blocks_, seed_);
    }
  }
  void work(unsigned index) {
    unsigned seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stopping_ || (launch_ != nullptr && generation_ != seen); });
      if (stopping_) return;
      seen = generation_;
      ++busy_;
      const Launch& launch = *launch_;
      lock.unlock();
      run_blocks(*runners_[index], launch);
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::mutex grid_mutex_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<std::unique_ptr<BlockRunner>> runners_;
  std::vector<std::thread> workers_;
  std::atomic<unsigned> next_block_{0};
  const Launch* launch_ = nullptr;
  unsigned blocks_ = 0;
  unsigned generation_ = 0;
  unsigned busy_ = 0;  // workers that run blocks
  std::uint32_t seed_ = 0;
  bool stopping_ = false;
};

}  // namespace

long environment_number(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtol(text, nullptr, 10);
}

static const char* architecture_text() {
  static const char* const text = std::getenv("CUDA_ON_CPU_ARCHITECTURE");
  return text == nullptr || *text == '\0' ? "90a" : text;
}
int capability() {
  static const int number = std::atoi(architecture_text());
  return number;
}
void require_capability(int least, const char* instruction) {
  if (capability() < least) die("%s is of sm_%d, and this is sm_%d", instruction, least, capability());
}
void require_warpgroups(const char* instruction) {
  if (!has_warpgroups()) die("%s is of sm_90a, and this is sm_%s", instruction, architecture_text());
}
bool has_warpgroups() { return std::strcmp(architecture_text(), "90a") == 0; }

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
  std::_Exit(1);
}

}  // namespace cuda_on_cpu

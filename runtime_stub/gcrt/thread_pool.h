// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The runner's threads. A model only sees Threads (parallel.h); any pool of the caller's own does as well.
// Work is claimed by an atomic counter and the caller claims too, so that it can finish every piece alone:
// nobody ever waits for a thread that has not begun. Builds with and without exceptions and throws none: what
// cannot start says so in started().
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include "gcrt/parallel.h"

#if !defined(_WIN32)
#include <pthread.h>
#elif defined(__cpp_exceptions)
#include <system_error>
#endif

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace GCRT_NAMESPACE {

class ThreadPool {
 public:
  // `count` threads in all, the caller's included; 1 starts none.
  explicit ThreadPool(int count)
      : threads_{this, count < 1 ? 1 : count, &ThreadPool::run},
        workers_(new (std::nothrow) Worker[static_cast<std::size_t>(threads_.count)]),
        shares_(new (std::nothrow) Share[static_cast<std::size_t>(threads_.count)]) {
    if (!workers_ || !shares_) return;
    const auto wanted = static_cast<std::size_t>(threads_.count - 1);
    while (running_ < wanted && workers_[running_].start(this, static_cast<int>(running_) + 1)) ++running_;
  }
  ~ThreadPool() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      job_.body.store(nullptr, std::memory_order_relaxed);
      job_.generation.fetch_add(1, std::memory_order_seq_cst);
    }
    wake_.notify_all();
    for (std::size_t i = 0; i < running_; ++i) workers_[i].join();
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Whether all threads run; with fewer the pool works all the same.
  bool started() const { return running_ == static_cast<std::size_t>(threads_.count - 1); }

  // What a model takes. One thread at a time may use it.
  const Threads* threads() const { return &threads_; }

 private:
#if defined(_WIN32)
  class Worker {
   public:
    bool start(ThreadPool* pool, int index) {
#if defined(__cpp_exceptions)
      try {
        thread_ = std::thread([pool, index] { pool->work(index); });
      } catch (const std::system_error&) {
        return false;
      }
#else
      thread_ = std::thread([pool, index] { pool->work(index); });  // its only way to fail ends the program
#endif
      return true;
    }
    void join() { thread_.join(); }

   private:
    std::thread thread_;
  };
#else
  class Worker {
   public:
    bool start(ThreadPool* pool, int index) {
      pool_ = pool;
      index_ = index;
      return pthread_create(&thread_, nullptr, &Worker::run, this) == 0;
    }
    void join() { pthread_join(thread_, nullptr); }

   private:
    static void* run(void* worker) {
      const Worker* const self = static_cast<const Worker*>(worker);
      self->pool_->work(self->index_);
      return nullptr;
    }
    ThreadPool* pool_ = nullptr;
    int index_ = 0;
    pthread_t thread_{};
  };
#endif

  using Body = void (*)(void* argument, std::ptrdiff_t begin, std::ptrdiff_t end);

  // One call of parallel_for: what the caller tells the workers, in one cache line. A worker that comes late
  // may read two calls mixed, and then claims nothing: a call ends when all of its pieces are finished, and
  // who reads the next call's count finds its shares as well, which are of another generation.
  struct alignas(64) Job {
    std::atomic<Body> body{nullptr};  // none: the workers end
    std::atomic<void*> argument{nullptr};
    std::atomic<std::ptrdiff_t> count{0};
    std::atomic<std::uint32_t> generation{0};
  };
  // The share of a thread: a generation, and in the low half the pieces of it that are taken, by whomever. In
  // cache lines of its own.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> taken{0};
  };

  // Neighbouring items are the share of one thread, and always the same ones: what it reads it often wrote
  // itself, where a line that another core wrote takes as long as a hundred additions. Three quarters of them
  // are one piece, whose items a kernel does together; the rest are smaller ones, some of which the faster
  // threads take over.
  struct Pieces {
    Pieces(std::ptrdiff_t items, int threads, int thread)
        : begin(first_item(items, threads, thread)),
          first((3 * (first_item(items, threads, thread + 1) - begin) + 3) / 4),
          rest(first_item(items, threads, thread + 1) - begin - first),
          count(first == 0 ? 0 : 1 + (rest < kSmall ? rest : kSmall)) {}
    // Where piece `i` begins; that of `count` is the end.
    std::ptrdiff_t at(std::ptrdiff_t i) const {
      return i == 0 ? begin : begin + first + (count > 1 ? rest * (i - 1) / (count - 1) : 0);
    }
    static std::ptrdiff_t first_item(std::ptrdiff_t items, int threads, int thread) {
      return items / threads * thread + items % threads * thread / threads;
    }
    static constexpr std::ptrdiff_t kSmall = 4;
    std::ptrdiff_t begin, first, rest, count;
  };

  // Waits for something that another thread does soon: looks for it without a break at first, for less time
  // than a sleeping thread takes to wake; then in turns with whoever else wants this core, so that threads
  // which are more than the cores do not wait for each other's turns.
  class Spin {
   public:
    // False: the time is over.
    bool wait() {
      // Some looks for each instruction of a pause, because a hypervisor takes the processor from loops that
      // consist of those.
      constexpr unsigned kLooksForPause = 4;
      if (++looks_ % kLooksForPause == 0) pause();
      const auto waited = Clock::now() - begin_;
      if (waited > kAlone) std::this_thread::yield();
      return waited < kInAll;
    }

   private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::microseconds kAlone{5}, kInAll{300};
    static void pause() {
#if defined(__x86_64__) || defined(__i386__)
      _mm_pause();
#elif defined(__aarch64__)
      asm volatile("yield");
#endif
    }
    Clock::time_point begin_ = Clock::now();
    unsigned looks_ = 0;
  };

  static void run(void* context, std::ptrdiff_t count, Body body, void* argument) {
    static_cast<ThreadPool*>(context)->run_job(count, body, argument);
  }

  void run_job(std::ptrdiff_t count, Body body, void* argument) {
    if (!shares_) return body(argument, 0, count);
    const std::uint32_t generation = job_.generation.load(std::memory_order_relaxed) + 1;
    finished_.store(0, std::memory_order_relaxed);
    for (int i = 0; i < threads_.count; ++i) {
      share(i).store(std::uint64_t{generation} << 32, std::memory_order_relaxed);
    }
    job_.body.store(body, std::memory_order_relaxed);
    job_.argument.store(argument, std::memory_order_relaxed);
    job_.count.store(count, std::memory_order_release);
    job_.generation.store(generation, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) {
      { const std::lock_guard<std::mutex> lock(mutex_); }
      wake_.notify_all();
    }
    claim(0, generation);
    std::ptrdiff_t pieces = 0;
    for (int i = 0; i < threads_.count; ++i) pieces += Pieces(count, threads_.count, i).count;
    for (Spin spin; finished_.load(std::memory_order_acquire) != pieces;) spin.wait();
  }

  std::atomic<std::uint64_t>& share(int thread) { return shares_[static_cast<std::size_t>(thread)].taken; }

  // All that is left of a call: the share of thread `index`, and then what others have not begun.
  void claim(int index, std::uint32_t generation) {
    const Body body = job_.body.load(std::memory_order_relaxed);
    void* const argument = job_.argument.load(std::memory_order_relaxed);
    const std::ptrdiff_t count = job_.count.load(std::memory_order_acquire);
    for (int i = 0; i < threads_.count; ++i) {
      const int thread = (index + i) % threads_.count;
      const Pieces pieces(count, threads_.count, thread);
      std::ptrdiff_t finished = 0;
      std::uint64_t taken = share(thread).load(std::memory_order_relaxed);
      while (taken >> 32 == generation && static_cast<std::ptrdiff_t>(taken & 0xffffffff) < pieces.count) {
        if (!share(thread).compare_exchange_weak(taken, taken + 1, std::memory_order_acq_rel)) continue;
        const auto piece = static_cast<std::ptrdiff_t>(taken & 0xffffffff);
        body(argument, pieces.at(piece), pieces.at(piece + 1));
        ++finished;
        ++taken;
      }
      if (finished > 0) finished_.fetch_add(finished, std::memory_order_acq_rel);
    }
  }

  void work(int index) {
    std::uint32_t seen = 0;
    for (;;) {
      seen = wait_for_generation(seen);
      if (job_.body.load(std::memory_order_relaxed) == nullptr) return;
      claim(index, seen);
    }
  }

  // Sleeps where the gap between two layers is longer than any of a run.
  std::uint32_t wait_for_generation(std::uint32_t seen) {
    Spin spin;
    do {
      const std::uint32_t now = job_.generation.load(std::memory_order_acquire);
      if (now != seen) return now;
    } while (spin.wait());
    std::unique_lock<std::mutex> lock(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    wake_.wait(lock, [&] { return job_.generation.load(std::memory_order_seq_cst) != seen; });
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return job_.generation.load(std::memory_order_acquire);
  }

  Threads threads_;
  Job job_;
  alignas(64) std::atomic<std::ptrdiff_t> finished_{0};  // pieces
  alignas(64) std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::unique_ptr<Worker[]> workers_;  // of `count - 1`; one too many, so that there is always one
  std::unique_ptr<Share[]> shares_;    // of each thread, the caller first
  std::size_t running_ = 0;
};

}  // namespace GCRT_NAMESPACE

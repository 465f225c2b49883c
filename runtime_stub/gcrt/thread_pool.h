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
        has_share_(new (std::nothrow) std::atomic<bool>[static_cast<std::size_t>(threads_.count)]()) {
    if (!workers_ || !has_share_) return;
    const auto wanted = static_cast<std::size_t>(threads_.count - 1);
    while (running_ < wanted && workers_[running_].start(this, static_cast<int>(running_) + 1)) ++running_;
  }
  ~ThreadPool() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
      generation_.fetch_add(1, std::memory_order_release);
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

  // One call of parallel_for. Written only while the door is shut; workers read it only through the open
  // door.
  struct Job {
    Body body = nullptr;
    void* argument = nullptr;
    std::ptrdiff_t count = 0;
    std::ptrdiff_t share = 0;   // items that each thread finds waiting for it
    std::ptrdiff_t rest = 0;    // items behind them
    std::ptrdiff_t chunks = 1;  // of the rest, which differ by one item at most
    std::atomic<std::ptrdiff_t> next{0};
  };

  static void pause() {
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  static void run(void* context, std::ptrdiff_t count, Body body, void* argument) {
    static_cast<ThreadPool*>(context)->run_job(count, body, argument);
  }

  void run_job(std::ptrdiff_t count, Body body, void* argument) {
    job_.body = body;
    job_.argument = argument;
    job_.count = count;
    // Three quarters go to the threads in one piece each, whose items a kernel does together, and always the
    // same one: what it reads it often wrote itself. The faster threads take more of the rest.
    const std::ptrdiff_t threads = threads_.count;
    job_.share = has_share_ ? (3 * (count / threads) + 3) / 4 : 0;
    job_.rest = count - threads * job_.share;
    job_.chunks = job_.rest < 4 * threads ? job_.rest : 4 * threads;
    if (job_.share > 0) {
      for (int i = 0; i < threads_.count; ++i) share_of(i).store(true, std::memory_order_relaxed);
    }
    job_.next.store(0, std::memory_order_relaxed);
    open_.store(true, std::memory_order_seq_cst);
    generation_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) {
      { const std::lock_guard<std::mutex> lock(mutex_); }
      wake_.notify_all();
    }
    claim(0);
    // Close the door, then wait for those inside; a worker that comes now finds it shut.
    open_.store(false, std::memory_order_seq_cst);
    for (int spins = 0; inside_.load(std::memory_order_seq_cst) > 0; ++spins) {
      if (spins < 4000) {
        pause();
      } else {
        std::this_thread::yield();
      }
    }
  }

  std::atomic<bool>& share_of(int index) { return has_share_[static_cast<std::size_t>(index)]; }

  void run_share(int index) {
    std::atomic<bool>& has_share = share_of(index);
    if (!has_share.load(std::memory_order_relaxed) || !has_share.exchange(false, std::memory_order_relaxed))
      return;
    job_.body(job_.argument, index * job_.share, (index + 1) * job_.share);
  }

  // All that is left, beginning with the share of thread `index`.
  void claim(int index) {
    if (job_.share > 0) run_share(index);
    const std::ptrdiff_t first = job_.share * threads_.count;
    const auto chunk_begin = [&](std::ptrdiff_t chunk) {
      return first + job_.rest / job_.chunks * chunk + job_.rest % job_.chunks * chunk / job_.chunks;
    };
    for (;;) {
      const std::ptrdiff_t chunk = job_.next.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= job_.chunks) break;
      job_.body(job_.argument, chunk_begin(chunk), chunk_begin(chunk + 1));
    }
    // Shares of threads that have not come.
    for (int i = 0; job_.share > 0 && i < threads_.count; ++i) run_share(i);
  }

  void work(int index) {
    unsigned seen = 0;
    for (;;) {
      seen = wait_for_generation(seen);
      if (stop_.load(std::memory_order_acquire)) return;
      // Announce first, look second: the caller shuts the door first and counts second, so one of the two
      // sees the other.
      inside_.fetch_add(1, std::memory_order_seq_cst);
      if (open_.load(std::memory_order_seq_cst)) claim(index);
      inside_.fetch_sub(1, std::memory_order_seq_cst);
    }
  }

  // Spins for about 30 microseconds, the gap between two layers, then sleeps.
  unsigned wait_for_generation(unsigned seen) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(30);
    do {
      for (int i = 0; i < 32; ++i) {
        const unsigned now = generation_.load(std::memory_order_acquire);
        if (now != seen) return now;
        pause();
      }
    } while (std::chrono::steady_clock::now() < deadline);
    std::unique_lock<std::mutex> lock(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    wake_.wait(lock, [&] { return generation_.load(std::memory_order_seq_cst) != seen; });
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return generation_.load(std::memory_order_acquire);
  }

  Threads threads_;
  Job job_;
  alignas(64) std::atomic<unsigned> generation_{0};
  alignas(64) std::atomic<int> inside_{0};
  std::atomic<bool> open_{false};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::unique_ptr<Worker[]> workers_;  // of `count - 1`; one too many, so that there is always one
  std::unique_ptr<std::atomic<bool>[]> has_share_;  // of each thread, the caller first: nobody took it yet
  std::size_t running_ = 0;
};

}  // namespace GCRT_NAMESPACE

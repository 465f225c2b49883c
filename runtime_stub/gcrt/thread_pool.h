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
  // may read two calls mixed, and then claims nothing: a call ends when all of its pieces are finished, so
  // who has claimed one of that generation has read that generation's.
  struct alignas(64) Job {
    std::atomic<Body> body{nullptr};  // none: the workers end
    std::atomic<void*> argument{nullptr};
    std::atomic<std::ptrdiff_t> share{0};   // items that each thread finds waiting for it
    std::atomic<std::ptrdiff_t> rest{0};    // items behind them
    std::atomic<std::ptrdiff_t> chunks{0};  // of the rest, which differ by one item at most
    std::atomic<std::uint32_t> shares{0};   // calls so far that had shares
    std::atomic<std::uint32_t> generation{0};
  };
  // What workers tell each other and the caller.
  struct alignas(64) Progress {
    std::atomic<std::uint64_t> next{0};      // generation, and in the low half the next chunk
    std::atomic<std::uint32_t> finished{0};  // shares and chunks
  };
  // Of a thread: calls of which its share is taken, by whomever. Cache lines of its own.
  struct alignas(64) Share {
    std::atomic<std::uint32_t> taken{0};
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
    // Three quarters go to the threads in one piece each, whose items a kernel does together, and always the
    // same one: what it reads it often wrote itself. The faster threads take more of the rest.
    const std::ptrdiff_t threads = threads_.count;
    const std::ptrdiff_t share = shares_ ? (3 * (count / threads) + 3) / 4 : 0;
    const std::ptrdiff_t rest = count - threads * share;
    const std::ptrdiff_t chunks = rest < 4 * threads ? rest : 4 * threads;
    const std::uint32_t generation = job_.generation.load(std::memory_order_relaxed) + 1;
    progress_.finished.store(0, std::memory_order_relaxed);
    progress_.next.store(std::uint64_t{generation} << 32, std::memory_order_relaxed);
    job_.body.store(body, std::memory_order_relaxed);
    job_.argument.store(argument, std::memory_order_relaxed);
    job_.share.store(share, std::memory_order_relaxed);
    job_.rest.store(rest, std::memory_order_relaxed);
    job_.chunks.store(chunks, std::memory_order_relaxed);
    if (share > 0)
      job_.shares.store(job_.shares.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    job_.generation.store(generation, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) {
      { const std::lock_guard<std::mutex> lock(mutex_); }
      wake_.notify_all();
    }
    claim(0, generation);
    const auto pieces = static_cast<std::uint32_t>(chunks + (share > 0 ? threads : 0));
    for (Spin spin; progress_.finished.load(std::memory_order_acquire) != pieces;) spin.wait();
  }

  // All that is left of a call, beginning with the share of thread `index`.
  void claim(int index, std::uint32_t generation) {
    const Body body = job_.body.load(std::memory_order_relaxed);
    void* const argument = job_.argument.load(std::memory_order_relaxed);
    const std::ptrdiff_t share = job_.share.load(std::memory_order_relaxed);
    const std::ptrdiff_t rest = job_.rest.load(std::memory_order_relaxed);
    const std::ptrdiff_t chunks = job_.chunks.load(std::memory_order_relaxed);
    const std::uint32_t shares = job_.shares.load(std::memory_order_relaxed);
    const auto run_share = [&](int i) -> std::uint32_t {
      std::atomic<std::uint32_t>& taken = shares_[static_cast<std::size_t>(i)].taken;
      std::uint32_t before = shares - 1;
      if (taken.load(std::memory_order_relaxed) != before ||
          !taken.compare_exchange_strong(before, shares, std::memory_order_acq_rel))
        return 0;
      body(argument, i * share, (i + 1) * share);
      return 1;
    };
    std::uint32_t finished = share > 0 ? run_share(index) : 0;
    const std::ptrdiff_t first = share * threads_.count;
    const auto chunk_begin = [&](std::ptrdiff_t chunk) {
      return first + rest / chunks * chunk + rest % chunks * chunk / chunks;
    };
    std::uint64_t next = chunks > 0 ? progress_.next.load(std::memory_order_relaxed) : 0;
    while (next >> 32 == generation && static_cast<std::ptrdiff_t>(next & 0xffffffff) < chunks) {
      if (!progress_.next.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel)) continue;
      const auto chunk = static_cast<std::ptrdiff_t>(next & 0xffffffff);
      body(argument, chunk_begin(chunk), chunk_begin(chunk + 1));
      ++finished;
      ++next;
    }
    finish(finished);
    // Shares of threads that have not come.
    finished = 0;
    for (int i = 0; share > 0 && i < threads_.count; ++i) finished += run_share(i);
    finish(finished);
  }

  void finish(std::uint32_t pieces) {
    if (pieces > 0) progress_.finished.fetch_add(pieces, std::memory_order_acq_rel);
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
  Progress progress_;
  alignas(64) std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::unique_ptr<Worker[]> workers_;  // of `count - 1`; one too many, so that there is always one
  std::unique_ptr<Share[]> shares_;    // of each thread, the caller first
  std::size_t running_ = 0;
};

}  // namespace GCRT_NAMESPACE

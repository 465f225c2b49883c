// The runner's thread pool under stress, with 1 to 8 threads on however few cores there are.
#include "gcrt/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

namespace GCRT_NAMESPACE {
namespace {

class ThreadPoolTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Counts, ThreadPoolTest, ::testing::Range(1, 9));

TEST_P(ThreadPoolTest, RunsEveryItemExactlyOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads()->count, GetParam());
  for (std::ptrdiff_t count : {0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 64, 1000, 12345}) {
    std::vector<int> visits(static_cast<std::size_t>(count));
    parallel_for(pool.threads(), count, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
      ASSERT_LE(0, begin);
      ASSERT_LT(begin, end);
      ASSERT_LE(end, count);
      for (; begin < end; ++begin) ++visits[static_cast<std::size_t>(begin)];
    });
    for (int v : visits) ASSERT_EQ(v, 1);
  }
}

// Short jobs back to back: a worker that arrives late for one job must neither run it again nor touch the
// next one's pieces with the last one's body. Each job has its own body and its own target.
TEST_P(ThreadPoolTest, ManyShortJobsDoNotMix) {
  ThreadPool pool(GetParam());
  std::vector<long> sums(64);
  for (long job = 1; job <= 20000; ++job) {
    const std::ptrdiff_t count = 2 + job % 61;
    std::vector<long> local(static_cast<std::size_t>(count));
    parallel_for(pool.threads(), count, [&, job](std::ptrdiff_t begin, std::ptrdiff_t end) {
      for (; begin < end; ++begin) local[static_cast<std::size_t>(begin)] += job;
    });
    for (long value : local) ASSERT_EQ(value, job);
  }
}

// Neighbours belong together, and to the same thread each time: what it reads it often wrote itself. Whoever
// is not disturbed has at least its first piece, three quarters of its share.
TEST_P(ThreadPoolTest, PiecesAreRangesWithinShares) {
  ThreadPool pool(GetParam());
  for (std::ptrdiff_t count : {2, 3, 7, 16, 31, 64, 1000}) {
    std::mutex mutex;
    std::vector<std::pair<std::ptrdiff_t, std::ptrdiff_t>> ranges;
    parallel_for(pool.threads(), count, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
      const std::lock_guard<std::mutex> lock(mutex);
      ranges.emplace_back(begin, end);
    });
    const std::ptrdiff_t threads = GetParam();
    for (const auto& [begin, end] : ranges) {
      std::ptrdiff_t holders = 0;
      for (std::ptrdiff_t i = 0; i < threads; ++i) {
        holders += count * i / threads <= begin && end <= count * (i + 1) / threads;
      }
      EXPECT_GE(holders, 1) << begin << " to " << end << " of " << count;
    }
    EXPECT_LE(ranges.size(), static_cast<std::size_t>(5 * threads)) << count;
  }
}

// Gaps longer than the spin put the workers to sleep; they must wake again, and the caller need not wait.
TEST_P(ThreadPoolTest, WakesAfterSleeping) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 30; ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(round % 2 == 0 ? 2000 : 20));
    std::atomic<int> total{0};
    parallel_for(pool.threads(), 100,
                 [&](std::ptrdiff_t begin, std::ptrdiff_t end) { total += static_cast<int>(end - begin); });
    ASSERT_EQ(total.load(), 100);
  }
}

TEST_P(ThreadPoolTest, StartsAndStopsWithoutWork) {
  for (int round = 0; round < 50; ++round) {
    ThreadPool pool(GetParam());
    if (round % 3 == 0) parallel_for(pool.threads(), 10, [](std::ptrdiff_t, std::ptrdiff_t) {});
  }
}

// Writes of the workers are visible to the caller afterwards, without atomics in the body.
TEST_P(ThreadPoolTest, ResultsAreVisibleToTheCaller) {
  ThreadPool pool(GetParam());
  std::vector<std::ptrdiff_t> values(5000);
  for (int round = 0; round < 200; ++round) {
    parallel_for(pool.threads(), 5000, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
      for (; begin < end; ++begin) values[static_cast<std::size_t>(begin)] = begin * (round + 1);
    });
    const std::ptrdiff_t sum = std::accumulate(values.begin(), values.end(), std::ptrdiff_t{0});
    ASSERT_EQ(sum, std::ptrdiff_t{5000} * 4999 / 2 * (round + 1));
  }
}

// A call ends when every piece is finished, also where another thread has begun the last one and is slow.
TEST(ThreadPool, WaitsForPiecesThatOthersHaveBegun) {
  for (const int threads : {2, 3, 4}) {
    std::atomic<int> begun{0}, finished{0};  // items are finished before the pool ends
    ThreadPool pool(threads);
    const std::thread::id caller = std::this_thread::get_id();
    parallel_for(pool.threads(), 64, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
      if (std::this_thread::get_id() != caller) {
        ++begun;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      } else {
        for (int wait = 0; wait < 5000 && begun < threads - 1; ++wait)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      finished += static_cast<int>(end - begin);
    });
    EXPECT_EQ(finished.load(), 64) << threads << " threads";
  }
}

TEST(ThreadPool, UsesMoreThanOneThread) {
  ThreadPool pool(4);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  parallel_for(pool.threads(), 64, [&](std::ptrdiff_t, std::ptrdiff_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::lock_guard<std::mutex> lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  EXPECT_GT(ids.size(), 1u);
}

// A limit on address space stops threads from starting:
// the pool says so and does all the work with those it has.
TEST(ThreadPool, TellsWhenThreadsCannotStart) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the program when address space runs out";
#endif
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit = {std::size_t{512} << 20, std::size_t{512} << 20};
    ::setrlimit(RLIMIT_AS, &limit);
    ThreadPool pool(1000);
    std::atomic<int> total{0};
    parallel_for(pool.threads(), 100,
                 [&](std::ptrdiff_t begin, std::ptrdiff_t end) { total += static_cast<int>(end - begin); });
    ::_exit(!pool.started() && total.load() == 100 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ThreadPool, NonPositiveCountsMeanTheCallerAlone) {
  ThreadPool pool(0);
  EXPECT_EQ(pool.threads()->count, 1);
  const std::thread::id self = std::this_thread::get_id();
  parallel_for(pool.threads(), 5,
               [&](std::ptrdiff_t, std::ptrdiff_t) { EXPECT_EQ(std::this_thread::get_id(), self); });
}

}  // namespace
}  // namespace GCRT_NAMESPACE

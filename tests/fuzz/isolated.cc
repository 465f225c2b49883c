#include "tests/fuzz/isolated.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <ctime>
#include <stdexcept>

namespace gcompile::fuzz {
namespace {

constexpr int kDefect = 17;  // exit status of a process whose case has a defect

/// What the process of the cases tells the one that watches it.
struct Shared {
  std::uint64_t next, compiled, slowest;
  double slowest_seconds;
  char text[4000];
};

std::int64_t resident_peak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

void give_processor_time(int seconds) {
  const itimerval timer = {{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

[[noreturn]] void tell(Shared& shared, const std::string& text) {
  std::strncpy(shared.text, text.c_str(), sizeof shared.text - 1);
  _exit(kDefect);
}

[[noreturn]] void run_cases(std::uint64_t end, const Bounds& bounds,
                            const std::function<Outcome(std::uint64_t)>& run,
                            const std::function<bool()>& stop, Shared& shared) {
#ifndef __SANITIZE_ADDRESS__  // which reserves terabytes
  const rlimit most = {static_cast<rlim_t>(4 * bounds.bytes), static_cast<rlim_t>(4 * bounds.bytes)};
  setrlimit(RLIMIT_AS, &most);
#endif
  signal(SIGPROF, SIG_DFL);
  const std::int64_t before = resident_peak();
  while (shared.next < end && !stop()) {
    give_processor_time(bounds.seconds);
    const double started = processor_seconds();
    const Outcome outcome = run(shared.next);
    const double seconds = processor_seconds() - started;
    give_processor_time(0);
    if (seconds > shared.slowest_seconds) shared.slowest = shared.next, shared.slowest_seconds = seconds;
    if (!outcome.defect.empty()) tell(shared, outcome.defect);
    if (resident_peak() - before > bounds.bytes) {
      tell(shared, fmt::format("more than {} MiB of memory", bounds.bytes >> 20));
    }
    shared.compiled += outcome.compiled;
    ++shared.next;
  }
  _exit(0);
}

}  // namespace

Finding run_isolated(std::uint64_t first, std::uint64_t end, const Bounds& bounds,
                     const std::function<Outcome(std::uint64_t)>& run, const std::function<bool()>& stop,
                     Counts& counts) {
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("mmap fails");
  Shared& shared = *static_cast<Shared*>(memory);
  shared.next = first;
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork fails");
  if (child == 0) run_cases(end, bounds, run, stop, shared);
  int status = 0;
  waitpid(child, &status, 0);
  Finding finding;
  finding.number = shared.next;
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    finding.is_hang = number == SIGPROF;
    finding.text = finding.is_hang ? fmt::format("hang: more than {} s of processor time", bounds.seconds)
                                   : fmt::format("crash: {}", strsignal(number));
  } else if (WEXITSTATUS(status) == kDefect) {
    finding.text = shared.text;
  } else if (WEXITSTATUS(status) != 0) {
    finding.text = fmt::format("crash: exit status {}", WEXITSTATUS(status));  // a sanitizer's
  }
  counts.cases += shared.next - first;
  counts.compiled += shared.compiled;
  if (shared.slowest_seconds > counts.slowest_seconds) {
    counts.slowest = shared.slowest, counts.slowest_seconds = shared.slowest_seconds;
  }
  munmap(memory, sizeof(Shared));
  return finding;
}

Finding run_isolated(const std::function<Outcome()>& run) {
  Counts counts;
  return run_isolated(
      0, 1, {}, [&](std::uint64_t) { return run(); }, [] { return false; }, counts);
}

}  // namespace gcompile::fuzz

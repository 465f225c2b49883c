// NAME_bench --trace FILE: when every layer ran, and every piece of it on its thread, in the Trace Event
// Format that Perfetto and chrome://tracing open. Host code.
#pragma once

#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gcrt/parallel.h"

namespace GCRT_NAMESPACE {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  // Hands work to `threads`, which must stay, and notes when each piece ran. nullptr: the caller's thread
  // alone.
  explicit Trace(const Threads* threads) : threads_(threads), start_(Clock::now()) {}

  // A Threads::parallel_for, of which `context` is a Trace.
  static void parallel_for(void* context, std::ptrdiff_t count,
                           void (*body)(void*, std::ptrdiff_t, std::ptrdiff_t), void* argument) {
    Trace* const trace = static_cast<Trace*>(context);
    Work work{trace, body, argument};
    trace->threads_->parallel_for(trace->threads_->context, count, &Work::run, &work);
  }

  // All pieces since the last call belonged to this layer.
  void end(std::size_t layer, Clock::time_point begin, Clock::time_point end) {
    for (Event& piece : pieces_) {
      piece.layer = layer;
      events_.push_back(piece);
    }
    pieces_.clear();
    events_.push_back({layer, 0, begin, end});
  }

  // `name_of(layer)` and `computes(layer)` are JSON strings. False: the file cannot be written.
  template <class Name, class Computes>
  bool write(const std::string& path, const Name& name_of, const Computes& computes) const {
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    if (file == nullptr) return false;
    std::fprintf(file, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    for (std::size_t i = 0; i <= names_.size(); ++i) {
      std::fprintf(
          file,
          "{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": %zu, \"args\": {\"name\": "
          "\"%s %zu\"}},\n",
          i, i == 0 ? "layers" : "thread", i);
    }
    const char* separator = "";
    for (const Event& event : events_) {
      std::fprintf(
          file,
          "%s{\"name\": %s, \"cat\": \"%s\", \"ph\": \"X\", \"ts\": %.3f, \"dur\": %.3f, \"pid\": 1, "
          "\"tid\": %zu, \"args\": {\"layer\": %zu, \"computes\": %s}}",
          separator, name_of(event.layer).c_str(), event.thread == 0 ? "layer" : "piece",
          microseconds(start_, event.begin), microseconds(event.begin, event.end), event.thread, event.layer,
          computes(event.layer).c_str());
      separator = ",\n";
    }
    std::fprintf(file, "\n]}\n");
    return std::fclose(file) == 0;
  }

 private:
  struct Event {
    std::size_t layer;
    std::size_t thread;  // 0: the layer as a whole
    Clock::time_point begin, end;
  };
  struct Work {
    Trace* trace;
    void (*body)(void*, std::ptrdiff_t, std::ptrdiff_t);
    void* argument;
    static void run(void* context, std::ptrdiff_t begin, std::ptrdiff_t end) {
      const Work* const work = static_cast<const Work*>(context);
      const Clock::time_point started = Clock::now();
      work->body(work->argument, begin, end);
      work->trace->add(started, Clock::now());
    }
  };

  void add(Clock::time_point begin, Clock::time_point end) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::thread::id self = std::this_thread::get_id();
    std::size_t thread = 0;
    while (thread < names_.size() && names_[thread] != self) ++thread;
    if (thread == names_.size()) names_.push_back(self);
    pieces_.push_back({0, thread + 1, begin, end});
  }
  static double microseconds(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::micro>(to - from).count();
  }

  const Threads* threads_;
  Clock::time_point start_;
  std::mutex mutex_;
  std::vector<std::thread::id> names_;  // in the order in which they came
  std::vector<Event> pieces_, events_;
};

}  // namespace GCRT_NAMESPACE

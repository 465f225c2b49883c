// A library that was built with NAME_PROFILE: every run notes when its layers ran and on which threads, and
// the end of the process writes that into a file, in the Trace Event Format that Perfetto opens. Host code.
#pragma once

#include <cstdlib>
#include <mutex>

#include "gcrt/app/layers.h"

namespace GCRT_NAMESPACE {

// Of L, the layers of a model. Runs of several threads take turns, so that their pieces can be told apart.
template <class L>
class Profile {
 public:
  // `variable`: of the environment, the path of the file; `usual`: where it is not set.
  Profile(const char* variable, const char* usual)
      : path_(std::getenv(variable) != nullptr ? std::getenv(variable) : usual),
        layers_(L::all()),
        clock_(layers_.size(), 0) {
    clock_.tell(&trace_);
  }
  ~Profile() {
    if (trace_.events() == 0) return;
    if (write_trace(trace_, layers_, path_)) {
      std::fprintf(stderr, "%s: layers of the first %d runs; ui.perfetto.dev opens it\n", path_.c_str(),
                   runs_);
    } else {
      std::fprintf(stderr, "cannot write %s\n", path_.c_str());
    }
  }
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  template <class Memory, class Inputs, class Outputs>
  auto run(const Memory* memory, const Inputs* inputs, const Outputs* outputs) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Threads pool{};
    if (memory->threads != nullptr) {
      pool = {memory->threads->context, memory->threads->count, memory->threads->parallel_for};
    }
    trace_.take(&pool);
    if (trace_.events() >= kMostEvents) {
      LayerClock forgotten(layers_.size(), 0);
      return L::run(memory, inputs, outputs, &forgotten);
    }
    ++runs_;
    return run_traced<L>(memory, inputs, outputs, &clock_, &trace_);
  }

 private:
  static constexpr std::size_t kMostEvents = 1000000;  // what comes later is not noted

  const std::string path_;
  const std::vector<Layer> layers_;
  std::mutex mutex_;
  Trace trace_;
  LayerClock clock_;
  int runs_ = 0;
};

}  // namespace GCRT_NAMESPACE

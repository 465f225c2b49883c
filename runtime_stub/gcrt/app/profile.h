// A library that was built with NAME_PROFILE: every run notes when its layers ran and on which threads, and
// the end of the process writes that into a file, in the Trace Event Format that Perfetto opens. Host code.
#pragma once

#include <cstdlib>
#include <mutex>

#include "gcrt/app/layers.h"

namespace GCRT_NAMESPACE {

// Of all schedules of a model. Runs of several threads take turns, so that their pieces can be told apart.
class Profile {
 public:
  // `variable`: of the environment, the path of the file; `usual`: where it is not set. The layers of each
  // schedule.
  Profile(const char* variable, const char* usual, const std::vector<std::vector<Layer>>& schedules)
      : path_(std::getenv(variable) != nullptr ? std::getenv(variable) : usual) {
    for (const std::vector<Layer>& layers : schedules) {
      first_layers_.push_back(layers_.size());
      layers_.insert(layers_.end(), layers.begin(), layers.end());
    }
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

  // The layers L of one of the schedules, which take `arguments` behind the memory.
  template <class L, class Memory, class... Arguments>
  auto run(std::size_t schedule, const Memory* memory, Arguments... arguments) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Threads pool{};
    if (memory->threads != nullptr) {
      pool = {memory->threads->context, memory->threads->count, memory->threads->parallel_for};
    }
    trace_.take(&pool);
    if (trace_.events() >= kMostEvents) {
      Trace forgotten;
      LayerClock clock(&forgotten);
      return L::run(memory, arguments..., &clock);
    }
    ++runs_;
    LayerClock clock(&trace_, first_layers_[schedule]);
    return run_traced<L>(&trace_, &clock, memory, arguments...);
  }

 private:
  static constexpr std::size_t kMostEvents = 1000000;  // what comes later is not noted

  const std::string path_;
  std::vector<Layer> layers_;
  std::vector<std::size_t> first_layers_;
  std::mutex mutex_;
  Trace trace_;
  int runs_ = 0;
};

}  // namespace GCRT_NAMESPACE

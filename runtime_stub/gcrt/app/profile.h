// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// A library that was built with NAME_PROFILE: every run notes when its layers ran and on which threads, and
// the end of the process writes that into a file. Host code.
#pragma once

#include "gcrt/app/layers.h"
#include "gcrt/app/profile_file.h"

namespace GCRT_NAMESPACE {

class Profile {
 public:
  // The layers of each schedule; else as a ProfileFile.
  Profile(const char* variable, const char* usual, const std::vector<std::vector<Layer>>& schedules)
      : file_(variable, usual) {
    for (const std::vector<Layer>& layers : schedules) first_layers_.push_back(file_.add(layers));
  }

  // The layers L of one of the schedules, which take `arguments` behind the memory.
  template <class L, class Memory, class... Arguments>
  auto run(std::size_t schedule, const Memory* memory, Arguments... arguments) {
    Threads pool{};
    if (memory->threads != nullptr) {
      pool = {memory->threads->context, memory->threads->count, memory->threads->parallel_for};
    }
    const auto note = [&](Trace* trace) {
      trace->take(&pool);
      LayerClock clock(trace, first_layers_[schedule]);
      return run_traced<L>(trace, &clock, memory, arguments...);
    };
    const auto pass = [&] {
      Trace forgotten;
      LayerClock clock(&forgotten);
      return L::run(memory, arguments..., &clock);
    };
    return file_.run(note, pass);
  }

 private:
  ProfileFile file_;
  std::vector<std::size_t> first_layers_;
};

}  // namespace GCRT_NAMESPACE

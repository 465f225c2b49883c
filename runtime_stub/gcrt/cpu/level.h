// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// A library for more than one processor holds its schedule and kernels several times, each compiled for one
// level, a set of instructions, and runs the best that the machine can.
#pragma once

#include "gcrt/cpu/features.h"

namespace GCRT_NAMESPACE {

// `Run`: the type of the function that runs the schedule.
template <class Run>
struct Level {
  const Features* needs;
  Run* run;
};

// The index of the first level that asks for nothing outside `features`; `count` where there is none.
template <class Run>
std::size_t first_usable(const Level<Run>* levels, std::size_t count, Features features) {
  std::size_t level = 0;
  while (level < count && (*levels[level].needs & ~features) != 0) ++level;
  return level;
}

}  // namespace GCRT_NAMESPACE

// What programs with planted bugs share: a case by its name, and what they say of its results.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string_view>

#include "gcrt/cuda/device/launch.h"

namespace GCRT_NAMESPACE {

inline bool has_failed(const char* name, const Queue& queue) {
  if (queue.error != cudaSuccess) std::printf("%s: %s\n", name, cudaGetErrorString(queue.error));
  return queue.error != cudaSuccess;
}

inline bool differs(const char* name, int element, float got, float expected) {
  if (got == expected) return false;
  std::printf("%s: wrong result: element %d is %g, expected %g\n", name, element, static_cast<double>(got),
              static_cast<double>(expected));
  return true;
}

// main() of a program whose cases have a name each, the first without a bug;
// `run` returns 0 where all is right.
template <class Case, std::size_t kCount>
int run_planted(const Case (&cases)[kCount], int (*run)(const Case&), int count, char** arguments) {
  for (const Case& test : cases) {
    if (count != 2 || std::string_view(arguments[1]) != test.name) continue;
    const int failed = run(test);
    if (failed == 0 && &test != &cases[0]) std::printf("%s: nothing noticed\n", test.name);
    return failed;
  }
  std::printf("usage: %s NAME\n", arguments[0]);
  return 2;
}

}  // namespace GCRT_NAMESPACE

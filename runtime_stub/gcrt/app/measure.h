// Times of a model, and the numbers of command lines. Host code.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "gcrt/app/tensor.h"

namespace GCRT_NAMESPACE {

// The time below which `part` of all times lie; sorts them.
inline double quantile(std::vector<double>* times, double part) {
  std::sort(times->begin(), times->end());
  return (*times)[static_cast<std::size_t>(part * static_cast<double>(times->size() - 1) + 0.5)];
}

// Runs `repeat` times and prints one line: times by the host's clock, each run waited for, then those on a
// device.
template <class Model>
void measure(const Model& model, Tensors* tensors, int repeat, int threads, bool json) {
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    model.run_again(tensors);
    const auto end = std::chrono::steady_clock::now();
    times.push_back(std::chrono::duration<double, std::milli>(end - begin).count());
  }
  std::printf(json ? "{\"min_ms\": %.6f, \"median_ms\": %.6f, \"p90_ms\": %.6f, "
                   : "min %.3f ms, median %.3f ms, p90 %.3f ms",
              quantile(&times, 0), quantile(&times, 0.5), quantile(&times, 0.9));
  std::vector<double> device = model.device_times(repeat);
  if (!device.empty()) {
    std::printf(json ? "\"device_min_ms\": %.6f, \"device_median_ms\": %.6f, "
                     : "; on the device min %.3f ms, median %.3f ms",
                quantile(&device, 0), quantile(&device, 0.5));
  }
  if (json) std::printf("\"repeat\": %d, \"threads\": %d}", repeat, threads);
  std::printf("\n");
}

inline int positive_number(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 1 || value > 1000000000) {
    fail(option + " needs a positive number, not '" + text + "'");
  }
  return static_cast<int>(value);
}

inline std::uint64_t seed_number(const std::string& text) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') fail("--random needs a number, not '" + text + "'");
  return value;
}

}  // namespace GCRT_NAMESPACE

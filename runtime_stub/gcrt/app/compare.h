// NAME_bench --compare OTHER: the layers of two builds side by side. Host code.
#pragma once

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gcrt/app/tensor.h"

namespace GCRT_NAMESPACE {

// A layer as --layers --json prints it.
struct ToldLayer {
  std::string kernel, computes;
  double least = 0;  // milliseconds
  bool is_taken = false;
};

struct ToldLayers {
  std::vector<ToldLayer> layers;
  double run = 0;  // milliseconds, without the clock of layers
};

// What stands behind `"key": ` after `at`; texts without what escapes them.
inline std::string json_value(const std::string& text, const std::string& key, std::size_t at,
                              std::size_t end) {
  const std::string mark = "\"" + key + "\": ";
  const std::size_t found = text.find(mark, at);
  if (found == std::string::npos || found >= end) return "";
  std::size_t from = found + mark.size();
  std::string value;
  if (text[from] != '"') {
    while (from < end && text[from] != ',' && text[from] != '}') value += text[from++];
    return value;
  }
  for (++from; from < end && text[from] != '"'; ++from) {
    if (text[from] == '\\') ++from;
    value += text[from];
  }
  return value;
}

// Of the text that --layers --json prints; no layers: it is something else.
inline ToldLayers layers_of(const std::string& text) {
  ToldLayers told;
  const std::string begin = "{\"layer\": ";
  std::size_t at = text.find(begin);
  told.run = std::strtod(json_value(text, "run_min_ms", 0, std::min(at, text.size())).c_str(), nullptr);
  while (at != std::string::npos) {
    const std::size_t next = text.find(begin, at + 1);
    const std::size_t end = std::min(next, text.size());
    told.layers.push_back({json_value(text, "kernel", at, end), json_value(text, "computes", at, end),
                           std::strtod(json_value(text, "min_ms", at, end).c_str(), nullptr)});
    at = next;
  }
  return told;
}

// The least of both, layer by layer.
inline void merge(const ToldLayers& more, ToldLayers* told) {
  if (told->layers.empty()) {
    *told = more;
    return;
  }
  told->run = std::min(told->run, more.run);
  for (std::size_t i = 0; i < std::min(told->layers.size(), more.layers.size()); ++i) {
    told->layers[i].least = std::min(told->layers[i].least, more.layers[i].least);
  }
}

// Of a file that --layers --json made, or of a program that is run with these options.
inline std::string told_by(const std::string& other, const std::string& options) {
  std::ifstream file(other, std::ios::binary);
  if (!file) fail("cannot read " + other);
  if (file.peek() == '{') {
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
#ifdef _WIN32
  fail("on this system --compare takes what --layers --json printed, as a file");
#else
  std::string quoted = "'";
  for (const char c : other.find('/') == std::string::npos ? "./" + other : other) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  std::FILE* const pipe = ::popen((quoted + "' --layers --json " + options).c_str(), "r");
  if (pipe == nullptr) fail("cannot run " + other);
  std::string text;
  char block[4096];
  for (std::size_t got; (got = std::fread(block, 1, sizeof block, pipe)) > 0;) text.append(block, got);
  if (::pclose(pipe) != 0) fail(other + " --layers --json failed");
  return text;
#endif
}

inline std::string ratio_text(double other, double ours) {
  char text[32] = "-";
  if (other > 0 && ours > 0) std::snprintf(text, sizeof text, "%.2f", other / ours);
  return text;
}

// Layers are the same where they compute the same nodes; of equal ones the first.
inline void print_comparison(const ToldLayers& ours, ToldLayers other, const std::string& name) {
  std::printf("other: %s; ratio: its time over ours\n", name.c_str());
  std::printf("%9s %9s %6s  %s\n", "ms", "other", "ratio", "kernel");
  for (const ToldLayer& layer : ours.layers) {
    const auto same = std::find_if(other.layers.begin(), other.layers.end(), [&](const ToldLayer& one) {
      return !one.is_taken && one.computes == layer.computes;
    });
    const double time = same != other.layers.end() ? same->least : 0;
    if (same != other.layers.end()) same->is_taken = true;
    std::printf("%9.4f %9.4f %6s  %s: %s\n", layer.least, time, ratio_text(time, layer.least).c_str(),
                layer.kernel.c_str(), layer.computes.c_str());
  }
  for (const ToldLayer& layer : other.layers) {
    if (layer.is_taken) continue;
    std::printf("%9s %9.4f %6s  %s: %s (of the other alone)\n", "-", layer.least, "-", layer.kernel.c_str(),
                layer.computes.c_str());
  }
  std::printf("%9.4f %9.4f %6s  a run\n", ours.run, other.run, ratio_text(other.run, ours.run).c_str());
}

// `self` and `other` are run in turns, so that a machine that slows down slows both.
inline void compare_builds(const std::string& self, const std::string& other, const std::string& options) {
  constexpr int kRounds = 5;
  ToldLayers ours, theirs;
  for (int i = 0; i < kRounds; ++i) {
    merge(layers_of(told_by(self, options)), &ours);
    merge(layers_of(told_by(other, options)), &theirs);
  }
  if (ours.layers.empty()) fail("this build cannot time its layers");
  if (theirs.layers.empty()) fail(other + " has no times of layers");
  print_comparison(ours, theirs, other);
}

}  // namespace GCRT_NAMESPACE

// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Products of warpgroups, as one thread has issued them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda_on_cpu.h"

namespace cuda_on_cpu {

constexpr unsigned kWarpgroup = 128;

struct WarpgroupProduct {
  WgmmaType type;
  int columns;
  float* d;
  const std::uint32_t* a;  // null: descriptor_a
  std::uint64_t descriptor_a;
  std::uint64_t descriptor_b;
};

/// The sums of a thread while products that add to them are under way.
struct SumsUnderWay {
  float* d;
  std::vector<float> values;
};

struct ThreadProducts {
  std::vector<WarpgroupProduct> issued;
  std::vector<std::size_t> groups;  // how many of them each committed group ends after
  std::vector<SumsUnderWay> sums;
  bool is_fenced = false;  // registers may be read and written since

  bool is_empty() const { return issued.empty(); }
  void clear() {
    issued.clear();
    groups.clear();
    sums.clear();
    is_fenced = false;
  }
};

}  // namespace cuda_on_cpu

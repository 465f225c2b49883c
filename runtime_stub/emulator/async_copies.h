// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// mbarriers and copies of tensors to shared memory, of one block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor_map.h"

namespace cuda_on_cpu {

/// A copy that has been issued and has not landed.
struct TensorCopy {
  TensorMapFields map;
  int at[4];
  std::size_t target;   // offset in shared memory
  std::size_t barrier;  // offset
  std::size_t bytes() const;
};

class AsyncCopies {
 public:
  void reset(unsigned char* shared, std::size_t bytes);

  void init(std::size_t barrier, int arrivals);
  void show_barriers() { shown_ = barriers_.size(); }
  void arrive(std::size_t barrier);
  void expect(std::size_t barrier, int bytes);
  /// Whether a phase of that parity is complete.
  bool is_complete(std::size_t barrier, int parity) const;

  void issue(const TensorCopy& copy);
  bool is_under_way() const { return !copies_.empty(); }
  /// Lets a copy land, the oldest one, or with a seed any; false: there is none.
  bool land_one(std::uint32_t seed);

  /// Shared memory as copies and products of warpgroups see it: without what threads have written since the
  /// last fence.
  unsigned char* async_view();
  void fence();

 private:
  struct Barrier {
    std::size_t offset;
    int expected;
    int pending;
    int bytes;  // that have still to land; below zero: that have landed and are not expected yet
    int phase;
  };
  Barrier& find(std::size_t barrier);
  /// Dies unless others than the block's own threads may know the barrier.
  void require_shown(std::size_t barrier) const;
  void settle(Barrier& barrier);
  void land(const TensorCopy& copy);

  unsigned char* shared_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<Barrier> barriers_;
  std::size_t shown_ = 0;
  std::vector<TensorCopy> copies_;
  std::vector<unsigned char> view_;
  bool has_view_ = false;
  std::uint32_t landed_ = 0;
};

}  // namespace cuda_on_cpu

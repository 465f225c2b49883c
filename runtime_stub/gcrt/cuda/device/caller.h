// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The caller's memory: inputs and outputs that kernels use where they lie,
// and others that pass through the arena.
#pragma once

#include "gcrt/cuda/device/launch.h"

namespace GCRT_NAMESPACE {

// An input or output as the caller gives it.
struct CallerBlock {
  const void* data;
  std::size_t bytes;
};

inline bool overlaps(const CallerBlock& a, const CallerBlock& b) {
  const auto begin_a = reinterpret_cast<std::uintptr_t>(a.data);
  const auto begin_b = reinterpret_cast<std::uintptr_t>(b.data);
  return begin_a < begin_b + b.bytes && begin_b < begin_a + a.bytes;
}

// Whether kernels that the current device runs may read and write the block, which is aligned like a buffer
// of the arena: its own memory and, where host and device share one (Jetson), what the host has page-locked
// or manages for both. All other memory only copies reach in every case.
inline bool is_within_reach(const void* data, std::size_t alignment) {
  if (reinterpret_cast<std::uintptr_t>(data) % alignment != 0) return false;
  cudaPointerAttributes attributes = {};
  int device = 0;
  if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess || cudaGetDevice(&device) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  if (attributes.type == cudaMemoryTypeDevice) return attributes.device == device;
  int shares_memory = 0;
  return attributes.type != cudaMemoryTypeUnregistered && attributes.devicePointer == data &&
         cudaDeviceGetAttribute(&shares_memory, cudaDevAttrIntegrated, device) == cudaSuccess &&
         shares_memory != 0;
}

// The blocks of one run. `place`: where one lies in the arena if kernels cannot use it where it is.
template <std::size_t Count>
class CallerMemory {
 public:
  CallerMemory(Queue& queue, const CallerBlock (&blocks)[Count], std::size_t alignment)
      : queue_(queue), blocks_(blocks), alignment_(alignment) {}

  // From where kernels read the input: nothing writes there.
  const std::byte* input(std::size_t index, std::byte* place) const {
    const CallerBlock& block = blocks_[index];
    if (queue_.stands_in || is_within_reach(block.data, alignment_)) {
      return static_cast<const std::byte*>(block.data);
    }
    copy(queue_, place, block.data, block.bytes);
    return place;
  }

  // Where kernels write the output, from the first on that has a part of it: not where another input or
  // output lies too.
  std::byte* output(std::size_t index, std::byte* place) const {
    const CallerBlock& block = blocks_[index];
    std::byte* const data = static_cast<std::byte*>(const_cast<void*>(block.data));
    if (queue_.stands_in) return data;
    for (std::size_t i = 0; i < Count; ++i) {
      if (i != index && overlaps(blocks_[i], block)) return place;
    }
    return is_within_reach(data, alignment_) ? data : place;
  }

  // After the last kernel: brings the output to the caller from where it was written.
  void finish(std::size_t index, const std::byte* written) const {
    const CallerBlock& block = blocks_[index];
    if (written != block.data) copy(queue_, const_cast<void*>(block.data), written, block.bytes);
  }

 private:
  Queue& queue_;
  const CallerBlock (&blocks_)[Count];
  std::size_t alignment_;
};

}  // namespace GCRT_NAMESPACE

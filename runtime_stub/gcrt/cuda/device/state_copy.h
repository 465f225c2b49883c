// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// States that grow, out of device memory and into it. Host code.
#pragma once

#include "gcrt/cuda/device/launch.h"
#include "gcrt/state_rows.h"

namespace GCRT_NAMESPACE {

// A state of a shape, in memory with room for more; see for_each_row.
struct StateRows {
  const std::int64_t* shape;
  const std::int64_t* room;
  int rank;
  std::size_t element_bytes;
};

// What the state holds, one element after another, to any memory. Waits.
inline cudaError_t save_rows(Stream stream, const StateRows& rows, void* to, const std::byte* state) {
  cudaError_t copied = cudaSuccess;
  for_each_row(rows.shape, rows.room, rows.rank, rows.element_bytes,
               [&](std::size_t dense, std::size_t placed, std::size_t bytes) {
                 if (copied != cudaSuccess || bytes == 0) return;
                 copied = cudaMemcpyAsync(static_cast<std::byte*>(to) + dense, state + placed, bytes,
                                          cudaMemcpyDefault, stream);
               });
  const cudaError_t ended = cudaStreamSynchronize(stream);
  return copied != cudaSuccess ? copied : ended;
}

// The other way. Waits.
inline cudaError_t load_rows(Stream stream, const StateRows& rows, std::byte* state, const void* from) {
  cudaError_t copied = cudaSuccess;
  for_each_row(rows.shape, rows.room, rows.rank, rows.element_bytes,
               [&](std::size_t dense, std::size_t placed, std::size_t bytes) {
                 if (copied != cudaSuccess || bytes == 0) return;
                 copied = cudaMemcpyAsync(state + placed, static_cast<const std::byte*>(from) + dense, bytes,
                                          cudaMemcpyDefault, stream);
               });
  const cudaError_t ended = cudaStreamSynchronize(stream);
  return copied != cudaSuccess ? copied : ended;
}

}  // namespace GCRT_NAMESPACE

// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What an emulated CUtensorMap holds.
#pragma once

#include <cstdint>

#include "cuda.h"

namespace cuda_on_cpu {

constexpr int kMostAxes = 5;

struct TensorMapFields {
  std::uint64_t mark;  // kTensorMapMark; anything else: not encoded
  const unsigned char* address;
  std::uint64_t strides[kMostAxes - 1];  // bytes, of axes 1 and on
  std::uint32_t sizes[kMostAxes];
  std::uint16_t box[kMostAxes];
  std::uint8_t rank;
  std::uint8_t element_bytes;
  std::uint8_t swizzle;  // CUtensorMapSwizzle
};
static_assert(sizeof(TensorMapFields) <= sizeof(CUtensorMap), "as large as the driver's");
constexpr std::uint64_t kTensorMapMark = 0x70616d726f736e74;

/// The fields of a map; dies if `map` was not encoded.
TensorMapFields fields_of(const void* map);

/// Where a swizzled byte lies: chunks of 16 bytes change places within 32, 64 or 128 bytes, by the number of
/// the line of 128 bytes (PTX ISA, "Swizzling modes").
inline std::uint32_t swizzled(std::uint32_t address, int swizzle) {
  const std::uint32_t chunks = (1u << swizzle) - 1;  // 0, 1, 3, 7
  return address ^ ((address >> 7 & chunks) << 4);
}

}  // namespace cuda_on_cpu

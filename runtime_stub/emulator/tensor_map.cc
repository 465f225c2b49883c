// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Maps of tensors: how they are made, and which of them the driver refuses.
#include "tensor_map.h"

#include <cstring>

#include "cuda_on_cpu.h"
#include "host_state.h"

namespace cuda_on_cpu {
namespace {

int bytes_of(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 2;
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
      return 4;
  }
  return 0;
}

// The rules of cuTensorMapEncodeTiled for maps without interleaving.
bool is_valid(int element_bytes, cuuint32_t rank, const void* address, const cuuint64_t* sizes,
              const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t* element_strides,
              CUtensorMapSwizzle swizzle) {
  constexpr cuuint64_t kMostBytes = cuuint64_t{1} << 40;
  if (element_bytes == 0 || rank < 1 || rank > kMostAxes) return false;
  if (address == nullptr || reinterpret_cast<std::uintptr_t>(address) % 16 != 0) return false;
  for (cuuint32_t i = 0; i < rank; ++i) {
    if (sizes[i] == 0 || sizes[i] > 0xffffffffu || box[i] == 0 || box[i] > 256) return false;
    if (element_strides[i] != 1) return false;
    if (i > 0 && (strides[i - 1] % 16 != 0 || strides[i - 1] >= kMostBytes)) return false;
  }
  const cuuint32_t row = box[0] * static_cast<cuuint32_t>(element_bytes);
  const cuuint32_t most = swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 256u * 16u : 16u << swizzle;
  return row % 16 == 0 && row <= most;
}

}  // namespace

TensorMapFields fields_of(const void* map) {
  TensorMapFields fields;
  std::memcpy(&fields, map, sizeof(fields));
  if (fields.mark != kTensorMapMark) die("a copy by a tensor map that was not encoded");
  return fields;
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  const int bytes = bytes_of(type);
  if (!is_valid(bytes, rank, address, sizes, strides, box, element_strides, swizzle)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  TensorMapFields fields = {};
  fields.mark = kTensorMapMark;
  fields.address = static_cast<const unsigned char*>(address);
  fields.rank = static_cast<std::uint8_t>(rank);
  fields.element_bytes = static_cast<std::uint8_t>(bytes);
  fields.swizzle = static_cast<std::uint8_t>(swizzle);
  for (cuuint32_t i = 0; i < rank; ++i) {
    fields.sizes[i] = static_cast<std::uint32_t>(sizes[i]);
    fields.box[i] = static_cast<std::uint16_t>(box[i]);
    if (i > 0) fields.strides[i - 1] = strides[i - 1];
  }
  *map = {};
  std::memcpy(map, &fields, sizeof(fields));
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long, cudaDriverEntryPointQueryResult* result) {
  const bool is_known = std::strcmp(symbol, "cuTensorMapEncodeTiled") == 0 && version >= 12000;
  *function = is_known ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled) : nullptr;
  if (result != nullptr)
    *result = is_known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

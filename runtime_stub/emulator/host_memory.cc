// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Blocks of memory, their guarded ends, copies, errors and the properties of the device that is none.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "cuda_on_cpu.h"
#include "device_memory.h"
#include "host_state.h"

namespace cuda_on_cpu {
namespace {

constexpr int kGuard = 0xa5;

struct Allocation {
  std::size_t bytes;
  bool on_device;
};

struct Memory {
  std::mutex mutex;
  std::map<std::uintptr_t, Allocation> allocations;
};
Memory& memory() {
  static Memory memory;
  return memory;
}

// The allocation that holds `pointer`, or null. The caller holds the lock.
const std::pair<const std::uintptr_t, Allocation>* find(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto& all = memory().allocations;
  auto next = all.upper_bound(address);
  if (next == all.begin()) return nullptr;
  --next;
  return address - next->first < next->second.bytes ? &*next : nullptr;
}

cudaError_t allocate(void** pointer, std::size_t bytes, bool on_device) {
  if (pointer == nullptr) return fail(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  *pointer = on_device ? allocate_on_device(bytes) : allocate_exact(bytes, 256);
  const std::lock_guard<std::mutex> lock(memory().mutex);
  memory().allocations[reinterpret_cast<std::uintptr_t>(*pointer)] = {bytes, on_device};
  return cudaSuccess;
}

cudaError_t release(void* pointer, bool on_device) {
  if (pointer == nullptr) return cudaSuccess;
  const DeviceAccess access;
  const std::lock_guard<std::mutex> lock(memory().mutex);
  auto& all = memory().allocations;
  const auto found = all.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (found == all.end() || found->second.on_device != on_device) return fail(cudaErrorInvalidValue);
  const std::size_t bytes = found->second.bytes;
  auto* const block = static_cast<unsigned char*>(pointer);
  if (!end_is_whole(block, bytes)) {
    die("something wrote beyond a block of %zu bytes of device memory", bytes);
  }
  all.erase(found);
  on_device ? free_on_device(block, bytes) : free_exact(block);
  return cudaSuccess;
}

__thread cudaError_t last_error = cudaSuccess;

}  // namespace

cudaError_t fail(cudaError_t error) {
  last_error = error;
  return error;
}

unsigned char* allocate_exact(std::size_t bytes, std::size_t alignment) {
  void* block = nullptr;
  if (posix_memalign(&block, alignment, bytes + kGuardBytes) != 0) die("no memory for %zu bytes", bytes);
  auto* begin = static_cast<unsigned char*>(block);
  poison(begin, bytes);
  return begin;
}
void free_exact(unsigned char* block) { std::free(block); }

void poison(unsigned char* block, std::size_t bytes) {
  std::memset(block, kPoison, bytes);
  std::memset(block + bytes, kGuard, kGuardBytes);
}

bool end_is_whole(const unsigned char* block, std::size_t bytes) {
  for (std::size_t i = 0; block != nullptr && i < kGuardBytes; ++i) {
    if (block[bytes + i] != kGuard) return false;
  }
  return true;
}

void check_ends() {
  if (kGuardBytes == 0) return;
  const DeviceAccess access;
  const std::lock_guard<std::mutex> lock(memory().mutex);
  for (const auto& [address, allocation] : memory().allocations) {
    if (!end_is_whole(reinterpret_cast<const unsigned char*>(address), allocation.bytes)) {
      die("something wrote beyond a block of %zu bytes of device memory", allocation.bytes);
    }
  }
}

bool is_device_memory(const void* pointer, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(memory().mutex);
  const auto* found = find(pointer);
  return found != nullptr && found->second.on_device &&
         reinterpret_cast<std::uintptr_t>(pointer) - found->first + bytes <= found->second.bytes;
}

bool copy_is_valid(const void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const std::lock_guard<std::mutex> lock(memory().mutex);
  const auto fits = [&](const void* pointer, bool device, bool named) {
    const auto* found = find(pointer);
    if (found == nullptr) return !device;
    if (named && found->second.on_device != device) return false;
    return reinterpret_cast<std::uintptr_t>(pointer) - found->first + bytes <= found->second.bytes;
  };
  const bool named = kind != cudaMemcpyDefault;
  return fits(target, to_device, named) && fits(source, from_device, named);
}

std::size_t most_shared_bytes() {
  switch (capability()) {
    case 75:
      return 64 << 10;
    case 80:
    case 87:
      return 163 << 10;
    case 86:
    case 89:
    case 120:
    case 121:
      return 99 << 10;
  }
  return 227 << 10;
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorLossyQuery:
      return "cudaErrorLossyQuery";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDeviceFunction:
      return "cudaErrorInvalidDeviceFunction";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorIllegalState:
      return "cudaErrorIllegalState";
    case cudaErrorNoKernelImageForDevice:
      return "cudaErrorNoKernelImageForDevice";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorNotSupported:
      return "cudaErrorNotSupported";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorUnknown:
      return "cudaErrorUnknown";
  }
  return "unknown error";
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : fail(cudaErrorInvalidDevice); }

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0) return fail(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = kMostThreads;
      return cudaSuccess;
    case cudaDevAttrWarpSize:
      *value = 32;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = kMultiprocessors;
      return cudaSuccess;
    case cudaDevAttrIntegrated:
      *value = static_cast<int>(environment_number("CUDA_ON_CPU_INTEGRATED", 0));
      return cudaSuccess;
    case cudaDevAttrL2CacheSize:
      *value = 32 << 20;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = capability() / 10;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = capability() % 10;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(most_shared_bytes());
      return cudaSuccess;
  }
  return fail(cudaErrorInvalidValue);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return fail(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "CUDA on a CPU");
  properties->totalGlobalMem = std::size_t{8} << 30;
  properties->sharedMemPerBlockOptin = most_shared_bytes();
  properties->major = capability() / 10;
  properties->minor = capability() % 10;
  properties->multiProcessorCount = kMultiprocessors;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  check_ends();
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) { return allocate(pointer, bytes, true); }
cudaError_t cudaFree(void* pointer) { return release(pointer, true); }
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) { return allocate(pointer, bytes, false); }
cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  return allocate(pointer, bytes, false);
}
cudaError_t cudaFreeHost(void* pointer) { return release(pointer, false); }

cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
  *total = std::size_t{8} << 30;
  const std::lock_guard<std::mutex> lock(memory().mutex);
  std::size_t used = 0;
  for (const auto& entry : memory().allocations) used += entry.second.on_device ? entry.second.bytes : 0;
  *available = used < *total ? *total - used : 0;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  *attributes = {cudaMemoryTypeUnregistered, 0, nullptr, const_cast<void*>(pointer)};
  const std::lock_guard<std::mutex> lock(memory().mutex);
  const auto* found = find(pointer);
  if (found == nullptr) return cudaSuccess;
  attributes->type = found->second.on_device ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
  attributes->devicePointer = const_cast<void*>(pointer);
  if (found->second.on_device) attributes->hostPointer = nullptr;
  return cudaSuccess;
}

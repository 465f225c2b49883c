// How long kernels take: the terms of the model by which tiles and splits are chosen, and which reports and
// manifests show for every layer. Evaluated when a model is compiled. Needs no CUDA header.
//
//   microseconds = launch + fill + max(memory, cache, math, latency) + join
//
// No GPU was at hand, so nothing here is fitted: every constant says where it was published, or that it is an
// estimate, and none is smaller than what was measured. The sources:
//
//   [graph]   B. Spector et al., Look Ma, No Bubbles (Hazy Research, May 2025): kernels of a CUDA graph
//             come 1.3 us apart on an H100, empty as they are.
//   [overlap] pegainfer issue 569 (July 2026), at 1755 MHz: programmatic dependent launch takes 0.96 us
//             off the gap between two empty kernels, and nothing takes off more.
//   [hopper]  W. Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture (2024):
//             latencies of 263 clocks to the second-level cache and of 479 to memory; mma.sync reaches
//             62.9 % of what wgmma does, on average; 180 clocks to the shared memory of another
//             multiprocessor, from which all together read 2.65 TB/s in clusters of four blocks.
//   [copy]    a copy of 8.6 GB inside an H200 took 2.0 ms: 4.3 of the 4.8 TB/s of its data sheet.
//   [cache]   Chips and Cheese, Nvidia's H100 (July 2023): all multiprocessors together read 5.5 to 7 TB/s
//             out of the second-level cache, at 1755 MHz.
//   [guide]   CUDA C++ Programming Guide: shared memory has 32 banks of 4 bytes; a multiprocessor issues
//             four instructions per clock.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// A device as the model sees it. Published figures; products per clock are those that mma.sync reaches
// [hopper].
struct DeviceModel {
  int capability;               // 10 * major + minor
  int multiprocessors;          //
  int shared_bytes;             // largest dynamic shared memory of one block
  int products_per_clock;       // of fp16, per multiprocessor
  double gigahertz;             //
  double gigabytes_per_second;  // by the data sheet
  int cache_megabytes;          // second level
};

constexpr DeviceModel kDeviceModels[] = {
    {75, 40, 64 * 1024, 512, 1.6, 320, 4},          // T4
    {80, 108, 163 * 1024, 1024, 1.4, 1555, 40},     // A100
    {86, 82, 99 * 1024, 512, 1.7, 936, 6},          // RTX 3090
    {87, 16, 163 * 1024, 1024, 1.3, 204, 4},        // Jetson AGX Orin
    {89, 128, 99 * 1024, 512, 2.5, 1008, 72},       // RTX 4090
    {90, 132, 227 * 1024, 1288, 1.755, 4800, 50},   // H200; the memory of an H100 has 3350 GB/s
    {100, 148, 227 * 1024, 1288, 1.85, 8000, 126},  // B200
    {110, 20, 227 * 1024, 1288, 1.5, 273, 32},      // Jetson Thor
    {120, 170, 99 * 1024, 1024, 2.4, 1792, 96},     // RTX 5090
};

// The entry of the highest capability that is not above the given one.
constexpr DeviceModel device_model(int capability) {
  DeviceModel best = kDeviceModels[0];
  for (const DeviceModel& device : kDeviceModels) {
    if (device.capability <= capability) best = device;
  }
  return best;
}

// Of the bandwidth of the data sheet, what a copy reaches [copy].
constexpr double kReachedBandwidth = 4.3 / 4.8;

// Microseconds from one kernel of a graph to the next [graph], and how many of them pass while the one before
// still works, where kernels may start early [overlap].
constexpr double kGraphGap = 1.3;
constexpr double kOverlap = 0.96;
constexpr int kLeastOverlapping = 90;  // capability

// Clocks until what was asked for is there [hopper].
constexpr double kCacheLatency = 263;
constexpr double kMemoryLatency = 479;
// Parameters, addresses and barriers of a block: an estimate, from some 100 instructions that wait for each
// other.
constexpr double kSetupClocks = 250;
// A sum over the threads of a block: ten shuffles, two barriers and a turn through shared memory, about 20
// clocks each.
constexpr double kReductionClocks = 260;
// Of a block that tells the others of its tile that its sums are in memory, and of the last one, which reads
// them: a store, a fence, an atomic addition and a load, each of which waits for the second-level cache, and
// two barriers: an estimate.
constexpr double kArrivalClocks = 1500;

// Of the blocks of a cluster that add their sums: two barriers and the first load, each a way between
// multiprocessors, which is an estimate of barriers; and bytes per clock that a block reads of the others
// [hopper].
constexpr double kClusterJoinClocks = 3 * 180;
constexpr double kClusterBytesPerClock = 2650 / 1.755 / 132;

// Bytes per clock through the second-level cache: of a multiprocessor by itself (NVIDIA A100 Tensor Core GPU
// Architecture, 2020), and of each where all read [cache].
constexpr double kCacheBytesPerClock = 64;
constexpr double kCacheShareBytesPerClock = 5500 / 1.755 / 132;
constexpr double kSharedBytesPerClock = 128;      // [guide]
constexpr double kInstructionsPerClock = 4 * 32;  // of all threads [guide]

struct KernelTime {
  double launch = 0;          // behind the kernel before
  double fill = 0;            // until a block has its first operands, and until its last result is seen
  double memory = 0;          // what comes from the device's memory or goes there
  double cache = 0;           // what passes between multiprocessors and the second-level cache
  double math = 0;            // products, and the shared memory and issue slots that feed them
  double latency = 0;         // steps of a block that wait for one another
  double join = 0;            // of parts of sums
  std::ptrdiff_t blocks = 0;  // of a launch, 0: not known

  constexpr double body() const {
    const double moving = memory > cache ? memory : cache;
    const double working = math > latency ? math : latency;
    return moving > working ? moving : working;
  }
  constexpr double microseconds() const { return launch + fill + body() + join; }
  // One kernel behind the other.
  constexpr KernelTime times(double n) const {
    return {n * launch, n * fill, n * memory, n * cache, n * math, n * latency, n * join, blocks};
  }
};

constexpr double real(std::ptrdiff_t count) { return static_cast<double>(count); }

constexpr double clocks_to_microseconds(const DeviceModel& device, double clocks) {
  return clocks / device.gigahertz * 1e-3;
}

constexpr double launch_microseconds(const DeviceModel& device, bool overlaps) {
  return overlaps && device.capability >= kLeastOverlapping ? kGraphGap - kOverlap : kGraphGap;
}

// The first operands come from memory; biases and the like from the cache, where the last result has to
// arrive.
constexpr double fill_microseconds(const DeviceModel& device) {
  return clocks_to_microseconds(device, kSetupClocks + kMemoryLatency + 2 * kCacheLatency);
}

constexpr double memory_microseconds(const DeviceModel& device, double bytes) {
  return bytes / (device.gigabytes_per_second * kReachedBandwidth) * 1e-3;
}

// Bytes that so many blocks read and write.
constexpr double cache_microseconds(const DeviceModel& device, double bytes, std::ptrdiff_t blocks) {
  const double all = device.multiprocessors * kCacheShareBytesPerClock;
  const double own = real(blocks) * kCacheBytesPerClock;
  return clocks_to_microseconds(device, bytes / (own < all ? own : all));
}

// Multiply-adds without tensor cores, per clock and multiprocessor.
constexpr double scalar_products_per_clock(const DeviceModel& device) {
  return device.capability <= 80 ? 64 : 128;
}

constexpr double math_microseconds(const DeviceModel& device, double products, double products_per_clock) {
  return clocks_to_microseconds(device, products / (products_per_clock * device.multiprocessors));
}

// Of a kernel behind another: without what it moves and computes.
constexpr KernelTime started(const DeviceModel& device, bool overlaps) {
  KernelTime time;
  time.launch = launch_microseconds(device, overlaps);
  time.fill = fill_microseconds(device);
  return time;
}

// Of `launches` kernels, one behind the other, that together move so many bytes, of which some come from
// memory or go there, and form `products`, in blocks enough for all multiprocessors.
constexpr KernelTime streaming_time(const DeviceModel& device, std::ptrdiff_t launches, bool overlaps,
                                    double memory_bytes, double bytes, double products,
                                    double products_per_clock) {
  KernelTime time = started(device, overlaps).times(real(launches));
  time.memory = memory_microseconds(device, memory_bytes);
  time.cache = cache_microseconds(device, bytes, device.multiprocessors);
  time.math = math_microseconds(device, products, products_per_clock);
  return time;
}

}  // namespace GCRT_NAMESPACE

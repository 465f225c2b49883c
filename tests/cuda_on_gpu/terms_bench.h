// The terms of time_model.h, one by one: bandwidth of memory and of the second-level cache by the blocks that read,
// latencies of both, and what a kernel of a graph takes that hands little to the next, alone, with parts that an atomic
// counter joins, and in clusters.
#pragma once

#include <cstdint>
#include <string>

#include "bench_tools.h"
#include "gcrt/cuda/device/cluster.h"

namespace GCRT_NAMESPACE {
namespace {

constexpr int kTermThreads = 256;

// Each block reads `bytes_of_block` from its own part of x, the first one at `start`, from the beginning again where x
// ends; 8 loads of 16 bytes of each thread are in flight.
GCRT_GLOBAL(kTermThreads)
void read_part(const char* x, std::size_t bytes, std::size_t start, std::size_t bytes_of_block, float* out) {
  constexpr std::size_t kSweep = std::size_t{16} * kTermThreads;
  constexpr int kLoads = 8;
  float sum = 0;
  std::size_t at = (start + blockIdx.x * bytes_of_block) % bytes + threadIdx.x * std::size_t{16};
  for (std::size_t done = 0; done < bytes_of_block; done += kSweep * kLoads) {
    std::uint32_t words[kLoads][4];
    GCRT_UNROLL
    for (int load = 0; load < kLoads; ++load) {
      load_words(words[load], x + at + kSweep * static_cast<std::size_t>(load));
    }
    GCRT_UNROLL
    for (int load = 0; load < kLoads; ++load) {
      GCRT_UNROLL
      for (int k = 0; k < 4; ++k) sum += bit_cast<float>(words[load][k]);
    }
    at += kSweep * kLoads;
    if (at >= bytes) at -= bytes;
  }
  if (sum == 12345.678f) out[0] = sum;  // hardly ever, which the compiler cannot know
}

void bench_bandwidth(double ceiling) {
  constexpr std::size_t kMemory = std::size_t{2} << 30, kCached = std::size_t{1} << 24;
  const Memory<float> x(kMemory / 4), out(1);
  // A call reads behind the one before, so that no cache has what it reads until all of the memory was read.
  std::size_t start = 0;
  for (const bool cached : {false, true}) {
    for (const int blocks : {1, 8, 32, 66, 132, 264, 528}) {
      const std::size_t bytes = cached ? kCached : kMemory;
      const std::size_t of_block = std::size_t{1} << (blocks >= 132 ? 21 : 20);
      const Time time = measure([&](Queue& queue, int) {
        launch(queue, static_cast<unsigned>(blocks), kTermThreads, 0, &read_part,
               reinterpret_cast<const char*>(x.data()), bytes, start, of_block, out.data());
        start = (start + static_cast<std::size_t>(blocks) * of_block) % bytes;
      });
      report(std::string(cached ? "cache" : "memory") + " read by " + std::to_string(blocks) + " blocks",
             "GB/s", time, static_cast<double>(of_block) * blocks, cached ? 0 : ceiling);
    }
  }
}

// A ring through all lines of 128 bytes in an order that no prefetcher follows.
GCRT_GLOBAL(kTermThreads)
void write_ring(std::uint32_t* x, std::uint32_t lines) {
  for (std::uint32_t i = blockIdx.x * kTermThreads + threadIdx.x; i < lines; i += kTermThreads * gridDim.x) {
    x[std::size_t{i} * 32] = (i * 1664525u + 1013904223u) & (lines - 1);
  }
}

// From where the call before ended: lines come again when all of them have been read. A plain load, for a volatile one
// passes the first-level cache by.
GCRT_GLOBAL(32) void follow_ring(const std::uint32_t* x, std::uint32_t lines, int steps, std::uint32_t* out) {
  if (threadIdx.x != 0) return;
  std::uint32_t at = out[0] & (lines - 1);
  for (int i = 0; i < steps; ++i) at = x[std::size_t{at} * 32];
  out[0] = at;
}

void bench_latency() {
  constexpr int kSteps = 8192;
  const Memory<float> memory(std::size_t{1} << 28), result(1);
  auto* const x = reinterpret_cast<std::uint32_t*>(memory.data());
  auto* const out = reinterpret_cast<std::uint32_t*>(result.data());
  for (const unsigned bits :
       {7u, 15u, 17u, 20u, 23u}) {  // lines: in the first cache, the second, and in memory
    const std::uint32_t lines = 1u << bits;
    Queue queue;
    launch(queue, 1024, kTermThreads, 0, &write_ring, x, lines);
    const Time time =
        measure([&](Queue& inner, int) { launch(inner, 1, 32, 0, &follow_ring, x, lines, kSteps, out); });
    report("a load behind a load in " + std::to_string(lines / 8) + " KiB", "loads/us",
           {time.least / kSteps, time.median / kSteps}, 1e6, 0);
  }
}

enum class Hand : int { kPlain, kJoined, kClustered };

// What a small layer does that is given what the one before has written: a load, a store, and in between, by `kHand`,
// four blocks put their parts together.
template <Hand kHand>
GCRT_GLOBAL(kTermThreads)
void hand_on(const float* x, float* parts, std::uint32_t* counters, float* y) {
  __shared__ alignas(16) float shared[kTermThreads];
  await_previous_grid();
  const unsigned at = blockIdx.x * kTermThreads + threadIdx.x;
  float value = x[at] * 1.5f;
  if constexpr (kHand == Hand::kJoined) {
    parts[at] = value;
    if (!arrives_last(counters + blockIdx.x / 4, 4)) return;
    const unsigned first = blockIdx.x / 4 * 4 * kTermThreads + threadIdx.x;
    for (unsigned part = 0; part < 4; ++part)
      y[first + part * kTermThreads] = parts[first + part * kTermThreads];
    return;
  }
  if constexpr (kHand == Hand::kClustered) {
    shared[threadIdx.x] = value;
    cluster_barrier();
    const auto from = load_from_block(shared + threadIdx.x / 4 * 4, (cluster_rank() + 1) % 4);
    cluster_barrier();
    value += from[0];
  }
  y[at] = value;
}

template <Hand kHand>
void bench_hand(const char* name, int blocks, bool overlaps) {
  constexpr int kNodes = 128;
  const auto count = static_cast<std::size_t>(blocks) * kTermThreads;
  const Memory<float> x(count), parts(count), y(count);
  std::uint32_t* counters = nullptr;
  require(cudaMalloc(&counters, 4096), "cudaMalloc");
  require(cudaMemset(counters, 0, 4096), "cudaMemset");
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  require(cudaStreamCreate(&stream), "cudaStreamCreate");
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
  const float* from = x.data();
  float* to = y.data();
  float* between = parts.data();
  for (int i = 0; i < kNodes; ++i) {
    void* arguments[] = {&from, &between, &counters, &to};
    require(launch_with({overlaps, kHand == Hand::kClustered ? 4u : 1u},
                        reinterpret_cast<const void*>(&hand_on<kHand>), static_cast<unsigned>(blocks),
                        kTermThreads, arguments, 0, stream),
            "launch");
    float* const was = to;
    to = const_cast<float*>(from);
    from = was;
  }
  require(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  require(cudaGraphInstantiateWithFlags(&exec, graph, 0), "cudaGraphInstantiate");
  const Time time = measure([&](Queue& queue, int) {
    if (queue.error == cudaSuccess) queue.error = cudaGraphLaunch(exec, queue.stream);
  });
  report(std::string(name) + " by " + std::to_string(blocks) + " blocks" + (overlaps ? ", overlapping" : ""),
         "nodes/us", {time.least / kNodes, time.median / kNodes}, 1e6, 0);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  cudaFree(counters);
}

void bench_terms(double ceiling, int capability) {
  bench_bandwidth(ceiling);
  bench_latency();
  for (const bool overlaps : {false, true}) {
    for (const int blocks : {4, 132, 528}) {
      bench_hand<Hand::kPlain>("a layer that loads and stores", blocks, overlaps);
      bench_hand<Hand::kJoined>("a layer of parts that a counter joins", blocks, overlaps);
      if (capability >= 90) bench_hand<Hand::kClustered>("a layer of clusters of four", blocks, overlaps);
    }
  }
}

}  // namespace
}  // namespace GCRT_NAMESPACE

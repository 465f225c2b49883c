// Reductions of whole tensors in percent of what memory gives:
// by one block, and by blocks that share the row.
#pragma once

#include "bench_tools.h"
#include "gcrt/cuda/row_parts.h"

namespace GCRT_NAMESPACE {
namespace {

constexpr int kRowThreads = 512;

GCRT_GLOBAL(kRowThreads)
void largest_of_row(const float* x, int count, int parts, float* workspace, std::uint32_t* counters,
                    float* y) {
  await_previous_grid();
  auto group = make_group<kRowThreads>();
  const RowPart<int, 1> row(count, parts, 128, workspace);
  const float part0 = reduce_max<float, 4>(
      group, row, [&](auto lane, int i) GCRT_LAMBDA_INLINE { return load(lane, x + i); });
  row.leave(group, 0, part0);
  if (!row.arrives_last(counters)) return;
  const float acc0 = join_max(group, row, 0, part0);
  if (group.rank() == 0) y[0] = acc0;
}

void bench_rows(double ceiling) {
  constexpr int kCount = 64 << 20;
  constexpr std::size_t kMostParts = 1024;
  const Memory<float> x(kCount), y(1), workspace((1 + kMostParts) * 4);
  std::uint32_t* counters = nullptr;
  require(cudaMalloc(&counters, sizeof(*counters)), "cudaMalloc");
  require(cudaMemset(counters, 0, sizeof(*counters)), "cudaMemset");
  for (const int parts : {1, 132, 264, 528}) {
    const Time time = measure([&](Queue& queue, int) {
      launch(queue, static_cast<unsigned>(parts), kRowThreads, Group<kRowThreads>::kScratchBytes,
             &largest_of_row, x.data(), kCount, parts, workspace.data(), counters, y.data());
    });
    report("largest of 64 Mi by " + std::to_string(parts) + " blocks", "GB/s", time, 4.0 * kCount, ceiling);
  }
  cudaFree(counters);
}

}  // namespace
}  // namespace GCRT_NAMESPACE

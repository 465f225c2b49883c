// Rows, tiles and maps at the limits of what the code generator prints: a row has 32 floats per thread, a tile 16
// elements, a map 32.
// Compiled by nvcc for every architecture, never run; nothing of them may lie in local memory.
#include "gcrt/cuda/device/device.h"
#include "gcrt/cuda/device/launch.h"
#include "gcrt/cuda/map.h"
#include "gcrt/cuda/row.h"
#include "gcrt/cuda/transpose.h"

namespace GCRT_NAMESPACE {

template <int Threads, int Count, int L>
GCRT_GLOBAL(Threads == 32 ? 256 : Threads)
void softmax_rows(const float* x, float* y) {
  auto group = make_group<Threads>();
  const int i0 = static_cast<int>(blockIdx.x);
  constexpr Row<Count, L> row{};
  const auto kept0 = keep(
      group, row, [&](auto lane, auto i1) GCRT_LAMBDA_INLINE { return load(lane, x + Count * i0 + i1); });
  const float acc0 = reduce_max<float>(group, row, kept0);
  const auto kept1 =
      keep(group, row, [&](auto lane, auto i1) GCRT_LAMBDA_INLINE { return exp(kept0(lane, i1) - acc0); });
  const float acc1 = reduce_add<float>(group, row, kept1);
  vectorize(group, row, [&](auto lane, auto i1) GCRT_LAMBDA_INLINE {
    store(lane, y + Count * i0 + i1, kept1(lane, i1) / acc1);
  });
}

template <class T, int SideI, int SideJ, int ReadLanes, int WriteLanes>
GCRT_GLOBAL(kTileThreads)
void transpose(const T* x, T* y) {
  constexpr int kWidth = 40 * SideI, kHeight = 48;
  const int worker = static_cast<int>(blockIdx.x);
  const SharedTile<SideI, SideJ> tile{worker * SideI, kWidth, 0, kHeight};
  const auto tile0 = tile.template stage<T, ReadLanes>(
      0, [&](auto lane, int i, int j) GCRT_LAMBDA_INLINE { return load(lane, x + kWidth * j + i); });
  barrier();
  tile.template visit<WriteLanes>([&](auto lane, int i, int j) GCRT_LAMBDA_INLINE {
    store(lane, y + kHeight * i + j, tile0(lane, i, j));
  });
}

// exp(x) * z, where z is read as a T too.
template <class T, int L, int Packs>
GCRT_GLOBAL(256)
void map(const T* x, const T* z, T* y) {
  constexpr int kThreads = 100000, kCount = Packs * kThreads - 77;
  const int worker = global_thread<int>();
  if (worker >= kThreads) return;
  constexpr Lanes<L> lane{};
  map_packs<Packs, kThreads, kCount>(
      worker,
      [&](int pack) GCRT_LAMBDA_INLINE {
        const int i0 = pack / 50 % 700, i1 = pack % 50 * L;
        const auto value = exp(cast<float>(lane, load(lane, x + 50 * L * i0 + i1)));
        return cast<T>(lane, value * cast<float>(lane, load(lane, z + i1)));
      },
      [&](int pack, auto value) GCRT_LAMBDA_INLINE { store(lane, y + L * pack, value); });
}

void rows(Queue& q, const float* x, float* y) {
  launch(q, 1, 256, 0, softmax_rows<32, 1024, 4>, x, y);
  launch(q, 1, 256, 0, softmax_rows<32, 1023, 1>, x, y);
  launch(q, 1, 256, Group<256>::kScratchBytes, softmax_rows<256, 8192, 4>, x, y);
  launch(q, 1, 512, Group<512>::kScratchBytes, softmax_rows<512, 16384, 4>, x, y);
  launch(q, 1, 512, Group<512>::kScratchBytes, softmax_rows<512, 16383, 1>, x, y);
}

template <class T, int L>
void tiles(Queue& q, const T* x, T* y) {
  launch(q, 1, kTileThreads, SharedTile<64, 64>::bytes(sizeof(T)), transpose<T, 64, 64, L, L>, x, y);
  launch(q, 1, kTileThreads, SharedTile<64, 64>::bytes(sizeof(T)), transpose<T, 64, 64, 1, 1>, x, y);
  launch(q, 1, kTileThreads, SharedTile<16, 32>::bytes(sizeof(T)), transpose<T, 16, 32, L, 1>, x, y);
}
template <class T, int L, int Packs>
void maps(Queue& q, const T* x, T* y) {
  launch(q, 1, 256, 0, map<T, L, Packs>, x, x, y);
  launch(q, 1, 256, 0, map<T, 1, 4>, x, x, y);
}
template void maps<std::int8_t, 16, 2>(Queue&, const std::int8_t*, std::int8_t*);
template void maps<std::int16_t, 8, 4>(Queue&, const std::int16_t*, std::int16_t*);
template void maps<float, 4, 4>(Queue&, const float*, float*);
template void maps<std::int64_t, 2, 4>(Queue&, const std::int64_t*, std::int64_t*);
template void tiles<std::int8_t, 4>(Queue&, const std::int8_t*, std::int8_t*);
template void tiles<std::int16_t, 4>(Queue&, const std::int16_t*, std::int16_t*);
template void tiles<float, 4>(Queue&, const float*, float*);
template void tiles<double, 2>(Queue&, const double*, double*);

}  // namespace GCRT_NAMESPACE

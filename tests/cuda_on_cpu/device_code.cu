// Names everything that the device headers offer, so that nvcc compiles all of it (compile_headers.sh). Never run.
#include "gcrt/cuda/device/cluster.h"
#include "gcrt/cuda/device/device.h"
#include "gcrt/cuda/device/launch.h"
#include "gcrt/cuda/device/loops.h"
#include "gcrt/cuda/map.h"
#include "gcrt/cuda/row.h"
#include "gcrt/cuda/transpose.h"
#include "tests/cuda_on_cpu/every_function.h"

namespace GCRT_NAMESPACE {

template <class T, int N>
GCRT_GLOBAL(128)
void apply(int number, const T* a, const T* b, const T* c, T* out) {
  const std::ptrdiff_t i = std::ptrdiff_t{thread_rank()} * N;
  apply_function<T>(number, Lanes<N>{}, a + i, b + i, c + i, out + i);
}
template <int N>
GCRT_GLOBAL(128)
void halves(int number, const float* a, float* out) {
  const std::ptrdiff_t i = std::ptrdiff_t{thread_rank()} * N;
  through_halves(number, Lanes<N>{}, a + i, out + i);
  if (number > 1) through_small_floats(number - 2, Lanes<N>{}, a + i, out + i);
}

template <int Threads>
GCRT_GLOBAL(Threads)
void reduce(const float* x, std::ptrdiff_t count, float* y, std::int64_t* position) {
  auto group = make_group<Threads>();
  const auto value = [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE { return load(lane, x + i); };
  const float sum = reduce_add<float>(group, count, value) + reduce_mul<float>(group, count, value);
  const float range = reduce_max<float>(group, count, value) - reduce_min<float, 1>(group, count, value);
  vectorize(group, count, [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE {
    store(lane, y + i, exp(load(lane, x + i)) * splat(lane, sum / range));
  });
  group.sync();
  position[0] = arg_reduce<float, true, false>(group, count, value);
  position[1] = arg_reduce<float, false, true>(group, count, value);
}

template <int Threads, int Count, int L>
GCRT_GLOBAL(Threads)
void reduce_row(const float* x, float* y) {
  auto group = make_group<Threads>();
  constexpr Row<Count, L> row{};
  const auto kept = keep(group, row, [&](auto lane, auto i) GCRT_LAMBDA_INLINE { return load(lane, x + i); });
  const float sum = reduce_add<float>(group, row, kept) + reduce_mul<float>(group, row, kept);
  const float range = reduce_max<float>(group, row, kept) - reduce_min<float>(group, row, kept);
  vectorize(group, row, [&](auto lane, auto i) GCRT_LAMBDA_INLINE {
    store(lane, y + i, exp(kept(lane, i)) * splat(lane, sum / range));
  });
}

template <class T, int SideI, int SideJ, int L, class I>
GCRT_GLOBAL(kTileThreads)
void transpose(const T* x, T* y, I extent_i, I extent_j) {
  const SharedTile<SideI, SideJ, I> tile{0, extent_i, static_cast<I>(blockIdx.x) * SideJ, extent_j};
  const auto tile0 = tile.template stage<T, L>(
      0, [&](auto lane, I i, I j) GCRT_LAMBDA_INLINE { return load(lane, x + extent_i * j + i); });
  barrier();
  tile.template visit<L>([&](auto lane, I i, I j)
                             GCRT_LAMBDA_INLINE { store(lane, y + extent_j * i + j, tile0(lane, i, j)); });
}

template <int Packs, int Threads, int Count, class I>
GCRT_GLOBAL(128)
void map(const float* x, float* y) {
  const I worker = global_thread<I>();
  if (worker >= Threads) return;
  constexpr Lanes<4> lane{};
  map_packs<Packs, Threads, Count>(
      worker, [&](I pack) GCRT_LAMBDA_INLINE { return exp(load(lane, x + pack * 4)); },
      [&](I pack, auto value) GCRT_LAMBDA_INLINE { store(lane, y + pack * 4, value); });
}

GCRT_GLOBAL_BLOCKS(128, 2)
void warps(const float* x, float* y, std::int32_t* z, std::uint64_t* many) {
  GCRT_DYNAMIC_SHARED(float, shared);
  const int rank = thread_rank();
  cp_async<16>(shared + rank * 4, x + rank * 4);
  cp_async<8>(shared + 512 + rank * 2, x + rank * 2, 4);
  cp_async<4>(shared + 768 + rank, x + rank, 0);
  cp_async_commit();
  cp_async_wait<0>();
  barrier();
  std::uint32_t a[2][4];
  std::uint32_t b[2][2];
  const void* const rows[2] = {shared + rank * 4, shared + rank * 4 + 16};
  ldmatrix_x4_several<false>(a, rows);
  ldmatrix_x4_trans(a[1], shared + rank * 4);
  ldmatrix_x2(b[0], shared + rank * 4);
  ldmatrix_x2_trans(b[1], shared + rank * 4);
  float d[2][2][4] = {};
  std::int32_t e[2][2][4] = {};
  mma_f16_tiles(d, a, b);
#if GCRT_SM_80
  mma_bf16_tiles(d, a, b);
  mma_tf32_tiles(d, a, b);
  float corrections[2][2][4] = {};
  mma_tf32_by_parts(d, corrections, a, a, b, b);
  d[0][0][0] += corrections[0][0][0];
#endif
  mma_int8_tiles<std::int8_t, std::int8_t>(e, a, b);
  mma_int8_tiles<std::int8_t, std::uint8_t>(e, a, b);
  mma_int8_tiles<std::uint8_t, std::int8_t>(e, a, b);
  mma_int8_tiles<std::uint8_t, std::uint8_t>(e, a, b);
  const Bytes16 four = load_streaming_16(x + rank * 4);
  const Bytes8 two = load_streaming_8(x + rank * 4);
  std::uint32_t word = four.word[0] + two.word[1] + load_streaming_4(x + rank) + rest_of_tf32(x[rank]);
  const float values[4] = {x[rank], x[rank + 1], x[rank + 2], x[rank + 3]};
  round_to_tf32(a[0], values);
  word += a[0][0] + a[0][3];
  word += shuffle(static_cast<std::uint16_t>(word), 3) + ballot(d[0][0][0] > 0);
  const double wide = shuffle_up(static_cast<double>(word), 1) + shuffle_down(word, 2) + shuffle_xor(word, 4);
  if (barrier_count(wide > 1) == 3) warp_sync();
  e[0][0][0] =
      dot4<std::int8_t, std::uint8_t>(dot4<std::uint8_t, std::uint8_t>(e[0][0][1], word, word), word, word);
  e[0][0][2] =
      dot4<std::int8_t, std::int8_t>(dot4<std::uint8_t, std::int8_t>(e[0][0][1], word, word), word, word);
  for (int i = 0; i < 16; ++i) {
    atomic_add(y + rank, d[i / 8][i / 4 % 2][i % 4] + static_cast<float>(wide));
    atomic_add(z + rank, e[i / 8][i / 4 % 2][i % 4]);
  }
  atomic_max(z, atomic_min(z + 1, rank));
  atomic_add(many, std::uint64_t{1} << 40);
  z[2] = static_cast<std::int32_t>(count_in_order(reinterpret_cast<std::uint32_t*>(z + 3)));
}

GCRT_GLOBAL(128) void clusters(float* y, std::int32_t* z) {
  GCRT_DYNAMIC_SHARED(float, shared);
  await_previous_grid();
  const int at = 4 * thread_rank(), next = cluster_rank() ^ 1;
  store(Lanes<4>{}, shared + at, load(Lanes<4>{}, y + at));
  cluster_barrier();
  store(Lanes<4>{}, y + at, load_from_block(shared + at, next));
  store(Lanes<4>{}, z + at, load_from_block(reinterpret_cast<const std::int32_t*>(shared) + at, next));
  cluster_barrier();
}

void launch_all(Queue& queue, const float* x, float* y, std::int32_t* z, std::int64_t* w,
                std::uint64_t* many) {
  fill_bytes(queue, y, 0, 64);
  copy(queue, y, x, 64);
  launch(queue, blocks_for(1000, 128), 128, 60000, &warps, x, y, z, many);
  launch(queue, 1, 32, Group<32>::kScratchBytes, &reduce<32>, x, 100, y, w);
  launch(queue, 1, 256, Group<256>::kScratchBytes, &reduce<256>, x, 100, y, w);
  launch(queue, 1, 32, 0, &reduce_row<32, 1000, 4>, x, y);
  launch(queue, 1, 512, Group<512>::kScratchBytes, &reduce_row<512, 16384, 4>, x, y);
  launch(queue, 1, kTileThreads, SharedTile<64, 64>::bytes(4), &transpose<float, 64, 64, 4, int>, x, y, 100,
         200);
  launch(queue, 1, kTileThreads, SharedTile<64, 32>::bytes(8),
         &transpose<std::int64_t, 64, 32, 1, std::int64_t>, w, w, 99, 201);
  launch_clusters(queue, 2, 2, 128, 2048, &clusters, y, z);
  launch(queue, 1, 128, 0, &map<4, 128, 512, int>, x, y);
  launch(queue, 1, 128, 0, &map<2, 128, 199, std::int64_t>, x, y);
  launch(queue, 1, 128, 0, &halves<4>, 0, x, y);
  launch(queue, 1, 128, 0, &apply<float, 1>, 0, x, x, x, y);
  launch(queue, 1, 128, 0, &apply<float, 4>, 0, x, x, x, y);
  launch(queue, 1, 128, 0, &apply<std::int32_t, 4>, 0, z, z, z, z);
  launch(queue, 1, 128, 0, &apply<std::int64_t, 2>, 0, w, w, w, w);
}

template __global__ void apply<double, 2>(int, const double*, const double*, const double*, double*);
template __global__ void apply<std::int8_t, 4>(int, const std::int8_t*, const std::int8_t*,
                                               const std::int8_t*, std::int8_t*);
template __global__ void apply<std::uint8_t, 8>(int, const std::uint8_t*, const std::uint8_t*,
                                                const std::uint8_t*, std::uint8_t*);

}  // namespace GCRT_NAMESPACE

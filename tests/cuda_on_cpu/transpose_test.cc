// Tiles: every element arrives where it belongs, for all sizes of elements, packs and sides, with edges that
// no side divides.
#include "gcrt/cuda/transpose.h"

#include "device_memory.h"
#include "gcrt/cuda/device/launch.h"
#include "gcrt/scalar/scalar.h"

namespace GCRT_NAMESPACE {
namespace {

using cuda_test::Device;

// y[b][i][j] = x[b][j][i] + z[b][i][j], as the printer writes it.
template <class T, int SideI, int SideJ, int ReadLanes, int WriteLanes, class I>
GCRT_GLOBAL(256)
void transpose_add(const T* x, const T* z, T* y, int extent_i, int extent_j) {
  const int across = (extent_i + SideI - 1) / SideI, down = (extent_j + SideJ - 1) / SideJ;
  const I worker = static_cast<I>(blockIdx.x);
  const SharedTile<SideI, SideJ, I> tile{worker % across * SideI, extent_i, worker / across % down * SideJ,
                                         extent_j};
  const I first = worker / (across * down) * extent_i * extent_j;
  const auto tile0 = tile.template stage<T, ReadLanes>(
      0, [&](auto lane, I i, I j) GCRT_LAMBDA_INLINE { return load(lane, x + first + extent_i * j + i); });
  // A second tile behind the first: of what is at hand twice.
  const auto tile1 = tile.template stage<T, ReadLanes>(
      tile.bytes(sizeof(T)),
      [&](auto lane, I i, I j) GCRT_LAMBDA_INLINE { return load(lane, x + first + extent_i * j + i); });
  barrier();
  tile.template visit<WriteLanes>([&](auto lane, I i, I j) GCRT_LAMBDA_INLINE {
    const I at = first + extent_j * i + j;
    store(lane, y + at,
          add(sub(add(tile0(lane, i, j), tile1(lane, i, j)), tile0(lane, i, j)), load(lane, z + at)));
  });
}

template <class T, int SideI, int SideJ, int ReadLanes, int WriteLanes, class I = int>
void check_transpose(int batch, int extent_i, int extent_j) {
  const int plane = extent_i * extent_j;
  std::vector<T> x(static_cast<std::size_t>(batch * plane)), z(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<T>(i * 7 % 61);
    z[i] = static_cast<T>(i * 11 % 57);
  }
  Device<T> device_x(x), device_z(z), y(x.size());
  Queue queue;
  const unsigned tiles = blocks_for(extent_i, SideI) * blocks_for(extent_j, SideJ);
  constexpr int bytes = SharedTile<SideI, SideJ, I>::bytes(sizeof(T));
  launch(queue, tiles * static_cast<unsigned>(batch), kTileThreads, 2 * bytes,
         &transpose_add<T, SideI, SideJ, ReadLanes, WriteLanes, I>, device_x.data(), device_z.data(),
         y.data(), extent_i, extent_j);
  ASSERT_EQ(queue.error, cudaSuccess);
  const auto got = y.read();
  for (int b = 0; b < batch; ++b) {
    for (int i = 0; i < extent_i; ++i) {
      for (int j = 0; j < extent_j; ++j) {
        const auto to = static_cast<std::size_t>(b * plane + i * extent_j + j);
        const auto from = static_cast<std::size_t>(b * plane + j * extent_i + i);
        ASSERT_EQ(got[to], add(x[from], z[to])) << extent_i << " x " << extent_j << " at " << i << ", " << j;
      }
    }
  }
}

template <class T, int Lanes>
void check_element() {
  check_transpose<T, 64, 64, 1, 1>(2, 71, 65);
  check_transpose<T, 32, 32, 1, 1>(1, 33, 31);
  check_transpose<T, 64, 16, 1, 1>(3, 130, 17);
  check_transpose<T, 16, 64, 1, 1>(1, 5, 200);
  check_transpose<T, 64, 64, Lanes, Lanes>(2, 64 + Lanes, 128 - Lanes);
  check_transpose<T, 32, 64, Lanes, 1>(1, 36, 67);
  check_transpose<T, 64, 32, 1, Lanes>(2, 67, 36);
  check_transpose<T, 16, 16, Lanes, Lanes>(1, 16, 16);
}

TEST(Tile, MovesElementsOfOneByte) { check_element<std::int8_t, 4>(); }
TEST(Tile, MovesElementsOfTwoBytes) { check_element<std::int16_t, 4>(); }
TEST(Tile, MovesElementsOfFourBytes) {
  check_element<float, 4>();
  check_element<float, 2>();
}
TEST(Tile, MovesElementsOfEightBytes) {
  check_element<std::int64_t, 2>();
  check_element<double, 2>();
}
TEST(Tile, CountsIn64Bits) { check_transpose<float, 32, 32, 4, 2, std::int64_t>(2, 100, 46); }

}  // namespace
}  // namespace GCRT_NAMESPACE

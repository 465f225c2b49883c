// Inner loops of the kernels, each a kernel of its own, for sass.py: compiled, disassembled, never run. A
// loop runs as often as an argument says, so that it is one loop in machine code as well.
#include "gcrt/cuda/attention/attention.h"
#include "gcrt/cuda/image/conv.h"

namespace GCRT_NAMESPACE {

// One slab of 16 values of k for the 32 x 32 sums of a warp.
template <Precision P, class TA, class TB>
GCRT_GLOBAL_BLOCKS(128, 1)
void slab_kernel(float* y, int slabs) {
  GCRT_DYNAMIC_SHARED(unsigned char, shared);
  const TA* a = reinterpret_cast<const TA*>(shared);
  const TB* b = reinterpret_cast<const TB*>(shared + 65536);
  const LanePosition at = lane_position();
  typename FloatProduct<P>::template Sums<2, 4> sums;
  GCRT_NO_UNROLL
  for (int slab = 0; slab < slabs; ++slab) {
    FloatProduct<P>::multiply(sums, RowSlab<TA, 16>{a + slab * 64 * 16}, RowSlab<TB, 16>{b + slab * 64 * 16},
                              at);
  }
  GCRT_UNROLL
  for (int i = 0; i < 32; ++i)
    y[i * 128 + static_cast<int>(threadIdx.x)] = sums.value(i / 16, i / 4 % 4, i % 4);
}
template __global__ void slab_kernel<Precision::kFp16, float, Half>(float*, int);
template __global__ void slab_kernel<Precision::kBf16, float, BFloat16>(float*, int);
template __global__ void slab_kernel<Precision::kFp16, Half, Half>(float*, int);
template __global__ void slab_kernel<Precision::kBf16, BFloat16, BFloat16>(float*, int);
template __global__ void slab_kernel<Precision::kTf32, float, Tf32>(float*, int);
template __global__ void slab_kernel<Precision::kFp32, float, float>(float*, int);

// The copies of one operand, a whole step of 128 bytes in each turn.
template <class Source>
GCRT_GLOBAL_BLOCKS(128, 1)
void copy_kernel(Source source, int steps) {
  using T = typename Source::Element;
  constexpr int kSlabs = 128 / (16 * static_cast<int>(sizeof(T)));
  GCRT_DYNAMIC_SHARED(T, shared);
  typename Source::template Cursor<128, 128, 16> cursor(source, static_cast<int>(blockIdx.z),
                                                        static_cast<int>(blockIdx.x) * 128, 0);
  GCRT_NO_UNROLL
  for (int step = 0; step < steps; ++step) {
    cursor.template load_whole<kSlabs>(shared + step % 2 * 128 * 16 * kSlabs);
    cp_async_commit();
  }
  cp_async_wait<0>();
}
template __global__ void copy_kernel<DenseSource<float, 16>>(DenseSource<float, 16>, int);
template __global__ void copy_kernel<DenseSource<Half, 16>>(DenseSource<Half, 16>, int);
template __global__ void copy_kernel<DenseSource<Half>>(DenseSource<Half>, int);
template __global__ void copy_kernel<ConvSource<float, 16>>(ConvSource<float, 16>, int);
template __global__ void copy_kernel<ConvSource<Half, 16>>(ConvSource<Half, 16>, int);

struct PlainEpilogue {
  static constexpr int kMaxLanes = 4;
  float* y;
  std::ptrdiff_t stride;
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    store(lane, y + m * stride + n, sums);
  }
  GCRT_INLINE PlainEpilogue at_batch(std::ptrdiff_t) const { return *this; }
};

void vectors(Queue& queue, const float* a, const Half* h, const BFloat16* b, const float* f, float* y) {
  const PlainEpilogue epilogue{y, 64};
  const auto from = copied_in<16>(a);
  gemm<Precision::kFp16, Tile::kGemv1>(queue, 1, 64, 64, from, 64, copied_in<16>(h), 64, epilogue);
  gemm<Precision::kBf16, Tile::kGemv1>(queue, 1, 64, 64, from, 64, copied_in<16>(b), 64, epilogue);
  gemm<Precision::kFp32, Tile::kGemv1>(queue, 1, 64, 64, from, 64, copied_in<16>(f), 64, epilogue);
}

// As the compiler prints one with a residual.
struct ResidualEpilogue {
  static constexpr int kMaxLanes = 4;
  const float* residual;
  float* y;
  std::ptrdiff_t stride;
  template <class L, class V>
  GCRT_INLINE auto value(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    return sums + load(lane, residual + m * stride + n);
  }
  template <class L, class V>
  GCRT_INLINE void put(L lane, V result, std::ptrdiff_t m, std::ptrdiff_t n) const {
    store(lane, y + m * stride + n, result);
  }
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    put(lane, value(lane, sums, m, n), m, n);
  }
  GCRT_INLINE ResidualEpilogue at_batch(std::ptrdiff_t) const { return *this; }
};

// Whole kernels, as emitted projects instantiate them.
template <Precision P, Tile kTile, class TA, class TW>
void tiles(Queue& queue, const ConvShape& s, const TA* a, const TW* w, float* y) {
  const ResidualEpilogue epilogue{y, y, 64};
  gemm<P, kTile>(queue, 64, 64, 64, copied_in<16>(a), 64, copied_in<16>(w), 64, epilogue);
  conv2d<P, kTile>(queue, s, copied_in<16>(a), w, epilogue);
}
template void tiles<Precision::kFp16, Tile::k64x64>(Queue&, const ConvShape&, const Half*, const Half*,
                                                    float*);
template void tiles<Precision::kFp16, Tile::k64x64>(Queue&, const ConvShape&, const float*, const Half*,
                                                    float*);
template void tiles<Precision::kFp16, Tile::k128x128>(Queue&, const ConvShape&, const Half*, const Half*,
                                                      float*);
template void tiles<Precision::kFp32, Tile::k64x64>(Queue&, const ConvShape&, const float*, const float*,
                                                    float*);

}  // namespace GCRT_NAMESPACE

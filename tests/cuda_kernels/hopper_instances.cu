// Products by warpgroups, and by blocks that add their sums in clusters, as emitted projects instantiate
// them: compiled for sm_90a and disassembled by
// sass.py, never run.
#include "gcrt/cuda/image/hopper_conv.h"

namespace GCRT_NAMESPACE {

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

template <Precision P, WgmmaTile kTile, int kParts, class TA>
void multiply(Queue& queue, const TA* a, const typename WgmmaOf<P>::Weight* b, float* y) {
  gemm_wgmma<P, kTile, kParts>(queue, 64, 64, 64, a, 64, b, 64, GemmBatch{}, ResidualEpilogue{y, y, 64});
}

template void multiply<Precision::kFp16, WgmmaTile::k128x256, 1>(Queue&, const float*, const Half*, float*);
template void multiply<Precision::kFp16, WgmmaTile::k128x256, 2>(Queue&, const Half*, const Half*, float*);
template void multiply<Precision::kFp16, WgmmaTile::k64x64, 4>(Queue&, const Half*, const Half*, float*);
template void multiply<Precision::kFp16, WgmmaTile::k64x64, 8>(Queue&, const float*, const Half*, float*);
template void multiply<Precision::kBf16, WgmmaTile::k128x128, 1>(Queue&, const BFloat16*, const BFloat16*,
                                                                 float*);
template void multiply<Precision::kBf16, WgmmaTile::k64x64, 1>(Queue&, const float*, const BFloat16*, float*);
template void multiply<Precision::kTf32, WgmmaTile::k64x128, 2>(Queue&, const float*, const Tf32*, float*);

template <Precision P, WgmmaTile kTile, int kParts, class TX>
void convolve(Queue& queue, const ConvShape& s, const TX* x, const typename WgmmaOf<P>::Weight* w, float* y) {
  conv2d_wgmma<P, kTile, kParts>(queue, s, x, w, ResidualEpilogue{y, y, 64});
}

template void convolve<Precision::kFp16, WgmmaTile::k64x128, 2>(Queue&, const ConvShape&, const Half*,
                                                                const Half*, float*);
template void convolve<Precision::kBf16, WgmmaTile::k64x64, 8>(Queue&, const ConvShape&, const BFloat16*,
                                                               const BFloat16*, float*);

template <Precision P, Tile kTile, int kParts, class TA, class TW>
void multiply_in_cluster(Queue& queue, const TA* a, const TW* b, float* y) {
  gemm<P, kTile>(queue, 64, 64, 64, a, 64, b, 64, GemmBatch{}, SplitInCluster<kParts>{},
                 ResidualEpilogue{y, y, 64});
}

template void multiply_in_cluster<Precision::kFp16, Tile::k64x64, 4>(Queue&, const Half*, const Half*,
                                                                     float*);
template void multiply_in_cluster<Precision::kBf16, Tile::k128x128, 2>(Queue&, const float*, const BFloat16*,
                                                                       float*);
template void multiply_in_cluster<Precision::kFp32, Tile::k128x32, 8>(Queue&, const float*, const float*,
                                                                      float*);

}  // namespace GCRT_NAMESPACE

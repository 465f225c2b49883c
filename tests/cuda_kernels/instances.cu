// The kernels as emitted projects instantiate them, for nvcc: compiled for every architecture, never run.
#include "gcrt/cuda/attention/attention.h"
#include "gcrt/cuda/image/conv_integer.h"
#include "gcrt/cuda/image/conv_transpose.h"
#include "gcrt/cuda/image/depthwise_integer.h"
#include "gcrt/cuda/image/pool.h"
#include "gcrt/scalar/cast.h"
#include "gcrt/scalar/scalar.h"

namespace GCRT_NAMESPACE {
namespace {

// Bias, residual and an activation: what an epilogue of a network holds.
template <class T>
struct TypicalEpilogue {
  static constexpr int kMaxLanes = 4;
  const float* bias;
  const float* residual;
  T* y;
  std::ptrdiff_t stride;
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    const auto x = sums + load(lane, bias + n) + load(lane, residual + m * stride + n);
    store_from_float(lane, y + m * stride + n, x / (splat(lane, 1.0f) + exp(-x)));
  }
  GCRT_INLINE TypicalEpilogue at_batch(std::ptrdiff_t z) const {
    return {bias, residual + z * stride, y + z * stride, stride};
  }
};

// Requantisation to bytes.
struct TypicalIntegerEpilogue {
  static constexpr int kMaxLanes = 4;
  const float* scale;
  std::int8_t* y;
  std::ptrdiff_t stride;
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    const auto x = cast<float>(lane, sums) * load(lane, scale + n);
    store(lane, y + m * stride + n,
          cast<std::int8_t>(lane, min(max(x, splat(lane, -128.0f)), splat(lane, 127.0f))));
  }
};

}  // namespace

template <Precision P, Tile kTile, class TW, class TA = float>
void products(Queue& queue, const TA* a, const TW* w, float* y, float* workspace) {
  const TypicalEpilogue<float> epilogue{y, y, y, 64};
  gemm<P, kTile>(queue, 64, 64, 64, a, 64, w, 64, GemmBatch{}, SplitDepth<2>{workspace}, epilogue);
  if constexpr (!is_gemv(kTile)) {
    ConvShape s{};
    conv2d<P, kTile>(queue, s, a, w, epilogue);
  }
}

template void products<Precision::kFp32, Tile::k16x64>(Queue&, const float*, const float*, float*, float*);
template void products<Precision::kFp32, Tile::k64x64>(Queue&, const float*, const float*, float*, float*);
template void products<Precision::kFp32, Tile::k128x32>(Queue&, const float*, const float*, float*, float*);
template void products<Precision::kTf32, Tile::k128x64>(Queue&, const float*, const Tf32*, float*, float*);
template void products<Precision::kFp32, Tile::kGemv1>(Queue&, const float*, const float*, float*, float*);
template void products<Precision::kFp32, Tile::kGemv8>(Queue&, const float*, const float*, float*, float*);
template void products<Precision::kTf32, Tile::k128x128>(Queue&, const float*, const Tf32*, float*, float*);
template void products<Precision::kFp16, Tile::k128x128>(Queue&, const float*, const Half*, float*, float*);
template void products<Precision::kFp16, Tile::k128x128, Half, Half>(Queue&, const Half*, const Half*, float*,
                                                                     float*);
template void products<Precision::kBf16, Tile::k16x64, BFloat16, BFloat16>(Queue&, const BFloat16*,
                                                                           const BFloat16*, float*, float*);
template void products<Precision::kFp16, Tile::kGemv8>(Queue&, const float*, const Half*, float*, float*);
template void products<Precision::kBf16, Tile::k64x64>(Queue&, const float*, const BFloat16*, float*, float*);

void strided(Queue& queue, const float* a, float* y) {
  const TypicalEpilogue<float> epilogue{y, y, y, 64};
  gemm_strided<Precision::kFp32, Tile::k64x64>(queue, 64, 64, 64, a, 64, a, 64, 1, GemmBatch{},
                                               SplitDepth<>{}, epilogue);
  gemm_strided<Precision::kFp16, Tile::k128x64>(queue, 64, 64, 64, a, 64, a, 64, 1, GemmBatch{},
                                                SplitDepth<>{}, epilogue);
}

void windows(Queue& queue, const ConvShape& s, const float* x, float* y, const Half* w) {
  const TypicalEpilogue<float> epilogue{y, y, y, 64};
  depthwise2d<DepthwiseWindow::kAny>(queue, s, x, x, epilogue);
  depthwise2d<DepthwiseWindow::k3>(queue, s, x, x, epilogue);
  depthwise2d<DepthwiseWindow::k3Stride2>(queue, s, x, x, epilogue);
  depthwise2d<DepthwiseWindow::k5>(queue, s, x, x, epilogue);
  max_pool2d(queue, s, x, epilogue);
  average_pool2d(queue, s, x, true, 1, 1, epilogue);
  conv_transpose2d<Precision::kFp16, Tile::k64x64>(queue, s, x, w, epilogue);
}

template <Tile kTile, class TX, class TW>
void integers(Queue& queue, const ConvShape& s, const TX* x, const TW* w, const std::int32_t* offsets,
              const float* scale, std::int8_t* y) {
  const TypicalIntegerEpilogue epilogue{scale, y, 64};
  gemm_integer<kTile>(queue, 64, 64, 64, x, 64, w, 64, offsets, epilogue);
  conv2d_integer<kTile>(queue, s, x, w, offsets, TX{3}, SplitDepth<>{}, epilogue);
  if constexpr (sizeof(TW) == 2) {
    depthwise2d_integer<DepthwiseWindow::k3>(queue, s, x, w, offsets, TX{3}, epilogue);
  }
}
template void integers<Tile::k128x128>(Queue&, const ConvShape&, const std::uint8_t*, const std::int8_t*,
                                       const std::int32_t*, const float*, std::int8_t*);
template void integers<Tile::k64x64>(Queue&, const ConvShape&, const std::int8_t*, const std::int8_t*,
                                     const std::int32_t*, const float*, std::int8_t*);
template void integers<Tile::k64x64>(Queue&, const ConvShape&, const std::uint8_t*, const std::int16_t*,
                                     const std::int32_t*, const float*, std::int8_t*);

template <Precision P, AttentionTile kTile, int kSize, AttentionMaskKind kMask, class T = float>
void attend(Queue& queue, const AttentionShape& s, const T* x, float* y, const AttentionMask& mask) {
  const TypicalEpilogue<float> epilogue{y, y, y, 64};
  attention<P, kTile, kSize, kSize, kMask>(queue, s, x, x, x, mask, SplitDepth<2>{y}, epilogue);
}
template <AttentionTile kTile, int kSize>
void attend_cached(Queue& queue, const AttentionShape& s, const float* x, float* y,
                   const AttentionCache<float>& cache) {
  const TypicalEpilogue<float> epilogue{y, y, y, 64};
  attention<Precision::kFp16, kTile, kSize, kSize, AttentionMaskKind::kNone>(
      queue, s, x, x, x, AttentionMask{}, SplitDepth<2>{y}, epilogue, cache);
}
template void attend_cached<AttentionTile::k16, 64>(Queue&, const AttentionShape&, const float*, float*,
                                                    const AttentionCache<float>&);
template void attend_cached<AttentionTile::k16ByKeys, 64>(Queue&, const AttentionShape&, const float*, float*,
                                                          const AttentionCache<float>&);
template void attend_cached<AttentionTile::k64, 128>(Queue&, const AttentionShape&, const float*, float*,
                                                     const AttentionCache<float>&);
template void attend_cached<AttentionTile::k1ByLanes, 64>(Queue&, const AttentionShape&, const float*, float*,
                                                          const AttentionCache<float>&);
template void attend_cached<AttentionTile::k8ByLanes, 128>(Queue&, const AttentionShape&, const float*,
                                                           float*, const AttentionCache<float>&);
template void attend<Precision::kFp16, AttentionTile::k1ByLanes, 64, AttentionMaskKind::kAdditive, Half>(
    Queue&, const AttentionShape&, const Half*, float*, const AttentionMask&);
template void attend<Precision::kFp16, AttentionTile::k4ByLanes, 128, AttentionMaskKind::kAdditive, Half>(
    Queue&, const AttentionShape&, const Half*, float*, const AttentionMask&);
template void attend<Precision::kFp32, AttentionTile::k1ByLanes, 256, AttentionMaskKind::kAdditive>(
    Queue&, const AttentionShape&, const float*, float*, const AttentionMask&);
template void attend<Precision::kFp16, AttentionTile::k2ByLanes, 256, AttentionMaskKind::kBoolean, Half>(
    Queue&, const AttentionShape&, const Half*, float*, const AttentionMask&);
template void attend<Precision::kFp32, AttentionTile::k4ByLanes, 256, AttentionMaskKind::kNone>(
    Queue&, const AttentionShape&, const float*, float*, const AttentionMask&);
template void attend<Precision::kFp32, AttentionTile::k64, 64, AttentionMaskKind::kNone>(
    Queue&, const AttentionShape&, const float*, float*, const AttentionMask&);
template void attend<Precision::kFp32, AttentionTile::k64, 128, AttentionMaskKind::kAdditive>(
    Queue&, const AttentionShape&, const float*, float*, const AttentionMask&);
template void attend<Precision::kFp32, AttentionTile::k16ByKeys, 128, AttentionMaskKind::kAdditive>(
    Queue&, const AttentionShape&, const float*, float*, const AttentionMask&);
template void attend<Precision::kFp32, AttentionTile::k16ByColumns, 256, AttentionMaskKind::kAdditive>(
    Queue&, const AttentionShape&, const float*, float*, const AttentionMask&);
template void attend<Precision::kFp16, AttentionTile::k64, 128, AttentionMaskKind::kBoolean>(
    Queue&, const AttentionShape&, const float*, float*, const AttentionMask&);
template void attend<Precision::kFp16, AttentionTile::k64, 64, AttentionMaskKind::kAdditive, Half>(
    Queue&, const AttentionShape&, const Half*, float*, const AttentionMask&);
template void attend<Precision::kFp16, AttentionTile::k16ByKeys, 64, AttentionMaskKind::kNone, Half>(
    Queue&, const AttentionShape&, const Half*, float*, const AttentionMask&);
template void attend<Precision::kBf16, AttentionTile::k64, 256, AttentionMaskKind::kAdditive, BFloat16>(
    Queue&, const AttentionShape&, const BFloat16*, float*, const AttentionMask&);
template void attend<Precision::kFp16, AttentionTile::k16ByColumns, 512, AttentionMaskKind::kAdditive, Half>(
    Queue&, const AttentionShape&, const Half*, float*, const AttentionMask&);
template void attend<Precision::kTf32, AttentionTile::k16ByKeys, 64, AttentionMaskKind::kAdditive>(
    Queue&, const AttentionShape&, const float*, float*, const AttentionMask&);

}  // namespace GCRT_NAMESPACE

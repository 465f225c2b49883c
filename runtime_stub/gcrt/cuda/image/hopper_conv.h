// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Convolutions by warpgroups on sm_90a: the pipeline of cuda/product/hopper_gemm.h, whose rows are patches of
// output pixels. For each tap of the kernel a patch sees a box of the image, so one map of the image copies
// them all: there is no im2col, and what lies outside the image arrives as zeros.
#pragma once

#include "gcrt/cuda/image/conv_plan.h"
#include "gcrt/cuda/product/hopper_gemm.h"

namespace GCRT_NAMESPACE {

// Maps the pixels of a patch to those of the output; those beyond its edges are left out.
template <class E>
struct PatchEpilogue {
  static constexpr int kMaxLanes = E::kMaxLanes;
  E epilogue;
  PixelPatch patch;
  int out_w, out_h, batch;
  int x, y, image;  // of the first pixel

  // -1: outside.
  GCRT_DEVICE std::ptrdiff_t pixel(int m) const {
    const int line = m / patch.width;
    const int of_patch = line / patch.height;
    const int column = x + m - line * patch.width;
    const int row = y + line - of_patch * patch.height;
    if (column >= out_w || row >= out_h || of_patch >= patch.images || image + of_patch >= batch) return -1;
    return (std::ptrdiff_t{image + of_patch} * out_h + row) * out_w + column;
  }
  template <class L, class V, class F = E>
  GCRT_DEVICE auto value(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const
      -> decltype(std::declval<const F&>().value(lane, sums, m, n)) {
    const std::ptrdiff_t p = pixel(static_cast<int>(m));
    return epilogue.value(lane, sums, p < 0 ? 0 : p, n);
  }
  template <class L, class V>
  GCRT_DEVICE void put(L lane, V result, std::ptrdiff_t m, std::ptrdiff_t n) const {
    const std::ptrdiff_t p = pixel(static_cast<int>(m));
    if (p >= 0) epilogue.put(lane, result, p, n);
  }
  template <class L, class V>
  GCRT_DEVICE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    const std::ptrdiff_t p = pixel(static_cast<int>(m));
    if (p >= 0) epilogue(lane, sums, p, n);
  }
};

// Like WgmmaGrid, for images.
struct WgmmaPixels {
  PixelPatch patch;
  int columns;
  int steps;  // of all taps
  int channels;
  int out_w, out_h, batch;
  int kernel_w;
  int dilation_w, dilation_h;
  int pad_left, pad_top;

  // The boxes of one tap after the other, with all channels.
  struct Boxes {
    const WgmmaPixels& grid;
    BoxPosition at;
    int tap = 0;  // of the kernel's row
    GCRT_DEVICE void advance(int elements) {
      at.depth += elements;
      if (at.depth < grid.channels) return;
      at.depth = 0;
      at.row += grid.dilation_w;
      if (++tap < grid.kernel_w) return;
      tap = 0;
      at.row -= grid.kernel_w * grid.dilation_w;
      at.inner += grid.dilation_h;
    }
  };
  // The first pixel of the block's patch.
  template <class Config>
  GCRT_DEVICE BoxPosition first_pixel() const {
    const int across = (out_w + patch.width - 1) / patch.width;
    const int down = (out_h + patch.height - 1) / patch.height;
    const int tile = static_cast<int>(blockIdx.x) / Config::kParts;
    const int line = tile / across;
    const int image = line / down;
    return {0, (tile - line * across) * patch.width, (line - image * down) * patch.height,
            image * patch.images};
  }
  template <class Config>
  GCRT_DEVICE Boxes boxes(int step) const {
    const BoxPosition pixel = first_pixel<Config>();
    const int element = step * Config::kDepth;  // of all taps
    const int tap = element / channels;
    const int line = tap / kernel_w;
    const int of_line = tap - line * kernel_w;
    return {*this,
            {element - tap * channels, pixel.row - pad_left + of_line * dilation_w,
             pixel.inner - pad_top + line * dilation_h, pixel.outer},
            of_line};
  }
  template <class Config>
  GCRT_DEVICE BoxPosition first_of_b(int step, int column) const {
    return {step * Config::kDepth, column, 0, 0};
  }
  template <class Config>
  GCRT_DEVICE int box_bytes() const {
    return tile_rows<Config>() * kSwizzleBytes;
  }
  // Pixels of the patch.
  template <class Config>
  GCRT_DEVICE int tile_rows() const {
    return patch.width * patch.height * patch.images;
  }
  template <class Config, class E>
  GCRT_DEVICE void finish(const E& epilogue, const float* sums, int first, int column) const {
    const BoxPosition at = first_pixel<Config>();
    const PatchEpilogue<E> mapped{epilogue, patch, out_w, out_h, batch, at.row, at.inner, at.outer};
    finish_tile<Config, Config::kShare>(mapped, sums, Config::kRows - first, columns - column, first, column);
  }
};

// Like conv2d() in cuda/image/conv.h, for one group and strides of 1. Data and strides are multiples of 16
// bytes, channels whole steps of wgmma_depth(P).
template <Precision P, WgmmaTile kTile, int kParts, class TX, class E>
inline void conv2d_wgmma(Queue& queue, const ConvShape& s, const TX* x, const typename WgmmaOf<P>::Weight* w,
                         const E& epilogue) {
  using Weight = typename WgmmaOf<P>::Weight;
  using Config = WgmmaConfig<P, kTile, kParts, TX>;
  const int depth = s.kernel_h * s.kernel_w * s.in_c;
  if (output_pixels(s) <= 0 || s.out_c <= 0 || depth <= 0) return;
  const PixelPatch patch = patch_of(Config::kRows, s);
  const TensorBox box_x{x,
                        {s.in_c, s.in_w, s.in_h, s.batch},
                        {s.in_pixel_stride, s.in_row_stride, s.in_image_stride},
                        {patch.width, patch.height, patch.images}};
  const TensorBox box_w{w, {depth, s.out_c, 1, 1}, {conv_weight_stride(s), 0, 0}, {Config::kColumns, 1, 1}};
  const WgmmaPixels grid{patch,   s.out_c,    depth / Config::kDepth, s.in_c,       s.out_w,    s.out_h,
                         s.batch, s.kernel_w, s.dilation_w,           s.dilation_h, s.pad_left, s.pad_top};
  launch_wgmma<Config, P>(queue, tensor_map<TX>(queue, box_x), tensor_map<Weight>(queue, box_w), grid,
                          patch_count(patch, s), 1, epilogue);
}

// The same where is_pointwise(s), of any channels.
template <Precision P, WgmmaTile kTile, int kParts, class TX, class E>
inline void conv2d_wgmma_pointwise(Queue& queue, const ConvShape& s, const TX* x,
                                   const typename WgmmaOf<P>::Weight* w, const E& epilogue) {
  gemm_wgmma<P, kTile, kParts>(queue, static_cast<int>(output_pixels(s)), s.out_c, s.in_c, x,
                               s.in_pixel_stride, w, conv_weight_stride(s), GemmBatch{}, epilogue);
}

}  // namespace GCRT_NAMESPACE

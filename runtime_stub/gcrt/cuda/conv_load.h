// How the input of a convolution comes into shared memory: rows are output pixels, k runs over kernel taps
// and then channels. No im2col buffer exists: a cursor knows the input pixel of each of its rows, and the tap
// and channel of its next k.
#pragma once

#include "gcrt/cpu/conv_shape.h"
#include "gcrt/cuda/tile_load.h"

namespace GCRT_NAMESPACE {

// The pixels of a group of channels. Dilations may be negative (transposed convolution).
template <class T>
struct ConvSource {
  using Element = T;
  static constexpr bool kIsDepthMajor = false;

  const T* data;
  ConvShape shape;
  int channels;  // of one group
  int bytes;     // of one copy
  T fill;        // what taps outside the image read

  // Kernel position and channel of one k.
  struct Place {
    int kh, kw, channel;

    GCRT_INLINE void advance(const ConvSource& s, int count) {
      channel += count;
      if (channel < s.channels) return;
      const int taps = channel / s.channels;
      channel -= taps * s.channels;
      kw += taps;
      if (kw < s.shape.kernel_w) return;
      const int lines = kw / s.shape.kernel_w;
      kw -= lines * s.shape.kernel_w;
      kh += lines;
    }
  };

  template <int kRows, int kThreads, int kDepth>
  struct Cursor {
    using Share = ChunkShare<T, kRows, kThreads, kDepth>;
    static constexpr int kOutside = -(1 << 29);  // a coordinate that no tap brings back into the image
    Share share;
    const ConvSource& source;
    const T* image;                        // of the group
    std::ptrdiff_t pixel[Share::kCopies];  // offset of tap (0, 0), which may lie outside
    int ih[Share::kCopies];
    int iw[Share::kCopies];
    Place place;

    GCRT_DEVICE Cursor(const ConvSource& s, int z, int first_row, int first_k)
        : source(s), image(s.data + std::ptrdiff_t{z} * s.channels), place{0, 0, 0} {
      const ConvShape& shape = s.shape;
      place.advance(s, first_k + share.offset);
      GCRT_UNROLL
      for (int i = 0; i < Share::kCopies; ++i) {
        const int m = first_row + share.row_of(i);
        const int line = m / shape.out_w;
        const int b = line / shape.out_h;
        ih[i] = (line - b * shape.out_h) * shape.stride_h - shape.pad_top;
        iw[i] = (m - line * shape.out_w) * shape.stride_w - shape.pad_left;
        pixel[i] = b * shape.in_image_stride + ih[i] * shape.in_row_stride + iw[i] * shape.in_pixel_stride;
        if (b >= shape.batch) ih[i] = kOutside;
      }
    }

    GCRT_DEVICE void load(T* shared) {
      if (source.bytes == 16) {
        load_pieces<16>(shared);
      } else if (sizeof(T) == 4 || source.bytes == 4) {
        load_pieces<4>(shared);
      } else {
        load_pieces<static_cast<int>(sizeof(T))>(shared);
      }
      place.advance(source, kDepth);
    }

   private:
    // Copies the chunk of every row in pieces of kBytes; a piece never reaches into another tap.
    template <int kBytes>
    GCRT_DEVICE void load_pieces(T* shared) {
      constexpr int kPiece = kBytes / static_cast<int>(sizeof(T));
      const ConvShape& shape = source.shape;
      Place at = place;
      GCRT_UNROLL
      for (int piece = 0; piece < 16 / kBytes; ++piece) {
        const bool is_tap = at.kh < shape.kernel_h;
        const int y = at.kh * shape.dilation_h;
        const int x = at.kw * shape.dilation_w;
        const std::ptrdiff_t shift = y * shape.in_row_stride + x * shape.in_pixel_stride + at.channel;
        GCRT_UNROLL
        for (int i = 0; i < Share::kCopies; ++i) {
          if (!share.has(i)) continue;
          const bool is_inside = is_tap &&
                                 static_cast<unsigned>(ih[i] + y) < static_cast<unsigned>(shape.in_h) &&
                                 static_cast<unsigned>(iw[i] + x) < static_cast<unsigned>(shape.in_w);
          T* const to = shared + share.row_of(i) * kDepth + share.offset + piece * kPiece;
          copy_piece<kBytes>(to, image + (is_inside ? pixel[i] + shift : 0), is_inside);
        }
        at.advance(source, kPiece);
      }
    }

    template <int kBytes>
    GCRT_DEVICE void copy_piece(T* to, const T* from, bool is_inside) {
      constexpr int kPiece = kBytes / static_cast<int>(sizeof(T));
      if constexpr (kBytes < 4) {
        *to = is_inside ? *from : source.fill;
      } else if constexpr (sizeof(T) == 4) {
        cp_async<kBytes>(to, from, is_inside ? kBytes : 0);
      } else if (is_inside) {
        cp_async<kBytes>(to, from, kBytes);
      } else {
        GCRT_UNROLL
        for (int i = 0; i < kPiece; ++i) to[i] = source.fill;
      }
    }
  };
};

template <class T>
inline ConvSource<T> conv_source(const ConvShape& s, const T* x, T fill) {
  const int channels = s.in_c / s.groups;
  return {x, s, channels, copy_bytes(x, channels, s.in_pixel_stride, s.in_row_stride, s.in_image_stride),
          fill};
}

}  // namespace GCRT_NAMESPACE

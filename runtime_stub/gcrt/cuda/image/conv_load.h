// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// How the input of a convolution comes into shared memory: rows are output pixels, k runs over kernel taps
// and then channels. No im2col buffer exists: a cursor knows the input pixel of each of its rows, and the tap
// and channel of its next k.
#pragma once

#include "gcrt/conv_shape.h"
#include "gcrt/cuda/product/tile_load.h"

namespace GCRT_NAMESPACE {

// The pixels of a group of channels. Dilations may be negative (transposed convolution). kCopyBytes: of one
// copy; 0: known at run time.
template <class T, int kCopyBytes = 0>
struct ConvSource {
  using Element = T;
  static constexpr bool kIsDepthMajor = false;
  static constexpr bool kFillsWithZeros = !std::is_integral<T>::value;  // as copies do by themselves

  const T* data;
  ConvShape shape;
  int channels;  // of one group
  CopyWidth<kCopyBytes> width;
  T fill;  // what taps outside the image read

  // Kernel position and channel of one k.
  struct Place {
    int kh, kw, channel;

    // To a place far on.
    GCRT_INLINE void jump(const ConvSource& s, int count) {
      const int taps = count / s.channels;
      channel = count - taps * s.channels;
      kh = taps / s.shape.kernel_w;
      kw = taps - kh * s.shape.kernel_w;
    }
    // Few channels on: a division takes longer than some steps. Whether another tap was reached.
    GCRT_INLINE bool advance(const ConvSource& s, int count) {
      channel += count;
      if (channel < s.channels) return false;
      do {
        channel -= s.channels;
        kw = kw + 1 == s.shape.kernel_w ? 0 : kw + 1;
        kh += kw == 0 ? 1 : 0;
      } while (channel >= s.channels);
      return true;
    }
  };

  template <int kRows, int kThreads, int kDepth>
  struct Cursor {
    using Share = ChunkShare<T, kRows, kThreads, kDepth>;
    static constexpr int kOutside = -(1 << 29);  // a coordinate that no tap brings back into the image
    Share share;
    const ConvSource& source;
    const T* image;                       // of the group
    std::uint32_t pixel[Share::kCopies];  // offset of tap (0, 0), which may lie outside
    int ih[Share::kCopies];
    int iw[Share::kCopies];
    Place place;
    // Copies of 16 bytes take the next chunk of each row, of which all bytes exist or none.
    const T* from[Share::kCopies] = {};
    int valid[Share::kCopies] = {};

    GCRT_DEVICE Cursor(const ConvSource& s, int z, int first_row, int first_k)
        : source(s), image(s.data + std::ptrdiff_t{z} * s.channels), place{0, 0, 0} {
      const ConvShape& conv = s.shape;
      place.jump(s, first_k + share.offset);
      GCRT_UNROLL
      for (int i = 0; i < Share::kCopies; ++i) {
        const int m = first_row + share.row_of(i);
        const int line = m / conv.out_w;
        const int b = line / conv.out_h;
        ih[i] = (line - b * conv.out_h) * conv.stride_h - conv.pad_top;
        iw[i] = (m - line * conv.out_w) * conv.stride_w - conv.pad_left;
        const bool has_row = b < conv.batch;
        pixel[i] = has_row
                       ? static_cast<std::uint32_t>(b) * static_cast<std::uint32_t>(conv.in_image_stride) +
                             offset_of(ih[i], iw[i])
                       : 0;
        if (!has_row) ih[i] = kOutside;
      }
      if (s.width.bytes() == 16) reach_tap();
    }

    template <int kSlabs>
    GCRT_DEVICE void load_whole(T* shared) {
      if (source.width.bytes() == 16 && source.channels % (kSlabs * kDepth) == 0) {
        load_chunks<kSlabs>(shared);
        return;
      }
      GCRT_NO_UNROLL
      for (int slab = 0; slab < kSlabs; ++slab) load(shared + slab * kRows * kDepth);
    }
    GCRT_DEVICE void load(T* shared) {
      const int bytes = source.width.bytes();
      if (bytes == 16) {
        load_chunks<1>(shared);
        return;
      }
      if (sizeof(T) == 2 && bytes == 8) {
        load_pieces<8>(shared);
      } else if (sizeof(T) == 4 || bytes >= 4) {
        load_pieces<4>(shared);
      } else {
        load_pieces<static_cast<int>(sizeof(T))>(shared);
      }
      place.advance(source, kDepth);
    }

   private:
    // In elements, modulo 2^32: within the image, which has less than 2^31, it is the offset.
    GCRT_INLINE std::uint32_t offset_of(int y, int x) const {
      return static_cast<std::uint32_t>(y) * static_cast<std::uint32_t>(source.shape.in_row_stride) +
             static_cast<std::uint32_t>(x) * static_cast<std::uint32_t>(source.shape.in_pixel_stride);
    }
    GCRT_INLINE const T* at_offset(bool is_inside, std::uint32_t offset) const {
      return image + (is_inside ? static_cast<int>(offset) : 0);
    }
    // Whole chunks of slabs that lie in one tap: their copies differ by their channels alone, and only the
    // next tap needs bounds.
    template <int kSlabs>
    GCRT_DEVICE void load_chunks(T* shared) {
      T* const to = shared + share.place();
      GCRT_UNROLL
      for (int slab = 0; slab < kSlabs; ++slab) {
        GCRT_UNROLL
        for (int i = 0; i < Share::kCopies; ++i) {
          T* const chunk = to + (slab * kRows + i * Share::kRowStep) * kDepth;
          if (share.has(i)) copy_chunk_of(chunk, from[i] + slab * kDepth, valid[i]);
        }
      }
      GCRT_UNROLL
      for (int i = 0; i < Share::kCopies; ++i) from[i] += kSlabs * kDepth;
      if (place.advance(source, kSlabs * kDepth)) reach_tap();
    }
    GCRT_DEVICE void copy_chunk_of(T* to, const T* chunk, int valid_bytes) {
      if constexpr (kFillsWithZeros) {
        cp_async<16>(to, chunk, valid_bytes);
      } else {
        copy_piece<16>(to, chunk, valid_bytes != 0);
      }
    }
    GCRT_DEVICE void reach_tap() {
      const ConvShape& conv = source.shape;
      const int y = place.kh * conv.dilation_h;
      const int x = place.kw * conv.dilation_w;
      const std::uint32_t shift = offset_of(y, x) + static_cast<std::uint32_t>(place.channel);
      GCRT_UNROLL
      for (int i = 0; i < Share::kCopies; ++i) {
        const bool is_inside = place.kh < conv.kernel_h &&
                               static_cast<unsigned>(ih[i] + y) < static_cast<unsigned>(conv.in_h) &&
                               static_cast<unsigned>(iw[i] + x) < static_cast<unsigned>(conv.in_w);
        from[i] = at_offset(is_inside, pixel[i] + shift);
        valid[i] = is_inside ? 16 : 0;
      }
    }
    // Copies the chunk of every row in pieces of kBytes; a piece never reaches into another tap.
    template <int kBytes>
    GCRT_DEVICE void load_pieces(T* shared) {
      constexpr int kPiece = kBytes / static_cast<int>(sizeof(T));
      const ConvShape& conv = source.shape;
      Place at = place;
      GCRT_UNROLL
      for (int piece = 0; piece < 16 / kBytes; ++piece) {
        const bool is_tap = at.kh < conv.kernel_h;
        const int y = at.kh * conv.dilation_h;
        const int x = at.kw * conv.dilation_w;
        const std::uint32_t shift = offset_of(y, x) + static_cast<std::uint32_t>(at.channel);
        GCRT_UNROLL
        for (int i = 0; i < Share::kCopies; ++i) {
          if (!share.has(i)) continue;
          const bool is_inside = is_tap &&
                                 static_cast<unsigned>(ih[i] + y) < static_cast<unsigned>(conv.in_h) &&
                                 static_cast<unsigned>(iw[i] + x) < static_cast<unsigned>(conv.in_w);
          T* const to = shared + share.place() + i * Share::kRowStep * kDepth + piece * kPiece;
          copy_piece<kBytes>(to, at_offset(is_inside, pixel[i] + shift), is_inside);
        }
        at.advance(source, kPiece);
      }
    }

    template <int kBytes>
    GCRT_DEVICE void copy_piece(T* to, const T* source_piece, bool is_inside) {
      constexpr int kPiece = kBytes / static_cast<int>(sizeof(T));
      if constexpr (kBytes < 4) {
        *to = is_inside ? *source_piece : source.fill;
      } else if constexpr (kFillsWithZeros) {
        cp_async<kBytes>(to, source_piece, is_inside ? kBytes : 0);
      } else if (is_inside) {
        cp_async<kBytes>(to, source_piece, kBytes);
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
  const int bytes = copy_bytes(x, channels, s.in_pixel_stride, s.in_row_stride, s.in_image_stride);
  return {x, s, channels, CopyWidth<0>(bytes), fill};
}
template <int kBytes, class T>
inline ConvSource<T, kBytes> conv_source(const ConvShape& s, CopiedIn<kBytes, T> x, T fill) {
  return {x.data, s, s.in_c / s.groups, CopyWidth<kBytes>(kBytes), fill};
}

}  // namespace GCRT_NAMESPACE

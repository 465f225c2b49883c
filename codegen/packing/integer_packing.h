#pragma once
// Weights of 8 and of 16 bits as integer kernels read them.

#include "codegen/packing/packing.h"

namespace gcompile {

/// What integer kernels need to know of weights less their zero points.
struct IntegerFacts {
  bool narrow = true;              // all fit int8, else int16
  std::vector<std::int64_t> sums;  // of each column of each matrix, over the depth
};
/// `zero_points`: one, or one for each column of each matrix.
IntegerFacts integer_facts(const ir::Tensor& weights, const MatrixView& view,
                           const std::vector<std::int64_t>& zero_points);
/// int8 with depths in groups of four when narrow, or of two where factors are widened
/// (gcrt/cpu/product/dot_int8.h), else int16 in groups of two:
/// [matrix][ceil(N / 16)][tap][ceil(inner / group)][16][group], zero padded, or with joined taps
/// [matrix][ceil(N / 16)][ceil(depth / group)][16][group].
/// `splits`: words that are too wide hold the half of each value, rounded to zero.
Packing pack_integer_panels(const ir::Tensor& weights, const MatrixView& view,
                            const std::vector<std::int64_t>& zero_points, bool narrow, bool splits = false,
                            bool widened = false);
/// What words of int8 panels do not hold that are split (gcrt/cpu/product/tile.h, SplitWords): those with a
/// pair of factors, 0 and 1 or 2 and 3, of one sign and more than 128 together, because 255 times 129 does
/// not fit in int16.
struct SplitTable {
  std::vector<std::int32_t> starts;  // [matrix][ceil(N / 16)], and the end
  std::vector<std::int32_t> words;   // of a panel
  std::vector<std::int8_t> rests;    // [word][16][4]
  std::int64_t whole = 0;            // words that are not split
};
SplitTable split_words(const ir::Tensor& weights, const MatrixView& view,
                       const std::vector<std::int64_t>& zero_points);
/// [matrix][N][row_length] of int8 when narrow, else int16, zero padded behind K.
Packing pack_integer_rows(const ir::Tensor& weights, const MatrixView& view,
                          const std::vector<std::int64_t>& zero_points, bool narrow, std::int64_t row_length);
/// [tap][channel] of a depthwise_rows() view, int8 when narrow, else int16; `zero_points`: one, or one for
/// each channel.
Packing pack_integer_depthwise(const ir::Tensor& weights, const MatrixView& view,
                               const std::vector<std::int64_t>& zero_points, bool narrow = false);

}  // namespace gcompile

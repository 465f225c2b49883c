#pragma once
// Weights as kernels read them (DESIGN law 5), written by typed loops from the bytes of the model straight
// into the payload: no value passes through double, none is kept in between. A Packing says what will be
// written; WeightBlob::finish() has it written once.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/tensors/tensor.h"

namespace gcompile {

/// The value, or zero: denormals cost some machines hundreds of cycles (DESIGN law 5).
float without_denormals(float value);

/// Bytes that follow from a constant and a format. Equal sources in equal formats are one entry of the blob.
struct Packing {
  ir::Tensor source;
  std::string format;  // with every number that shapes the bytes
  std::int64_t bytes = 0;
  /// Fills all of `out`, which has `bytes` zero bytes.
  std::function<void(const ir::Tensor& source, std::span<std::byte> out)> write;
};

/// Matrices of equal size inside a row-major tensor, in elements: the factor at depth k and column n lies at
///   matrix * matrix_step + taps[k / inner] + k % inner * inner_step + n * column_step.
struct MatrixView {
  std::int64_t matrices = 1, matrix_step = 0;
  std::int64_t columns = 0, column_step = 1;
  std::vector<std::int64_t> taps = {0};
  std::int64_t inner = 0, inner_step = 1;
  /// Words of integers: whether they run on from one tap to the next, else each tap is padded to whole words.
  bool joins_taps = false;

  std::int64_t depth() const { return static_cast<std::int64_t>(taps.size()) * inner; }
};

std::string to_string(const MatrixView& view);

/// The matrices of (..., K, N): one matrix for each entry of the leading axes.
MatrixView product_matrices(const ir::Shape& b);
/// The matrices of convolution weights (M, C / group, kernel...): one matrix of depth taps * C / group for
/// each group.
MatrixView conv_matrices(const ir::Shape& weights, std::int64_t groups);
/// The matrices of transposed convolution weights (C, M / group, kernel...).
MatrixView conv_transpose_matrices(const ir::Shape& weights, std::int64_t groups);
/// Depthwise weights (C, 1, kernel...), as one row of channels for each tap: for pack_rows().
MatrixView depthwise_rows(const ir::Shape& weights);

/// Columns of a panel, as of gcrt/cpu/product/tile.h.
constexpr std::int64_t kPanelColumns = 16;
/// [matrix][ceil(N / 16)][K][16], zero padded, of elements of 32 or 64 bits; denormal float32 flushed to zero.
Packing pack_panels(const ir::Tensor& weights, const MatrixView& view);
/// [matrix][rows][row_length], zero padded behind N rows and depth K: in float32 with denormals flushed, or
/// rounded to a type of 16 bits. `rows` below N: N.
Packing pack_rows(const ir::Tensor& weights, const MatrixView& view, std::int64_t row_length,
                  ir::ElementType stored = ir::ElementType::kFloat32, std::int64_t rows = 0);
/// The same floats rounded to the 10 bits of fraction that TF32 has, ties away from zero.
Packing round_to_tf32(Packing packing);
/// One behind the other; all of one source.
Packing pack_together(std::vector<Packing> parts);
/// Row-major as it is, denormal float32 flushed to zero.
Packing pack_as_is(const ir::Tensor& tensor);

}  // namespace gcompile

#pragma once
// What Conv, ConvInteger and ConvTranspose share: shapes, and the direct sum in double.

#include <vector>

#include "ir/ops/window.h"

namespace gcompile::ir {

/// A tensor's elements as double, row-major.
struct RealTensor {
  Shape shape;
  std::vector<double> values;
};
RealTensor reals_of(const Tensor& tensor);

/// Fills the window attributes with operand `weights`, (M, C/group, kernel...), as source of the kernel.
/// Where the padding depends on sizes that only a run knows, operand 0 is padded with its zero point, if it
/// has one.
void normalise_window_of(RewriteContext& context, int weights, int zero_point = -1);
/// The same with the weights as operand 1, without a zero point.
void normalise_convolution(RewriteContext& context);
/// Shape of the result of a convolution of operand 0 with operand 1.
/// Throws OperatorError when they do not fit.
Shape convolution_shape(const NodeView& node);
/// Y[n, m, o...] = sum over c, k of X[n, g*C + c, o*stride + k*dilation - pad] * W[m, c, k], `out` is the
/// shape of Y; taps in the padding count as 0.
RealTensor convolve(const RealTensor& x, const RealTensor& w, const Window& window, std::int64_t group);
/// Y[n, g*M + m, i*stride + k*dilation - pad] += X[n, g*C + c, i...] * W[g*C + c, m, k...]; pads at the end
/// may be negative (output_padding).
RealTensor convolve_transposed(const RealTensor& x, const RealTensor& w, const Window& window,
                               std::int64_t group);
/// Length of spatial axis i after a transposed convolution.
Dim transposed_count(const Window& window, int i, Dim input);

/// Sums of products of differences of bytes as int32, modulo 2^32.
Tensor wrapped(const RealTensor& sums);
/// The sums plus one value per channel (`bias` may be null), rounded to the type.
Tensor with_bias(const RealTensor& sums, ElementType type, const Tensor* bias);

/// Contract form over (N, C, spatial...) whose epilogue only casts.
ContractForm spatial_contract(Work work, const TensorType& result, ElementType accumulator,
                              int base_operands);
/// The same for two operands, with operand 2 as bias in the epilogue when given.
ContractForm biased_contract(Work work, const LowerContext& context);

}  // namespace gcompile::ir

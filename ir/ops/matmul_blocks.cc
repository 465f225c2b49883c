// MatMulBlocks (internal): A (..., M, K) in float32 times int8 (K, N) that stand for (w - zero) * scale,
// where scales and zero points (ceil(K / block_size), N) change every block_size rows. MatMulNBits and
// products by the result of DequantizeLinear become it. `rounding` is a RowRounding: where that is done, each
// row of A is first rounded to int8 per block, as ONNX Runtime's kernels for an accuracy_level of 4 do.

#include "ir/ops/matmul_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/interrupt.h"
#include "ir/ops/product_shape.h"

namespace gcompile::ir {
namespace {

constexpr ElementType kReal = ElementType::kFloat32;

void infer(InferContext& context) {
  const Shape y = product_shape(context.shape(0), context.shape(1));
  if (context.element(0) != kReal || context.element(1) != ElementType::kInt8) {
    operator_error("A must be float32 and B int8");
  }
  if (context.shape(1).size() != 2) operator_error("B must be a matrix");
  const std::int64_t block = context.attributes().int_of("block_size");
  if (block < 1) operator_error(fmt::format("the block size {} must be positive", block));
  const std::int64_t rounding = context.attributes().int_of("rounding");
  if (rounding < 0 || rounding > 2)
    operator_error(fmt::format("the rounding {} must be 0, 1 or 2", rounding));
  const Shape blocks = {ceil_div(context.shape(1)[0], block), context.shape(1)[1]};
  for (int i = 2; i < context.operand_count(); ++i) {
    const ElementType element = context.element(i);
    if (element != kReal && !(i == 3 && element == ElementType::kInt8)) {
      operator_error("scales must be float32, zero points float32 or int8");
    }
    if (context.shape(i) != blocks) {
      operator_error(fmt::format("input {} has the shape {} instead of {}", i, to_string(context.shape(i)),
                                 to_string(blocks)));
    }
  }
  context.set_result(0, kReal, y);
}

/// Makes of a block what its int8 stand for. In float32, step by step as the kernel, so that both round every
/// element alike; what is below 2^-119 throughout is zero,
/// and a block with an element that is not finite is NaN.
void round_block(std::span<double> values) {
  float largest = 0;
  bool is_finite = true;
  for (const double value : values) {
    is_finite = is_finite && std::isfinite(value);
    largest = std::max(largest, static_cast<float>(std::fabs(value)));
  }
  const float scale = largest / 127.0f, inverse = 1.0f / scale;
  for (double& value : values) {
    if (!is_finite) {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (largest < 0x1p-119f) {
      value = 0;
    } else {
      const float whole = std::nearbyint(static_cast<float>(value) * inverse);
      value = static_cast<double>(whole) * static_cast<double>(scale);
    }
  }
}

/// The elements of A, rounded where the product rounds them.
std::vector<double> left_side(const Tensor& a, std::int64_t depth, std::int64_t block, bool rounds) {
  std::vector<double> values(static_cast<std::size_t>(a.count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = a.real_at(static_cast<std::int64_t>(i));
  for (std::int64_t row = 0; rounds && row < a.count(); row += depth) {
    for (std::int64_t k = 0; k < depth; k += block) {
      round_block(std::span(values).subspan(static_cast<std::size_t>(row + k),
                                            static_cast<std::size_t>(std::min(block, depth - k))));
    }
  }
  return values;
}

RowRounding rounding_of(const Attributes& attributes) {
  return static_cast<RowRounding>(attributes.int_of("rounding"));
}

std::vector<Tensor> evaluate(const EvaluateContext& context) {
  const Tensor& b = *context.value(1);
  const Tensor& scales = *context.value(2);
  const Tensor* zeros = context.value(3);
  const std::int64_t block = context.attributes().int_of("block_size");
  const std::int64_t depth = b.shape()[0], columns = b.shape()[1];
  const std::vector<double> a =
      left_side(*context.value(0), depth, block, rounding_of(context.attributes()) == RowRounding::kDone);
  Tensor y(TensorType{kReal, product_shape(context.value(0)->shape(), b.shape())});
  const std::int64_t rows = columns == 0 ? 0 : y.count() / columns;
  std::vector<double> column(static_cast<std::size_t>(depth));
  for (std::int64_t n = 0; n < columns; ++n) {
    poll_interrupt();
    for (std::int64_t k = 0; k < depth; ++k) {
      const std::int64_t at = k / block * columns + n;
      const double zero = zeros ? zeros->real_at(at) : 0;
      column[k] = (b.real_at(k * columns + n) - zero) * scales.real_at(at);
    }
    for (std::int64_t m = 0; m < rows; ++m) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k) sum += a[static_cast<std::size_t>(m * depth + k)] * column[k];
      y.set(m * columns + n, Scalar::of_real(kReal, sum));
    }
  }
  return {y};
}

Form lower(const LowerContext& context) {
  ContractForm form;
  form.work = ProductWork{context.attributes().int_of("block_size"), rounding_of(context.attributes())};
  form.base_operands = context.operand_count();
  form.epilogue = LoopForm::over(context.result(0).shape);
  form.epilogue.set_root(form.epilogue.dag.accumulator(0, form.accumulator));
  return form;
}

}  // namespace

Tensor decoded(const Tensor& weights, const Tensor& scales, const Tensor* zeros, std::int64_t block) {
  const std::int64_t depth = weights.shape()[0], columns = weights.shape()[1];
  Tensor out(TensorType{kReal, weights.shape()});
  auto* to = reinterpret_cast<float*>(out.mutable_bytes().data());
  const auto* from = reinterpret_cast<const std::int8_t*>(weights.bytes().data());
  std::vector<float> scale(static_cast<std::size_t>(columns)), zero(static_cast<std::size_t>(columns));
  for (std::int64_t k = 0; k < depth; ++k) {
    if (k % block == 0) {
      poll_interrupt();
      for (std::int64_t n = 0; n < columns; ++n) {
        const std::int64_t at = k / block * columns + n;
        scale[n] = static_cast<float>(scales.real_at(at));
        if (zeros) zero[n] = static_cast<float>(zeros->real_at(at));
      }
    }
    for (std::size_t n = 0; n < scale.size(); ++n) *to++ = (static_cast<float>(*from++) - zero[n]) * scale[n];
  }
  return out;
}

const Operator& operator_MatMulBlocks() {
  static const Operator op = {
      .name = "MatMulBlocks",
      .domain = "gcompile",
      .versions = {1},
      .operands = {3, 4},
      .attributes = {{"block_size", AttributeKind::kInt, std::nullopt, true},
                     {"rounding", AttributeKind::kInt, std::int64_t{0}}},
      .accuracy = Accuracy::kSum,
      .summary = "matrix product by 8-bit integers with a scale for each column of each block of rows",
      .traits = {.takes_strides = true},
      .infer = infer,
      .evaluate = evaluate,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir

// MatMul: numpy.matmul. Operands of rank 1 are normalised away, so kernels see (batch..., M, K) x (batch...,
// K, N). Products of less than 32 bits, which no pass has widened, are loops.

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/interrupt.h"
#include "ir/ops/product_shape.h"
#include "ir/ops/reduced.h"
#include "ir/ops/reshaped.h"

namespace gcompile::ir {
namespace {

void normalise(RewriteContext& context) {
  Shape a = context.shape(0);
  Shape b = context.shape(1);
  if (a.empty() || b.empty()) operator_error("scalars cannot be multiplied as matrices");
  const bool a_vector = a.size() == 1;
  const bool b_vector = b.size() == 1;
  if (!a_vector && !b_vector) return;
  ValueId left = context.operand_id(0);
  ValueId right = context.operand_id(1);
  if (a_vector) {
    a = {1, a[0]};
    left = emit_reshape(context, left, a);
  }
  if (b_vector) {
    b = {b[0], 1};
    right = emit_reshape(context, right, b);
  }
  Shape out = product_shape(a, b);
  const ValueId product = context.emit("MatMul", {left, right});
  if (b_vector) out.pop_back();
  if (a_vector) out.erase(out.end() - (b_vector ? 1 : 2));
  become_reshape(context, product, out);
}

void infer(InferContext& context) {
  const ElementType type = same_type(context);
  require_computable(context, 0);
  context.set_result(0, type, product_shape(context.shape(0), context.shape(1)));
}

/// Sums of products in the order of the depth, of numbers as double, or as integers modulo 2^64.
template <class Number>
class MatrixProduct {
 public:
  MatrixProduct(const Tensor& a, const Tensor& b, Tensor& y) : a_(a), b_(b), y_(y) {}

  /// Multiplies the matrices that begin at these elements.
  void multiply(std::int64_t a, std::int64_t b, std::int64_t y, std::int64_t rows, std::int64_t columns,
                std::int64_t depth) {
    constexpr std::int64_t kMostSums = 1 << 16;
    // A row of b is read once for so many rows of a.
    const std::int64_t together = std::max<std::int64_t>(1, kMostSums / std::max<std::int64_t>(1, columns));
    std::vector<Number> sums, row(static_cast<std::size_t>(columns));
    for (std::int64_t first = 0; first < rows; first += together) {
      const std::int64_t count = std::min(together, rows - first);
      sums.assign(static_cast<std::size_t>(count * columns), Number{0});
      for (std::int64_t k = 0; k < depth; ++k) {
        poll_interrupt();
        for (std::int64_t n = 0; n < columns; ++n)
          row[static_cast<std::size_t>(n)] = read(b_, b + k * columns + n);
        for (std::int64_t m = 0; m < count; ++m) {
          const Number factor = read(a_, a + (first + m) * depth + k);
          Number* const sum = sums.data() + m * columns;
          for (std::int64_t n = 0; n < columns; ++n) sum[n] += factor * row[static_cast<std::size_t>(n)];
        }
      }
      for (std::int64_t i = 0; i < count * columns; ++i)
        write(y + first * columns + i, sums[static_cast<std::size_t>(i)]);
    }
  }

 private:
  static constexpr bool kIsReal = std::is_same_v<Number, double>;

  static Number read(const Tensor& tensor, std::int64_t i) {
    if constexpr (kIsReal) {
      return tensor.real_at(i);
    } else {
      return static_cast<Number>(tensor.int_at(i));
    }
  }
  void write(std::int64_t i, Number sum) {
    if constexpr (kIsReal) {
      y_.set(i, Scalar::of_real(y_.element(), sum));
    } else {
      y_.set(i, Scalar::of_integer(y_.element(), static_cast<std::int64_t>(sum)));
    }
  }

  const Tensor& a_;
  const Tensor& b_;
  Tensor& y_;
};

std::vector<Tensor> evaluate(const EvaluateContext& context) {
  const Tensor& a = *context.value(0);
  const Tensor& b = *context.value(1);
  const Shape out = product_shape(a.shape(), b.shape());
  const std::size_t rank = out.size();
  const std::int64_t rows = out[rank - 2], columns = out[rank - 1], depth = a.shape().back();
  Tensor y(TensorType{a.element(), out});
  const auto matrix_of = [&](const Tensor& t, std::int64_t batch) {
    // Position of the batch entry in an operand that may broadcast along some batch axes.
    const Shape& shape = t.shape();
    std::int64_t offset = 0;
    std::int64_t stride = shape[shape.size() - 1] * shape[shape.size() - 2];
    for (std::size_t i = 0; i + 2 < rank; ++i) {
      const std::size_t from_end = i + 3;
      const std::int64_t coordinate = batch % out[rank - from_end];
      batch /= out[rank - from_end];
      if (from_end > shape.size()) continue;
      if (shape[shape.size() - from_end] != 1) offset += coordinate * stride;
      stride *= shape[shape.size() - from_end];
    }
    return offset;
  };
  const std::int64_t batches = rows * columns == 0 ? 0 : y.count() / (rows * columns);
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    const std::int64_t a0 = matrix_of(a, batch), b0 = matrix_of(b, batch), y0 = batch * rows * columns;
    if (is_float(a.element())) {
      MatrixProduct<double>(a, b, y).multiply(a0, b0, y0, rows, columns, depth);
    } else {
      MatrixProduct<std::uint64_t>(a, b, y).multiply(a0, b0, y0, rows, columns, depth);
    }
  }
  return {y};
}

Form lower(const LowerContext& context) {
  const TensorType& result = context.result(0);
  const ElementType compute = compute_type(result.element);
  if (compute != result.element || bits_of(compute) < 32) {
    return sum_of_products(context, [&](Dag& dag, int i, std::vector<Index> index) {
      return dag.cast(dag.load(i, result.element, std::move(index)), compute);
    });
  }
  ContractForm form;
  form.work = ProductWork{};
  form.accumulator = compute;
  form.epilogue = LoopForm::over(result.shape);
  Dag& dag = form.epilogue.dag;
  form.epilogue.set_root(dag.cast(dag.accumulator(0, form.accumulator), result.element));
  return form;
}

}  // namespace

const Operator& operator_MatMul() {
  static const Operator op = {
      .name = "MatMul",
      .versions = {1, 9, 13},
      .operands = {2, 2},
      .accuracy = Accuracy::kSum,
      .summary = "matrix product, batched",
      .traits = {.computed_in_float = true, .takes_strides = true},
      .normalise = normalise,
      .infer = infer,
      .evaluate = evaluate,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir

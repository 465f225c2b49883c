// MatMul: numpy.matmul. Operands of rank 1 are normalised away, so kernels see (batch..., M, K) x (batch...,
// K, N). Products of less than 32 bits, which no pass has widened, are loops.

#include <fmt/format.h>

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

std::vector<Tensor> evaluate(const EvaluateContext& context) {
  const Tensor& a = *context.value(0);
  const Tensor& b = *context.value(1);
  const Shape out = product_shape(a.shape(), b.shape());
  const std::size_t rank = out.size();
  const std::int64_t rows = out[rank - 2], columns = out[rank - 1], depth = a.shape().back();
  Tensor y(TensorType{a.element(), out});
  const bool real = is_float(a.element());
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
    const std::int64_t a0 = matrix_of(a, batch), b0 = matrix_of(b, batch);
    for (std::int64_t m = 0; m < rows; ++m) {
      for (std::int64_t n = 0; n < columns; ++n) {
        poll_interrupt();
        double sum = 0;
        std::uint64_t exact = 0;
        for (std::int64_t k = 0; k < depth; ++k) {
          const Scalar p = a.at(a0 + m * depth + k), q = b.at(b0 + k * columns + n);
          if (real) {
            sum += p.real * q.real;
          } else {
            exact += static_cast<std::uint64_t>(p.integer) * static_cast<std::uint64_t>(q.integer);
          }
        }
        y.set((batch * rows + m) * columns + n,
              real ? Scalar::of_real(a.element(), sum)
                   : Scalar::of_integer(a.element(), static_cast<std::int64_t>(exact)));
      }
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

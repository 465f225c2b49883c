// product.scalar_integer: bytes by a constant matrix, exact sums in int32, on a core without vectors; one copy of
// its code serves all products. On the CPU alone.

#include <fmt/format.h>

#include "codegen/choice/refusals.h"
#include "codegen/kinds/integer_weights.h"
#include "codegen/kinds/matrix_product.h"

namespace gcompile {
namespace {

Refusal refuses(const ir::Problem& problem) {
  if (Refusal operands = refuse_unless_bytes_by_constants(problem)) return operands;
  if (problem.shape(1).size() != 2) return "several right matrices";
  if (!Product(problem).axes.batch.empty()) return "rows that do not lie one behind the other";
  return std::nullopt;
}

bool takes_formulas(const ir::Problem& problem) {
  return takes_dense_formulas(problem) && Product(problem).axes.batch.empty();
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  const Product product(problem);
  const std::int64_t tiles = product.axes.row_count.constant() * ((product.columns.constant() + 3) / 4);
  PlannedCost only;
  only.cost.picoseconds = scalar_picoseconds(problem, machine, 0.75 * machine.level.byte_rate, tiles);
  only.cost.code_key = "gemm_scalar";
  return {only};
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const Product product(problem);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cpu/product/scalar_int8.h"};
  writer.operand(0, "a");
  scalar_weights(writer, product_matrices(product.b));
  const EpilogueWriter epilogue(writer, product.axes.rows, static_cast<int>(product.rank()) - 1);
  CodeText code(1);
  code.line(Text(fmt::format("gemm_scalar({}, {}, {}, a, {}, {}, w, ", out.sizes(product.axes.row_count),
                             product.columns, product.depth, out.sizes(product.axes.row_stride),
                             zero_of_left(problem, writer))) +
            epilogue.value() + ");");
  out.body = code.text();
}

}  // namespace

const KernelFamily& family_product_scalar_integer() {
  static const KernelFamily family = {
      "product.scalar_integer",
      ir::Kind::kProduct,
      refuses,
      {Recipe{.takes_formulas = takes_formulas, .needs = needs_dense_rows, .plans = plans, .call = call},
       Recipe{.refuses = refuse_gpu}}};
  return family;
}

}  // namespace gcompile

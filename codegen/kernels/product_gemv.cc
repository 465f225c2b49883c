// product.gemv: at most eight rows by packed weights, which are read once, at the speed of memory. CUDA
// alone; on the CPU the kernel of product.tile takes every number of rows.

#include "codegen/kernels/cuda_product.h"
#include "codegen/kernels/image_weights.h"

namespace gcompile {
namespace {

Refusal refuses_on_cpu(const ir::Problem&, const Machine&) {
  return "product.tile takes every number of rows";
}

Refusal cuda_refuses(const ir::Problem& problem, const Machine& machine) {
  if (Refusal large = refuse_beyond_32_bits(problem, machine)) return large;
  if (!is_gemv(problem, machine)) return "more than eight rows, or a right side of the run";
  return std::nullopt;
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  return {product_plan(problem, machine)};
}

void cuda_call(const ir::Problem& problem, const Plan& plan, CallWriter& writer) {
  write_tensor_core_product(problem, plan, writer);
}

}  // namespace

const KernelFamily& family_product_gemv() {
  static const KernelFamily family = {"product.gemv",
                                      ir::Kind::kProduct,
                                      refuse_unless_float32,
                                      {{{.refuses = refuses_on_cpu},
                                        {.refuses = cuda_refuses,
                                         .needs = needs_dense_rows,
                                         .fields = tile_fields(),
                                         .plans = cuda_plans,
                                         .call = cuda_call,
                                         .takes_made_rows = takes_made_rows}}}};
  return family;
}

}  // namespace gcompile

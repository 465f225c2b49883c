// product.cublaslt: products of more than eight rows, left to NVIDIA's library where the user asks for it.

#include "codegen/choice/refusals.h"
#include "codegen/kinds/cuda_product.h"
#include "codegen/kinds/image_windows.h"

namespace gcompile {
namespace {

Refusal refuses_on_cpu(const ir::Problem&, const Machine&) { return "a library of CUDA"; }

Refusal cuda_refuses(const ir::Problem& problem, const Machine& machine) {
  if (!machine.cublaslt) return "--gemm cublaslt does not ask for it";
  if (Refusal large = refuse_beyond_32_bits(problem, machine)) return large;
  if (is_gemv(problem, machine)) return "at most eight rows of packed weights";
  return refuse_library(problem);
}

/// The user has chosen: no figure of a model stands against that.
std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine&) {
  PlannedCost only;
  only.cost.launches = library_launches(problem);
  return {only};
}

void cuda_call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  write_library_product(problem, writer);
}

}  // namespace

const KernelFamily& family_product_cublaslt() {
  static const KernelFamily family = {
      "product.cublaslt",
      ir::Kind::kProduct,
      refuse_unless_float32,
      {{{.refuses = refuses_on_cpu},
        {.refuses = cuda_refuses, .needs = needs_dense_rows, .plans = cuda_plans, .call = cuda_call}}}};
  return family;
}

}  // namespace gcompile

// product.wgmma: products of many rows by the warpgroup instructions of sm_90a, which tensor maps feed. The
// weights are those of product.tile.

#include "codegen/calls/cuda_precision.h"
#include "codegen/calls/cuda_tiles.h"
#include "codegen/choice/refusals.h"
#include "codegen/kinds/cuda_product.h"
#include "codegen/kinds/image_windows.h"

namespace gcompile {
namespace {

// Fewer rows fill less than half of the smallest tile, and mma.sync has smaller ones.
constexpr std::int64_t kLeastRows = 33;

Refusal refuses_on_cpu(const ir::Problem&, const Machine&) { return "warpgroups of sm_90a"; }

/// Whether rows and batch entries of A are whole units of 16 bytes apart, as it lies or as needs_dense_rows()
/// has it copied.
bool has_map(const ir::Problem& problem) {
  const std::int64_t unit = kTensorMapAlignment / element_bytes(problem, 0);
  if (needs_dense_rows(problem, 0)) return problem.shape(0).back() % unit == 0;
  const Product product(problem);
  bool fits = product.axes.row_stride % unit == 0;
  for (const std::size_t axis : product.axes.batch) fits &= product.along_a(axis) % unit == 0;
  return fits;
}

Refusal cuda_refuses(const ir::Problem& problem, const Machine& machine) {
  if (Refusal missing = refuse_wgmma(machine)) return missing;
  if (Refusal elements = refuse_unless_factors(problem, machine, 2, {0})) return elements;
  if (Refusal large = refuse_beyond_32_bits(problem, machine)) return large;
  if (!problem.operands[1].constant) return "a right side of the run, of 32 bits";
  const Product product(problem);
  const ProductBatch batch(product);
  if (product.axes.row_count < kLeastRows) return "fewer than 33 rows";
  if (product.columns * product.depth * batch.entries == 0) return "no elements";
  if (batch.entries > gcrt::kMaxGridZ || product.columns > gcrt::kMaxGridZ * std::int64_t{64}) {
    return "more batch entries or columns than a grid has";
  }
  if (!has_map(problem)) return "rows of the left side that are no multiple of 16 bytes apart";
  return std::nullopt;
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  const Product product(problem);
  const ProductBatch batch(product);
  const gcrt::WgmmaPlan plan =
      gcrt::plan_wgmma(machine.gpu, precision_of(problem, machine), product.axes.row_count, product.columns,
                       product.depth, batch.entries, element_bytes(problem, 0));
  return {planned(plan, batch.host_entries)};
}

void cuda_call(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer) {
  write_warpgroup_product(problem, plan, writer);
}

}  // namespace

const KernelFamily& family_product_wgmma() {
  static const KernelFamily family = {"product.wgmma",
                                      ir::Kind::kProduct,
                                      refuse_packed_weights,
                                      {{{.refuses = refuses_on_cpu},
                                        {.refuses = cuda_refuses,
                                         .needs = needs_dense_rows,
                                         .fields = wgmma_fields(),
                                         .plans = cuda_plans,
                                         .call = cuda_call}}}};
  return family;
}

}  // namespace gcompile

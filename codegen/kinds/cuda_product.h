#pragma once
// What the families of float products share on CUDA.

#include "codegen/kinds/matrix_product.h"

namespace gcompile {

/// Axes of the batch: the grid walks the two innermost that are longer than one, the host walks the others.
struct ProductBatch {
  std::vector<int> grid_axes, host_axes;  // outermost first
  ir::Dim entries = 1, host_entries = 1;
  explicit ProductBatch(const Product& product);
};

/// What of the sizes may be formulas: rows, columns, depth and the entries that the grid walks.
bool takes_open_products(const ir::Problem& problem);
/// Whether the rows of a product of at most eight may be made by every block for itself.
bool takes_made_rows(const ir::Problem& problem, const Machine& machine);
/// Whether the few rows of A and a packed B ask for a GEMV. Where only a run knows how many rows there are,
/// the call of a tile decides.
bool is_gemv(const ir::Problem& problem, const Machine& machine);
/// The tile and the splits that the device's model predicts to be fastest.
PlannedCost product_plan(const ir::Problem& problem, const Machine& machine);
/// The call with gcrt's own tiles.
void write_tensor_core_product(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer);
/// The call with warpgroups of sm_90a; plan {WgmmaTile, parts of the depth}.
void write_warpgroup_product(const ir::Problem& problem, const KernelPlan& plan, CallWriter& writer);
/// The call by cuBLASLt.
void write_library_product(const ir::Problem& problem, CallWriter& writer);
/// Launches of that call.
int library_launches(const ir::Problem& problem);
/// Why cuBLASLt does not take the matrices: each needs one contiguous axis, and columns that do not overlap.
Refusal refuse_library(const ir::Problem& problem);

}  // namespace gcompile

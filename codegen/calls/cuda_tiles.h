#pragma once
// Tiles of products on CUDA: as plans of families, as arguments of gcrt's kernels, and in the report.

#include <span>
#include <string>

#include "codegen/calls/call_writer.h"
#include "gcrt/cuda/product/hopper_model.h"

namespace gcompile {

/// "k64x64", of gcrt's Tile.
const char* tile_name(gcrt::Tile tile);

/// The plan as fields {tile, splits}, and what it costs when `products` such products are launched. Each has
/// `entries` in its grid: of a batch, or groups.
PlannedCost planned(const gcrt::Plan& plan, const Machine& machine, std::int64_t products,
                    std::int64_t entries = 1);
/// Names of those fields.
std::span<const char* const> tile_fields();
gcrt::Tile tile_of(const KernelPlan& plan);
int splits_of(const KernelPlan& plan);

/// Products by warpgroups of sm_90a: why there are none, the plan as fields {WgmmaTile, parts of the depth},
/// their names, and the template arguments, "Precision::kFp16, WgmmaTile::k64x64, /*parts*/ 2", which it
/// notes in the call.
constexpr std::int64_t kTensorMapAlignment = 16;  // bytes, of addresses and strides
Refusal refuse_wgmma(const Machine& machine);
PlannedCost planned(const gcrt::WgmmaPlan& plan, std::int64_t products);
std::span<const char* const> wgmma_fields();
std::string wgmma_arguments(CallWriter& writer, const KernelPlan& plan, Precision precision);

/// Notes the tile and the precision, if it is a choice, in the call.
void note_plan(CallWriter& writer, const KernelPlan& plan, Precision precision);

/// Adds the workspace of split sums, of which each part has so many floats, and the counters of blocks that
/// join them, and returns the argument: "SplitDepth<4>{workspace}" or "SplitDepth<>{}". Where only a run
/// knows how many floats these are, the workspace is that of the typical sizes, and a run whose parts do not
/// fit it has none: larger sizes have blocks enough without. `counters`: at the largest sizes.
std::string split_argument(CallWriter& writer, int splits, ir::Dim floats_of_part, std::int64_t counters);
/// The same for a product with fields {tile, splits}: "SplitInCluster<4>{}", without either, where the blocks
/// that share its depth add their sums in a cluster.
std::string split_argument(CallWriter& writer, const KernelPlan& plan, ir::Dim floats_of_part,
                           std::int64_t counters);

/// "copied_in<16>", for kernels of tiles: what each copy of an operand moves, of which its address and all
/// steps, in elements, are proven multiples. Empty where only the run knows it.
std::string copied_in(const KernelTensor& tensor, std::span<const ir::Dim> steps);
/// The operand: "copied_in<16>(a)", or "a" alone.
std::string copied(const std::string& width, const std::string& pointer);

}  // namespace gcompile

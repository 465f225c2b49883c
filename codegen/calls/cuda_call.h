#pragma once
// What the CUDA kernels of contractions share: shapes and tiles as gcrt has them, and their spelling.

#include <span>
#include <string>
#include <vector>

#include "codegen/calls/call_writer.h"
#include "codegen/calls/image_shape.h"
#include "gcrt/cuda/conv_plan.h"
#include "gcrt/cuda/hopper_model.h"

namespace gcompile {

/// "k64x64", of gcrt's Tile.
const char* tile_name(gcrt::Tile tile);

/// Throws OperatorError when it does not fit.
int narrow(std::int64_t value);
gcrt::ConvShape conv_shape(const ImageShape& shape);

/// "Precision::kFp32", of gcrt's Precision.
std::string precision_argument(Precision precision);

/// The plan as fields {tile, splits}, and what it costs when `products` such products are launched. Each has
/// `entries` in its grid: of a batch, or groups.
PlannedCost planned(const gcrt::Plan& plan, const Machine& machine, std::int64_t products,
                    std::int64_t entries = 1);
/// Names of those fields.
std::span<const char* const> tile_fields();
gcrt::Tile tile_of(const Plan& plan);
int splits_of(const Plan& plan);

/// Products by warpgroups of sm_90a: why there are none, the plan as fields {WgmmaTile, blocks of a cluster},
/// their names, and the template arguments, "Precision::kFp16, WgmmaTile::k64x64, /*cluster*/ 2", which it
/// notes in the call.
constexpr std::int64_t kTensorMapAlignment = 16;  // bytes, of addresses and strides
Refusal refuse_wgmma(const Machine& machine);
PlannedCost planned(const gcrt::WgmmaPlan& plan, std::int64_t products);
std::span<const char* const> wgmma_fields();
std::string wgmma_arguments(CallWriter& writer, const Plan& plan, Precision precision);

/// Notes the tile and the precision, if it is a choice, in the call.
void note_plan(CallWriter& writer, const Plan& plan, Precision precision);

/// Adds the workspace of split sums, of which each part has so many floats, and the counters of blocks that
/// join them, and returns the argument: "SplitDepth<4>{workspace}" or "SplitDepth<>{}". Where only a run
/// knows how many floats these are, the workspace is that of the typical sizes, and a run whose parts do not
/// fit it has none: larger sizes have blocks enough without. `counters`: at the largest sizes.
std::string split_argument(CallWriter& writer, int splits, ir::Dim floats_of_part, std::int64_t counters);
/// The same for a product with fields {tile, splits}: "SplitInCluster<4>{}", without either, where the blocks
/// that share its depth add their sums in a cluster.
std::string split_argument(CallWriter& writer, const Plan& plan, ir::Dim floats_of_part,
                           std::int64_t counters);

/// "copied_in<16>", for kernels of tiles: what each copy of an operand moves, of which its address and all
/// steps, in elements, are proven multiples. Empty where only the run knows it.
std::string copied_in(const KernelTensor& tensor, std::span<const ir::Dim> steps);
/// The operand: "copied_in<16>(a)", or "a" alone.
std::string copied(const std::string& width, const std::string& pointer);

/// Whether kernels for tensor cores take the first `factors` operands: float32, or constants, or those named
/// by `may_be_stored` in the 16-bit type to which the precision rounds them, on CUDA.
Refusal refuse_unless_factors(const ir::Problem& problem, const Machine& machine, std::size_t factors,
                              std::initializer_list<std::size_t> may_be_stored);
/// Bytes of an element of an operand.
int element_bytes(const ir::Problem& problem, std::size_t operand);

/// How the products of a problem's first `factors` operands are formed: as asked for, or in TF32 where
/// float16 cannot hold a constant among them. The one place that decides it.
Precision precision_of(const ir::Problem& problem, const Machine& machine, std::size_t factors = 2);
/// The warning that goes with it, if any.
void warn_of_precision(const ir::Problem& problem, CallWriter& writer, std::size_t factors = 2);

/// Adds the parameter for the constant operand 1, packed for `kernel`, in the type that the precision stores.
void packed_weights(CallWriter& writer, Packing packing, const std::string& kernel,
                    const std::string& parameter, Precision precision);

/// Bytes that a kernel moves: all, and those of them that come from the device's memory or go there.
struct Traffic {
  std::int64_t all = 0, memory = 0;
};
/// The time of a call on the machine's GPU. A kernel that knows nothing better is bound by the bytes that it
/// moves or by its multiply-adds.
gcrt::KernelTime predicted_time(const Execution& execution, std::int64_t multiply_adds,
                                const Machine& machine, const Traffic& traffic);
/// In whole picoseconds.
std::int64_t picoseconds_of(const gcrt::KernelTime& time);
/// In picoseconds, of a kernel that streams its operands and results.
std::int64_t streaming_picoseconds(const ir::Problem& problem, const Machine& machine);

/// Why a kernel that counts in 32 bits refuses: an extent does not fit.
Refusal refuse_beyond_32_bits(const ir::Problem& problem, const Machine& machine);
/// Where sizes are formulas: whether it does at all of them.
bool fits_32_bits(const ir::Problem& problem);

/// "k3", of gcrt's DepthwiseWindow.
const char* window_name(const gcrt::ConvShape& shape);

}  // namespace gcompile

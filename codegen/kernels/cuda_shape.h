#pragma once
// What the CUDA kernels of contractions share: shapes and tiles as gcrt has them, and their spelling.

#include <string>

#include "codegen/kernels/image_shape.h"
#include "codegen/kernels/kernel_call.h"
#include "gcrt/cuda/conv_plan.h"

namespace gcompile {

/// "k64x64", of gcrt's Tile.
const char* tile_name(gcrt::Tile tile);

/// Throws ir::OperatorError when it does not fit.
int narrow(std::int64_t value);
gcrt::ConvShape conv_shape(const ImageShape& shape);

/// "Precision::kFp32", of gcrt's Precision.
std::string precision_argument(Precision precision);

/// Notes the tile, the precision if it is a choice, the predicted time of `products` such products, and their
/// launches, in the call. Each has `entries` in its grid: of a batch, or groups.
void note_plan(KernelCall& call, const gcrt::Plan& plan, Precision precision, std::int64_t products,
               std::int64_t entries = 1);

/// On a GPU of the capability. A kernel that knows nothing better is bound by the bytes that it moves or by
/// its multiply-adds.
double predicted_microseconds(const KernelCall& call, int capability, std::int64_t bytes);

/// "k3", of gcrt's DepthwiseWindow.
const char* window_name(const gcrt::ConvShape& shape);

}  // namespace gcompile

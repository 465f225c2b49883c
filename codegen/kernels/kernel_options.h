#pragma once
// For what kernels are made.

#include "codegen/kernels/precision.h"
#include "codegen/target.h"

namespace gcompile {

struct KernelOptions {
  Target target = Target::kCpp;
  int capability = 80;                     // CUDA: of the GPU that tiles are chosen for, 10 * major + minor
  Precision precision = Precision::kFp32;  // CUDA: of products of floats
  bool cublaslt = false;                   // CUDA: products of more than eight rows are left to cuBLASLt
  bool smallest_scratch = false;           // rather than the fastest; chosen by lower_graph
};

}  // namespace gcompile

// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// cuBLASLt as one kernel: a thread for each element, sums in double. Reduced compute types are not rounded,
// for the library is free to use more.
#include "cublasLt.h"

#include <cstring>

#include "host_state.h"

using namespace cuda_on_cpu;

struct cublasLtContext {
  std::uint64_t mark;
};

namespace {

constexpr std::uint64_t kLiveMark = 0x63756c74;
constexpr unsigned kThreads = 64;

struct Operand {
  const float* data;
  std::int64_t row_stride;
  std::int64_t column_stride;
  std::int64_t batch_stride;
};

void product_kernel(Operand a, Operand b, float* d, std::int64_t d_column_stride, std::int64_t d_batch_stride,
                    int rows, int columns, int depth) {
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const std::int64_t m = index % rows, n = index / rows, z = blockIdx.y;
  if (n >= columns) return;
  double sum = 0;
  for (int k = 0; k < depth; ++k) {
    sum += double{a.data[z * a.batch_stride + m * a.row_stride + k * a.column_stride]} *
           double{b.data[z * b.batch_stride + k * b.row_stride + n * b.column_stride]};
  }
  d[z * d_batch_stride + n * d_column_stride + m] = static_cast<float>(sum);
}

template <class T>
cublasStatus_t set(T& field, const void* value, std::size_t bytes) {
  if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

void check_operand(const char* name, const void* data, const cublasLtMatrixLayoutOpaque_t& layout,
                   std::uint32_t alignment) {
  if (reinterpret_cast<std::uintptr_t>(data) % alignment != 0) {
    die("cublasLtMatmul: %s is not aligned to the %u bytes promised to the heuristic", name, alignment);
  }
  if (layout.columns > 0 && layout.column_stride < static_cast<std::int64_t>(layout.rows)) {
    die("cublasLtMatmul: %s has columns that overlap", name);
  }
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext{kLiveMark};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  if (handle == nullptr || handle->mark != kLiveMark) die("cublasLtDestroy: not a handle");
  handle->mark = 0;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, cudaDataType, std::uint64_t rows,
                                        std::uint64_t columns, std::int64_t column_stride) {
  *layout = {rows, columns, column_stride, 1, 0};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t bytes) {
  return attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? set(layout->batch_count, value, bytes)
                                                         : set(layout->batch_stride, value, bytes);
}
cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t product, cublasComputeType_t compute,
                                      cudaDataType_t) {
  *product = {compute, CUBLAS_OP_N};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t,
                                              const void* value, std::size_t bytes) {
  return set(product->operation_a, value, bytes);
}
cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t preference) {
  *preference = {0, {256, 256, 256, 256}};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    return set(preference->workspace_bytes, value, bytes);
  return set(preference->alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, bytes);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  if (handle == nullptr || handle->mark != kLiveMark) die("cublasLtMatmulAlgoGetHeuristic: not a handle");
  *found = wanted < 1 ? 0 : 1;
  if (*found == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {};
  results[0].algo.workspace_bytes = results[0].workspaceSize = preference->workspace_bytes;
  std::memcpy(results[0].algo.alignments, preference->alignments, sizeof(preference->alignments));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  if (handle == nullptr || handle->mark != kLiveMark) die("cublasLtMatmul: not a handle");
  if (*static_cast<const float*>(alpha) != 1.0f || *static_cast<const float*>(beta) != 0.0f || c != d ||
      c_layout != d_layout) {
    die("cublasLtMatmul: only d = a * b is modelled");
  }
  check_operand("a", a, *a_layout, algorithm->alignments[0]);
  check_operand("b", b, *b_layout, algorithm->alignments[1]);
  check_operand("d", d, *d_layout, algorithm->alignments[3]);
  if (workspace_bytes < algorithm->workspace_bytes)
    die("cublasLtMatmul: the workspace is smaller than promised");
  if (workspace_bytes > 0) {
    // The library overwrites its workspace.
    if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0) die("cublasLtMatmul: misaligned workspace");
    if (const cudaError_t error = cudaMemsetAsync(workspace, 0xFF, workspace_bytes, stream);
        error != cudaSuccess) {
      die("cublasLtMatmul: the workspace is not device memory");
    }
  }
  const bool transposed = product->operation_a == CUBLAS_OP_T;
  const std::uint64_t rows = transposed ? a_layout->columns : a_layout->rows;
  const std::uint64_t depth = transposed ? a_layout->rows : a_layout->columns;
  if (d_layout->rows != rows || d_layout->columns != b_layout->columns || b_layout->rows != depth ||
      a_layout->batch_count != b_layout->batch_count || a_layout->batch_count != d_layout->batch_count) {
    die("cublasLtMatmul: the shapes do not agree");
  }
  Operand left = {static_cast<const float*>(a), transposed ? a_layout->column_stride : 1,
                  transposed ? 1 : a_layout->column_stride, a_layout->batch_stride};
  Operand right = {static_cast<const float*>(b), 1, b_layout->column_stride, b_layout->batch_stride};
  float* result = static_cast<float*>(d);
  int row_count = static_cast<int>(rows), column_count = static_cast<int>(d_layout->columns);
  int depth_count = static_cast<int>(depth);
  void* arguments[] = {
      &left,      &right,        &result,     &d_layout->column_stride, &d_layout->batch_stride,
      &row_count, &column_count, &depth_count};
  declare_kernel(product_kernel);
  const unsigned blocks = (static_cast<unsigned>(row_count * column_count) + kThreads - 1) / kThreads;
  const cudaError_t error = cudaLaunchKernel(reinterpret_cast<const void*>(&product_kernel),
                                             dim3(blocks, static_cast<unsigned>(d_layout->batch_count)),
                                             dim3(kThreads), arguments, 0, stream);
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

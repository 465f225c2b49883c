// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Matrix products by cuBLASLt, for projects compiled with --gemm cublaslt. The library writes plain sums; one
// kernel more hands them to the epilogue. Nothing is allocated: descriptors lie on the stack, memory is the
// caller's. The library chooses its algorithm at each call, so a run that is not replayed as a graph pays for
// the choice every time.
#pragma once

#include <cublasLt.h>

#include "gcrt/cuda/product/gemm.h"

namespace GCRT_NAMESPACE {

// cublasLtCreate and cublasLtDestroy, with the runtime's errors.
inline cudaError_t create_cublaslt(void** handle) {
  cublasLtHandle_t created = nullptr;
  const bool is_good = cublasLtCreate(&created) == CUBLAS_STATUS_SUCCESS;
  *handle = created;
  return is_good ? cudaSuccess : cudaErrorUnknown;
}
inline void destroy_cublaslt(void* handle) {
  if (handle != nullptr) cublasLtDestroy(static_cast<cublasLtHandle_t>(handle));
}

constexpr cublasComputeType_t compute_type(Precision precision) {
  switch (precision) {
    case Precision::kTf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Precision::kFp16:
      return CUBLAS_COMPUTE_32F_FAST_16F;
    case Precision::kBf16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
    default:
      return CUBLAS_COMPUTE_32F;
  }
}

// A matrix as the library sees it, columns contiguous, and the step from one batch entry to the next.
struct CublasltMatrix {
  const float* data;
  std::ptrdiff_t rows;
  std::ptrdiff_t columns;
  std::ptrdiff_t column_stride;
  std::ptrdiff_t batch_stride;

  bool init(cublasLtMatrixLayoutOpaque_t& layout, int batch) const {
    const std::ptrdiff_t stride = column_stride < rows ? rows : column_stride;  // of one column: any
    const std::int32_t count = batch;
    const std::int64_t step = batch_stride;
    return cublasLtMatrixLayoutInit(&layout, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                                    static_cast<std::uint64_t>(columns), stride) == CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                            sizeof(count)) == CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                            sizeof(step)) == CUBLAS_STATUS_SUCCESS;
  }

  // Bytes, a power of two, that all of its columns are aligned to.
  std::uint32_t alignment() const {
    const auto bits = reinterpret_cast<std::uintptr_t>(data) |
                      static_cast<std::uintptr_t>(column_stride * 4) |
                      static_cast<std::uintptr_t>(batch_stride * 4) | kCublasltAlignment;
    return static_cast<std::uint32_t>(bits & (~bits + 1));
  }
};

// result = op(left) * right for `batch` entries, op being the transpose if so said.
inline cudaError_t multiply_cublaslt(Queue& queue, cublasComputeType_t compute, bool transpose,
                                     const CublasltMatrix& left, const CublasltMatrix& right,
                                     const CublasltMatrix& result, int batch, void* workspace,
                                     std::size_t workspace_bytes) {
  cublasLtMatmulDescOpaque_t product;
  cublasLtMatmulPreferenceOpaque_t preference;
  cublasLtMatrixLayoutOpaque_t layouts[3];
  cublasLtMatmulHeuristicResult_t choice = {};
  const auto handle = static_cast<cublasLtHandle_t>(queue.cublaslt);
  const cublasOperation_t operation = transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
  const CublasltMatrix* const matrices[3] = {&left, &right, &result};
  constexpr cublasLtMatmulPreferenceAttributes_t kAlignments[3] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  const std::uint32_t result_alignment = result.alignment();
  bool is_good = cublasLtMatmulDescInit(&product, compute, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
                 cublasLtMatmulDescSetAttribute(&product, CUBLASLT_MATMUL_DESC_TRANSA, &operation,
                                                sizeof(operation)) == CUBLAS_STATUS_SUCCESS &&
                 cublasLtMatmulPreferenceInit(&preference) == CUBLAS_STATUS_SUCCESS &&
                 cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                      &workspace_bytes,
                                                      sizeof(workspace_bytes)) == CUBLAS_STATUS_SUCCESS &&
                 cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                                                      &result_alignment,
                                                      sizeof(result_alignment)) == CUBLAS_STATUS_SUCCESS;
  for (int i = 0; i < 3; ++i) {
    const std::uint32_t alignment = matrices[i]->alignment();
    is_good = is_good && matrices[i]->init(layouts[i], batch) &&
              cublasLtMatmulPreferenceSetAttribute(&preference, kAlignments[i], &alignment,
                                                   sizeof(alignment)) == CUBLAS_STATUS_SUCCESS;
  }
  if (!is_good) return cudaErrorUnknown;
  int found = 0;
  const cublasStatus_t asked = cublasLtMatmulAlgoGetHeuristic(
      handle, &product, &layouts[0], &layouts[1], &layouts[2], &layouts[2], &preference, 1, &choice, &found);
  if (asked != CUBLAS_STATUS_SUCCESS || found == 0) return cudaErrorNotSupported;
  const float one = 1.0f;
  const float zero = 0.0f;
  float* const sums = const_cast<float*>(result.data);
  const cublasStatus_t status =
      cublasLtMatmul(handle, &product, &one, left.data, &layouts[0], right.data, &layouts[1], &zero, sums,
                     &layouts[2], sums, &layouts[2], &choice.algo, workspace, workspace_bytes, queue.stream);
  return status == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}

// Hands the library's sums to the epilogue. blockIdx.y is the entry.
constexpr int kFinishThreads = 256;
template <class E>
GCRT_GLOBAL_BLOCKS(kFinishThreads, 1)
void finish_sums_kernel(const float* sums, std::ptrdiff_t row_stride, int rows, int columns, int first_entry,
                        E epilogue) {
  await_previous_grid();
  const unsigned quads = static_cast<unsigned>((columns + 3) / 4);
  const unsigned index = blockIdx.x * kFinishThreads + threadIdx.x;
  const int m = static_cast<int>(index / quads);
  const int n = static_cast<int>(index % quads) * 4;
  if (m >= rows) return;
  const int entry = first_entry + static_cast<int>(blockIdx.y);
  const float* const from = sums + (std::ptrdiff_t{entry} * rows + m) * row_stride + n;
  finish_columns(
      epilogue.at_batch(entry),
      [from](auto lanes, int i) GCRT_LAMBDA_INLINE { return load(lanes, from + i); },
      columns - n < 4 ? columns - n : 4, m, n);
}

// gemm() and gemm_strided() by the library: A contiguous along k, B along k or along n. The library counts
// columns first, so it forms C^T = B^T A^T. `workspace`: cublaslt_workspace_size floats.
template <Precision P, class E>
inline void gemm_cublaslt(Queue& queue, int rows, int columns, int depth, const float* a, std::ptrdiff_t lda,
                          const float* b, std::ptrdiff_t stride_k, std::ptrdiff_t stride_n,
                          const GemmBatch& batch, float* workspace, const E& epilogue) {
  const std::ptrdiff_t row_stride = ceil_div(columns, 4) * 4;
  float* const sums = workspace + kCublasltWorkspaceBytes / 4;
  const auto address = reinterpret_cast<std::uintptr_t>(workspace);
  const std::size_t skipped = static_cast<std::size_t>(-address % kCublasltAlignment);
  const bool transpose = stride_k == 1;
  // The entries that one step in each matrix separates are one call.
  const bool is_even = batch.a_outer == batch.a_inner * batch.inner_count &&
                       batch.b_outer == batch.b_inner * batch.inner_count;
  const int entries = is_even ? batch.count : batch.inner_count;
  for (int entry = 0; entry < batch.count; entry += entries) {
    const std::ptrdiff_t outer = entry / batch.inner_count;
    const CublasltMatrix left = {b + outer * batch.b_outer, transpose ? depth : columns,
                                 transpose ? columns : depth, transpose ? stride_n : stride_k, batch.b_inner};
    const CublasltMatrix right = {a + outer * batch.a_outer, depth, rows, lda, batch.a_inner};
    const CublasltMatrix result = {sums + entry * rows * row_stride, columns, rows, row_stride,
                                   rows * row_stride};
    std::uint64_t fingerprint = kEmptyFingerprint;
    for (const CublasltMatrix* matrix : {&left, &right, &result}) {
      fingerprint = mix_bytes(fingerprint, &matrix->data, sizeof(matrix->data));
    }
    call_library(queue, fingerprint, [&] {
      return multiply_cublaslt(queue, compute_type(P), transpose, left, right, result, entries,
                               reinterpret_cast<unsigned char*>(workspace) + skipped,
                               static_cast<std::size_t>(kCublasltWorkspaceBytes) - skipped);
    });
  }
  for (int entry = 0; entry < batch.count; entry += kMaxGridZ) {
    const int left = batch.count - entry;
    launch_overlapping(queue,
                       dim3(blocks_for(rows * (row_stride / 4), kFinishThreads),
                            static_cast<unsigned>(left < kMaxGridZ ? left : kMaxGridZ)),
                       dim3(kFinishThreads), 0, finish_sums_kernel<E>, sums, row_stride, rows, columns, entry,
                       epilogue);
  }
}

}  // namespace GCRT_NAMESPACE

// Products that are left to cuBLASLt: layouts, batches, alignments and recorded graphs, over the emulator's
// library, which checks what it is promised.
#include "gcrt/cuda/product/cublaslt.h"

#include "cuda_kernel_test.h"

namespace cuda_kernel_test {
namespace {

// Where the elements of the operands lie: strides of B, and steps of outer and inner batch entries.
struct Case {
  int rows, columns, depth;
  int a_padding = 0;
  bool is_depth_major = false;  // B: contiguous along n
  int outer = 1, inner = 1;
  bool shares_b = false;  // among the outer entries
  int skipped = 0;        // floats before A and B, which spoil their alignment
};

class CublasltTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override { ASSERT_EQ(create_cublaslt(&queue_.cublaslt), cudaSuccess); }
  void TearDown() override { destroy_cublaslt(queue_.cublaslt); }
  Queue queue_;
};

TEST_P(CublasltTest, IsTheProduct) {
  const Case c = GetParam();
  const std::ptrdiff_t lda = c.depth + c.a_padding;
  const std::ptrdiff_t entry_a = c.rows * lda, entry_b = std::ptrdiff_t{c.depth} * c.columns;
  const int count = c.outer * c.inner;
  const auto a = random_values<float>(static_cast<std::size_t>(c.skipped + count * entry_a), 1);
  const auto b = random_values<float>(static_cast<std::size_t>(c.skipped + count * entry_b), 2);
  const DeviceArray<float> a_device(a), b_device(b);
  DeviceArray<float> workspace(static_cast<std::size_t>(cublaslt_workspace_size(c.rows, c.columns, count)));
  Recorded<float> result(c.rows, c.columns, count);
  const std::ptrdiff_t stride_k = c.is_depth_major ? c.columns : 1;
  const std::ptrdiff_t stride_n = c.is_depth_major ? 1 : c.depth;
  // Where B is shared, no one step separates all entries.
  const GemmBatch batch{count,  c.inner, c.inner * entry_a, entry_a, c.shares_b ? 0 : c.inner * entry_b,
                        entry_b};
  gemm_cublaslt<Precision::kFp32>(queue_, c.rows, c.columns, c.depth, a_device.data() + c.skipped, lda,
                                  b_device.data() + c.skipped, stride_k, stride_n, batch, workspace.data(),
                                  result.epilogue<4>());
  expect_no_error(queue_);
  std::vector<double> sums, magnitudes;
  for (int z = 0; z < count; ++z) {
    const float* const az = a.data() + c.skipped + z / c.inner * batch.a_outer + z % c.inner * batch.a_inner;
    const float* const bz = b.data() + c.skipped + z / c.inner * batch.b_outer + z % c.inner * batch.b_inner;
    for (int m = 0; m < c.rows; ++m) {
      for (int n = 0; n < c.columns; ++n) {
        double sum = 0, magnitude = 0;
        for (int k = 0; k < c.depth; ++k) {
          const double product = double{az[m * lda + k]} * double{bz[k * stride_k + n * stride_n]};
          sum += product;
          magnitude += std::fabs(product);
        }
        sums.push_back(sum);
        magnitudes.push_back(magnitude);
      }
    }
  }
  result.check(sums, magnitudes, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Layouts, CublasltTest,
                         ::testing::Values(Case{16, 32, 24}, Case{9, 7, 5, 3}, Case{1, 33, 17},
                                           Case{33, 1, 16, 1, true}, Case{12, 20, 8, 0, true},
                                           Case{10, 6, 4, 0, false, 1, 3}, Case{10, 6, 4, 0, true, 2, 3},
                                           Case{10, 6, 4, 0, false, 2, 3, true},
                                           Case{16, 16, 16, 0, false, 1, 1, false, 1}));

// A run that is captured calls the library once; its update passes the call and refuses other memory.
TEST_F(CublasltTest, IsRecordedOnce) {
  constexpr int kSize = 16;
  const DeviceArray<float> a(random_values<float>(kSize * kSize, 1)),
      b(random_values<float>(kSize * kSize, 2));
  DeviceArray<float> workspace(static_cast<std::size_t>(cublaslt_workspace_size(kSize, kSize, 1)));
  Recorded<float> result(kSize, kSize);
  const auto run = [&](const float* left) {
    gemm_cublaslt<Precision::kTf32>(queue_, kSize, kSize, kSize, left, kSize, b.data(), 1, kSize, GemmBatch{},
                                    workspace.data(), result.epilogue<4>());
  };
  GraphStep steps[2];
  queue_.mode = QueueMode::kRecord;
  queue_.steps = steps;
  queue_.capacity = 2;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamCreate(&queue_.stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(queue_.stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  run(a.data());
  ASSERT_EQ(cudaStreamEndCapture(queue_.stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&queue_.exec, graph), cudaSuccess);
  expect_no_error(queue_);
  EXPECT_EQ(queue_.count, 2);
  EXPECT_EQ(cudaGraphLaunch(queue_.exec, nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(result.calls.read()[kSize * kSize - 1], 1);

  queue_.mode = QueueMode::kUpdate;
  queue_.count = 0;
  run(a.data());
  expect_no_error(queue_);
  EXPECT_EQ(queue_.count, 2);
  queue_.count = 0;
  run(b.data());
  EXPECT_EQ(queue_.error, cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphExecDestroy(queue_.exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(queue_.stream), cudaSuccess);
}

}  // namespace
}  // namespace cuda_kernel_test

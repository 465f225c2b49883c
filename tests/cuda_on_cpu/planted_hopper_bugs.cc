// A product by a warpgroup over copies by tensor maps, its depth in two parts of a cluster, with one mistake
// each of the kinds that sm_90a has. Usage: planted_hopper_bugs NAME; "none" has no mistake.
// tests/cuda_on_cpu/CMakeLists.txt lists who notices what.
#include <cmath>
#include <string_view>
#include <vector>

#include "gcrt/cuda/product/hopper.h"
#include "gcrt/pack.h"
#include "planted_case.h"

namespace GCRT_NAMESPACE {
namespace {

enum class Bug {
  kNone,
  kDescriptorOffByOne,
  kDescriptorOfOtherRows,
  kWrongStride,
  kWrongPhase,
  kMissingWaitForCopy,
  kMissingWaitForRoom,
  kWrongBytes,
  kMissingWaitForProducts,
  kMissingCommit,
  kMissingRegisterFence,
  kMissingBarrierFence,
  kMissingProxyFence,
  kMissingClusterBarrier,
  kOwnPartTwice,
  kEndsBeforeItsPeer,
  kWrongSwizzle,
  kBarrierWrittenOver,
};

constexpr int kRows = 64, kColumns = 64, kStages = 2, kSteps = 9, kDepth = 64 * kSteps;
constexpr int kFlippedStep = 2, kFlippedColumns = 4;
constexpr int kTileBytes = 64 * kSwizzleBytes;
constexpr int kStageBytes = 2 * kTileBytes;
constexpr int kSharedBytes = 1024 + kStages * kStageBytes + 16 * kStages;
constexpr int kSumStride = kColumns + 8;

// Two blocks: of nine steps the first sums five, the other four; each adds and stores half of the rows.
template <Bug kBug>
GCRT_GLOBAL_BLOCKS(256, 1)
void multiply(GCRT_GRID_CONSTANT TensorMap map_a, GCRT_GRID_CONSTANT TensorMap map_b, float* y) {
  GCRT_DYNAMIC_SHARED(unsigned char, unaligned);
  unsigned char* const shared = aligned_shared<kSwizzlePattern>(unaligned);
  auto* const barriers = reinterpret_cast<SharedBarrier*>(unaligned + kSharedBytes - 16 * kStages);
  const int thread = thread_rank();
  const int rank = cluster_rank();
  const int first = rank == 0 ? 0 : (kSteps + 1) / 2, steps = rank == 0 ? (kSteps + 1) / 2 : kSteps / 2;
  if (thread == 0) {
    for (int i = 0; i < kStages; ++i) {
      barrier_init(&barriers[2 * i], 1);
      barrier_init(&barriers[2 * i + 1], 4);
    }
    if (kBug != Bug::kMissingBarrierFence) fence_barrier_init();
  }
  barrier();
  await_previous_grid();
  auto* const parked = reinterpret_cast<float*>(shared);
  if (thread == 128) {
    for (int step = 0; step < steps; ++step) {
      const int stage = step % kStages, parity = step / kStages % 2;
      unsigned char* const a = shared + stage * kStageBytes;
      SharedBarrier* const full = &barriers[2 * stage];
      if (kBug != Bug::kMissingWaitForRoom) barrier_wait(&barriers[2 * stage + 1], parity ^ 1);
      barrier_expect(full, kBug == Bug::kWrongBytes ? kStageBytes + 128 : kStageBytes);
      copy_box(a, map_a, {(first + step) * 64, 0, 0, 0}, full);
      copy_box(a + kTileBytes, map_b, {(first + step) * 64, 0, 0, 0}, full);
    }
  } else if (thread < 128) {
    float sums[kColumns / 2] = {};
    for (int step = 0; step < steps; ++step) {
      const int stage = step % kStages, parity = step / kStages % 2;
      unsigned char* const a = shared + stage * kStageBytes;
      if (kBug != Bug::kMissingWaitForCopy) {
        barrier_wait(&barriers[2 * stage], kBug == Bug::kWrongPhase ? parity ^ 1 : parity);
      }
      if (first + step == kFlippedStep) {
        // Threads change the signs of kFlippedColumns columns.
        reinterpret_cast<std::uint32_t*>(a + kTileBytes)[thread] ^= 0x80008000u;
        if (kBug != Bug::kMissingProxyFence) fence_async_proxy();
        named_barrier<1, 128>();
      }
      std::uint64_t descriptor_a = wgmma_descriptor(a);
      const std::uint64_t descriptor_b = wgmma_descriptor(a + kTileBytes);
      if (kBug == Bug::kDescriptorOffByOne) descriptor_a += 1;
      if (kBug == Bug::kDescriptorOfOtherRows) descriptor_a += kSwizzleBytes >> 4;
      if (kBug == Bug::kWrongStride) descriptor_a += std::uint64_t{1} << 32;
      if (kBug != Bug::kMissingRegisterFence) wgmma_fence();
      for (int i = 0; i < 4; ++i) {
        wgmma<WgmmaKind::kF16, kColumns>(sums, advanced(descriptor_a, i), advanced(descriptor_b, i));
      }
      if (kBug != Bug::kMissingCommit) wgmma_commit();
      if (kBug == Bug::kMissingWaitForProducts) {
        wgmma_wait<1>();
      } else {
        wgmma_wait<0>();
      }
      SharedBarrier* const empty = &barriers[2 * stage + 1];
      if (lane_rank() == 0) barrier_arrive(empty);
      if (kBug == Bug::kBarrierWrittenOver && thread == 0) *empty = 0;
    }
    // Nobody reads stages any more.
    named_barrier<1, 128>();
    const int row = thread / 32 * 16 + thread % 32 / 4;
    for (int i = 0; i < kColumns / 2; ++i) {
      parked[(row + i % 4 / 2 * 8) * kSumStride + i / 4 * 8 + thread % 4 * 2 + i % 2] = sums[i];
    }
    wgmma_wait<0>();
  }
  if (kBug == Bug::kMissingClusterBarrier) {
    barrier();
  } else {
    cluster_barrier();
  }
  for (int i = thread; i < kRows / 2 * kColumns / 4; i += 256) {
    const int row = rank * kRows / 2 + i / (kColumns / 4), column = i % (kColumns / 4) * 4;
    const float* const from = parked + row * kSumStride + column;
    const int peer = kBug == Bug::kOwnPartTwice ? rank : rank ^ 1;
    store(Lanes<4>{}, y + row * kColumns + column, load(Lanes<4>{}, from) + load_from_block(from, peer));
  }
  if (kBug != Bug::kEndsBeforeItsPeer) cluster_barrier();
}

struct Case {
  const char* name;
  void (*kernel)(TensorMap, TensorMap, float*);
};
const Case kCases[] = {
    {"none", &multiply<Bug::kNone>},
    {"descriptor_off_by_one", &multiply<Bug::kDescriptorOffByOne>},
    {"descriptor_of_other_rows", &multiply<Bug::kDescriptorOfOtherRows>},
    {"wrong_stride", &multiply<Bug::kWrongStride>},
    {"wrong_phase", &multiply<Bug::kWrongPhase>},
    {"missing_wait_for_copy", &multiply<Bug::kMissingWaitForCopy>},
    {"missing_wait_for_room", &multiply<Bug::kMissingWaitForRoom>},
    {"wrong_bytes", &multiply<Bug::kWrongBytes>},
    {"missing_wait_for_products", &multiply<Bug::kMissingWaitForProducts>},
    {"missing_product_commit", &multiply<Bug::kMissingCommit>},
    {"missing_register_fence", &multiply<Bug::kMissingRegisterFence>},
    {"missing_barrier_fence", &multiply<Bug::kMissingBarrierFence>},
    {"missing_proxy_fence", &multiply<Bug::kMissingProxyFence>},
    {"missing_cluster_barrier", &multiply<Bug::kMissingClusterBarrier>},
    {"own_part_twice", &multiply<Bug::kOwnPartTwice>},
    {"ends_before_its_peer", &multiply<Bug::kEndsBeforeItsPeer>},
    {"wrong_swizzle", &multiply<Bug::kWrongSwizzle>},
    {"barrier_written_over", &multiply<Bug::kBarrierWrittenOver>},
};

// Small integers, of which sums are exact.
float element(int row, int k, int salt) { return static_cast<float>((row * 31 + k * 7 + salt) % 9 - 4); }

TensorMap map_of(Queue& queue, const Half* data, int rows, int box_rows, bool is_wrong) {
  TensorMap map = tensor_map<Half>(queue, {data, {kDepth, rows, 1, 1}, {kDepth, 0, 0}, {box_rows, 1, 1}});
  if (!is_wrong) return map;
  const cuuint64_t sizes[4] = {kDepth, static_cast<cuuint64_t>(rows), 1, 1};
  const cuuint64_t strides[3] = {2 * kDepth, 2 * kDepth, 2 * kDepth};
  const cuuint32_t box[4] = {32, static_cast<cuuint32_t>(2 * box_rows), 1, 1}, ones[4] = {1, 1, 1, 1};
  tensor_map_encoder()(&map, kTensorMapType<Half>, 4, const_cast<Half*>(data), sizes, strides, box, ones,
                       CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_64B,
                       CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

int run(const Case& test) {
  std::vector<Half> a, b;
  const auto put = [](std::vector<Half>& to, float value) {
    Half half;
    store_from_float(Lanes<1>{}, &half, value);
    to.push_back(half);
  };
  for (int i = 0; i < kRows * kDepth; ++i) put(a, element(i / kDepth, i % kDepth, 3));
  for (int i = 0; i < kColumns * kDepth; ++i) put(b, element(i / kDepth, i % kDepth, 5));
  Half *a_device = nullptr, *b_device = nullptr;
  float* y_device = nullptr;
  std::vector<float> y(kRows * kColumns);
  cudaMalloc(&a_device, a.size() * 2), cudaMalloc(&b_device, b.size() * 2);
  cudaMalloc(&y_device, y.size() * 4);
  Queue queue;
  copy(queue, a_device, a.data(), a.size() * 2);
  copy(queue, b_device, b.data(), b.size() * 2);
  const bool is_wrong = std::string_view(test.name) == "wrong_swizzle";
  const TensorMap map_a = map_of(queue, a_device, kRows, kRows, is_wrong);
  const TensorMap map_b = map_of(queue, b_device, kColumns, kColumns, false);
  launch_clusters(queue, 2, dim3(2), dim3(256), kSharedBytes, test.kernel, map_a, map_b, y_device);
  copy(queue, y.data(), y_device, y.size() * 4);
  cudaFree(a_device), cudaFree(b_device), cudaFree(y_device);
  if (has_failed(test.name, queue)) return 1;
  for (int m = 0; m < kRows; ++m) {
    for (int n = 0; n < kColumns; ++n) {
      float expected = 0;
      for (int k = 0; k < kDepth; ++k) {
        const bool is_flipped = k / 64 == kFlippedStep && n < kFlippedColumns;
        expected += element(m, k, 3) * element(n, k, 5) * (is_flipped ? -1.0f : 1.0f);
      }
      const int i = m * kColumns + n;
      if (differs(test.name, i, y[static_cast<std::size_t>(i)], expected)) return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace GCRT_NAMESPACE

int main(int count, char** arguments) {
  using namespace GCRT_NAMESPACE;
  return run_planted(kCases, &run, count, arguments);
}

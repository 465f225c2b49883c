// Queues that run, record a graph, and update it: what a replay computes and which nodes an update touches.
#include "device_memory.h"
#include "gcrt/cuda/device/device.h"
#include "gcrt/cuda/device/launch.h"

namespace GCRT_NAMESPACE {
namespace {

using cuda_test::Device;
using cuda_test::Pinned;

GCRT_GLOBAL(64) void add_scaled(const float* x, float* y, float factor, int count) {
  await_previous_grid();
  const int i = static_cast<int>(blockIdx.x * blockDim.x) + thread_rank();
  if (i < count) y[i] = y[i] + x[i] * factor;
}

constexpr int kCount = 100;

// A schedule as it is emitted: input to the arena, two kernels, result to the output.
struct Schedule {
  const float* input;
  float* output;
  float* arena;
  float factor = 2.0f;
  void run(Queue& queue) const {
    fill_bytes(queue, arena + kCount, 0, kCount * 4);
    copy(queue, arena, input, kCount * 4);
    launch(queue, blocks_for(kCount, 64), 64, 0, &add_scaled, arena, arena + kCount, 3.0f, kCount);
    launch(queue, 0, 64, 0, &add_scaled, arena, arena + kCount, 3.0f, kCount);
    launch_overlapping(queue, blocks_for(kCount, 64), 64, 0, &add_scaled, arena, arena + kCount, factor,
                       kCount);
    copy(queue, output, arena + kCount, kCount * 4);
  }
};

// What a launch that may start early is captured as: a node that the next one comes behind. The data of its
// edge concern the node before it, so a query in between loses nothing.
TEST(Graph, EarlyLaunchesAreRecordedOneByOne) {
  const Device<float> x(std::vector<float>{1.0f}), y(std::vector<float>{0.0f});
  Queue queue;
  ASSERT_EQ(cudaStreamCreateWithFlags(&queue.stream, cudaStreamNonBlocking), cudaSuccess);
  GraphStep steps[3] = {};
  queue.mode = QueueMode::kRecord;
  queue.steps = steps;
  queue.capacity = 3;
  ASSERT_EQ(cudaStreamBeginCapture(queue.stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  for (int i = 0; i < 3; ++i) {
    launch_overlapping(queue, 1, 64, 0, &add_scaled, x.data(), y.data(), 1.0f, 1);
    EXPECT_EQ(queue.error, cudaSuccess);
    EXPECT_EQ(queue.count, i + 1);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaGraphNode_t* nodes = nullptr;
    if (i == 0) {
      EXPECT_EQ(cudaStreamGetCaptureInfo(queue.stream, &status, nullptr, nullptr, &nodes), cudaSuccess);
      EXPECT_EQ(nodes[0], steps[0].node);
    } else {
      EXPECT_NE(steps[i].node, steps[i - 1].node);
    }
  }
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(queue.stream, &graph), cudaSuccess);
  std::size_t count = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &count), cudaSuccess);
  EXPECT_EQ(count, 3u);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(queue.stream);
}

std::vector<float> counting(float start) {
  std::vector<float> values(kCount);
  for (int i = 0; i < kCount; ++i) values[static_cast<std::size_t>(i)] = start + static_cast<float>(i);
  return values;
}

void expect_output(const std::vector<float>& input, const std::vector<float>& output, float factor) {
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(output[i], input[i] * factor);
}

struct Captured {
  static constexpr int kCapacity = 5;
  explicit Captured(const Schedule& schedule) {
    // What the default stream has been given to do, which this one does not wait for.
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&queue.stream, cudaStreamNonBlocking), cudaSuccess);
    queue.mode = QueueMode::kRecord;
    queue.steps = steps;
    queue.capacity = kCapacity;
    EXPECT_EQ(cudaStreamBeginCapture(queue.stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
    schedule.run(queue);
    EXPECT_EQ(cudaStreamEndCapture(queue.stream, &graph), cudaSuccess);
    EXPECT_EQ(queue.error, cudaSuccess);
    EXPECT_EQ(queue.count, kCapacity);
    EXPECT_EQ(cudaGraphInstantiateWithFlags(&queue.exec, graph, 0), cudaSuccess);
  }
  ~Captured() {
    EXPECT_EQ(cudaGraphExecDestroy(queue.exec), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(queue.stream), cudaSuccess);
  }
  void replay() {
    EXPECT_EQ(cudaGraphLaunch(queue.exec, queue.stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(queue.stream), cudaSuccess);
  }
  // Returns how many steps changed.
  int update(const Schedule& schedule) {
    GraphStep before[kCapacity];
    for (int i = 0; i < kCapacity; ++i) before[i] = steps[i];
    queue.mode = QueueMode::kUpdate;
    queue.count = 0;
    schedule.run(queue);
    int changed = 0;
    for (int i = 0; i < kCapacity; ++i) changed += steps[i].fingerprint != before[i].fingerprint ? 1 : 0;
    return changed;
  }
  Queue queue;
  GraphStep steps[kCapacity] = {};
  cudaGraph_t graph = nullptr;
};

TEST(Graph, ReplaysWhatWasCaptured) {
  Device<float> arena(2 * kCount);
  const Pinned<float> input(counting(1));
  const Pinned<float> output(std::vector<float>(kCount, 0));
  Captured captured({input.data(), output.data(), arena.data()});
  EXPECT_EQ(output.read()[5], 0.0f) << "capturing runs nothing";
  captured.replay();
  expect_output(input.read(), output.read(), 5);
  input.write(counting(50));
  captured.replay();
  expect_output(input.read(), output.read(), 5);
}

TEST(Graph, UpdatesOnlyTheNodesThatChanged) {
  Device<float> arena(2 * kCount);
  const Pinned<float> input(counting(1));
  const Pinned<float> other_input(counting(-30));
  Device<float> output(kCount);
  Device<float> other_output(kCount);
  Captured captured({input.data(), output.data(), arena.data()});
  captured.replay();
  expect_output(input.read(), output.read(), 5);
  EXPECT_EQ(captured.update({input.data(), output.data(), arena.data()}), 0);
  EXPECT_EQ(captured.update({other_input.data(), output.data(), arena.data()}), 1);
  captured.replay();
  expect_output(other_input.read(), output.read(), 5);
  EXPECT_EQ(captured.update({other_input.data(), other_output.data(), arena.data(), 4.0f}), 2);
  captured.replay();
  expect_output(other_input.read(), other_output.read(), 7);
  EXPECT_EQ(captured.queue.error, cudaSuccess);
}

TEST(Graph, SaysWhenThereAreMoreStepsThanRoom) {
  Device<float> arena(2 * kCount);
  const Pinned<float> host(counting(1));
  GraphStep steps[2];
  Queue queue;
  ASSERT_EQ(cudaStreamCreate(&queue.stream), cudaSuccess);
  queue.mode = QueueMode::kRecord;
  queue.steps = steps;
  queue.capacity = 2;
  ASSERT_EQ(cudaStreamBeginCapture(queue.stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  Schedule{host.data(), host.data(), arena.data()}.run(queue);
  EXPECT_EQ(queue.error, cudaErrorInvalidValue);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(queue.stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(queue.stream), cudaSuccess);
}

TEST(Graph, RecordsOnlyInsideACapture) {
  Device<float> arena(2 * kCount);
  GraphStep step;
  Queue queue;
  queue.mode = QueueMode::kRecord;
  queue.steps = &step;
  queue.capacity = 1;
  fill_bytes(queue, arena.data(), 0, 16);
  EXPECT_EQ(queue.error, cudaErrorInvalidValue);
}

GCRT_GLOBAL(32) void store_through_shared_memory(float* y, float value, int last) {
  GCRT_DYNAMIC_SHARED(float, shared);
  if (thread_rank() == 0) shared[last] = value;
  barrier();
  if (thread_rank() == 1) *y = shared[last];
}

// How much shared memory a kernel may ask for is a property of the kernel, not of one launch.
TEST(Graph, LaunchesOfOneKernelMayDifferInSharedMemory) {
  constexpr int kLarge = 24 << 10, kSmall = 16 << 10;  // floats: 96 KiB, 64 KiB
  Device<float> y(2);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  GraphStep steps[2];
  Queue queue;
  const auto run = [&](float value) {
    launch(queue, 1, 32, kLarge * 4, &store_through_shared_memory, y.data(), value, kLarge - 1);
    launch(queue, 1, 32, kSmall * 4, &store_through_shared_memory, y.data() + 1, value + 1, kSmall - 1);
  };
  ASSERT_EQ(cudaStreamCreateWithFlags(&queue.stream, cudaStreamNonBlocking), cudaSuccess);
  queue.mode = QueueMode::kRecord;
  queue.steps = steps;
  queue.capacity = 2;
  ASSERT_EQ(cudaStreamBeginCapture(queue.stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  run(5);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(queue.stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiateWithFlags(&queue.exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(queue.exec, queue.stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(queue.stream), cudaSuccess);
  EXPECT_EQ(y.read(), (std::vector<float>{5, 6}));
  queue.mode = QueueMode::kUpdate;
  queue.count = 0;
  run(7);
  EXPECT_EQ(queue.error, cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(queue.exec, queue.stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(queue.stream), cudaSuccess);
  EXPECT_EQ(y.read(), (std::vector<float>{7, 8}));
  EXPECT_EQ(cudaGraphExecDestroy(queue.exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(queue.stream), cudaSuccess);
}

TEST(Queue, RunsAtOnceWithoutAGraph) {
  Device<float> arena(2 * kCount);
  const Pinned<float> input(counting(7));
  const Pinned<float> output(counting(0));
  Queue queue;
  Schedule{input.data(), output.data(), arena.data()}.run(queue);
  EXPECT_EQ(queue.error, cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  expect_output(input.read(), output.read(), 5);
}

TEST(Events, MeasureTime) {
  cudaEvent_t start;
  cudaEvent_t end;
  ASSERT_EQ(cudaEventCreate(&start), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(start), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(end), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  EXPECT_GE(milliseconds, 0.0f);
  EXPECT_EQ(cudaEventDestroy(start), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
  cudaGetLastError();
}

// As the runtime says of cudaEventRecordExternal: a node, which each launch of the graph records anew.
TEST(Events, AreNodesOfGraphsWhereTheyAreExternal) {
  cudaEvent_t events[3];
  for (cudaEvent_t& event : events) ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(cudaEventRecordWithFlags(events[0], stream, cudaEventRecordExternal), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(events[2], stream), cudaSuccess);
  EXPECT_EQ(cudaEventRecordWithFlags(events[1], stream, cudaEventRecordExternal), cudaSuccess);
  cudaGraph_t graph;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  std::size_t count = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &count), cudaSuccess);
  EXPECT_EQ(count, 2u);
  cudaGraphExec_t exec;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph), cudaSuccess);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, events[0], events[1]), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, events[0], events[1]), cudaSuccess);
  EXPECT_GE(milliseconds, 0.0f);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, events[0], events[2]), cudaErrorInvalidValue)
      << "of a place in a graph";
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  for (const cudaEvent_t event : events) cudaEventDestroy(event);
  cudaGetLastError();
}

}  // namespace
}  // namespace GCRT_NAMESPACE

// What an instance remembers: which runs start at once, which change a graph, and which capture one; and that
// each computes what it is asked for.
// clang-format off
#include "gcrt/cuda/device/device.h"  // before any other header of gcrt
// clang-format on

#include "gcrt/cuda/device/captured_run.h"

#include "device_memory.h"

namespace GCRT_NAMESPACE {
namespace {

using cuda_test::Device;

constexpr int kMost = 200;      // elements
constexpr int kManyFrom = 100;  // of which more take another step

GCRT_GLOBAL(64) void twice(const float* x, float* y, int count) {
  await_previous_grid();
  const int i = static_cast<int>(blockIdx.x * blockDim.x) + thread_rank();
  if (i < count) y[i] = 2 * x[i];
}
GCRT_GLOBAL(64) void add_last(float* y, const float* last, int count) {
  await_previous_grid();
  const int i = static_cast<int>(blockIdx.x * blockDim.x) + thread_rank();
  if (i < count) y[i] = y[i] + last[0];
}

struct Memory {
  void* arena;
  const void* weights;
  void* state;
  void* instance;
  void* stream;
};
struct Inputs {
  const float* x;
};
struct Outputs {
  float* y;
};
struct Sizes {
  std::int64_t count;
};

// How often the schedule was walked, by what for.
int g_walks[4];
int walks(QueueMode mode) { return g_walks[static_cast<int>(mode)]; }

// y = 2 * x, and for many elements a word of the arena, which is zero, is added;
// all through a buffer that is cleared.
struct Doubling : ScheduleDefaults {
  using Memory = GCRT_NAMESPACE::Memory;
  using Inputs = GCRT_NAMESPACE::Inputs;
  using Outputs = GCRT_NAMESPACE::Outputs;
  using Sizes = GCRT_NAMESPACE::Sizes;
  static constexpr Sizes kAhead = {kMost};
  static constexpr int kSteps = 4;
  static constexpr BlockSizes kBlocks = {4096, 0, 0, static_cast<std::size_t>(instance_room(kSteps, 2, 1, 0)),
                                         64};
  static constexpr std::uint64_t kMark = 7;
  template <class In, class Out, class Visit>
  static void each_port(In& inputs, Out& outputs, const Visit& visit) {
    visit(inputs.x, kMost * 4);
    visit(outputs.y, kMost * 4);
  }
  static Status enqueue(Queue& queue, const Memory* memory, const Sizes* sizes, const Inputs* inputs,
                        const Outputs* outputs) {
    return enqueue_count(queue, memory, sizes->count, inputs, outputs);
  }
  static Status enqueue_count(Queue& queue, const Memory* memory, std::int64_t size, const Inputs* inputs,
                              const Outputs* outputs) {
    ++g_walks[static_cast<int>(queue.mode)];
    float* const arena = static_cast<float*>(memory->arena);
    const int count = static_cast<int>(size);
    fill_bytes(queue, arena, 0, static_cast<std::size_t>(count) * 4);
    launch_overlapping(queue, blocks_for(count, 64), 64, 0, &twice, inputs->x, outputs->y, count);
    if (count >= kManyFrom)
      launch_overlapping(queue, blocks_for(count, 64), 64, 0, &add_last, outputs->y, arena, count);
    return Status::ok;
  }
};

// Its sizes are told apart by where they stand, not by what they are:
// a graph of other sizes may pass for theirs.
struct Mistaken : Doubling {
  struct Sizes {
    const std::int64_t* count;
  };
  static constexpr std::int64_t kMostCount = kMost;
  static constexpr Sizes kAhead = {&kMostCount};
  static Status enqueue(Queue& queue, const Memory* memory, const Sizes* sizes, const Inputs* inputs,
                        const Outputs* outputs) {
    return enqueue_count(queue, memory, *sizes->count, inputs, outputs);
  }
};

constexpr float kUntouched = -77;

template <class Schedule>
class Model {
 public:
  using Run = CapturedRun<Schedule>;

  Model() : arena_(1024), instance_(Schedule::kBlocks.instance / 64 + 1) {
    memory_.arena = arena_.data();
    memory_.instance = instance_.data();
    EXPECT_EQ(Run::init(&memory_), Status::ok);
    for (int& count : g_walks) count = 0;
  }
  ~Model() { Run::release(&memory_); }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Whether the run has made `count` elements, and no others.
  bool runs_right(const typename Schedule::Sizes& sizes, std::int64_t count, Device<float>* x,
                  Device<float>* y) {
    std::vector<float> values(kMost);
    for (int i = 0; i < kMost; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i + next_);
    next_ += 3;
    x->write(values);
    y->write(std::vector<float>(kMost, kUntouched));
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const Inputs inputs = {x->data()};
    const Outputs outputs = {y->data()};
    EXPECT_EQ(Run::run(&memory_, &sizes, &inputs, &outputs), Status::ok);
    EXPECT_EQ(Run::finish(&memory_), Status::ok);
    const std::vector<float> found = y->read();
    for (std::size_t i = 0; i < kMost; ++i) {
      if (found[i] != (static_cast<std::int64_t>(i) < count ? 2 * values[i] : kUntouched)) return false;
    }
    return true;
  }

 private:
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  Device<float> arena_;
  std::vector<Line> instance_;
  Memory memory_{};
  int next_ = 1;
};

TEST(CapturedRun, BuffersInTurnCostNothing) {
  Model<Doubling> model;
  Device<float> x[2] = {Device<float>(kMost), Device<float>(kMost)};
  Device<float> y[2] = {Device<float>(kMost), Device<float>(kMost)};
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(model.runs_right({50}, 50, &x[i % 2], &y[i / 2]));
    if (round == 0) {
      for (int& count : g_walks) count = 0;
    }
  }
  for (const int count : g_walks) EXPECT_EQ(count, 0);
}

TEST(CapturedRun, SizesThatComeOnceCaptureNothing) {
  Model<Doubling> model;
  Device<float> x(kMost), y(kMost);
  for (int count = 1; count < kManyFrom; ++count) {
    if (count == kRememberedRuns + 1) {
      for (int& walk : g_walks) walk = 0;
    }
    EXPECT_TRUE(model.runs_right({count}, count, &x, &y)) << count;
  }
  EXPECT_EQ(walks(QueueMode::kRecord), 0);
  EXPECT_EQ(walks(QueueMode::kUpdate), kManyFrom - 1 - kRememberedRuns);
}

TEST(CapturedRun, RunsOfOtherStepsKeepGraphsOfTheirOwn) {
  Model<Doubling> model;
  Device<float> x(kMost), y(kMost);
  const auto turn = [&](int many, int few) {
    EXPECT_TRUE(model.runs_right({kManyFrom + many}, kManyFrom + many, &x, &y)) << many;
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(model.runs_right({few + i}, few + i, &x, &y)) << few + i;
    EXPECT_TRUE(model.runs_right({0}, 0, &x, &y));
  };
  turn(0, 1);
  for (int& count : g_walks) count = 0;
  for (int i = 0; i < 4; ++i) turn(10 + i, 30 + i * 10);
  EXPECT_EQ(walks(QueueMode::kRecord), 0);
}

TEST(CapturedRun, ForgetsWhatRanLongestAgo) {
  Model<Doubling> model;
  Device<float> x(kMost), y(kMost);
  for (int count = 1; count <= kRememberedRuns; ++count)
    EXPECT_TRUE(model.runs_right({count}, count, &x, &y));
  EXPECT_TRUE(model.runs_right({1}, 1, &x, &y));
  EXPECT_TRUE(model.runs_right({90}, 90, &x, &y));  // in the place of 2
  const int before = walks(QueueMode::kOutline);
  EXPECT_TRUE(model.runs_right({1}, 1, &x, &y));
  EXPECT_TRUE(model.runs_right({3}, 3, &x, &y));
  EXPECT_EQ(walks(QueueMode::kOutline), before);
  EXPECT_TRUE(model.runs_right({2}, 2, &x, &y));
  EXPECT_EQ(walks(QueueMode::kOutline), before + 1);
}

TEST(CapturedRun, WhatInitCapturedServesTheFirstRun) {
  Model<Doubling> model;
  Device<float> x(kMost), y(kMost);
  EXPECT_TRUE(model.runs_right({kMost}, kMost, &x, &y));
  EXPECT_EQ(walks(QueueMode::kRecord), 0);
  EXPECT_EQ(walks(QueueMode::kUpdate), 1);
}

// The planted error: a graph of other sizes is seen by what it leaves.
TEST(CapturedRun, AStaleGraphIsSeen) {
  Model<Mistaken> model;
  Device<float> x(kMost), y(kMost);
  std::int64_t count = 40;
  EXPECT_TRUE(model.runs_right({&count}, count, &x, &y));
  count = 41;
  EXPECT_FALSE(model.runs_right({&count}, count, &x, &y));
}

// Made for devices that are not this one.
struct ForLater : Doubling {
  static constexpr CodeNeeds kNeeds = {990, false};
};
struct ForOldOnes : Doubling {
  static constexpr CodeNeeds kNeeds = {75, false};
};

template <class Schedule>
Status init_status(cudaError_t* error) {
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  const Device<float> arena(1024);
  std::vector<Line> instance(Schedule::kBlocks.instance / 64 + 1);
  Memory memory{};
  memory.arena = arena.data();
  memory.instance = instance.data();
  const Status status = CapturedRun<Schedule>::init(&memory);
  *error = CapturedRun<Schedule>::of(&memory)->error;
  const Sizes sizes = {50};
  const Inputs inputs = {arena.data()};
  const Outputs outputs = {arena.data()};
  if (status != Status::ok) {
    EXPECT_NE(CapturedRun<Schedule>::run(&memory, &sizes, &inputs, &outputs), Status::ok);
  } else {
    CapturedRun<Schedule>::release(&memory);
  }
  return status;
}

// A device that does not run the code is a status, of init and of a run all the same, and nothing is broken:
// the context takes other work, and no error waits for somebody else to find it.
TEST(CapturedRun, CodeForOtherDevicesIsAStatus) {
  cudaError_t error = cudaSuccess;
  EXPECT_EQ(init_status<ForOldOnes>(&error), Status::ok);
  EXPECT_EQ(init_status<ForLater>(&error), Status::device_error);
  EXPECT_EQ(error, cudaErrorNoKernelImageForDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  Model<Doubling> model;
  Device<float> x(kMost), y(kMost);
  EXPECT_TRUE(model.runs_right({50}, 50, &x, &y));
}

}  // namespace
}  // namespace GCRT_NAMESPACE

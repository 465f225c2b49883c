// How loop nests are spread over a GPU: what a group keeps of its row, which reads pass through tiles, and
// that small or awkward shapes keep the simple form.
#include "codegen/loops/cuda/cuda_loop_plan.h"

#include <gtest/gtest.h>

#include "codegen/calls/cuda_time.h"
#include "codegen/loops/cuda/cuda_loop_printer.h"
#include "ir/forms/form.h"
#include "ir/sizes/sizes.h"

namespace gcompile {
namespace {

using ir::Combine;
using ir::ElementType;
using ir::Index;
using ir::ScalarOp;
using Worker = CudaLoopPlan::Worker;

constexpr ElementType kFloat = ElementType::kFloat32;

/// A small one: 16 multiprocessors.
constexpr gcrt::DeviceModel kDevice = gcrt::device_model(87);

KernelTensor tensor(ir::Shape strides, ElementType element = kFloat) {
  return {"x", element, std::move(strides), 64};
}

/// Rows of `count` elements, reduced by stages and walked once more at the end.
struct Rows {
  ir::LoopForm form;
  std::vector<KernelTensor> operands;
  KernelTensor result;

  Rows(std::int64_t rows, std::int64_t count) : result(tensor({count, 1})) {
    form.extents = {rows, count};
    form.parallel = 1;
    form.final_over_reduced = true;
    form.store = form.identity();
    operands = {tensor({count, 1}), tensor({1})};
  }
  int x() { return form.dag.load(0, kFloat, form.identity()); }
  int weight() { return form.dag.load(1, kFloat, {Index::axis(1)}); }
  int stage(Combine combine, int root) {
    form.stages.push_back({combine, root, false});
    return form.dag.accumulator(static_cast<int>(form.stages.size()) - 1, kFloat);
  }
  CudaLoopPlan plan(int root) {
    form.set_root(root);
    LoopNest nest = build_nest(form, form.regions[0], operands, result);
    return plan_cuda_loops(nest, root, operands, result, kDevice);
  }
};

using Nodes = std::vector<std::vector<int>>;

/// softmax(x); the exponentials are `*exponentials`.
CudaLoopPlan softmax(Rows& rows, int* exponentials = nullptr) {
  ir::Dag& dag = rows.form.dag;
  const int shifted = dag.apply(ScalarOp::kSub, {rows.x(), rows.stage(Combine::kMax, rows.x())});
  const int e = dag.apply(ScalarOp::kExp, {shifted});
  if (exponentials) *exponentials = e;
  return rows.plan(dag.apply(ScalarOp::kDiv, {e, rows.stage(Combine::kSum, e)}));
}

TEST(KeptRow, HoldsWhatALaterStageWantsAgain) {
  Rows rows(64, 128);
  int e = 0;
  const CudaLoopPlan plan = softmax(rows, &e);
  EXPECT_EQ(plan.kept.nodes, (Nodes{{rows.x()}, {e}}));
  EXPECT_EQ(plan.kept.words, 1) << "x is not wanted behind exp(x - max)";
  EXPECT_EQ(plan.worker, Worker::kWarp);
  EXPECT_EQ(plan.lanes, 4);
}

TEST(KeptRow, HoldsDifferencesButNotTheWeightsOfTheEnd) {
  Rows rows(64, 128);
  ir::Dag& dag = rows.form.dag;
  const int x = rows.x();
  const int centred = dag.apply(ScalarOp::kSub, {x, rows.stage(Combine::kSum, x)});
  const int variance = rows.stage(Combine::kSum, dag.apply(ScalarOp::kMul, {centred, centred}));
  const int scaled = dag.apply(ScalarOp::kDiv, {centred, variance});
  const CudaLoopPlan plan = rows.plan(dag.apply(ScalarOp::kMul, {scaled, rows.weight()}));
  EXPECT_EQ(plan.kept.nodes, (Nodes{{x}, {centred}}));
}

TEST(KeptRow, DropsWhatIsOnlyWantedForSomethingKept) {
  // The stage sums a * x, where a = exp(x); the end wants a and x.
  Rows rows(64, 128);
  ir::Dag& dag = rows.form.dag;
  const int x = rows.x();
  const int product = dag.apply(ScalarOp::kMul, {dag.apply(ScalarOp::kExp, {x}), x});
  const int sum = rows.stage(Combine::kSum, dag.apply(ScalarOp::kAdd, {product, x}));
  const CudaLoopPlan plan = rows.plan(dag.apply(ScalarOp::kDiv, {product, sum}));
  EXPECT_EQ(plan.kept.nodes, (Nodes{{product}})) << "x and exp(x) serve nothing but the product";
}

TEST(KeptRow, IsEmptyWithoutASecondWalkOrWithoutMemory) {
  Rows once(64, 128);
  once.form.final_over_reduced = false;
  once.form.store = {Index::axis(0)};
  once.result = tensor({1});
  EXPECT_TRUE(once.plan(once.stage(Combine::kSum, once.x())).kept.is_empty());

  Rows counted(64, 128);
  ir::Dag& dag = counted.form.dag;
  const int place = dag.cast(dag.iota(Index::axis(1)), kFloat);
  const int sum = counted.stage(Combine::kSum, place);
  EXPECT_TRUE(counted.plan(dag.apply(ScalarOp::kDiv, {place, sum})).kept.is_empty());
}

/// A norm whose last factor is a weight: its loads that a group has before the kernel ahead has ended.
std::size_t loads_ahead(std::int64_t points, std::int64_t count, bool is_weight, bool by_rows = true) {
  Rows rows(points, count);
  rows.operands[1].is_weight = is_weight;
  if (!by_rows) rows.operands[1].strides = {count, 1};
  ir::Dag& dag = rows.form.dag;
  const int scale = by_rows ? rows.weight() : dag.load(1, kFloat, rows.form.identity());
  const int centred = dag.apply(ScalarOp::kSub, {rows.x(), rows.stage(Combine::kSum, rows.x())});
  const CudaLoopPlan plan = rows.plan(dag.apply(ScalarOp::kMul, {centred, scale}));
  EXPECT_FALSE(plan.kept.is_empty());
  return plan.kept.ahead.size();
}

TEST(KeptRow, HasWeightsAhead) {
  EXPECT_EQ(loads_ahead(64, 128, true), 1u);
  EXPECT_EQ(loads_ahead(64, 128, false), 0u) << "a kernel ahead may write them";
  EXPECT_EQ(loads_ahead(64, 128, true, false), 0u) << "each row has its own";
  EXPECT_EQ(loads_ahead(5000, 512, true), 1u);
  EXPECT_EQ(loads_ahead(5000, 1024, true), 0u) << "the row itself takes the registers";
}

TEST(KeptRow, WaitsBehindItsWeights) {
  const auto text = [](bool is_weight, std::int64_t points) {
    Rows rows(points, 128);
    rows.operands[1] = {"scale", kFloat, {1}, 64, std::nullopt, is_weight};
    ir::Dag& dag = rows.form.dag;
    const int centred = dag.apply(ScalarOp::kSub, {rows.x(), rows.stage(Combine::kSum, rows.x())});
    rows.form.set_root(dag.apply(ScalarOp::kMul, {centred, rows.weight()}));
    SizeParameters sizes;
    return print_cuda_loops(rows.form, rows.operands, rows.result,
                            {{"const float* x", "x", "x"}, {"const float* scale", "scale", "scale"}}, kDevice,
                            sizes)
        .device.spelled({"k", ""});
  };
  const std::string wait = "await_previous_grid()";
  const std::string ahead = text(true, 5000), behind = text(false, 5000);
  EXPECT_LT(ahead.find("kept_scale = keep("), ahead.find(wait)) << ahead;
  EXPECT_LT(ahead.find(wait), ahead.find("load(lane, x"));
  EXPECT_EQ(ahead.find(wait), ahead.rfind(wait)) << "once";
  EXPECT_LT(behind.find(wait), behind.find("load(lane, scale")) << behind;
  // A warp that has no row waits all the same.
  EXPECT_NE(text(true, 5001).find("return await_previous_grid();"), std::string::npos);
}

TEST(KeptRow, ChoosesTheGroupThatHasTheRegisters) {
  const auto plan_of = [](std::int64_t count, std::int64_t points) {
    Rows rows(points, count);
    return softmax(rows);
  };
  EXPECT_EQ(plan_of(1024, 5000).threads, 32);
  EXPECT_EQ(plan_of(1024, 50).threads, 128) << "few rows are shared by more threads";
  EXPECT_EQ(plan_of(1028, 5000).threads, 128);
  EXPECT_EQ(plan_of(8192, 5000).threads, 256);
  EXPECT_EQ(plan_of(16384, 5000).threads, 512);
  EXPECT_FALSE(plan_of(16384, 5000).kept.is_empty());
  const CudaLoopPlan longer = plan_of(16388, 5000);
  EXPECT_TRUE(longer.kept.is_empty());
  EXPECT_EQ(longer.worker, Worker::kBlock);
}

TEST(Group, HasAllThreadsWhereLongRowsAreFew) {
  const auto plan_of = [](std::int64_t rows, std::int64_t count) {
    Rows reduced(rows, count);
    reduced.form.final_over_reduced = false;
    reduced.form.store = {Index::axis(0)};
    reduced.result = tensor({1});
    return reduced.plan(reduced.stage(Combine::kSum, reduced.x()));
  };
  EXPECT_EQ(plan_of(1, 1024).threads, 32);
  EXPECT_EQ(plan_of(1, 4096).threads, 256);
  EXPECT_EQ(plan_of(128, 8192).threads, 1024);
  EXPECT_EQ(plan_of(129, 8192).threads, 256);
}

TEST(Group, SharesTheSearchForAnExtremum) {
  const auto plan_of = [](std::int64_t rows, std::int64_t count) {
    Rows searched(rows, count);
    searched.form.final_over_reduced = false;
    searched.form.store = {Index::axis(0)};
    searched.result = {"y", ElementType::kInt64, {1}, 64};
    searched.form.stages.push_back({Combine::kArgMax, searched.x(), false});
    return searched.plan(searched.form.dag.accumulator(0, ElementType::kInt64));
  };
  EXPECT_EQ(plan_of(5, 1000).worker, Worker::kWarp);
  EXPECT_EQ(plan_of(5, 5000).worker, Worker::kBlock);
  EXPECT_EQ(plan_of(1, 50257).threads, 1024);
}

/// y[i][j] = f(x[j][i]) + z[i][j].
struct Transposed {
  ir::LoopForm form;
  std::vector<KernelTensor> operands;
  KernelTensor result;
  int staged = 0;

  Transposed(std::int64_t rows, std::int64_t columns, ElementType element = kFloat)
      : form(ir::LoopForm::over({rows, columns})),
        operands({tensor({rows, 1}, element), tensor({columns, 1}, element)}),
        result(tensor({columns, 1}, element)) {
    ir::Dag& dag = form.dag;
    const int x = dag.load(0, element, {Index::axis(1), Index::axis(0)});
    staged = dag.apply(ScalarOp::kNeg, {x});
    form.set_root(dag.apply(ScalarOp::kAdd, {staged, dag.load(1, element, form.identity())}));
  }
  CudaLoopPlan plan() {
    LoopNest nest = build_nest(form, form.regions[0], operands, result);
    return plan_cuda_loops(nest, form.regions[0].root, operands, result, kDevice);
  }
};

TEST(Tile, StagesTheOutermostValueOfTheOtherOrder) {
  Transposed map(1000, 2000);
  const CudaLoopPlan plan = map.plan();
  EXPECT_EQ(plan.worker, Worker::kTile);
  EXPECT_EQ(plan.tile.staged, std::vector<int>{map.staged});
  EXPECT_EQ(plan.tile.read_axis, 0);
  EXPECT_EQ(plan.tile.write_axis, 1);
  EXPECT_EQ(plan.tile.read_lanes, 4);
  EXPECT_EQ(plan.lanes, 4);
  EXPECT_EQ(plan.tile.read_side, 64);
  EXPECT_EQ(plan.workers, 16 * 32);
}

TEST(Tile, MovesAsManyElementsAtATimeAsAreAligned) {
  const CudaLoopPlan odd = Transposed(1001, 2002).plan();
  EXPECT_EQ(odd.tile.read_lanes, 1);
  EXPECT_EQ(odd.lanes, 2);
  EXPECT_EQ(Transposed(1000, 2000, ElementType::kFloat64).plan().lanes, 2) << "16 bytes";
  EXPECT_EQ(Transposed(1024, 2048, ElementType::kInt8).plan().lanes, 4);
}

TEST(Tile, IsLeftToLargeTensorsWithTwoLongAxes) {
  EXPECT_EQ(Transposed(16, 256).plan().worker, Worker::kTile);
  EXPECT_EQ(Transposed(16, 252).plan().worker, Worker::kThread) << "few elements";
  EXPECT_EQ(Transposed(3, 50000).plan().worker, Worker::kThread) << "a short axis";
  const CudaLoopPlan small = Transposed(64, 64).plan();
  EXPECT_EQ(small.tile.read_side, 32) << "more blocks where there are few tiles";
  EXPECT_EQ(small.workers, 4);
}

TEST(KeptRow, CountsIn64BitsWhereAddressesDo) {
  constexpr std::int64_t kFar = 200'000;
  Rows rows(64, 1 << 14);
  rows.operands[0] = tensor({1, kFar});
  rows.result = tensor({1, kFar});
  softmax(rows);
  SizeParameters sizes;
  const CudaLoops loops =
      print_cuda_loops(rows.form, rows.operands, rows.result, {{"const float* x", "x", "x"}}, kDevice, sizes);
  const std::string device = loops.device.spelled({"k", ""});
  EXPECT_NE(device.find("const std::int64_t i1 = place;"), std::string::npos) << device;
  EXPECT_NE(device.find("kept0(lane, place)"), std::string::npos) << device;
}

/// Rows of a model whose batch and length only a run knows.
struct OpenRows : Rows {
  OpenRows(ir::Dim rows, ir::Dim count) : Rows(1, 1) {
    form.extents = {rows, count};
    operands = {tensor({count, 1}), tensor({1})};
    result = tensor({count, 1});
  }
  std::string device(int root, SizeParameters& sizes) {
    form.set_root(root);
    CudaLoops loops =
        print_cuda_loops(form, operands, result, {{"const float* x", "x", "x"}}, kDevice, sizes);
    launches = loops.launches.spelled({"k", ""});
    return loops.device.spelled({"k", ""});
  }
  std::string launches;
};

TEST(OpenSizes, PacksComeOutEvenAtAllOfThem) {
  ir::Sizes sizes;
  const ir::SizesScope scope(&sizes);
  const ir::Dim rows = ir::Dim::symbol(sizes.add_symbol({"rows", {1, 64}, 16}));
  const ir::Dim length = ir::Dim::symbol(sizes.add_symbol({"length", {1, 512}, 128}));
  OpenRows any(rows, length), fours(rows, 4 * length), known(rows, 128);
  EXPECT_EQ(softmax(any).lanes, 1);
  EXPECT_EQ(softmax(fours).lanes, 4);
  const CudaLoopPlan plan = softmax(known);
  EXPECT_FALSE(plan.kept.is_empty()) << "a row of a known length";
  EXPECT_EQ(plan.workers, rows);
  EXPECT_TRUE(softmax(fours).kept.is_empty()) << "nobody knows for how many registers";
}

TEST(OpenSizes, CountersHave32BitsWhereAllSizesFit) {
  for (const std::int64_t most : {std::int64_t{1} << 20, std::int64_t{1} << 28}) {
    ir::Sizes all;
    const ir::SizesScope scope(&all);
    const ir::Dim rows = ir::Dim::symbol(all.add_symbol({"rows", {0, most}, 16}));
    OpenRows open(rows, 256);
    SizeParameters sizes;
    const std::string device = open.device(
        open.form.dag.apply(ScalarOp::kSub, {open.x(), open.stage(Combine::kMax, open.x())}), sizes);
    const bool is_narrow = most < 1 << 22;
    EXPECT_NE(device.find(is_narrow ? "(const float* x, int n0)" : "std::int64_t n0)"), std::string::npos)
        << device;
    EXPECT_NE(open.launches.find(is_narrow ? "blocks_for(n0, 2), 64, 0, k_kernel, x, static_cast<int>(n0)"
                                           : "blocks_for(n0, 2), 64, 0, k_kernel, x, n0"),
              std::string::npos)
        << open.launches;
    EXPECT_EQ(sizes.sizes(), std::vector<ir::Dim>{rows});
  }
}

/// y = x0 + x1 + ..., or a constant.
struct Sum {
  ir::LoopForm form;
  std::vector<KernelTensor> operands;
  KernelTensor result;

  Sum(std::int64_t count, int terms, ElementType element = kFloat)
      : form(ir::LoopForm::over({count})), result(tensor({1}, element)) {
    int sum = form.dag.constant(ir::cast(ir::Scalar::of_real(ElementType::kFloat64, 0), element));
    for (int i = 0; i < terms; ++i) {
      operands.push_back(tensor({1}, element));
      const int x = form.dag.load(i, element, form.identity());
      sum = i == 0 ? x : form.dag.apply(ScalarOp::kAdd, {sum, x});
    }
    form.set_root(sum);
  }
  CudaLoopPlan plan(int capability = 87) {
    LoopNest nest = build_nest(form, form.regions[0], operands, result);
    return plan_cuda_loops(nest, form.regions[0].root, operands, result, gcrt::device_model(capability));
  }
};

TEST(MapPacks, KeepSixtyFourBytesOfAThreadOnTheirWay) {
  constexpr std::int64_t kLarge = 1 << 22;
  EXPECT_EQ(Sum(kLarge, 1).plan().packs, 4);
  EXPECT_EQ(Sum(kLarge, 2).plan().packs, 2);
  EXPECT_EQ(Sum(kLarge, 3).plan().packs, 2);
  EXPECT_EQ(Sum(kLarge, 4).plan().packs, 1);
  EXPECT_EQ(Sum(kLarge, 0).plan().packs, 1) << "nothing is read";
  EXPECT_EQ(Sum(kLarge + 1, 4).plan().packs, 4) << "unaligned: packs of one element";
  EXPECT_EQ(Sum(kLarge, 1, ElementType::kInt8).plan().packs, 2) << "16 elements each";
}

TEST(MapPacks, LeaveWorkForEveryThreadOfTheDevice) {
  constexpr std::int64_t kThreads = 16 * 2048;
  EXPECT_EQ(Sum(kThreads * 4 * 4, 1).plan().packs, 4);
  EXPECT_EQ(Sum(kThreads * 4 * 4 - 4, 1).plan().packs, 2);
  EXPECT_EQ(Sum(kThreads * 4 * 2 - 4, 1).plan().packs, 1);
  EXPECT_EQ(Sum(kThreads * 4 * 4, 1).plan(90).packs, 1) << "a larger device";
}

TEST(MapPacks, CoverTheMapInWholeWarps) {
  const CudaLoopPlan plan = Sum(700'028, 1).plan();
  EXPECT_EQ(plan.lanes, 4);
  EXPECT_EQ(plan.packs, 4);
  EXPECT_EQ(plan.workers, 43776) << "175007 packs";
  EXPECT_EQ(plan.summary(), "4 x 4 per thread");
}

TEST(PredictedTime, IsThatOfTheMemoryOrOfTheProductsWhicheverIsLonger) {
  constexpr std::int64_t kGigabyte = 1'000'000'000;
  const Machine machine = machine_of_gpu({90}, Precision::kFp32, false);
  std::int64_t multiply_adds = 0;
  const auto time = [&](const Execution& call, std::int64_t all, std::int64_t of_memory) {
    return predicted_time(call, multiply_adds, machine, {all, of_memory}).microseconds();
  };
  Execution call;
  const double launch = time(call, 0, 0);
  EXPECT_GT(launch, gcrt::kGraphGap) << "no kernel follows another sooner";
  EXPECT_LT(launch, 3);
  EXPECT_NEAR(time(call, 43 * kGigabyte, 43 * kGigabyte), launch + 10'000, 1) << "4300 GB/s";
  EXPECT_NEAR(time(call, kGigabyte / 1000 * 92'664, 0), launch + 10'000, 1) << "9266 GB/s in the cache";
  multiply_adds = 1'000'000;
  EXPECT_NEAR(time(call, 43 * kGigabyte, 43 * kGigabyte), launch + 10'000, 1);
  multiply_adds = 1000 * kGigabyte;
  EXPECT_GT(time(call, 43 * kGigabyte, 43 * kGigabyte), 30'000);
  call.products_per_clock = 1e4;
  EXPECT_NEAR(time(call, 43 * kGigabyte, 43 * kGigabyte), launch + 10'000, 1);
  multiply_adds = 0;
  call.launches = 3;
  EXPECT_NEAR(time(call, 0, 0), 3 * launch, 1e-9);
  call.overlaps = true;
  EXPECT_NEAR(time(call, 0, 0), 3 * (launch - gcrt::kOverlap), 1e-9)
      << "but for what passes before the one in front ends";
  call.reductions = 2;
  EXPECT_GT(time(call, 0, 0), 3 * (launch - gcrt::kOverlap) + 0.2);
  call.time.math = 7;  // a family that knows better
  EXPECT_NEAR(time(call, 0, 0), 7 + 2 * gcrt::kReductionClocks / machine.gpu.gigahertz * 1e-3, 1e-9);
  EXPECT_NEAR(time(call, 43 * kGigabyte, 43 * kGigabyte) - time(call, 0, 0), 9'993, 1) << "but not of memory";
}

TEST(PredictedTime, KernelsOfOlderDevicesWaitForTheOneBefore) {
  Execution call;
  call.overlaps = true;
  const Machine ampere = machine_of_gpu({80}, Precision::kFp32, false);
  const Machine hopper = machine_of_gpu({90}, Precision::kFp32, false);
  EXPECT_EQ(predicted_time(call, 0, ampere, {}).launch, gcrt::kGraphGap);
  EXPECT_EQ(predicted_time(call, 0, hopper, {}).launch, gcrt::kGraphGap - gcrt::kOverlap);
}

/// The kernels of a form over one or more rows, for a device of many multiprocessors.
CudaLoops printed(Rows& rows, int root) {
  rows.form.set_root(root);
  SizeParameters sizes;
  const std::vector<CudaParameter> parameters = {
      {"const float* x", "x", "x"}, {"const float* w", "w", "w"}, {"float* y", "y", "y"}};
  return print_cuda_loops(rows.form, rows.operands, rows.result, parameters, gcrt::device_model(90), sizes);
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(SharedRows, AWholeTensorIsReducedByTheWholeDevice) {
  Rows rows(1, 1 << 22);
  rows.form.final_over_reduced = false;
  rows.form.store = {Index::axis(0)};
  rows.result = tensor({1});
  const CudaLoops loops = printed(rows, rows.stage(Combine::kMax, rows.x()));
  EXPECT_EQ(loops.count, 1);
  EXPECT_EQ(loops.blocks, 2 * 132);
  EXPECT_EQ(loops.joins, 1);
  EXPECT_EQ(loops.counters, 1);
  EXPECT_EQ(loops.workspace_bytes, (1 + 264) * 16);
}

TEST(SharedRows, StagesThatNeedNotOneAnotherShareAKernel) {
  Rows rows(2, 1 << 20);
  rows.form.final_over_reduced = false;
  rows.form.store = {Index::axis(0)};
  rows.result = tensor({1});
  ir::Dag& dag = rows.form.dag;
  const int high = rows.stage(Combine::kMax, rows.x()), low = rows.stage(Combine::kMin, rows.x());
  const CudaLoops loops = printed(rows, dag.apply(ScalarOp::kSub, {high, low}));
  const std::string text = loops.device.spelled({"k", "f"});
  EXPECT_EQ(loops.count, 1);
  EXPECT_EQ(count_of(text, "row.arrives_last(counters)"), 1);
  EXPECT_EQ(count_of(text, " = join_"), 2) << text;
}

TEST(SharedRows, EachStageThatNeedsAnotherIsAKernel) {
  Rows rows(2, 1 << 20);
  ir::Dag& dag = rows.form.dag;
  const int centred = dag.apply(ScalarOp::kSub, {rows.x(), rows.stage(Combine::kSum, rows.x())});
  const int squares = rows.stage(Combine::kSum, dag.apply(ScalarOp::kMul, {centred, centred}));
  const CudaLoops loops = printed(rows, dag.apply(ScalarOp::kDiv, {centred, squares}));
  const std::string text = loops.device.spelled({"k", "f"});
  EXPECT_EQ(loops.count, 3);
  EXPECT_EQ(loops.joins, 2);
  EXPECT_EQ(count_of(text, "row.keep(group, "), 2);
  EXPECT_EQ(count_of(text, "row.kept<float>(0)"), 2) << text;
}

TEST(SharedRows, RowsThatAreBlocksEnoughHaveOneEach) {
  for (const auto& [rows, count] : {std::pair(264, 1 << 16), std::pair(1, 16000), std::pair(4096, 4096)}) {
    Rows wide(rows, count);
    wide.form.final_over_reduced = false;
    wide.form.store = {Index::axis(0)};
    wide.result = tensor({1});
    const CudaLoops loops = printed(wide, wide.stage(Combine::kSum, wide.x()));
    EXPECT_EQ(loops.workspace_bytes, 0) << rows << " x " << count;
    EXPECT_EQ(loops.counters, 0);
  }
}

/// Few blocks have the bandwidth of their multiprocessors.
TEST(SharedRows, TheModelKnowsTheBlocks) {
  const gcrt::DeviceModel h200 = gcrt::device_model(90);
  const double bytes = 24883200;
  const double one = gcrt::walking_time(h200, 1, bytes, 0, 1, 380).microseconds();
  EXPECT_GT(one, 220);
  EXPECT_LT(gcrt::walking_time(h200, 1, bytes, 0, 264, 3).microseconds(), 10);
}

}  // namespace
}  // namespace gcompile

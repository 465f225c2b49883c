// One call of the kernels that are chosen for several GPUs.
#include "codegen/calls/instances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gcompile {
namespace {

using ::testing::ElementsAre;

KernelCall call(const char* tile, std::int64_t scratch_bytes = 0, int weights = 0) {
  KernelCall out;
  out.device.emplace();
  out.functor_name = "Bias";
  out.functor = Text("struct ") + Symbol::kFunctor + " {};\n";
  out.body = Text("  const ") + Symbol::kFunctor + " epilogue{y};\n  gemm<" + tile + ">(b, y, epilogue);\n";
  CallArgument b;
  b.kind = CallArgument::Kind::kWeights;
  b.weights = weights;
  b.parameter = "b";
  out.add(b);
  CallArgument y;
  y.storage.buffer = 1;
  y.parameter = "y";
  y.writes = true;
  out.add(y);
  if (scratch_bytes > 0) {
    CallArgument workspace;
    workspace.kind = CallArgument::Kind::kScratch;
    workspace.scratch_bytes = scratch_bytes;
    workspace.parameter = "workspace";
    out.add(workspace);
  }
  return out;
}

std::string body_of(const KernelCall& call) { return call.body.spelled({"k", "E"}); }

TEST(Instances, AreOneWhereKernelsAreTheSame) {
  Instances instances(call("k16"), "sm_80");
  EXPECT_TRUE(instances.add(call("k16"), "sm_90"));
  const KernelCall joined = instances.finish();
  EXPECT_EQ(body_of(joined), body_of(call("k16")));
  EXPECT_FALSE(joined.device->has_instances);
  EXPECT_EQ(joined.device->executions.size(), 2U);
}

TEST(Instances, StartTheirOwnAndShareTheLargestWorkspace) {
  KernelCall small = call("k16", 64), large = call("k32", 256), none = call("k64");
  large.device->counters = 5;
  large.device->launches = 2;
  Instances instances(small, "sm_80");
  EXPECT_TRUE(instances.add(large, "sm_87"));
  EXPECT_TRUE(instances.add(none, "sm_90"));
  EXPECT_TRUE(instances.add(small, "sm_100"));
  const KernelCall joined = instances.finish();
  EXPECT_TRUE(joined.device->has_instances);
  EXPECT_EQ(body_of(joined), R"(  switch (queue.architecture) {
    case sm_80:
    case sm_100: {
      const OnlyOn<sm_80 | sm_100, E> epilogue{y};
      gemm<k16>(b, y, epilogue);
      break;
    }
    case sm_87: {
      const OnlyOn<sm_87, E> epilogue{y};
      gemm<k32>(b, y, epilogue);
      break;
    }
    case sm_90: {
      const OnlyOn<sm_90, E> epilogue{y};
      gemm<k64>(b, y, epilogue);
      break;
    }
  }
)");
  ASSERT_EQ(joined.arguments.size(), 3U);
  EXPECT_EQ(joined.arguments[2].scratch_bytes, 256);
  EXPECT_EQ(joined.device->counters, 5);
  EXPECT_EQ(joined.device->launches, 2);
  std::vector<int> launches;
  for (const Execution& on : joined.device->executions) launches.push_back(on.launches);
  EXPECT_THAT(launches, ElementsAre(1, 2, 1, 1));
}

TEST(Instances, RefuseOtherWeightsAndOtherEpilogues) {
  Instances instances(call("k16"), "sm_80");
  EXPECT_FALSE(instances.add(call("k32", 0, /*weights*/ 1), "sm_90"));
  KernelCall other = call("k32");
  other.functor += "// another one\n";
  EXPECT_FALSE(instances.add(other, "sm_90"));
  KernelCall elsewhere = call("k32");
  elsewhere.arguments[1].storage.offset = 4;
  EXPECT_FALSE(instances.add(elsewhere, "sm_90"));
  gcrt::KernelTime time;
  time.launch = 3;
  instances.add_oldest(time, "sm_90");
  const KernelCall joined = instances.finish();
  EXPECT_EQ(body_of(joined), body_of(call("k16")));
  EXPECT_EQ(joined.device->executions[1].time.launch, 3);
}

TEST(Instances, NeedAnEpilogueToDiffer) {
  KernelCall plain = call("k16");
  plain.functor_name.clear();
  plain.functor = {};
  EXPECT_FALSE(Instances(plain, "sm_80").can_differ());
  EXPECT_TRUE(Instances(call("k16"), "sm_80").can_differ());
}

}  // namespace
}  // namespace gcompile

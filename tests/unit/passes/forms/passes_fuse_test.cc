// What is computed together: the same numbers as one by one, nothing costly again and again,
// and no check lost.

#include "base/diagnostics.h"
#include "codegen/choice/prices.h"
#include "ir/forms/form.h"
#include "tests/unit/codegen/loops/random_views.h"
#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

TEST(Fuse, KeepsTheNumbersOfRandomModels) {
  memory_instances::Dice dice(3);
  std::size_t before = 0, after = 0;
  for (int round = 0; round < 1500; ++round) {
    const std::string text = RandomModel(dice).text();
    SCOPED_TRACE(text);
    ir::Graph graph = parse(text);
    prepare(graph);
    before += graph.nodes().size();
    graph = run_pipeline(std::move(graph), {}, 2e-5);
    after += graph.nodes().size();
    if (HasFailure()) break;
  }
  EXPECT_LT(after, before * 19 / 20);
}

/// The nodes behind fusion.
std::string fused(const std::string& text) {
  ir::Graph graph = parse(text);
  return operators(run_pipeline(std::move(graph), {}, 2e-5));
}

TEST(Fuse, ComputesNothingCostlyAgainForEachReader) {
  EXPECT_EQ(fused("g (float[1,64] x, float[64,64] z) => (float[64,64] y) { e = Erf(x)\n y = Add(e, z) }"),
            "Erf Add");
  EXPECT_EQ(fused("g (float[1,64] x, float[4,64] z) => (float[4,64] y) { e = Abs(x)\n y = Add(e, z) }"),
            "Add");
  EXPECT_EQ(fused("g (float[64,64] x, float[64,64] z) => (float[64,64] y) { e = Erf(x)\n y = Add(e, z) }"),
            "Add");
}

/// What is read along another axis than that along which it was made is no beginning of a chain.
TEST(Fuse, KeepsTheAxesOfWhatItTakesOver) {
  EXPECT_EQ(fused("g (float[4] x, float[4,4] z) => (float[4,4] y) { e = Abs(x)\n y = Add(e, z) }"), "Add");
}

/// An index that only a run knows is checked by whoever reads at it.
TEST(Fuse, KeepsTheChecksOfWhatItTakesOver) {
  const MachinePrices prices(default_machine(Target::kCuda));
  passes::Options options;
  options.prices = &prices;
  ir::Graph graph = parse(
      "g (float[4,3] x, int64[2] i, float[2,3] z) => (float[2,3] y) { e = Gather(x, i)\n f = Add(e, z)\n"
      " y = Relu(f) }");
  passes::optimise(graph, options);
  ASSERT_EQ(graph.nodes().size(), 1u) << ir::print(graph);
  EXPECT_EQ(std::get<ir::LoopForm>(*graph.node(graph.nodes()[0]).form).checks.size(), 1u);
  std::vector<ir::Tensor> inputs = random_inputs(graph, false);
  for (const std::int64_t index : {-5, 4}) {
    inputs[1].set(1, ir::Scalar::of_integer(ir::ElementType::kInt64, index));
    EXPECT_THROW(ir::evaluate_graph(graph, inputs), CompileError) << index;
  }
  inputs[1].set(1, ir::Scalar::of_integer(ir::ElementType::kInt64, -4));
  EXPECT_NO_THROW(ir::evaluate_graph(graph, inputs));
}

}  // namespace
}  // namespace gcompile::testing

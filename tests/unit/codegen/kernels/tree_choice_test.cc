// Which kernel serves decision trees, and why the other does not.

#include <gmock/gmock.h>

#include <bit>

#include "codegen/choice/family.h"
#include "tests/unit/codegen/kernels/one_problem.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Tensor;
using ::testing::HasSubstr;

/// A chain: node i of `leaves` - 1 has leaf i as its first child, and the next node, or the last leaf, as its second.
std::vector<std::int64_t> chain(std::int64_t leaves) {
  const std::int64_t inner = leaves - 1;
  std::vector<std::int64_t> table = {0, inner, inner, 0};
  for (std::int64_t i = 0; i < inner; ++i) {
    const std::int64_t next = i + 1 < inner ? i + 1 : inner + inner;
    table.insert(table.end(), {std::bit_cast<std::int64_t>(0.5), 0, inner + i, next});
  }
  return table;
}

Ranking ranking_of(std::int64_t rows, std::int64_t leaves, std::int64_t values, ElementType type,
                   const Machine& machine) {
  ir::Graph graph;
  const std::vector<std::int64_t> table = chain(leaves);
  ir::Attributes attributes;
  attributes.set("trees", std::int64_t{1});
  attributes.set("groups", std::int64_t{1});
  attributes.set("combine", std::string("sum"));
  const std::vector<ir::ValueId> operands = {graph.add_input("x", {type, {rows, 2}}),
                                             graph.add_constant(Tensor::of_ints(table, {leaves, 4})),
                                             graph.add_constant(Tensor({type, {values, 1}}))};
  const ir::NodeId id = graph.add_node(ir::operator_named("Trees"), operands, attributes, 1, "node");
  ir::infer_node(graph, id);
  return rank(problem_of_node(graph), machine);
}

std::string why_not(const Ranking& ranking) {
  return ranking.refused.empty() ? "" : ranking.refused.front().second;
}

TEST(TreeChoice, MasksServeManyRows) {
  const ElementType real = ElementType::kFloat32;
  EXPECT_EQ(ranking_of(1, 32, 32, real, {}).taken.front().family->name, "trees.loops");
  EXPECT_EQ(ranking_of(1000, 32, 32, real, {}).taken.front().family->name, "trees.masks");
  EXPECT_EQ(ranking_of(1000, 64, 64, real, {}).taken.size(), 2u);
}

TEST(TreeChoice, MasksHaveABitForEachLeaf) {
  const ElementType real = ElementType::kFloat32;
  EXPECT_EQ(why_not(ranking_of(1000, 65, 65, real, {})), "a tree of 65 leaves");
  EXPECT_EQ(why_not(ranking_of(1000, 8, 8, ElementType::kFloat64, {})), "other numbers than float32");
  EXPECT_EQ(why_not(ranking_of(1000, 8, 7, real, {})), "a node with two parents");
  const Machine gpu = machine_of_gpu({80}, Precision::kFp32, false);
  EXPECT_THAT(why_not(ranking_of(1000, 8, 8, real, gpu)), HasSubstr("a GPU"));
}

}  // namespace
}  // namespace gcompile::testing

#include "codegen/choice/rankings.h"

#include <gtest/gtest.h>

#include "tests/unit/codegen/kernels/one_problem.h"

namespace gcompile {
namespace {

using ir::ElementType;
using ir::Tensor;

ir::Problem product(std::int64_t rows) {
  const Tensor a = testing::awkward(ElementType::kFloat32, {rows, 8});
  const Tensor b = testing::awkward(ElementType::kFloat32, {8, 4});
  const testing::OneNode node{.op = "MatMul", .operands = {&a, &b}};
  return testing::problem_of_node(testing::graph_of(node));
}

TEST(Rankings, AreMadeOnceForEqualProblems) {
  Rankings rankings{Machine{}};
  const Ranking& first = rankings.of(product(3));
  EXPECT_EQ(first.taken.at(0).family->name, rank(product(3), Machine{}).taken.at(0).family->name);
  const Ranking& other = rankings.of(product(5));
  EXPECT_NE(&other, &first);
  EXPECT_EQ(&rankings.of(product(3)), &first);
  EXPECT_EQ(&rankings.of(product(5)), &other);
}

/// The text of a problem leaves out what its constants hold.
TEST(Rankings, DifferWhereTheTextOfProblemsDoesNot) {
  Rankings rankings{Machine{}};
  ir::Problem problem = product(3), narrow = problem;
  for (ir::Problem* each : {&problem, &narrow}) each->operands[1].constant.emplace();
  narrow.operands[1].constant->fits_float16 = false;
  ASSERT_EQ(to_string(problem), to_string(narrow));
  EXPECT_NE(&rankings.of(problem), &rankings.of(narrow));
}

TEST(Rankings, DifferByTheFamilyThatIsForced) {
  Rankings rankings{Machine{}};
  const ir::Problem problem = product(3);
  const KernelFamily* const loops = find_family("product.loops");
  ASSERT_NE(loops, nullptr);
  const Ranking& forced = rankings.of(problem, loops);
  EXPECT_EQ(forced.taken.at(0).family, loops);
  EXPECT_NE(rankings.of(problem).taken.at(0).family, loops);
}

}  // namespace
}  // namespace gcompile

// Einsum against a direct sum over all labels, and its refusals.

#include <map>

#include "gtest/gtest.h"
#include "ir/graph/verify.h"
#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::Shape;
using ir::Tensor;

Tensor ramp(const Shape& shape, int start) {
  std::vector<float> values(static_cast<std::size_t>(ir::element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((static_cast<int>(i) * 7 + start) % 11 - 5);
  }
  return floats(values, shape);
}

OneNode einsum(const std::string& equation, const std::vector<Tensor>& operands) {
  OneNode node = {.op = "Einsum"};
  for (const Tensor& tensor : operands) node.operands.push_back(&tensor);
  node.attributes.set("equation", equation);
  return node;
}

/// Sum over all labels, written out; terms of letters only.
Tensor direct(const std::vector<std::string>& terms, const std::string& output,
              const std::vector<Tensor>& operands) {
  std::map<char, std::int64_t> extents, at;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    for (std::size_t i = 0; i < terms[k].size(); ++i) {
      std::int64_t& extent = extents.try_emplace(terms[k][i], 1).first->second;
      extent = std::max<std::int64_t>(extent, operands[k].shape()[i]);
      at[terms[k][i]] = 0;
    }
  }
  Shape shape;
  for (const char c : output) shape.push_back(extents[c]);
  std::vector<float> sums(static_cast<std::size_t>(ir::element_count(shape)), 0.0f);
  const auto position = [&](const std::string& labels, const Shape& dims) {
    std::int64_t p = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) p = p * dims[i] + (dims[i] == 1 ? 0 : at[labels[i]]);
    return p;
  };
  for (;;) {
    float product = 1;
    for (std::size_t k = 0; k < terms.size(); ++k) {
      product *= static_cast<float>(operands[k].real_at(position(terms[k], operands[k].shape())));
    }
    sums[static_cast<std::size_t>(position(output, shape))] += product;
    auto axis = at.begin();
    while (axis != at.end() && ++axis->second == extents[axis->first]) {
      axis->second = 0;
      ++axis;
    }
    if (axis == at.end()) break;
  }
  return floats(sums, shape);
}

/// Equal types and values; -0 equals 0.
bool same_values(const Tensor& a, const Tensor& b) {
  bool same = a.type() == b.type();
  for (std::int64_t i = 0; same && i < a.count(); ++i) same = a.at(i) == b.at(i);
  return same;
}

void expect_same(const std::vector<std::string>& terms, const std::string& output,
                 const std::vector<Shape>& shapes) {
  std::string equation;
  std::vector<Tensor> operands;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    equation += (k ? " , " : "") + terms[k];
    operands.push_back(ramp(shapes[k], static_cast<int>(k) * 3));
  }
  equation += " -> " + output;
  const OneNode node = einsum(equation, operands);
  ir::Graph graph = graph_of(node);
  decompose_all(graph);
  EXPECT_TRUE(ir::verify(graph).empty()) << equation;
  const Tensor expected = direct(terms, output, operands);
  const Tensor y = evaluate_inputs(graph, node)[0];
  EXPECT_TRUE(same_values(y, expected)) << equation;
}

TEST(Einsum, MatchesTheDirectSum) {
  expect_same({"ij", "jk"}, "ik", {{2, 3}, {3, 4}});
  expect_same({"ij", "jk"}, "ki", {{2, 3}, {3, 4}});
  expect_same({"bij", "bjk"}, "bik", {{2, 3, 4}, {2, 4, 2}});
  expect_same({"bhqd", "bkhd"}, "bhqk", {{2, 3, 2, 4}, {2, 5, 3, 4}});
  expect_same({"i", "j"}, "ij", {{3}, {4}});
  expect_same({"i", "i"}, "", {{3}, {3}});
  expect_same({"ij"}, "ji", {{2, 3}});
  expect_same({"ijk"}, "", {{2, 3, 2}});
  expect_same({"ij", "ij"}, "ij", {{2, 3}, {2, 3}});
  expect_same({"ij", "kl"}, "il", {{2, 3}, {2, 2}});
  expect_same({"ab", "bc", "cd"}, "ad", {{2, 3}, {3, 2}, {2, 4}});
  expect_same({"ab", "ab", "ab"}, "b", {{2, 3}, {2, 3}, {2, 3}});
  expect_same({"abc", "c", "dc"}, "dab", {{2, 3, 2}, {2}, {3, 2}});
}

TEST(Einsum, TakesDiagonals) {
  expect_same({"ii"}, "i", {{3, 3}});
  expect_same({"ii"}, "", {{3, 3}});
  expect_same({"iji"}, "ji", {{3, 2, 3}});
  expect_same({"iii"}, "i", {{2, 2, 2}});
  expect_same({"ii", "ij"}, "j", {{3, 3}, {3, 2}});
}

TEST(Einsum, BroadcastsSizesOfOne) {
  expect_same({"ij", "jk"}, "ik", {{2, 1}, {3, 4}});
  expect_same({"bij", "bjk"}, "bik", {{1, 2, 3}, {4, 3, 2}});
}

TEST(Einsum, ExpandsEllipsesFromTheRight) {
  const std::vector<Tensor> operands = {ramp({2, 3, 4}, 0), ramp({4, 2}, 1)};
  const Tensor y = run(einsum("...ij,jk->...ik", operands))[0];
  EXPECT_TRUE(same_values(y, direct({"aij", "jk"}, "aik", operands)));
  const std::vector<Tensor> mixed = {ramp({5, 2, 3}, 0), ramp({2, 3}, 1)};
  EXPECT_TRUE(same_values(run(einsum("a...,...->...a", mixed))[0], direct({"aij", "ij"}, "ija", mixed)));
}

TEST(Einsum, OrdersAnImplicitOutputByLetter) {
  const std::vector<Tensor> operands = {ramp({2, 3}, 0), ramp({3, 4}, 1)};
  EXPECT_TRUE(same_values(run(einsum("cb,ba", operands))[0], direct({"cb", "ba"}, "ac", operands)));
  const std::vector<Tensor> square = {ramp({3, 3}, 0)};
  EXPECT_TRUE(same_values(run(einsum("ii", square))[0], direct({"ii"}, "", square)));
  const std::vector<Tensor> cube = {ramp({2, 3, 4}, 0)};
  EXPECT_EQ(run(einsum("b...a", cube))[0].shape(), (Shape{3, 4, 2}));
}

TEST(Einsum, ContractsByOneProduct) {
  const std::vector<Tensor> operands = {ramp({2, 3, 4}, 0), ramp({2, 4, 5}, 1)};
  ir::Graph graph = graph_of(einsum("bij,bjk->bik", operands));
  decompose_all(graph);
  ASSERT_EQ(graph.node_count(), 1u);
  EXPECT_EQ(graph.node(graph.nodes()[0]).op->name, "MatMul");
}

TEST(Einsum, RefusesEquationsThatDoNotFit) {
  const std::vector<Tensor> one = {ramp({2, 3}, 0)};
  const std::vector<Tensor> two = {ramp({2, 3}, 0), ramp({2, 3}, 0)};
  const auto error = [&](const std::string& equation, const std::vector<Tensor>& operands) {
    return error_of([&] { run(einsum(equation, operands)); });
  };
  EXPECT_EQ(error("ij,jk->ik", one), "the equation has 2 terms for 1 inputs");
  EXPECT_EQ(error("ij,jk->ik", two), "the label 'j' has the sizes 3 and 2");
  EXPECT_EQ(error("ijk->i", one), "the term 'ijk' does not fit input 0 of shape [2, 3]");
  EXPECT_EQ(error("i->i", one), "the term 'i' does not fit input 0 of shape [2, 3]");
  EXPECT_EQ(error("ij->ik", one), "the output label 'k' is in no input");
  EXPECT_EQ(error("ij->ii", one), "an output label is repeated");
  EXPECT_EQ(error("i1->i", one), "'i1' is not a term of an equation");
  EXPECT_EQ(error("ij->i->j", one), "'i->j' is not a term of an equation");
}

}  // namespace
}  // namespace gcompile::testing

// The table of kernel families: names, kinds, and that plain loops are the definition.

#include <gmock/gmock.h>

#include "codegen/choice/family.h"
#include "ir/forms/form.h"
#include "ir/graph/plain_loops.h"
#include "tests/unit/codegen/kernels/one_problem.h"

namespace gcompile::testing {
namespace {

using ir::Attributes;
using ir::ElementType;
using ir::Shape;
using ir::Tensor;
using ::testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

/// The node's own evaluation and that of its plain loops are the same numbers.
void expect_same_loops(const OneNode& spec) {
  const ir::Graph graph = graph_of(spec);
  const ir::NodeId id = graph.nodes()[0];
  const ir::Form form = ir::form_of(graph, id);
  const auto* contract = std::get_if<ir::ContractForm>(&form);
  const Tensor expected = ir::evaluate_node(graph, id, spec.operands).at(0);
  const ir::LoopForm loops = ir::plain_loops(
      problem_of_node(graph), contract ? contract->epilogue : ir::LoopForm::over(expected.shape()));
  const Tensor actual = ir::evaluate(loops, spec.operands, expected.type());
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    ASSERT_NEAR(actual.real_at(i), expected.real_at(i), 1e-5 * (1 + std::abs(expected.real_at(i))))
        << spec.op << i;
  }
}

TEST(Families, AreNamedAfterTheirKindAndOnlyOnce) {
  std::vector<std::string_view> names;
  for (const KernelFamily* family : families()) {
    const std::string kind(ir::name_of(family->kind));
    EXPECT_EQ(family->name.substr(0, kind.size() + 1), kind + ".") << family->name;
    EXPECT_EQ(find_family(family->name), family);
    names.push_back(family->name);
    for (const Recipe& recipe : family->targets) EXPECT_EQ(recipe.plans == nullptr, recipe.call == nullptr);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_EQ(find_family("conv.magic"), nullptr);
}

TEST(Families, EveryKindIsServed) {
  for (std::size_t kind = 0; kind < std::variant_size_v<ir::Work>; ++kind) {
    EXPECT_TRUE(std::any_of(families().begin(), families().end(), [&](const KernelFamily* family) {
      return family->kind == static_cast<ir::Kind>(kind);
    })) << ir::name_of(static_cast<ir::Kind>(kind));
  }
}

/// Attention has none: it is formed only where a family takes it, out of products and a softmax. Suppression has
/// none either: whether a box stays follows from those that stayed before it, which no loop form says.
TEST(Families, PlainLoopsComeLastOfEveryKindButTwo) {
  for (std::size_t kind = 0; kind < std::variant_size_v<ir::Work>; ++kind) {
    const auto of_kind = static_cast<ir::Kind>(kind);
    if (of_kind == ir::Kind::kAttention || of_kind == ir::Kind::kSuppress) continue;
    const KernelFamily* last = nullptr;
    for (const KernelFamily* family : families()) {
      if (family->kind == of_kind) last = family;
    }
    ASSERT_NE(last, nullptr);
    EXPECT_EQ(last->name, std::string(ir::name_of(of_kind)) + ".loops");
  }
}

TEST(PlainLoops, AreTheDefinitionOfConvolutions) {
  const Tensor x = awkward(ElementType::kFloat32, {2, 4, 6, 5}),
               w = awkward(ElementType::kFloat32, {6, 2, 3, 2}), bias = awkward(ElementType::kFloat32, {6});
  expect_same_loops({.op = "Conv",
                     .attributes = attributes({{"pads", Ints{1, 0, 2, 1}},
                                               {"strides", Ints{2, 1}},
                                               {"dilations", Ints{1, 2}},
                                               {"group", std::int64_t{2}}}),
                     .operands = {&x, &w, &bias}});
  const Tensor doubles = awkward(ElementType::kFloat64, {1, 1, 7}),
               kernel = awkward(ElementType::kFloat64, {1, 1, 3});
  expect_same_loops({.op = "Conv", .operands = {&doubles, &kernel}});
}

TEST(PlainLoops, AreTheDefinitionOfTransposedConvolutions) {
  const Tensor x = awkward(ElementType::kFloat32, {1, 4, 3, 4}),
               w = awkward(ElementType::kFloat32, {4, 3, 3, 2});
  expect_same_loops({.op = "ConvTranspose",
                     .attributes = attributes({{"strides", Ints{2, 3}},
                                               {"pads", Ints{1, 0, 0, 1}},
                                               {"output_padding", Ints{1, 0}},
                                               {"group", std::int64_t{2}}}),
                     .operands = {&x, &w}});
}

TEST(PlainLoops, AreTheDefinitionOfIntegerProducts) {
  const Tensor x = awkward(ElementType::kUInt8, {1, 2, 5, 5}), w = awkward(ElementType::kInt8, {3, 2, 3, 3});
  const Tensor x_zero = awkward(ElementType::kUInt8, {1}), w_zero = awkward(ElementType::kInt8, {3});
  expect_same_loops({.op = "ConvInteger",
                     .attributes = attributes({{"pads", Ints{1, 1, 1, 1}}}),
                     .operands = {&x, &w, &x_zero, &w_zero}});
  const Tensor t = awkward(ElementType::kInt8, {2, 3, 2, 3});
  const Attributes window = attributes({{"strides", Ints{2, 3}},
                                        {"dilations", Ints{1, 1}},
                                        {"pads", Ints{1, 0, 0, 1}},
                                        {"kernel_shape", Ints{2, 3}}});
  expect_same_loops({.op = "ConvTransposeInteger",
                     .attributes = window,
                     .operands = {&x, &t, &x_zero, &w_zero},
                     .domain = "gcompile"});
  const Tensor a = awkward(ElementType::kUInt8, {2, 1, 3, 5}), b = awkward(ElementType::kInt8, {4, 5, 2}),
               b_zero = awkward(ElementType::kInt8, {1});
  expect_same_loops({.op = "MatMulInteger", .operands = {&a, &b}});
  expect_same_loops({.op = "MatMulInteger", .operands = {&a, &b, &x_zero, &b_zero}});
}

TEST(PlainLoops, AreTheDefinitionOfProducts) {
  const Tensor a = awkward(ElementType::kFloat32, {2, 1, 3, 5}),
               b = awkward(ElementType::kFloat32, {4, 5, 2});
  expect_same_loops({.op = "MatMul", .operands = {&a, &b}});
}

TEST(PlainLoops, AreTheDefinitionOfProductsByPackedWeights) {
  const Tensor a = awkward(ElementType::kFloat32, {2, 3, 10}), b = awkward(ElementType::kInt8, {10, 3}),
               scales = awkward(ElementType::kFloat32, {3, 3}), bytes = awkward(ElementType::kInt8, {3, 3}),
               halves = awkward(ElementType::kFloat32, {3, 3});
  expect_same_loops(blocks(a, b, scales, nullptr, 4));
  expect_same_loops(blocks(a, b, scales, &bytes, 4));
  expect_same_loops(blocks(a, b, scales, &halves, 4));
}

TEST(PlainLoops, AreTheDefinitionOfPools) {
  const Tensor x = awkward(ElementType::kFloat32, {1, 2, 5, 7});
  for (const std::int64_t ceil_mode : {0, 1}) {
    const Attributes window = attributes({{"kernel_shape", Ints{3, 2}},
                                          {"strides", Ints{2, 2}},
                                          {"pads", Ints{1, 1, 1, 0}},
                                          {"ceil_mode", ceil_mode}});
    expect_same_loops({.op = "MaxPool", .attributes = window, .operands = {&x}});
    for (const std::int64_t include : {0, 1}) {
      Attributes mean = window;
      mean.set("count_include_pad", include);
      expect_same_loops({.op = "AveragePool", .attributes = mean, .operands = {&x}});
    }
  }
}

TEST(PlainLoops, AreTheDefinitionOfThreeAndMoreSpatialAxes) {
  const Tensor x = awkward(ElementType::kFloat64, {2, 2, 3, 4, 5}),
               w = awkward(ElementType::kFloat64, {2, 1, 2, 1, 3});
  const Attributes window = attributes({{"pads", Ints{1, 0, 1, 0, 1, 1}}, {"group", std::int64_t{2}}});
  expect_same_loops({.op = "Conv", .attributes = window, .operands = {&x, &w}});
  expect_same_loops({.op = "ConvTranspose", .attributes = window, .operands = {&x, &w}});
  const Tensor bytes = awkward(ElementType::kUInt8, {1, 1, 2, 3, 2, 3});
  expect_same_loops({.op = "MaxPool",
                     .attributes = attributes({{"kernel_shape", Ints{2, 1, 2, 2}}}),
                     .operands = {&bytes}});
}

TEST(PlainLoops, AreTheDefinitionOfRunningSums) {
  const Tensor x = awkward(ElementType::kFloat32, {2, 5, 3}), bytes = awkward(ElementType::kInt8, {2, 5, 3});
  const Tensor axis = Tensor::of_ints(Ints{1}, {1});
  for (const std::int64_t exclusive : {0, 1}) {
    for (const std::int64_t reverse : {0, 1}) {
      const Attributes how = attributes({{"exclusive", exclusive}, {"reverse", reverse}});
      expect_same_loops({.op = "CumSum", .attributes = how, .operands = {&x, &axis}, .known = true});
      expect_same_loops({.op = "CumSum", .attributes = how, .operands = {&bytes, &axis}, .known = true});
    }
  }
}

TEST(PlainLoops, AreTheDefinitionOfScatters) {
  const Tensor data = awkward(ElementType::kFloat32, {4, 3}),
               updates = awkward(ElementType::kFloat32, {2, 2});
  const Tensor ints = awkward(ElementType::kUInt8, {4, 3}), more = awkward(ElementType::kUInt8, {2, 2, 3});
  const Tensor index = Tensor::of_ints(Ints{-1, 1, 3, 1}, {2, 2});
  const Tensor rows = Tensor::of_ints(Ints{2, 0, -2, 2}, {2, 2, 1});
  for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
    expect_same_loops({.op = "ScatterElements",
                       .attributes = attributes({{"reduction", std::string(reduction)}}),
                       .operands = {&data, &index, &updates}});
    expect_same_loops({.op = "ScatterND",
                       .attributes = attributes({{"reduction", std::string(reduction)}}),
                       .operands = {&ints, &rows, &more}});
  }
}

}  // namespace
}  // namespace gcompile::testing

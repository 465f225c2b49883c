// The table of kernel families: names, kinds, what each takes and refuses, and that plain loops are the
// definition.

#include <gmock/gmock.h>

#include "codegen/kernels/family.h"
#include "ir/plain_loops.h"
#include "tests/unit/one_node.h"

namespace gcompile::testing {
namespace {

using ir::Attributes;
using ir::ElementType;
using ir::Shape;
using ir::Tensor;
using ::testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

Attributes attributes(std::vector<std::pair<std::string, ir::AttributeValue>> list) {
  Attributes out;
  for (auto& [name, value] : list) out.set(name, value);
  return out;
}

/// Values that are neither symmetric nor all different.
Tensor awkward(ElementType type, Shape shape) {
  Tensor tensor(ir::TensorType{type, std::move(shape)});
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const auto value = static_cast<double>(i * 37 % 23 - (is_float(type)               ? 11
                                                          : type == ElementType::kInt8 ? 12
                                                                                       : 0));
    tensor.set(i, is_float(type) ? ir::Scalar::of_real(type, value / 8)
                                 : ir::Scalar::of_integer(type, static_cast<std::int64_t>(value)));
  }
  return tensor;
}

ir::Problem problem_of_node(const ir::Graph& graph) {
  const ir::NodeId id = graph.nodes()[0];
  const ir::Form form = ir::form_of(graph, id);
  const auto strides = [&](ir::ValueId value) {
    return ir::row_major_strides(graph.value(value).type.shape);
  };
  return *ir::problem_of(graph, id, form, strides, true);
}

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

/// Attention has none: it is formed only where a family takes it, out of products and a softmax.
TEST(Families, PlainLoopsComeLastOfEveryKindButAttention) {
  for (std::size_t kind = 0; kind < std::variant_size_v<ir::Work>; ++kind) {
    const auto of_kind = static_cast<ir::Kind>(kind);
    if (of_kind == ir::Kind::kAttention) continue;
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

/// A product by packed weights; `block` rows share a scale.
OneNode blocks(const Tensor& a, const Tensor& b, const Tensor& scales, const Tensor* zeros,
               std::int64_t block, ir::RowRounding rounding = ir::RowRounding::kNone) {
  OneNode node{
      .op = "MatMulBlocks",
      .attributes = attributes({{"block_size", block}, {"rounding", static_cast<std::int64_t>(rounding)}}),
      .operands = {&a, &b, &scales},
      .domain = "gcompile"};
  if (zeros) node.operands.push_back(zeros);
  return node;
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

std::string refusal_of(const Ranking& ranking, std::string_view family) {
  for (const auto& [name, reason] : ranking.refused) {
    if (name == family) return reason;
  }
  return "not refused";
}

TEST(Choice, TakesTheFastestAndSaysWhyNotOthers) {
  const Tensor x = awkward(ElementType::kFloat32, {1, 8, 4, 4}),
               w = awkward(ElementType::kFloat32, {8, 1, 3, 3});
  const ir::Graph depthwise = graph_of({.op = "Conv",
                                        .attributes = attributes({{"group", std::int64_t{8}}}),
                                        .operands = {&x, &w},
                                        .known = true});
  for (const Machine& machine : {Machine{}, machine_of_gpu(80, Precision::kFp32, false)}) {
    const Ranking ranking = rank(problem_of_node(depthwise), machine);
    ASSERT_FALSE(ranking.taken.empty());
    EXPECT_EQ(ranking.taken.front().family->name, "conv.depthwise");
    EXPECT_EQ(ranking.taken.back().family->name, "conv.loops");
    EXPECT_THAT(refusal_of(ranking, "conv.depthwise_integer"), HasSubstr("float32"));
  }
}

TEST(Choice, PackedWeightsAreDecodedOnTheCpu) {
  const Tensor a = awkward(ElementType::kFloat32, {1, 64}), b = awkward(ElementType::kInt8, {64, 32}),
               scales = awkward(ElementType::kFloat32, {2, 32}),
               odd = awkward(ElementType::kFloat32, {22, 32});
  const auto ranking = [](const OneNode& spec, Target target) {
    ir::Graph graph;
    std::vector<ir::ValueId> operands = {graph.add_input("a", spec.operands[0]->type())};
    for (std::size_t i = 1; i < spec.operands.size(); ++i)
      operands.push_back(graph.add_constant(*spec.operands[i]));
    const ir::NodeId id = graph.add_node(ir::operator_named(spec.op), operands, spec.attributes, 1, "node");
    ir::infer_node(graph, id);
    return rank(problem_of_node(graph), default_machine(target));
  };
  const Ranking taken = ranking(blocks(a, b, scales, nullptr, 32), Target::kCpp);
  EXPECT_EQ(taken.taken.at(0).family->name, "product.decode");
  EXPECT_THAT(refusal_of(taken, "product.tile"), HasSubstr("scales of their own"));
  EXPECT_THAT(refusal_of(ranking(blocks(a, b, odd, nullptr, 3), Target::kCpp), "product.decode"),
              HasSubstr("multiple of 4"));
  EXPECT_THAT(refusal_of(ranking(blocks(a, b, scales, nullptr, 32), Target::kCuda), "product.decode"),
              HasSubstr("floats"));
}

TEST(Choice, RoundedRowsAreMultipliedInIntegers) {
  const Tensor a = awkward(ElementType::kFloat32, {3, 64}), b = awkward(ElementType::kInt8, {64, 32}),
               scales = awkward(ElementType::kFloat32, {2, 32}),
               fine = awkward(ElementType::kFloat32, {16, 32});
  const auto ranking = [&](const Tensor& s, std::int64_t block, ir::RowRounding rounding) {
    ir::Graph graph;
    const OneNode spec = blocks(a, b, s, nullptr, block, rounding);
    const std::vector<ir::ValueId> operands = {graph.add_input("a", a.type()), graph.add_constant(b),
                                               graph.add_constant(s)};
    const ir::NodeId id = graph.add_node(ir::operator_named(spec.op), operands, spec.attributes, 1, "node");
    ir::infer_node(graph, id);
    return rank(problem_of_node(graph), default_machine(Target::kCpp));
  };
  const Ranking rounded = ranking(scales, 32, ir::RowRounding::kDone);
  ASSERT_EQ(rounded.taken.size(), 1u);
  EXPECT_EQ(rounded.taken[0].family->name, "product.decode_integer");
  EXPECT_EQ(rounded.taken[0].planned.cost.scratch, 3 * (64 + 2 * 4 * 2));
  for (const char* floats : {"product.decode", "product.loops"})
    EXPECT_THAT(refusal_of(rounded, floats), HasSubstr("rounded to int8"));
  const Ranking allowed = ranking(scales, 32, ir::RowRounding::kAllowed);
  EXPECT_EQ(allowed.taken.at(0).family->name, "product.decode");
  EXPECT_THAT(refusal_of(allowed, "product.decode_integer"), HasSubstr("not to be rounded"));
  EXPECT_THAT(refusal_of(ranking(fine, 4, ir::RowRounding::kDone), "product.decode_integer"),
              HasSubstr("multiple of 8"));
}

TEST(Choice, GivesComputedWeightsAndDoublesToPlainLoops) {
  const Tensor x = awkward(ElementType::kFloat32, {1, 2, 4, 4}),
               w = awkward(ElementType::kFloat32, {2, 2, 3, 3});
  const Ranking ranking = rank(problem_of_node(graph_of({.op = "Conv", .operands = {&x, &w}})), Machine{});
  ASSERT_EQ(ranking.taken.size(), 1u);
  EXPECT_EQ(ranking.taken[0].family->name, "conv.loops");
  EXPECT_THAT(refusal_of(ranking, "conv.direct"), HasSubstr("only the run knows"));
}

ir::Problem window_problem(Shape x_shape, Shape w_shape, Attributes how = {}) {
  const Tensor x = awkward(ElementType::kFloat32, std::move(x_shape)),
               w = awkward(ElementType::kFloat32, std::move(w_shape));
  ir::Problem problem = problem_of_node(
      graph_of({.op = "Conv", .attributes = std::move(how), .operands = {&x, &w}, .known = true}));
  problem.reassociates = true;
  return problem;
}

TEST(Choice, WinogradTakesDense3x3Windows) {
  const Machine machine;
  const auto refusal = [&](const ir::Problem& problem) {
    const std::string two = refusal_of(rank(problem, machine), "conv.winograd2");
    EXPECT_EQ(two, refusal_of(rank(problem, machine), "conv.winograd4"));
    return two;
  };
  const Shape x = {1, 8, 12, 12};
  EXPECT_EQ(refusal(window_problem(x, {8, 8, 3, 3})), "not refused");
  EXPECT_THAT(refusal(window_problem(x, {8, 8, 3, 1})), HasSubstr("window"));
  EXPECT_THAT(refusal(window_problem(x, {8, 8, 3, 3}, attributes({{"strides", Ints{2, 1}}}))),
              HasSubstr("strides"));
  EXPECT_THAT(refusal(window_problem(x, {8, 8, 3, 3}, attributes({{"dilations", Ints{1, 2}}}))),
              HasSubstr("dilations"));
  EXPECT_THAT(refusal(window_problem(x, {8, 4, 3, 3}, attributes({{"group", std::int64_t{2}}}))),
              HasSubstr("groups"));
  EXPECT_THAT(refusal(window_problem({1, 8, 12}, {8, 8, 3})), HasSubstr("window"));
  ir::Problem decides = window_problem(x, {8, 8, 3, 3});
  decides.reassociates = false;
  EXPECT_THAT(refusal(decides), HasSubstr("last bit"));
  const ir::Problem taken = window_problem(x, {8, 8, 3, 3});
  EXPECT_THAT(refusal_of(rank(taken, machine_of_gpu(80, Precision::kFp32, false)), "conv.winograd4"),
              HasSubstr("GPU"));
}

/// ConvInteger of bytes; all weights are `weight`, their zero point is `zero`.
ir::Problem byte_window_problem(Shape w_shape, int weight, int zero, ElementType x_element) {
  const Shape x_shape = {1, w_shape[1], 40, 40};
  const Tensor x = awkward(x_element, x_shape);
  const auto filled = [](ElementType element, Shape shape, int value) {
    Tensor tensor(ir::TensorType{element, std::move(shape)});
    for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.set(i, ir::Scalar::of_integer(element, value));
    return tensor;
  };
  const Tensor w = filled(ElementType::kInt8, std::move(w_shape), weight), x_zero = filled(x_element, {}, 3),
               w_zero = filled(ElementType::kInt8, {}, zero);
  return problem_of_node(
      graph_of({.op = "ConvInteger", .operands = {&x, &w, &x_zero, &w_zero}, .known = true}));
}

TEST(Choice, WinogradOfBytesTakesSumsThatItIsExactIn) {
  const Machine machine;
  const auto refusal = [&](int channels, int weight, int zero, ElementType x, const char* family) {
    return refusal_of(rank(byte_window_problem({4, channels, 3, 3}, weight, zero, x), machine), family);
  };
  const auto u8 = ElementType::kUInt8, s8 = ElementType::kInt8;
  const char *two = "conv.winograd2_integer", *four = "conv.winograd4_integer";
  EXPECT_EQ(refusal(114, 127, 0, u8, four), "not refused");
  EXPECT_THAT(refusal(116, 127, 0, u8, four), HasSubstr("sums"));
  EXPECT_EQ(refusal(116, 127, 0, s8, four), "not refused");
  EXPECT_EQ(refusal(116, -127, 0, u8, two), "not refused");
  EXPECT_THAT(refusal(1842, 127, 0, u8, two), HasSubstr("sums"));
  EXPECT_THAT(refusal(100, 100, -50, u8, four), HasSubstr("beyond int8"));
  EXPECT_THAT(refusal(116, 97, -30, u8, four), HasSubstr("sums"));
  EXPECT_THAT(refusal(3, 1, 0, u8, two), HasSubstr("odd"));
  EXPECT_THAT(refusal(4, 1, 0, u8, "conv.winograd4"), HasSubstr("elements"));
  EXPECT_EQ(rank(byte_window_problem({64, 64, 3, 3}, 100, 0, u8), machine).taken.at(0).family->name, four);
  // Four products in one instruction, but only one of int16.
  EXPECT_EQ(rank(byte_window_problem({64, 64, 3, 3}, 100, 0, u8), machine_of_cpu("cortex-a76"))
                .taken.at(0)
                .family->name,
            "conv.integer");
}

TEST(Choice, AFamilyServesAllLevelsOfAProject) {
  const ir::Problem problem = byte_window_problem({64, 64, 3, 3}, 100, 0, ElementType::kUInt8);
  const Machine both;
  ASSERT_EQ(both.rivals.size(), 1u);
  Machine usual = both, rival = both;
  usual.rivals.clear();
  rival.rivals.clear();
  rival.level = both.rivals[0];
  const auto price = [&](const Machine& machine, std::string_view family) {
    for (const Candidate& c : rank(problem, machine).taken) {
      if (c.family->name == family) return c.planned.cost.picoseconds;
    }
    return std::int64_t{0};
  };
  for (const char* family : {"conv.integer", "conv.winograd2_integer", "conv.winograd4_integer"}) {
    EXPECT_LT(price(rival, family), price(usual, family)) << family;
    EXPECT_EQ(price(both, family), (price(usual, family) + price(rival, family)) / 2) << family;
  }
  EXPECT_TRUE(machine_of_cpu("cascadelake").rivals.empty());
  EXPECT_EQ(machine_of_cpu("cascadelake").level.byte_rate, rival.level.byte_rate);
}

TEST(Choice, TransposedConvolutionsOfBytesAreForTheCpu) {
  const Tensor x = awkward(ElementType::kUInt8, {1, 8, 40, 40}),
               w = awkward(ElementType::kInt8, {8, 60, 2, 2});
  const OneNode node{.op = "ConvTransposeInteger",
                     .attributes = attributes({{"strides", Ints{2, 2}},
                                               {"dilations", Ints{1, 1}},
                                               {"pads", Ints{0, 0, 0, 0}},
                                               {"kernel_shape", Ints{2, 2}}}),
                     .operands = {&x, &w},
                     .domain = "gcompile",
                     .known = true};
  const ir::Problem problem = problem_of_node(graph_of(node));
  EXPECT_EQ(rank(problem, Machine{}).taken.at(0).family->name, "conv_transpose.integer");
  EXPECT_THAT(refusal_of(rank(problem, Machine{}), "conv_transpose.direct"), HasSubstr("uint8"));
  // A word of four bytes for each channel of its own group.
  ir::Problem grouped = problem;
  std::get<ir::ConvTransposeWork>(grouped.work).groups = 8;
  const Machine one_level = machine_of_cpu("x86-64-v3");
  EXPECT_GT(rank(grouped, one_level).taken.at(0).planned.cost.picoseconds,
            3 * rank(problem, one_level).taken.at(0).planned.cost.picoseconds);
  EXPECT_THAT(refusal_of(rank(problem, default_machine(Target::kCuda)), "conv_transpose.integer"),
              HasSubstr("floats"));
}

TEST(Choice, ProductsOfComputedBytesArePreparedOnTheCpu) {
  const Tensor a = awkward(ElementType::kUInt8, {2, 40, 64}), b = awkward(ElementType::kInt8, {2, 64, 48}),
               zero = awkward(ElementType::kUInt8, {});
  const ir::Problem computed =
      problem_of_node(graph_of({.op = "MatMulInteger", .operands = {&a, &b, &zero}}));
  const Candidate taken = rank(computed, Machine{}).taken.at(0);
  EXPECT_EQ(taken.family->name, "product.integer");
  EXPECT_EQ(taken.planned.cost.scratch, 4 * (48 + 40) * 32);  // both sides of one entry as int16
  EXPECT_THAT(refusal_of(rank(computed, default_machine(Target::kCuda)), "product.integer"),
              HasSubstr("no constant matrix"));
  // Not slower than floats on any machine: there passes would keep those.
  for (const char* cpu : {"x86-64-v2", "x86-64-v3", "x86-64-v4", "armv8-a", "cortex-a76"}) {
    ir::Problem floats = computed;
    floats.operands.resize(2);
    for (ir::ProblemOperand& operand : floats.operands) operand.element = ElementType::kFloat32;
    const Machine machine = machine_of_cpu(cpu);
    EXPECT_LE(rank(computed, machine).taken.at(0).planned.cost.picoseconds,
              rank(floats, machine).taken.at(0).planned.cost.picoseconds)
        << cpu;
  }
  ir::Problem several = computed;
  several.operands.push_back({true, ElementType::kInt8, {48}, {1}, {}});
  EXPECT_THAT(refusal_of(rank(several, Machine{}), "product.integer"), HasSubstr("several zero points"));
}

TEST(Choice, LargerWeightsHaveToSaveTheirPrice) {
  const ir::Problem problem = window_problem({1, 64, 56, 56}, {64, 64, 3, 3});
  Machine machine;
  const Candidate fastest = rank(problem, machine).taken.at(0);
  EXPECT_EQ(fastest.family->name, "conv.winograd4");
  EXPECT_EQ(fastest.planned.cost.extra_weights, 64 * 64 * (36 - 9) * 4);
  EXPECT_GT(fastest.planned.cost.scratch, 0);
  machine.weight_price = 1e6;
  EXPECT_EQ(rank(problem, machine).taken.at(0).family->name, "conv.direct");
  // Few channels: the transforms cost more than they save.
  EXPECT_EQ(rank(window_problem({1, 3, 56, 56}, {64, 3, 3, 3}), Machine{}).taken.at(0).family->name,
            "conv.direct");
}

TEST(Choice, AForcedFamilyIsTheOnlyOneAsked) {
  const Tensor x = awkward(ElementType::kFloat32, {1, 2, 4, 4}),
               w = awkward(ElementType::kFloat32, {2, 2, 3, 3});
  const ir::Graph graph = graph_of({.op = "Conv", .operands = {&x, &w}, .known = true});
  const Ranking ranking = rank(problem_of_node(graph), Machine{}, find_family("conv.loops"));
  ASSERT_EQ(ranking.taken.size(), 1u);
  EXPECT_TRUE(rank(problem_of_node(graph), Machine{}, find_family("conv.integer")).taken.empty());
}

TEST(Choice, AttentionHasHeadsUpTo256) {
  for (const Target target : {Target::kCpp, Target::kCuda}) {
    for (const std::int64_t size : {256, 257}) {
      ir::Problem problem;
      ir::AttentionWork work;
      work.heads = work.key_heads = {2};
      work.rows = work.columns = 8;
      work.size = work.value_size = size;
      problem.work = work;
      const Shape shape = {2, 8, size};
      problem.operands.assign(3, {true, ElementType::kFloat32, shape, ir::row_major_strides(shape), {}});
      problem.results = {problem.operands[0]};
      EXPECT_EQ(rank(problem, default_machine(target)).taken.empty(), size > 256) << size;
    }
  }
}

TEST(Choice, ForSizeGivesBackScratchWithinAFamily) {
  const Tensor x = awkward(ElementType::kFloat32, {40, 1, 8}), w = awkward(ElementType::kFloat32, {1, 64, 8}),
               r = awkward(ElementType::kFloat32, {1, 64, 16});
  const ir::Graph graph = graph_of({.op = "LSTM",
                                    .attributes = attributes({{"hidden_size", std::int64_t{16}}}),
                                    .operands = {&x, &w, &r},
                                    .known = true});
  Machine machine;
  const Cost fast = rank(problem_of_node(graph), machine).taken.at(0).planned.cost;
  machine.smallest_scratch = true;
  const Cost small = rank(problem_of_node(graph), machine).taken.at(0).planned.cost;
  EXPECT_LT(small.scratch, fast.scratch);
  EXPECT_GE(small.picoseconds, fast.picoseconds);
}

}  // namespace
}  // namespace gcompile::testing

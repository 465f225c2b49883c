// Convolutions, integer products, Gemm and pools: values from the definition, normal forms, refusals.

#include "gtest/gtest.h"
#include "ir/forms/form.h"
#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::Attributes;
using ir::ElementType;
using ir::Shape;
using ir::Tensor;
using Ints = std::vector<std::int64_t>;

Tensor ramp(Shape shape) {
  std::vector<float> values(static_cast<std::size_t>(ir::element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return floats(values, std::move(shape));
}

Attributes attributes(std::vector<std::pair<std::string, ir::AttributeValue>> list) {
  Attributes out;
  for (auto& [name, value] : list) out.set(name, value);
  return out;
}

TEST(ConvTranspose, PaintsTheKernelAtEveryStride) {
  const Tensor x = floats({1, 2, 3}, {1, 1, 3});
  const Tensor w = floats({1, 10}, {1, 1, 2});
  const Tensor bias = floats({100}, {1});
  const auto y = run(
      {.op = "ConvTranspose", .attributes = attributes({{"strides", Ints{2}}}), .operands = {&x, &w, &bias}});
  EXPECT_EQ(reals(y[0]), (std::vector<double>{101, 110, 102, 120, 103, 130}));
}

TEST(ConvTranspose, OutputPaddingAddsOutputsThatHoldTheBias) {
  const Tensor x = floats({1, 2}, {1, 1, 2});
  const Tensor w = floats({1}, {1, 1, 1});
  const auto graph = graph_of({.op = "ConvTranspose",
                               .attributes = attributes({{"strides", Ints{3}}, {"output_padding", Ints{2}}}),
                               .operands = {&x, &w}});
  const ir::Node& node = graph.node(graph.nodes()[0]);
  EXPECT_EQ(node.attributes.ints_of("pads"), (Ints{0, -2}));
  EXPECT_FALSE(node.attributes.has("output_padding"));
  const auto y = ir::evaluate_graph(graph, {x, w});
  EXPECT_EQ(reals(y[0]), (std::vector<double>{1, 0, 0, 2, 0, 0}));
}

TEST(ConvTranspose, AutoPadAndOutputShapeBecomePads) {
  const Tensor x = ramp({1, 1, 4});
  const Tensor w = floats({1, 1, 1}, {1, 1, 3});
  const auto pads = [&](std::vector<std::pair<std::string, ir::AttributeValue>> list) {
    const auto graph =
        graph_of({.op = "ConvTranspose", .attributes = attributes(std::move(list)), .operands = {&x, &w}});
    return graph.node(graph.nodes()[0]).attributes.ints_of("pads");
  };
  EXPECT_EQ(pads({{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2}}}), (Ints{0, 1}));
  EXPECT_EQ(pads({{"auto_pad", std::string("SAME_LOWER")}, {"strides", Ints{2}}}), (Ints{1, 0}));
  // 9 outputs at stride 2; 10 are wanted: one is added at the end.
  EXPECT_EQ(pads({{"output_shape", Ints{10}}, {"strides", Ints{2}}}), (Ints{0, -1}));
  EXPECT_EQ(pads({{"output_shape", Ints{1, 1, 8}}, {"strides", Ints{2}}}), (Ints{1, 0}));
}

// The specification's text asks for input * stride elements; ONNX's shape inference and ONNX Runtime, by
// which models are built, have those that the windows reach.
TEST(ConvTranspose, BySameWindowsThatAreSmallerThanTheStrideArePaddedByNothing) {
  const Tensor x = ramp({1, 1, 3});
  for (const char* mode : {"SAME_UPPER", "SAME_LOWER"}) {
    for (const std::int64_t kernel : {1, 2, 3}) {
      const Tensor w = ramp({1, 1, kernel});
      OneNode node{.op = "ConvTranspose",
                   .attributes = attributes({{"auto_pad", std::string(mode)}, {"strides", Ints{3}}}),
                   .operands = {&x, &w}};
      const ir::Graph graph = graph_of(node);
      EXPECT_EQ(graph.node(graph.nodes()[0]).attributes.ints_of("pads"), (Ints{0, 0}));
      EXPECT_EQ(ir::evaluate_graph(graph, {x, w})[0].shape(), (ir::Shape{1, 1, 6 + kernel})) << mode;
      // What output_padding adds is no padding.
      node.attributes.set("output_padding", Ints{1});
      EXPECT_EQ(run(node)[0].shape(), (ir::Shape{1, 1, std::min<std::int64_t>(7 + kernel, 9)})) << mode;
    }
  }
}

TEST(ConvTranspose, RefusesWhatDoesNotFit) {
  const Tensor x = ramp({1, 2, 4});
  const Tensor w = ramp({3, 1, 3});
  EXPECT_EQ(error_of([&] {
              run({.op = "ConvTranspose", .operands = {&x, &w}});
            }),
            "the weight does not fit the input channels: W[0] = 3, expected 2");
  const Tensor fits = ramp({2, 1, 3});
  EXPECT_EQ(error_of([&] {
              run({.op = "ConvTranspose",
                   .attributes = attributes({{"auto_pad", std::string("ALL")}}),
                   .operands = {&x, &fits}});
            }),
            "auto_pad 'ALL' is not known");
  EXPECT_EQ(error_of([&] {
              run({.op = "ConvTranspose",
                   .attributes = attributes({{"output_padding", Ints{1, 1}}}),
                   .operands = {&x, &fits}});
            }),
            "attribute 'output_padding' has 2 values, 1 expected");
}

TEST(ConvInteger, SubtractsZeroPointsAndPadsWithThem) {
  const Tensor x = integers(ElementType::kUInt8, {10, 20, 30}, {1, 1, 3});
  const Tensor w = integers(ElementType::kInt8, {1, 2, -1, -2}, {2, 1, 2});
  const Tensor x_zero = integers(ElementType::kUInt8, {10}, {});
  const Tensor w_zero = integers(ElementType::kInt8, {0, -1}, {2});
  const auto y = run({.op = "ConvInteger",
                      .attributes = attributes({{"pads", Ints{1, 0}}}),
                      .operands = {&x, &w, &x_zero, &w_zero}});
  EXPECT_EQ(y[0].element(), ElementType::kInt32);
  // x - 10 = (pad 0) 0 10 20; rows of w less zero points: (1, 2) and (0, -1).
  EXPECT_EQ(y[0].ints(), (Ints{0, 20, 50, 0, -10, -20}));
}

TEST(ConvInteger, WorksWithoutTheFirstZeroPoint) {
  const Tensor x = integers(ElementType::kUInt8, {255, 255}, {1, 1, 2});
  const Tensor w = integers(ElementType::kUInt8, {255, 255}, {1, 1, 2});
  const Tensor w_zero = integers(ElementType::kUInt8, {255}, {});
  EXPECT_EQ(run({.op = "ConvInteger", .operands = {&x, &w}})[0].ints(), (Ints{130050}));
  EXPECT_EQ(run({.op = "ConvInteger", .operands = {&x, &w, nullptr, &w_zero}})[0].ints(), (Ints{0}));
}

/// The node with known weights, before and after it is taken apart, gives the same; afterwards its
/// contraction has `operands` operands.
void expect_zero_points_leave(const OneNode& node, int operands) {
  ir::Graph graph = graph_of(node);
  if (!node.known) graph.replace_uses(graph.inputs()[1], graph.add_constant(*node.operands[1]));
  const Ints expected = evaluate_inputs(graph, node)[0].ints();
  decompose_all(graph);
  int products = 0;
  for (const ir::NodeId id : graph.nodes()) {
    if (graph.node(id).op->name != node.op) continue;
    ++products;
    const ir::NodeView view(graph, id);
    int present = 0;
    for (int i = 0; i < view.operand_count(); ++i) present += view.has_operand(i);
    EXPECT_EQ(present, operands);
  }
  EXPECT_EQ(products, 1);
  EXPECT_EQ(evaluate_inputs(graph, node)[0].ints(), expected);
}

TEST(ConvInteger, AZeroPointThatIsNotKnownLeavesTheConvolution) {
  const Tensor x = integers(ElementType::kUInt8, {10, 20, 30, 40, 50, 60, 70, 255}, {1, 2, 4});
  const Tensor w = integers(ElementType::kInt8, {1, 2, -1, -2, 127, -128, 3, 4}, {2, 2, 2});
  const Tensor x_zero = integers(ElementType::kUInt8, {10}, {1});
  const Tensor w_zero = integers(ElementType::kInt8, {0, -1}, {2}),
               one = integers(ElementType::kInt8, {3}, {});
  for (const Ints& pads : {Ints{1, 2}, Ints{0, 0}}) {
    OneNode conv{
        .op = "ConvInteger", .attributes = attributes({{"pads", pads}}), .operands = {&x, &w, &x_zero}};
    expect_zero_points_leave(conv, 2);
    for (const Tensor* zero : {&w_zero, &one}) {
      conv.operands = {&x, &w, &x_zero, zero};
      expect_zero_points_leave(conv, 3);
    }
  }
}

TEST(ConvInteger, RefusesOtherTypes) {
  const Tensor x = ramp({1, 1, 3});
  const Tensor w = integers(ElementType::kInt8, {1}, {1, 1, 1});
  EXPECT_EQ(error_of([&] {
              run({.op = "ConvInteger", .operands = {&x, &w}});
            }),
            "input 0 must be integers of 8 or 16 bits, not float32");
}

TEST(ConvInteger, AllItsOperandsBelongToTheContraction) {
  const Tensor x = integers(ElementType::kUInt8, {1}, {1, 1, 1});
  const Tensor zero = integers(ElementType::kUInt8, {1}, {});
  const auto graph = graph_of({.op = "ConvInteger", .operands = {&x, &x, &zero}});
  const ir::Form form = ir::form_of(graph, graph.nodes()[0]);
  const auto& contract = std::get<ir::ContractForm>(form);
  EXPECT_EQ(contract.base_operands, 3);
  EXPECT_EQ(contract.accumulator, ElementType::kInt32);
}

TEST(MatMulInteger, TakesZeroPointsPerRowAndColumn) {
  const Tensor a = integers(ElementType::kUInt8, {1, 2, 3, 4}, {2, 2});
  const Tensor b = integers(ElementType::kInt8, {1, -1, 2, -2}, {2, 2});
  const Tensor a_zero = integers(ElementType::kUInt8, {1, 2}, {2});
  const Tensor b_zero = integers(ElementType::kInt8, {1, 0}, {2});
  const auto y = run({.op = "MatMulInteger", .operands = {&a, &b, &a_zero, &b_zero}});
  // (0 1; 1 2) x (0 -1; 1 -2)
  EXPECT_EQ(y[0].ints(), (Ints{1, -2, 2, -5}));
  const Tensor vector = integers(ElementType::kUInt8, {1, 2}, {2});
  const auto row = run({.op = "MatMulInteger", .operands = {&vector, &b}});
  EXPECT_EQ(row[0].shape(), (Shape{2}));
  EXPECT_EQ(row[0].ints(), (Ints{5, -5}));
}

TEST(MatMulInteger, ZeroPointsThatAreNotKnownLeaveTheProduct) {
  const Tensor a = integers(ElementType::kUInt8, {1, 2, 3, 4, 5, 255, 7, 8, 9, 10, 11, 12}, {2, 2, 3});
  const Tensor b = integers(ElementType::kInt8, {1, -1, 2, -2, 127, -128}, {3, 2});
  const Tensor of_all = integers(ElementType::kUInt8, {9}, {}),
               of_rows = integers(ElementType::kUInt8, {1, 2}, {2});
  const Tensor of_each = integers(ElementType::kUInt8, {1, 2, 3, 4}, {2, 2, 1});
  const Tensor columns = integers(ElementType::kInt8, {1, -7}, {2});
  for (const Tensor* zero : {&of_all, &of_rows, &of_each}) {
    expect_zero_points_leave({.op = "MatMulInteger", .operands = {&a, &b, zero}}, 2);
  }
  for (const Tensor* zero : {&of_rows, &of_each}) {
    expect_zero_points_leave({.op = "MatMulInteger", .operands = {&a, &b, zero, &columns}, .known = true}, 3);
  }
  expect_zero_points_leave({.op = "MatMulInteger", .operands = {&a, &b, &of_all, &columns}, .known = true},
                           4);
}

/// The loops that stand for a kernel give what the operator itself is evaluated to.
void expect_loops(const OneNode& node) {
  const ir::Graph graph = graph_of(node);
  const ir::NodeId id = graph.nodes()[0];
  const ir::Form form = ir::form_of(graph, id);
  ASSERT_TRUE(std::holds_alternative<ir::LoopForm>(form));
  std::vector<const Tensor*> operands;
  for (const Tensor* operand : node.operands) operands.push_back(operand);
  const Tensor loops =
      ir::evaluate(std::get<ir::LoopForm>(form), operands, graph.value(graph.outputs()[0]).type);
  EXPECT_TRUE(loops.identical(evaluate_inputs(graph, node)[0]));
}

TEST(MatMulInteger, SumsDifferencesWhereKernelsCannotSubtract) {
  const Tensor a = integers(ElementType::kUInt8, {1, 2, 3, 4, 5, 255, 7, 8, 9, 10, 11, 12}, {2, 2, 3});
  const Tensor b = integers(ElementType::kInt8, {1, -1, 2, -2, 127, -128}, {3, 2});
  const Tensor batches = integers(ElementType::kInt8, {1, 2, 3, 4, 5, 6}, {2, 3, 1});
  const Tensor p = integers(ElementType::kUInt8, {9}, {}), rows = integers(ElementType::kUInt8, {1, 2}, {2});
  const Tensor p_each = integers(ElementType::kUInt8, {1, 2, 3, 4}, {2, 2, 1});
  const Tensor q = integers(ElementType::kInt8, {5}, {1}),
               columns = integers(ElementType::kInt8, {1, -7}, {2});
  const Tensor q_each = integers(ElementType::kInt8, {1, -1}, {2, 1, 1});
  expect_loops({.op = "MatMulInteger", .operands = {&a, &b, &p, &columns}});
  expect_loops({.op = "MatMulInteger", .operands = {&a, &b, &rows, &q}});
  expect_loops({.op = "MatMulInteger", .operands = {&a, &batches, &p_each, &q_each}});
  for (const OneNode& node : {OneNode{.op = "MatMulInteger", .operands = {&a, &b}},
                              OneNode{.op = "MatMulInteger", .operands = {&a, &b, &p, &q}},
                              OneNode{.op = "MatMulInteger", .operands = {&a, &batches}, .known = true}}) {
    const ir::Graph graph = graph_of(node);
    EXPECT_TRUE(std::holds_alternative<ir::ContractForm>(ir::form_of(graph, graph.nodes()[0])));
  }
}

TEST(MatMul, TypesOf32And64BitsAreContractionsAndNarrowerOnesLoops) {
  const std::vector<std::int64_t> left = {1, 2, 3, 4, 5, 6}, right = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  for (const ElementType type : {ElementType::kInt32, ElementType::kUInt64}) {
    const Tensor a = integers(type, left, {1, 2, 3}), b = integers(type, right, {2, 3, 2});
    const ir::Graph graph = graph_of({.op = "MatMul", .operands = {&a, &b}});
    const ir::Form form = ir::form_of(graph, graph.nodes()[0]);
    ASSERT_TRUE(std::holds_alternative<ir::ContractForm>(form)) << name_of(type);
    EXPECT_EQ(std::get<ir::ContractForm>(form).accumulator, type);
  }
  const Tensor a = integers(ElementType::kInt16, left, {1, 2, 3});
  const Tensor b = integers(ElementType::kInt16, right, {2, 3, 2});
  expect_loops({.op = "MatMul", .operands = {&a, &b}});
}

TEST(MatMulInteger, RefusesZeroPointsThatDoNotFit) {
  const Tensor a = integers(ElementType::kUInt8, {1, 2, 3, 4}, {2, 2});
  const Tensor zero = integers(ElementType::kUInt8, {1, 2, 3}, {3});
  EXPECT_EQ(error_of([&] {
              run({.op = "MatMulInteger", .operands = {&a, &a, &zero}});
            }),
            "the zero point's shape [3] does not fit [2, 2]");
}

TEST(Gemm, ScalesTransposesAndAdds) {
  const Tensor a = floats({1, 2, 3, 4}, {2, 2});
  const Tensor b = floats({1, 0, 2, 1}, {2, 2});
  const Tensor c = floats({10, 20}, {2});
  const auto y =
      run({.op = "Gemm",
           .attributes = attributes(
               {{"transA", std::int64_t{1}}, {"transB", std::int64_t{1}}, {"alpha", 2.0f}, {"beta", 0.5f}}),
           .operands = {&a, &b, &c}});
  // A' B' = (1 3; 2 4) (1 2; 0 1) = (1 5; 2 8)
  EXPECT_EQ(reals(y[0]), (std::vector<double>{7, 20, 9, 26}));
}

TEST(Gemm, WithoutFactorsIsOneProduct) {
  const Tensor a = floats({1, 2}, {1, 2});
  const Tensor b = floats({3, 4}, {2, 1});
  auto graph = graph_of({.op = "Gemm", .operands = {&a, &b}});
  decompose_all(graph);
  ASSERT_EQ(graph.node_count(), 1u);
  EXPECT_EQ(graph.node(graph.nodes()[0]).op->name, "MatMul");
  EXPECT_EQ(graph.node(graph.nodes()[0]).origins, (std::vector<ir::Origin>{{"Gemm", "node"}}));
}

TEST(Gemm, MultipliesBatchesLikeMatrices) {
  const Tensor a = floats({1, 2, 3, 4}, {2, 1, 2});
  const Tensor b = floats({5, 6}, {1, 1, 2});
  const Tensor y =
      run({.op = "Gemm", .attributes = attributes({{"transB", std::int64_t{1}}}), .operands = {&a, &b}})[0];
  EXPECT_EQ(y.shape(), (Shape{2, 1, 1}));
  EXPECT_EQ(reals(y), (std::vector<double>{17, 39}));
}

TEST(Gemm, RefusesWhatDoesNotFit) {
  const Tensor a = ramp({2, 3});
  const Tensor wide = ramp({3, 2, 2});
  EXPECT_EQ(error_of([&] {
              run({.op = "Gemm", .operands = {&a, &a}});
            }),
            "inner dimensions differ: [2, 3] x [2, 3]");
  EXPECT_EQ(error_of([&] {
              run({.op = "Gemm",
                   .attributes = attributes({{"transB", std::int64_t{1}}}),
                   .operands = {&a, &a, &wide}});
            }),
            "C of shape [3, 2, 2] does not broadcast to [2, 2]");
  const Tensor i = ints({1}, {1, 1});
  EXPECT_EQ(error_of([&] {
              run({.op = "Gemm", .attributes = attributes({{"alpha", 0.5f}}), .operands = {&i, &i}});
            }),
            "alpha = 0.5 is not an integer, but the inputs are");
}

TEST(MaxPool, KeepsTypesAndSkipsPadding) {
  const Tensor x = integers(ElementType::kInt8, {-5, -6, -7}, {1, 1, 3});
  const auto y = run({.op = "MaxPool",
                      .attributes = attributes({{"kernel_shape", Ints{2}}, {"pads", Ints{1, 1}}}),
                      .operands = {&x},
                      .results = 2});
  EXPECT_EQ(y[0].element(), ElementType::kInt8);
  EXPECT_EQ(y[0].ints(), (Ints{-5, -5, -6, -7}));
  EXPECT_EQ(y[1].ints(), (Ints{0, 0, 1, 2}));
}

TEST(MaxPool, CeilModeAddsAPartialWindow) {
  const Tensor x = ramp({1, 1, 4});
  const auto pool = [&](std::int64_t ceil_mode) {
    return reals(run({.op = "MaxPool",
                      .attributes = attributes(
                          {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"ceil_mode", ceil_mode}}),
                      .operands = {&x}})[0]);
  };
  EXPECT_EQ(pool(0), (std::vector<double>{2}));
  EXPECT_EQ(pool(1), (std::vector<double>{2, 3}));
}

// As many windows as the formula says, as in ONNX Runtime: none.
TEST(Pools, WindowsThatBeginLessThanAStrideOutsideMakeNothing) {
  const auto pooled = [](std::int64_t size, std::int64_t kernel, std::int64_t stride) {
    const Tensor x = ramp({1, 1, size});
    return run({.op = "MaxPool",
                .attributes = attributes({{"kernel_shape", Ints{kernel}}, {"strides", Ints{stride}}}),
                .operands = {&x}})[0]
        .shape();
  };
  EXPECT_EQ(pooled(1, 2, 1), (ir::Shape{1, 1, 0}));
  EXPECT_EQ(pooled(1, 3, 2), (ir::Shape{1, 1, 0}));
  EXPECT_EQ(pooled(0, 2, 2), (ir::Shape{1, 1, 0}));
  EXPECT_EQ(error_of([&] { pooled(1, 3, 1); }), "a window of 3 does not fit spatial axis 0 of size 1");
}

TEST(MatMul, VectorsTimesEmptyMatricesAreEmpty) {
  const Tensor a = ramp({4}), b = ramp({3, 4, 0});
  EXPECT_EQ(run({.op = "MatMul", .operands = {&a, &b}})[0].shape(), (ir::Shape{3, 0}));
  const Tensor c = ramp({0, 4, 3});
  EXPECT_EQ(run({.op = "MatMul", .operands = {&a, &c}})[0].shape(), (ir::Shape{0, 3}));
}

TEST(MaxPool, CountsPositionsInTheStorageOrder) {
  const Tensor x = floats({0, 0, 0, 0, 0, 9}, {1, 1, 2, 3});
  const auto position = [&](std::int64_t order) {
    return run({.op = "MaxPool",
                .attributes = attributes({{"kernel_shape", Ints{2, 2}},
                                          {"strides", Ints{1, 2}},
                                          {"pads", Ints{0, 0, 0, 1}},
                                          {"storage_order", order}}),
                .operands = {&x},
                .results = 2})[1]
        .ints()
        .back();
  };
  EXPECT_EQ(position(0), 5);
  EXPECT_EQ(position(1), 5);
  const Tensor early = floats({0, 9, 0, 0, 0, 0}, {1, 1, 2, 3});
  const auto y =
      run({.op = "MaxPool",
           .attributes = attributes({{"kernel_shape", Ints{2, 3}}, {"storage_order", std::int64_t{1}}}),
           .operands = {&early},
           .results = 2});
  EXPECT_EQ(y[1].ints(), (Ints{2}));
}

TEST(MaxPool, PositionsAreThoseOfTheFirstMaximum) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), low = -std::numeric_limits<float>::infinity();
  const Tensor x = floats({low, low, 3, 3, 1, nan, nan, 0, low}, {1, 1, 3, 3});
  for (const std::int64_t order : {0, 1}) {
    const Attributes window = attributes({{"kernel_shape", Ints{2, 2}},
                                          {"strides", Ints{1, 1}},
                                          {"dilations", Ints{1, 1}},
                                          {"pads", Ints{1, 1, 1, 1}},
                                          {"storage_order", order}});
    const auto expected = run({.op = "MaxPool", .attributes = window, .operands = {&x}, .results = 2});
    const auto actual = run({.op = "MaxPoolPositions",
                             .attributes = window,
                             .operands = {&x, &expected[0]},
                             .domain = "gcompile"});
    EXPECT_EQ(actual[0].ints(), expected[1].ints()) << order;
  }
}

TEST(Pools, TakeThreeSpatialAxes) {
  const Tensor x = ramp({1, 1, 2, 2, 2});
  const OneNode node = {
      .op = "MaxPool", .attributes = attributes({{"kernel_shape", Ints{2, 2, 2}}}), .operands = {&x}};
  EXPECT_EQ(reals(run(node)[0]), (std::vector<double>{7}));
  const auto graph = graph_of(node);
  EXPECT_EQ(error_of([&] { ir::form_of(graph, graph.nodes()[0]); }), "no error");
  EXPECT_EQ(error_of([&] { run({.op = "MaxPool", .operands = {&x}}); }),
            "attribute 'kernel_shape' is missing");
}

TEST(AveragePool, CountsPaddingOnlyWhenAsked) {
  const Tensor x = floats({2, 4}, {1, 1, 2});
  const auto pool = [&](std::int64_t include) {
    return reals(run({.op = "AveragePool",
                      .attributes = attributes(
                          {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 0}}, {"count_include_pad", include}}),
                      .operands = {&x}})[0]);
  };
  EXPECT_EQ(pool(0), (std::vector<double>{2, 3}));
  EXPECT_EQ(pool(1), (std::vector<double>{1, 3}));
}

TEST(AveragePool, NeverCountsWhatCeilModeReachesBeyondThePadding) {
  const Tensor x = floats({1, 2, 3, 6}, {1, 1, 4});
  const auto y = run({.op = "AveragePool",
                      .attributes = attributes({{"kernel_shape", Ints{3}},
                                                {"strides", Ints{2}},
                                                {"ceil_mode", std::int64_t{1}},
                                                {"count_include_pad", std::int64_t{1}}}),
                      .operands = {&x}});
  EXPECT_EQ(reals(y[0]), (std::vector<double>{2, 4.5}));
}

TEST(AveragePool, SpacesTapsByDilations) {
  const Tensor x = ramp({1, 1, 5});
  const auto y = run({.op = "AveragePool",
                      .attributes = attributes({{"kernel_shape", Ints{2}}, {"dilations", Ints{3}}}),
                      .operands = {&x}});
  EXPECT_EQ(reals(y[0]), (std::vector<double>{1.5, 2.5}));
}

}  // namespace
}  // namespace gcompile::testing

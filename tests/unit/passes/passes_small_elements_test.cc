// Elements of 2 and 4 bits become bytes between packed inputs and outputs.

#include <gtest/gtest.h>

#include "ir/ops/support.h"
#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Graph;
using ir::TensorType;
using ir::ValueId;

ValueId node(Graph& graph, const char* name, std::vector<ValueId> operands, ir::Attributes attributes = {}) {
  const ir::Operator& op = ir::operator_named(name);
  ir::complete_attributes(op, attributes);
  const ir::NodeId id = graph.add_node(op, std::move(operands), attributes, 1, name);
  ir::infer_node(graph, id);
  return graph.node(id).results[0];
}

ir::Attributes to(ElementType type) {
  ir::Attributes attributes;
  attributes.set("to", ir::onnx_number_of(type));
  return attributes;
}

constexpr ElementType kTypes[] = {ElementType::kInt4, ElementType::kUInt4, ElementType::kInt2,
                                  ElementType::kUInt2, ElementType::kFloat4E2M1};

TEST(SmallElements, ArePackedAtInputsAndOutputsAlone) {
  for (const ElementType type : kTypes) {
    Graph model;
    const ValueId x = model.add_input("x", {type, {3, 5}});
    ir::Attributes turned;
    turned.set("perm", std::vector<std::int64_t>{1, 0});
    model.add_output(node(model, "Transpose", {x}, turned), "y");
    const Graph before = model;
    run_pass(model, "small-elements");
    EXPECT_EQ(operators(model), "UnpackBits Transpose Reshape Pad PackBits");
    const std::int64_t bytes = ir::bytes_of(type, 15);
    EXPECT_EQ(model.value(model.inputs()[0]).type, (TensorType{ElementType::kUInt8, {bytes}}));
    EXPECT_EQ(model.input_type(0), (TensorType{type, {3, 5}}));
    EXPECT_EQ(model.output_type(0), (TensorType{type, {5, 3}}));
    expect_same(before, model, 0);
    const Graph once = model;
    run_pass(model, "small-elements");
    EXPECT_EQ(operators(model), operators(once));
  }
}

TEST(SmallElements, ConversionsSayWhatTheyMake) {
  for (const ElementType type : kTypes) {
    Graph model;
    const ValueId x = model.add_input("x", {ElementType::kFloat32, {7}});
    const ValueId small = node(model, "Cast", {x}, to(type));
    model.add_output(node(model, "Cast", {small}, to(ElementType::kFloat32)), "y");
    const ValueId scale = model.add_constant(ir::Tensor::of_floats(std::vector<float>{0.125f}, {}));
    const ValueId zero = model.add_constant(ir::Tensor({type, {}}));
    model.add_output(node(model, "QuantizeLinear", {x, scale, zero}), "z");
    const Graph before = model;
    run_pass(model, "small-elements");
    EXPECT_EQ(operators(model), "NarrowCast Cast NarrowQuantizeLinear Reshape Pad PackBits");
    expect_same(before, model, 0);
  }
}

TEST(SmallElements, ThereMayBeNone) {
  Graph model;
  const ValueId x = model.add_input("x", {ElementType::kInt4, {7, 0}});
  model.add_output(node(model, "Identity", {x}), "y");
  const Graph before = model;
  run_pass(model, "small-elements");
  expect_same(before, model, 0);
}

TEST(SmallElements, OfAnInputThatIsAnOutput) {
  Graph model;
  const ValueId x = model.add_input("x", {ElementType::kUInt4, {1}});
  model.add_output(x, "y");
  model.add_output(x, "z");
  const Graph before = model;
  run_pass(model, "small-elements");
  expect_same(before, model, 0);
  EXPECT_EQ(model.output_type(1).element, ElementType::kUInt4);
}

}  // namespace
}  // namespace gcompile::testing

// Graph -> ONNX -> Graph computes the same.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "frontend/export/export.h"
#include "ir/forms/form.h"
#include "tests/unit/frontend/frontend_fixture.h"
#include "tests/unit/ir/one_node.h"

namespace gcompile {
namespace {

using frontend_test::import_bytes;
using frontend_test::import_text;
using frontend_test::model_text;
using frontend_test::Outcome;
using frontend_test::output_types;
using ::testing::HasSubstr;

ir::Tensor ramp(const ir::TensorType& type) {
  ir::Tensor tensor(type);
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const double value = static_cast<double>(i % 7) * 0.5 - 1;
    tensor.set(i, ir::is_float(type.element) ? ir::Scalar::of_real(type.element, value)
                                             : ir::Scalar::of_integer(type.element, i % 2));
  }
  return tensor;
}

/// Exports, imports again, and compares names, types and values.
void expect_same(const std::string& text) {
  const Outcome first = import_text(text);
  ASSERT_TRUE(first.model) << first.errors;
  const std::string bytes = frontend::export_model(first.graph());
  EXPECT_EQ(bytes, frontend::export_model(first.graph()));
  const Outcome second = import_bytes(bytes);
  ASSERT_TRUE(second.model) << second.errors;
  EXPECT_EQ(second.warnings, "");
  EXPECT_EQ(second.graph().output_names(), first.graph().output_names());
  EXPECT_EQ(output_types(second.graph()), output_types(first.graph()));
  std::vector<ir::Tensor> inputs;
  ASSERT_EQ(second.graph().inputs().size(), first.graph().inputs().size());
  for (std::size_t i = 0; i < first.graph().inputs().size(); ++i) {
    const ir::Value& value = first.graph().value(first.graph().inputs()[i]);
    EXPECT_EQ(second.graph().value(second.graph().inputs()[i]).name, value.name);
    inputs.push_back(ramp(value.type));
  }
  const auto expected = ir::evaluate_graph(first.graph(), inputs);
  const auto actual = ir::evaluate_graph(second.graph(), inputs);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(actual[i].identical(expected[i])) << text;
}

TEST(FrontendExport, PlainGraphs) {
  expect_same(model_text("(float[2, 3] a, float[3, 4] b) => (float y)", "p = MatMul(a, b)\ny = Softmax(p)"));
  expect_same(
      model_text("(float[1, 2, 5, 5] x, float[3, 2, 3, 3] w) => (float y)",
                 "c = Conv <auto_pad = \"SAME_UPPER\", strides = [2, 2]> (x, w)\ny = Elu <alpha = 0.5> (c)"));
}

/// Numbers of ONNX's text, as many as are wanted.
std::string codes_of(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}{}", i ? ", " : "", i * 37 % 256);
  return text;
}
std::string scales_of(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}{}", i ? ", " : "", 0.25 + 0.125 * i);
  return text;
}

onnx::GraphProto exported(const std::string& text) {
  onnx::ModelProto model;
  const Outcome outcome = import_text(text);
  EXPECT_TRUE(outcome.model) << outcome.errors;
  if (outcome.model) model.ParseFromString(frontend::export_model(outcome.graph()));
  return model.graph();
}

// ONNX Runtime refuses negative pads; output_padding is what they are made of.
TEST(FrontendExport, OutputsBehindATransposedConvolutionAreItsPadding) {
  const std::string extra =
      model_text("(float[1, 2, 4] x, float[2, 3, 3] w) => (float y)",
                 "y = ConvTranspose <strides = [2], pads = [1, 0], output_padding = [1]> (x, w)");
  const std::string wanted = model_text("(float[1, 2, 4] x, float[2, 3, 3] w) => (float y)",
                                        "y = ConvTranspose <strides = [2], output_shape = [10]> (x, w)");
  for (const std::string& text : {extra, wanted}) {
    expect_same(text);
    int paddings = 0;
    const onnx::GraphProto graph = exported(text);
    for (const auto& attribute : graph.node(0).attribute()) {
      paddings += attribute.name() == "output_padding" && attribute.ints(0) == 1;
      for (const std::int64_t number : attribute.ints()) EXPECT_GE(number, 0) << attribute.name();
    }
    EXPECT_EQ(paddings, 1);
  }
}

// ONNX Runtime's ConvInteger takes one zero point of the weights.
TEST(FrontendExport, IntegerConvolutionsHaveOneZeroPointOfTheWeights) {
  const auto text = [](const std::string& zeros) {
    return "<ir_version: 8, opset_import: [\"\" : 13]>\n"
           "g (uint8[1,2,4,4] x, int8[2,2,3,3] w) => (int32[1,2,2,2] y)\n<uint8 p = {1}, int8[2] q = {" +
           zeros + "}>\n{ y = ConvInteger(x, w, p, q) }";
  };
  for (const char* zeros : {"0, 0", "3, 3", "3, -2"}) {
    expect_same(text(zeros));
    const onnx::GraphProto graph = exported(text(zeros));
    for (const auto& node : graph.node()) {
      if (node.op_type() != "ConvInteger" || node.input_size() < 4) continue;
      for (const auto& tensor : graph.initializer()) {
        if (tensor.name() == node.input(3)) {
          EXPECT_EQ(tensor.dims_size(), 0) << zeros;
        }
      }
    }
  }
  expect_same(
      "<ir_version: 8, opset_import: [\"\" : 13]>\n"
      "g (uint8[1,4,4,4] x, int8[2,2,3,3] w, int8[2] q) => (int32[1,2,2,2] y)\n<uint8 p = {1}>\n"
      "{ y = ConvInteger<group = 2>(x, w, p, q) }");
}

// What weights of a few bits become inside is written as what ONNX Runtime has for them.
TEST(FrontendExport, ProductsByPackedWeightsAreMatMulNBits) {
  for (const char* bits : {"bits = 4, block_size = 16", "bits = 8, block_size = 32"}) {
    const bool nibbles = std::string(bits).find("4") == 7;
    const std::string text = fmt::format(
        "<ir_version: 8, opset_import: [\"\" : 21, \"com.microsoft\" : 1]>\n"
        "g (float[2,40] x) => (float[2,3] y)\n<uint8[3,{},{}] w = {{{}}}, float[{}] s = {{{}}}, uint8[{}] z "
        "= {{{}}}>\n"
        "{{ y = com.microsoft.MatMulNBits<K = 40, N = 3, {}>(x, w, s, z) }}",
        nibbles ? 3 : 2, nibbles ? 8 : 32, nibbles ? codes_of(72) : codes_of(192), nibbles ? 9 : 6,
        nibbles ? scales_of(9) : scales_of(6), 6,
        nibbles ? "1, 2, 19, 4, 53, 6" : "128, 120, 130, 127, 99, 140", bits);
    const Outcome outcome = import_text(text);
    ASSERT_TRUE(outcome.model) << outcome.errors;
    ir::Graph graph = outcome.graph();
    const ir::Tensor x = ramp({ir::ElementType::kFloat32, {2, 40}});
    const auto expected = ir::evaluate_graph(graph, {x});
    testing::decompose_all(graph);
    const Outcome second = import_bytes(frontend::export_model(graph));
    ASSERT_TRUE(second.model) << second.errors;
    bool is_packed = false;
    for (const ir::NodeId id : second.graph().nodes())
      is_packed = is_packed || second.graph().node(id).op->name == "MatMulNBits";
    EXPECT_TRUE(is_packed);
    EXPECT_TRUE(ir::evaluate_graph(second.graph(), {x})[0].identical(expected[0])) << bits;
  }
}

TEST(FrontendExport, OldOpsetsAreWrittenInTheNewestForm) {
  expect_same(
      "<ir_version: 6, opset_import: [\"\" : 11]>\nagraph (float[2, 3, 4] a) => (float y)\n"
      "{ p = Softmax(a)  y = ReduceMean <axes = [1], keepdims = 0> (p) }");
}

TEST(FrontendExport, OutputsThatAreInputsOrConstants) {
  expect_same(model_text("(float[2] a) => (float[2] a, float[2] y, float[3] k)",
                         "k = Constant <value_floats = [1.0, 2.0, 3.0]> ()\ny = Relu(a)"));
}

TEST(FrontendExport, OneValueUnderTwoNames) {
  Outcome outcome = import_text(model_text("(float[2] a) => (float y)", "y = Relu(a)"));
  ASSERT_TRUE(outcome.model);
  ir::Graph graph = outcome.graph();
  graph.add_output(graph.outputs()[0], "again");
  const Outcome second = import_bytes(frontend::export_model(graph));
  ASSERT_TRUE(second.model) << second.errors;
  EXPECT_EQ(second.graph().output_names(), (std::vector<std::string>{"y", "again"}));
}

TEST(FrontendExport, BranchesFindTheirCapturesByName) {
  expect_same(
      model_text("(bool c, float[2] a, float[2] b) => (float y)",
                 "h = Exp(a)\ny = If (c) <then_branch = t () => (float r) { q = Add(h, b)  r = Exp(q) }, "
                 "else_branch = e () => (float h) { }>"));
}

TEST(FrontendExport, WhatOnnxCannotSayIsRefusedByName) {
  Outcome outcome = import_text(model_text("(float[2] a) => (float y)", "p = Exp(a)\ny = Relu(p)"));
  ASSERT_TRUE(outcome.model);
  ir::Graph graph = outcome.graph();
  for (const ir::NodeId id : graph.nodes()) {
    graph.node(id).form = std::make_shared<const ir::Form>(ir::form_of(graph, id));
  }
  try {
    frontend::export_model(graph);
    FAIL() << "fused nodes were written";
  } catch (const CompileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Exp 'p' cannot be written as ONNX"));
    EXPECT_THAT(error.what(), HasSubstr("Relu 'y' cannot be written as ONNX"));
  }
}

}  // namespace
}  // namespace gcompile

// Graph -> ONNX -> Graph computes the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/export.h"
#include "tests/unit/frontend_fixture.h"

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
  } catch (const ir::CompileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Exp 'p' cannot be written as ONNX"));
    EXPECT_THAT(error.what(), HasSubstr("Relu 'y' cannot be written as ONNX"));
  }
}

}  // namespace
}  // namespace gcompile

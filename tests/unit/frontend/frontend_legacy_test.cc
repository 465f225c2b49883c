// Opsets 1 to 6: every form that has changed since reads like the form of today.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/frontend/frontend_fixture.h"

namespace gcompile {
namespace {

using frontend_test::import_proto;
using frontend_test::import_text;
using frontend_test::Outcome;
using frontend_test::proto_of;
using ::testing::HasSubstr;

std::string model_of_opset(int opset, const std::string& signature, const std::string& body) {
  return fmt::format("<ir_version: 8, opset_import: [\"\" : {}]>\nagraph {}\n{{\n{}\n}}\n", opset, signature,
                     body);
}

/// Outputs for inputs -1, -0.75, -0.5, ...
std::vector<ir::Tensor> outputs_of(const ir::Graph& graph) {
  std::vector<ir::Tensor> inputs;
  for (const ir::ValueId id : graph.inputs()) {
    ir::Tensor& input = inputs.emplace_back(graph.value(id).type);
    for (std::int64_t i = 0; i < input.count(); ++i) {
      input.set(i, ir::Scalar::of_real(input.element(), static_cast<double>(i % 17) / 4 - 1));
    }
  }
  return ir::evaluate_graph(graph, inputs);
}

struct Pair {
  int opset;
  std::string signature;
  std::string old_body;
  std::string new_body;  // of opset 17
};

const Pair kPairs[] = {
    {1, "(float[2] a) => (float y)", "y = Relu <consumed_inputs = [0]> (a)", "y = Relu(a)"},
    {5, "(float[2] a) => (float y)", "y = Relu(a)", "y = Relu(a)"},
    {1, "(float[2] a) => (float y)", "y = Clip <consumed_inputs = [0], max = 0.5> (a)",
     "m = Constant <value = float {0.5}> ()\ny = Clip(a, , m)"},
    {1, "(float[2] a) => (float y)", "y = Selu(a)", "y = Selu <alpha = 1.6732, gamma = 1.0507> (a)"},
    {1, "(float[2] a) => (float y)", "y = Dropout <is_test = 1> (a)", "y = Identity(a)"},
    {1, "(float[2] a) => (int32 y)", "y = Cast <to = \"INT32\"> (a)", "y = Cast <to = 6> (a)"},
    {1, "(float[2, 3, 4] a, float[3] b) => (float y)",
     "y = Add <consumed_inputs = [0, 0], broadcast = 1, axis = 1> (a, b)",
     "s = Constant <value_ints = [3, 1]> ()\nc = Reshape(b, s)\ny = Add(a, c)"},
    {1, "(float[2, 3, 4] a, float[4] b) => (float y)", "y = Pow <broadcast = 1> (a, b)", "y = Pow(a, b)"},
    {1, "(float[2] a, float[2] b) => (bool y)", "y = Greater(a, b)", "y = Greater(a, b)"},
    {1, "(float[2, 3] a, float[2, 3] b) => (float y)", "y = Max <consumed_inputs = [0, 0]> (a, b)",
     "y = Max(a, b)"},
    {1, "(float[2, 3] a, float[2, 3] b) => (float y)", "y = Concat(a, b)", "y = Concat <axis = 1> (a, b)"},
    {1, "(float[2, 3, 4] a, float[3] b) => (float y)", "y = PRelu(a, b)",
     "s = Constant <value_ints = [3, 1]> ()\nc = Reshape(b, s)\ny = PRelu(a, c)"},
    {1, "(float[2, 3] a) => (float y)", "y = Reshape <shape = [3, -1]> (a)",
     "s = Constant <value_ints = [3, -1]> ()\ny = Reshape(a, s)"},
    {1, "(float[2, 3] a) => (float y)", "y = Pad <paddings = [0, 1, 2, 0], value = 3.0> (a)",
     "p = Constant <value_ints = [0, 1, 2, 0]> ()\nv = Constant <value = float {3.0}> ()\ny = Pad(a, p, v)"},
    {1, "(float[2, 3] a) => (float y)",
     "t = Constant <value = float {2.0}> ()\nx = Constant <value = float {1.0}> ()\ny = Tile(a, t, x)",
     "t = Constant <value_ints = [1, 2]> ()\ny = Tile(a, t)"},
    {1, "(float[2, 3] a) => (float y, float z)", "y, z = Split <axis = 1, split = [1, 2]> (a)",
     "s = Constant <value_ints = [1, 2]> ()\ny, z = Split <axis = 1> (a, s)"},
    {1, "(float[1, 1, 2, 3] a) => (float y)", "y = Upsample <height_scale = 2.0, width_scale = 3.0> (a)",
     "s = Constant <value_floats = [1.0, 1.0, 2.0, 3.0]> ()\n"
     "y = Resize <coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\"> (a, , s)"},
    {1, "(float[2, 3] a, float[3, 2] b, float[2] c) => (float y)", "y = Gemm <broadcast = 1> (a, b, c)",
     "y = Gemm(a, b, c)"},
    {1, "(float[1, 2, 3] a, float[2] s, float[2] b, float[2] m, float[2] v) => (float y)",
     "y = BatchNormalization <consumed_inputs = [0, 0, 0, 1, 1], is_test = 1, epsilon = 2.0> (a, s, b, m, v)",
     "y = BatchNormalization <epsilon = 2.0> (a, s, b, m, v)"},
    {1, "(float[1, 2, 4] a) => (float y)", "y = LpPool <kernel_shape = [2], p = 3.0> (a)",
     "y = LpPool <kernel_shape = [2], p = 3> (a)"},
    {1, "(float[2, 4] a) => (float y, int64 i)", "y, i = TopK <k = 2> (a)",
     "k = Constant <value_ints = [2]> ()\ny, i = TopK(a, k)"},
    {1, "(float[2, 3, 4] a) => (float y)", "y = Softmax(a)",
     "s = Constant <value_ints = [2, 12]> ()\nf = Reshape(a, s)\ng = Softmax <axis = -1> (f)\n"
     "t = Constant <value_ints = [2, 3, 4]> ()\ny = Reshape(g, t)"},
};

TEST(FrontendLegacy, OldFormsReadLikeTheNewOnes) {
  for (const Pair& pair : kPairs) {
    SCOPED_TRACE(pair.old_body);
    const Outcome old_model = import_text(model_of_opset(pair.opset, pair.signature, pair.old_body));
    const Outcome new_model = import_text(model_of_opset(17, pair.signature, pair.new_body));
    ASSERT_TRUE(old_model.model) << old_model.errors;
    ASSERT_TRUE(new_model.model) << new_model.errors;
    const std::vector<ir::Tensor> actual = outputs_of(old_model.graph()),
                                  wanted = outputs_of(new_model.graph());
    ASSERT_EQ(actual.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(actual[i].identical(wanted[i])) << i;
  }
}

TEST(FrontendLegacy, WhatCannotBeReadIsAnErrorOfTheNode) {
  const std::string signature = "(float[2, 3] a, float t) => (float y)";
  EXPECT_THAT(import_text(model_of_opset(1, signature, "y = Tile(a, t, t)")).errors,
              HasSubstr("tiles and axis must be scalars that are known at compile time"));
  EXPECT_THAT(import_text(model_of_opset(1, signature, "y = Cast <to = \"STRING\"> (a)")).errors,
              HasSubstr("names the type 'STRING', which is not supported"));
  EXPECT_THAT(import_text(model_of_opset(6, signature, "y = Relu <consumed_inputs = [0]> (a)")).errors,
              HasSubstr("attribute 'consumed_inputs' is not known"));
  EXPECT_THAT(import_text(model_of_opset(0, signature, "y = Relu(a)")).errors, HasSubstr("E0111"));
}

TEST(FrontendLegacy, BeforeVersion3OfTheFormatThereIsOneOpset) {
  onnx::ModelProto model = proto_of(model_of_opset(1, "(float[2] a) => (float y)", "y = Relu(a)"));
  model.clear_opset_import();
  EXPECT_THAT(import_proto(model).errors, HasSubstr("E0102"));
  model.set_ir_version(2);
  const Outcome outcome = import_proto(model);
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(outcome.model->info.opsets.at(""), 1);
}

}  // namespace
}  // namespace gcompile

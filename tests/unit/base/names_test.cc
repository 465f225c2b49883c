#include "base/names.h"

#include <gtest/gtest.h>

namespace gcompile {
namespace {

TEST(Names, WordsOfAnIdentifier) {
  EXPECT_EQ(identifier_words("LeakyRelu", 40), "leaky_relu");
  EXPECT_EQ(identifier_words("/encoder/layer.0/MatMul:0", 40), "encoder_layer_0_mat_mul_0");
  EXPECT_EQ(identifier_words("LeakyRelu", 6), "leaky");
  EXPECT_EQ(identifier_words("//", 40), "value");
}

TEST(Names, LongNamesKeepTheirLastWords) {
  Names names;
  const std::string scope = "StatefulPartitionedCall/functional_1/";
  EXPECT_EQ(names(scope + "depthwise_conv2d_7/depthwise:0", "at_"),
            "at_functional_1_depthwise_conv2d_7_depthwise_0");
  EXPECT_EQ(names(scope + "conv2d/Relu:0", "at_"), "at_partitioned_call_functional_1_conv2d_relu_0");
  // One word that is too long for itself.
  // The number of a block tells more than the words behind it.
  EXPECT_EQ(names("blocks.13.mobile_inverted_conv.inverted_bottleneck.conv.weight", "w_"),
            "w_blocks_13_conv_inverted_bottleneck_conv_weight");
  EXPECT_EQ(names("/model/layers.7/self_attn/k_proj/whole/MatMul_output_0", ""),
            "model_layers_7_self_attn_k_proj_whole_mat_mul");
  // What lies in another layer, or in another stage of several, is another thing.
  EXPECT_EQ(names("bert.encoder.layer.1.attention.output.dense.weight_transposed", "w_"),
            "w_layer_1_attention_output_dense_weight_transposed");
  EXPECT_EQ(names("backbone.stages.2.blocks.11.spatial_reduction.projection.weight", "w_"),
            "w_stages_2_blocks_11_reduction_projection_weight");
  EXPECT_EQ(identifier_words("InstanceNormalization", 20), "instance");
  EXPECT_EQ(names(std::string(100, 'x') + "y", ""), std::string(47, 'x') + "y");
}

TEST(Names, AreDistinctAndNoKeywords) {
  Names names;
  EXPECT_EQ(names("x", ""), "x");
  EXPECT_EQ(names("X", ""), "x_2");
  EXPECT_EQ(names("x_2", ""), "x_2_2");
  EXPECT_EQ(names("while", ""), "while_2");
  EXPECT_EQ(names("7up", ""), "t_7up");
}

TEST(JoinedName, SaysAllParts) {
  EXPECT_EQ(joined_name({"l.0.query.weight", "l.0.key.weight", "l.0.value.weight"}), "l.0.qkv.weight");
  EXPECT_EQ(joined_name({"h.q_proj.weight", "h.k_proj.weight", "h.v_proj.weight"}), "h.qkv_proj.weight");
  EXPECT_EQ(joined_name({"key", "value"}), "kv");
  EXPECT_EQ(joined_name({"mlp.gate", "mlp.up"}), "mlp.gate_up");
  EXPECT_EQ(joined_name({"onnx::MatMul_12", "onnx::MatMul_123"}), "onnx::MatMul_12_123");
  EXPECT_EQ(joined_name({"a", "a"}), "a_a");
  EXPECT_EQ(joined_name({"one"}), "one");
}

}  // namespace
}  // namespace gcompile

// com.microsoft: layer normalisation fused with what comes before it in transformers.

#include <fmt/format.h>

#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

/// Shape of the row statistics: one per row of the last axis.
Shape row_shape(Shape shape) {
  shape.back() = 1;
  return shape;
}

void require_row_vector(const NodeView& node, int i, std::int64_t size, std::string_view name) {
  if (node.has_operand(i) && node.shape(i) != Shape{size}) {
    operator_error(
        fmt::format("{} must have {} elements, its shape is {}", name, size, to_string(node.shape(i))));
  }
}

/// Replaces results 0, 1, 2 by those of LayerNormalization of `x`.
void normalise_rows(RewriteContext& context, ValueId x, ValueId gamma, ValueId beta, bool statistics) {
  Attributes attributes;
  attributes.set("axis", std::int64_t{-1});
  attributes.set("epsilon", context.attributes().float_of("epsilon"));
  std::vector<ValueId> operands = {x, gamma};
  if (beta.valid()) operands.push_back(beta);
  const int results = statistics ? 3 : 1;
  const NodeId node = context.emit_node("LayerNormalization", std::move(operands), attributes, results);
  for (int i = 0; i < results; ++i) {
    context.replace_result(i, context.graph().node(node).results[i]);
  }
}

// SkipLayerNormalization: operands input, skip, gamma, beta, bias.

void infer_skip(InferContext& context) {
  require_float(context, 0);
  const ElementType type = same_type(context);
  const Shape& x = context.shape(0);
  if (x.empty() || broadcast(x, context.shape(1)) != x) {
    operator_error(fmt::format("skip of shape {} does not broadcast to the input {}",
                               to_string(context.shape(1)), to_string(x)));
  }
  require_row_vector(context, 2, x.back(), "gamma");
  require_row_vector(context, 3, x.back(), "beta");
  require_row_vector(context, 4, x.back(), "bias");
  context.set_result(0, type, x);
  context.set_result(1, ElementType::kFloat32, row_shape(x));
  context.set_result(2, ElementType::kFloat32, row_shape(x));
  context.set_result(3, type, x);
}

bool wants_statistics(const NodeView& node) {
  for (int i = 1; i < 3; ++i) {
    if (node.has_result(i) && node.graph().use_count(node.node().results[i]) > 0) {
      return true;
    }
  }
  return false;
}

bool decompose_skip(RewriteContext& context) {
  ValueId sum = context.emit("Add", {context.operand_id(0), context.operand_id(1)});
  if (context.has_operand(4)) sum = context.emit("Add", {sum, context.operand_id(4)});
  const ValueId beta = context.has_operand(3) ? context.operand_id(3) : ValueId{};
  context.replace_result(3, sum);
  normalise_rows(context, sum, context.operand_id(2), beta, wants_statistics(context));
  return true;
}

// EmbedLayerNormalization: operands input_ids, segment_ids, word, position and segment embedding, gamma,
// beta, mask, position_ids; results output, mask_index, embedding_sum.

constexpr int kSegmentIds = 1, kWords = 2, kPositions = 3, kSegments = 4, kGamma = 5, kBeta = 6, kMask = 7,
              kPositionIds = 8;

void require_table(const NodeView& node, int i, std::int64_t size, std::string_view name) {
  if (node.has_operand(i) && (node.shape(i).size() != 2 || node.shape(i)[1] != size)) {
    operator_error(
        fmt::format("{} must be (rows, {}), its shape is {}", name, size, to_string(node.shape(i))));
  }
}

void infer_embed(InferContext& context) {
  for (const int i : {kWords, kPositions, kGamma, kBeta}) {
    if (!context.has_operand(i)) operator_error(fmt::format("input {} is missing", i));
  }
  const Shape& ids = context.shape(0);
  if (ids.size() != 2) operator_error("input_ids must be (batch, sequence)");
  require_float(context, kWords);
  if (context.shape(kWords).size() != 2) operator_error("word_embedding must have rank 2");
  const std::int64_t size = context.shape(kWords)[1];
  require_table(context, kPositions, size, "position_embedding");
  require_table(context, kSegments, size, "segment_embedding");
  require_row_vector(context, kGamma, size, "gamma");
  require_row_vector(context, kBeta, size, "beta");
  if (context.has_operand(kSegmentIds) != context.has_operand(kSegments)) {
    operator_error("segment_ids and segment_embedding come together");
  }
  for (const int i : {kSegmentIds, kMask}) {
    if (context.has_operand(i) && context.shape(i) != ids) {
      operator_error(fmt::format("input {} must have the shape of input_ids", i));
    }
  }
  if (!context.has_operand(kPositionIds) && context.shape(kPositions)[0] < ids[1]) {
    operator_error(fmt::format("{} positions for a sequence of {}", context.shape(kPositions)[0], ids[1]));
  }
  if (context.has_operand(kPositionIds) && broadcast(context.shape(kPositionIds), ids) != ids) {
    operator_error("position_ids must broadcast to input_ids");
  }
  const Shape embedded = {ids[0], ids[1], size};
  context.set_result(0, context.element(kWords), embedded);
  context.set_result(1, ElementType::kInt32, {ids[0]});
  context.set_result(2, context.element(kWords), embedded);
}

/// Number of ones in each row of the mask; zeros without mask.
ValueId mask_index(RewriteContext& context) {
  if (!context.has_operand(kMask)) {
    const ValueId zero = context.constant(Tensor(TensorType{ElementType::kInt32, {1}}));
    return context.emit("Expand", {zero, context.constant_ints(Shape{context.shape(0)[0]})});
  }
  const ValueId one = context.constant_scalar(context.element(kMask), 1);
  const ValueId ones = context.emit("Equal", {context.operand_id(kMask), one});
  const std::vector<std::int64_t> last = {1};
  Attributes attributes;
  attributes.set("keepdims", std::int64_t{0});
  return context.emit(
      "ReduceSum", {emit_cast(context, ones, ElementType::kInt32), context.constant_ints(last)}, attributes);
}

bool decompose_embed(RewriteContext& context) {
  const Dim sequence = context.shape(0)[1];
  const auto rows = [&](int table, int ids) {
    return context.emit("Gather", {context.operand_id(table), context.operand_id(ids)});
  };
  ValueId positions =
      context.has_operand(kPositionIds) ? rows(kPositions, kPositionIds) : context.operand_id(kPositions);
  if (!context.has_operand(kPositionIds) && context.shape(kPositions)[0] != sequence) {
    positions = emit_slice(context, positions, 0, 0, sequence);
  }
  ValueId sum = context.emit("Add", {rows(kWords, 0), positions});
  if (context.has_operand(kSegments)) sum = context.emit("Add", {sum, rows(kSegments, kSegmentIds)});
  if (context.has_result(1)) context.replace_result(1, mask_index(context));
  context.replace_result(2, sum);
  normalise_rows(context, sum, context.operand_id(kGamma), context.operand_id(kBeta), false);
  return true;
}

Operator record(std::string_view name, Arity operands, Arity results, std::string_view summary) {
  Operator o;
  o.name = name;
  o.domain = "com.microsoft";
  o.versions = {1};
  o.operands = operands;
  o.results = results;
  o.attributes = {{"epsilon", AttributeKind::kFloat, 1e-12f}};
  o.accuracy = Accuracy::kSum;
  o.summary = summary;
  return o;
}

}  // namespace

const Operator& operator_MicrosoftEmbedLayerNormalization() {
  static const Operator op = [] {
    Operator o = record("EmbedLayerNormalization", {1, 9}, {1, 3},
                        "layer normalisation of the sum of word, position and segment embeddings");
    o.attributes.push_back({"mask_index_type", AttributeKind::kInt, std::int64_t{0}});
    o.infer = infer_embed;
    o.decompose = decompose_embed;
    return o;
  }();
  return op;
}

const Operator& operator_MicrosoftSkipLayerNormalization() {
  static const Operator op = [] {
    Operator o = record("SkipLayerNormalization", {3, 5}, {1, 4}, "layer normalisation of x + skip + bias");
    o.infer = infer_skip;
    o.decompose = decompose_skip;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir

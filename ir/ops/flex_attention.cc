// FlexAttention: attention whose scores and probabilities functions of the model's own change. The importer makes nodes of
// those (frontend/import/import_function.cc); what stands before and behind them are AttentionScores and AttentionSums.

#include <fmt/format.h>

#include <cmath>

#include "ir/ops/attention.h"

namespace gcompile::ir {
namespace {

void infer_never(InferContext&) { operator_error("its parts become nodes where a model is imported"); }

/// Query heads share the heads of the other operand, so many each.
void require_heads(const Shape& queries, const Shape& others) {
  if (queries.size() != 4 || others.size() != 4) operator_error("Q, K and V must have rank 4");
  if (!queries[1].is_constant() || !others[1].is_constant())
    operator_error("the number of heads must be known");
  const std::int64_t query_heads = queries[1], heads = others[1];
  if (heads < 1 || query_heads % heads != 0) {
    operator_error(fmt::format("{} query heads cannot share {} heads", query_heads, heads));
  }
  if (!assume_equal(queries[0], others[0])) {
    operator_error(fmt::format("the batches of {} and {} differ", to_string(queries), to_string(others)));
  }
}

// AttentionScores -------------------------------------------------------------------------------------------

void infer_scores(InferContext& context) {
  for (int i = 0; i < 2; ++i) require_float(context, i);
  same_type(context);
  const Shape &q = context.shape(0), &k = context.shape(1);
  require_heads(q, k);
  if (q[3] != k[3]) operator_error("Q and K have heads of different sizes");
  if (!q[3].is_constant() && !context.attributes().has("scale"))
    operator_error("the size of heads must be known, from which the scale follows");
  context.set_result(0, computable_type_of(context.attributes(), "precision"), {q[0], q[1], q[2], k[2]});
}

bool decompose_scores(RewriteContext& context) {
  const Attributes& attributes = context.attributes();
  AttentionCore core;
  core.q = context.operand_id(0);
  core.k = context.operand_id(1);
  core.scale = attributes.has("scale")
                   ? static_cast<double>(attributes.float_of("scale"))
                   : 1 / std::sqrt(static_cast<double>(std::int64_t{context.shape(0)[3]}));
  const ElementType precision = context.result(0).element;
  context.replace_result(0, emit_cast(context, emit_attention_scores(context, core), precision));
  return true;
}

// AttentionSums ---------------------------------------------------------------------------------------------

void infer_sums(InferContext& context) {
  for (int i = 0; i < 2; ++i) require_float(context, i);
  const Shape &weights = context.shape(0), &v = context.shape(1);
  require_heads(weights, v);
  if (!assume_equal(weights[3], v[2])) operator_error("K and V have different lengths");
  context.set_result(0, context.element(1), {weights[0], weights[1], weights[2], v[3]});
}

/// The product is in the type of the weights; those of the heads that share V are rows of one product.
bool decompose_sums(RewriteContext& context) {
  const Shape weights = context.shape(0), v = context.shape(1);
  const Shape folded = {v[0], v[1], weights[1] / std::int64_t{v[1]} * weights[2], v[2]};
  const ValueId left = emit_reshape(context, context.operand_id(0), folded);
  const ValueId right = emit_cast(context, context.operand_id(1), context.element(0));
  const ValueId sums = context.emit("MatMul", {left, right});
  const ValueId y = emit_reshape(context, sums, {weights[0], weights[1], weights[2], v[3]});
  context.replace_result(0, emit_cast(context, y, context.element(1)));
  return true;
}

Operator part(std::string_view name, std::string_view summary, void (*infer)(InferContext&),
              bool (*decompose)(RewriteContext&)) {
  Operator op;
  op.name = name;
  op.domain = "gcompile";
  op.versions = {1};
  op.operands = {2, 2};
  op.accuracy = Accuracy::kSum;
  op.summary = summary;
  op.infer = infer;
  op.decompose = decompose;
  return op;
}

}  // namespace

const Operator& operator_AttentionScores() {
  static const Operator op = [] {
    Operator o =
        part("AttentionScores", "scaled products of queries and keys per head, of which several share keys",
             infer_scores, decompose_scores);
    o.attributes = {{"precision", AttributeKind::kInt, std::nullopt, true},
                    {"scale", AttributeKind::kFloat, std::nullopt}};
    return o;
  }();
  return op;
}

const Operator& operator_AttentionSums() {
  static const Operator op =
      part("AttentionSums", "sums of values by weights per head, of which several share values", infer_sums,
           decompose_sums);
  return op;
}

const Operator& operator_FlexAttention() {
  static const Operator op = {
      .name = "FlexAttention",
      .domain = "ai.onnx.preview",
      .versions = {1},
      .operands = {3, 3},
      .attributes = {{"scale", AttributeKind::kFloat, std::nullopt},
                     {"softmax_precision", AttributeKind::kInt, std::nullopt}},
      .accuracy = Accuracy::kSum,
      .summary = "attention whose scores and probabilities graphs of the model change",
      .infer = infer_never,
  };
  return op;
}

}  // namespace gcompile::ir

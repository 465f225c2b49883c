// ReverseSequence: the first sequence_lens[b] elements of sequence b backwards, the rest as they are.
// CenterCropPad: axes cropped or padded about their middle, as Pad with negative and positive pads.

#include <fmt/format.h>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

struct SequenceAxes {
  int batch = 1;
  int time = 0;
};

SequenceAxes axes_of(const NodeView& node) {
  const int rank = node.operand(0).rank();
  if (rank < 2) operator_error("input 0 must have two axes or more");
  return {normalise_axis(node.attributes().int_of("batch_axis"), rank),
          normalise_axis(node.attributes().int_of("time_axis"), rank)};
}

void infer_reverse(InferContext& context) {
  const SequenceAxes axes = axes_of(context);
  if (axes.batch == axes.time) operator_error("batch_axis and time_axis must differ");
  if (context.element(1) != ElementType::kInt64) operator_error("sequence_lens must be int64");
  if (context.shape(1) != Shape{context.shape(0)[static_cast<std::size_t>(axes.batch)]}) {
    operator_error("sequence_lens must have one length per sequence");
  }
  const Tensor* lengths = context.constant(1);
  const Dim longest = context.shape(0)[axes.time];
  for (std::int64_t i = 0; lengths && i < lengths->count(); ++i) {
    if (lengths->int_at(i) < 0 || !always_less_equal(lengths->int_at(i), longest)) {
      operator_error(fmt::format("the length {} is outside [0, {}]", lengths->int_at(i), to_string(longest)));
    }
  }
  context.set_result(0, context.operand(0));
}

/// Reads at t < length ? length - 1 - t : t.
Form lower_reverse(const LowerContext& context) {
  const SequenceAxes axes = axes_of(context);
  const Dim longest = context.shape(0)[axes.time];
  LoopForm form = LoopForm::over(context.result(0).shape);
  Dag& dag = form.dag;
  const int length = dag.load(1, ElementType::kInt64, {Index::axis(axes.batch)});
  if (!context.constant(1)) form.checks.push_back({length, Range{0, longest + 1}});
  const int time = dag.iota(Index::axis(axes.time));
  const int last = dag.apply(ScalarOp::kSub, {length, dag.constant(ElementType::kInt64, 1)});
  const int reversed = dag.apply(ScalarOp::kSub, {last, time});
  const int inside = dag.apply(ScalarOp::kLess, {time, length});
  std::vector<Index> index = form.identity();
  index[axes.time] = Index::loaded(dag.apply(ScalarOp::kSelect, {inside, reversed, time}), Range{0, longest});
  form.set_root(dag.load(0, context.element(0), std::move(index)));
  return form;
}

/// Wanted dims, every axis.
Shape cropped(const NodeView& node) {
  Shape out = node.shape(0);
  const Shape wanted = node.known_sizes(1, "the shape to crop or pad to");
  std::vector<std::int64_t> axes;
  if (node.attributes().has("axes")) {
    axes = node.attributes().ints_of("axes");
  } else {
    for (std::size_t i = 0; i < out.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  normalise_axes(axes, static_cast<int>(out.size()));  // refuses repeated axes
  if (axes.size() != wanted.size()) operator_error("the shape must have one entry per axis");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!always_less_equal(0, wanted[i])) {
      operator_error(fmt::format("axis {} would have {} elements", axes[i], to_string(wanted[i])));
    }
    out[static_cast<std::size_t>(normalise_axis(axes[i], static_cast<int>(out.size())))] = wanted[i];
  }
  return out;
}

void infer_crop(InferContext& context) { context.set_result(0, context.element(0), cropped(context)); }

/// The smaller half goes before, of what is cut as of what is added.
bool decompose_crop(RewriteContext& context) {
  const Shape in = context.shape(0), out = cropped(context);
  Shape pads, after;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Dim before = floor_div(max(0, out[i] - in[i]), 2) - floor_div(max(0, in[i] - out[i]), 2);
    pads.push_back(before);
    after.push_back(out[i] - in[i] - before);
  }
  pads.insert(pads.end(), after.begin(), after.end());
  context.replace_result(0, context.emit("Pad", {context.operand_id(0), context.constant_ints(pads)}));
  return true;
}

}  // namespace

const Operator& operator_ReverseSequence() {
  static const Operator op = {
      .name = "ReverseSequence",
      .versions = {10, 28},
      .operands = {2, 2},
      .attributes = {{"batch_axis", AttributeKind::kInt, std::int64_t{1}},
                     {"time_axis", AttributeKind::kInt, std::int64_t{0}}},
      .summary = "sequences of given lengths backwards",
      .infer = infer_reverse,
      .lower = lower_reverse,
  };
  return op;
}

const Operator& operator_CenterCropPad() {
  static const Operator op = {
      .name = "CenterCropPad",
      .versions = {18},
      .operands = {2, 2},
      .attributes = {{"axes", AttributeKind::kInts, std::nullopt}},
      .summary = "axes cropped or padded about their middle",
      .infer = infer_crop,
      .decompose = decompose_crop,
  };
  return op;
}

}  // namespace gcompile::ir

// NonMaxSuppression: boxes that overlap others of their class with higher scores go. How many are left depends on data:
// of values that only a run knows they are counted (ir/ops/counted.h) by gcompile.Suppress, and no such node comes here.

#include <algorithm>

#include "base/interrupt.h"
#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

constexpr int kBoxes = 0, kScores = 1, kMost = 2, kOverlap = 3, kScore = 4;

void require_float32(const NodeView& node, int i, std::string_view what) {
  if (node.has_operand(i) && node.element(i) != ElementType::kFloat32)
    operator_error(std::string(what) + " must be float32");
}

void check_operands(const NodeView& node) {
  require_float32(node, kBoxes, "boxes");
  require_float32(node, kScores, "scores");
  require_float32(node, kOverlap, "iou_threshold");
  require_float32(node, kScore, "score_threshold");
  const Shape &boxes = node.shape(kBoxes), &scores = node.shape(kScores);
  if (boxes.size() != 3 || boxes[2] != 4) operator_error("boxes must be (batch, boxes, 4)");
  if (scores.size() != 3 || scores[0] != boxes[0] || scores[2] != boxes[1])
    operator_error("scores must be (batch, classes, boxes)");
  const std::int64_t centered = node.attributes().int_of("center_point_box");
  if (centered != 0 && centered != 1) operator_error("center_point_box must be 0 or 1");
  if (node.has_operand(kMost) && node.element(kMost) != ElementType::kInt64)
    operator_error("max_output_boxes_per_class must be int64");
  for (const int i : {kMost, kOverlap, kScore}) {
    if (node.has_operand(i) && element_count(node.shape(i)) != 1)
      operator_error("max_output_boxes_per_class, iou_threshold and score_threshold must be one value each");
  }
  if (const std::optional<Scalar> share = constant_scalar(node, kOverlap)) {
    if (!(share->real >= 0 && share->real <= 1)) operator_error("iou_threshold must be between 0 and 1");
  }
}

float single(double exact) { return static_cast<float>(exact); }

/// A box by its edges. Sums, products and quotients of float32 are rounded once each: float64 has digits enough for
/// that to be the same as in float32.
struct Edges {
  float low[2], high[2], area;

  Edges(const Tensor& boxes, std::int64_t at, bool is_centered) {
    float p[4];
    for (int k = 0; k < 4; ++k) p[k] = single(boxes.real_at(at + k));
    for (int axis = 0; axis < 2; ++axis) {
      if (is_centered) {
        const double centre = double{p[axis]}, half = double{single(double{p[axis + 2]} / 2)};
        low[axis] = single(centre - half);
        high[axis] = single(centre + half);
      } else {
        const bool is_turned = p[axis] >= p[axis + 2];
        low[axis] = is_turned ? p[axis + 2] : p[axis];
        high[axis] = is_turned ? p[axis] : p[axis + 2];
      }
    }
    area = single(double{single(double{high[0]} - low[0])} * single(double{high[1]} - low[1]));
  }

  /// Whether the common share of two boxes is above `share`; never of one without an area.
  bool overlaps(const Edges& other, float share) const {
    float sides[2];
    for (int axis = 0; axis < 2; ++axis) {
      const float from = std::max(low[axis], other.low[axis]), to = std::min(high[axis], other.high[axis]);
      if (to <= from) return false;
      sides[axis] = single(double{to} - from);
    }
    const float common = single(double{sides[0]} * sides[1]);
    if (common <= 0 || area <= 0 || other.area <= 0) return false;
    const float both = single(double{single(double{area} + other.area)} - common);
    return both > 0 && single(double{common} / both) > share;
  }
};

/// (batch, class, box) of what is left, row after row.
std::vector<std::int64_t> left_boxes(const EvaluateContext& context, std::int64_t most) {
  const Tensor &boxes = *context.value(kBoxes), &scores = *context.value(kScores);
  const std::int64_t batch = scores.shape()[0], classes = scores.shape()[1], count = scores.shape()[2];
  const bool is_centered = context.attributes().flag("center_point_box");
  const float share = context.value(kOverlap) ? single(context.value(kOverlap)->real_at(0)) : 0;
  std::vector<std::int64_t> rows, order;
  for (std::int64_t line = 0; line < batch * classes; ++line) {
    poll_interrupt();
    const auto score = [&](std::int64_t i) { return scores.real_at(line * count + i); };
    order.clear();
    for (std::int64_t i = 0; i < count; ++i) {
      const Tensor* const least = context.value(kScore);
      if (least ? score(i) > least->real_at(0) : score(i) == score(i)) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t a, std::int64_t b) { return score(a) > score(b); });
    std::vector<Edges> kept;
    for (const std::int64_t i : order) {
      if (static_cast<std::int64_t>(kept.size()) >= most) break;
      const Edges box(boxes, (line / classes * count + i) * 4, is_centered);
      const auto overlaps = [&](const Edges& other) { return box.overlaps(other, share); };
      if (std::any_of(kept.begin(), kept.end(), overlaps)) continue;
      kept.push_back(box);
      rows.insert(rows.end(), {line / classes, line % classes, i});
    }
  }
  return rows;
}

std::vector<Tensor> evaluate(const EvaluateContext& context) {
  const Tensor* const most = context.value(kMost);
  const std::vector<std::int64_t> rows = left_boxes(context, most ? most->int_at(0) : 0);
  return {Tensor::of_ints(rows, {static_cast<std::int64_t>(rows.size()) / 3, 3})};
}

void infer(InferContext& context) {
  check_operands(context);
  std::vector<const Tensor*> operands;
  for (int i = 0; i < context.operand_count(); ++i) {
    operands.push_back(context.constant(i));
    if (context.has_operand(i) && !operands.back()) operator_error("the size of the result depends on data");
  }
  context.set_result(0, evaluate(EvaluateContext(context.graph(), context.id(), operands)).at(0).type());
}

Form lower(const LowerContext&) {
  operator_error("the size of the result depends on data; constant folding must remove this node");
}

/// There is room for as many of a class as there are boxes, or as the model says.
Dim most_of(const NodeView& node) {
  const std::int64_t most = node.attributes().int_of("most");
  return most < 0 ? node.shape(kBoxes)[1] : min(most, node.shape(kBoxes)[1]);
}

void infer_suppress(InferContext& context) {
  check_operands(context);
  const Dim lines = context.shape(kScores)[0] * context.shape(kScores)[1];
  context.set_result(0, ElementType::kInt64, {lines * most_of(context), 3});
  context.set_result(1, ElementType::kInt64, {});
}

std::vector<Tensor> evaluate_suppress(const EvaluateContext& context) {
  std::int64_t most = most_of(context).constant();
  if (context.value(kMost)) most = std::min(most, context.value(kMost)->int_at(0));
  std::vector<std::int64_t> rows = left_boxes(context, most);
  const std::int64_t count = static_cast<std::int64_t>(rows.size()) / 3;
  const std::int64_t room = context.result(0).shape[0].constant();
  rows.resize(static_cast<std::size_t>(room * 3));
  return {Tensor::of_ints(rows, {room, 3}), Tensor::scalar(Scalar::of_integer(ElementType::kInt64, count))};
}

Form lower_suppress(const LowerContext& context) {
  return LibraryForm{SuppressWork{most_of(context), context.attributes().flag("center_point_box")}};
}

}  // namespace

const Operator& operator_NonMaxSuppression() {
  static const Operator op = {
      .name = "NonMaxSuppression",
      .versions = {10, 11},
      .operands = {2, 5},
      .attributes = {{"center_point_box", AttributeKind::kInt, std::int64_t{0}}},
      .summary = "boxes of each class, the highest scores first, without those that overlap them",
      .infer = infer,
      .evaluate = evaluate,
      .lower = lower,
  };
  return op;
}

const Operator& operator_Suppress() {
  static const Operator op = {
      .name = "Suppress",
      .domain = "gcompile",
      .versions = {1},
      .operands = {2, 5},
      .results = {1, 2},
      .attributes = {{"center_point_box", AttributeKind::kInt, std::int64_t{0}},
                     {"most", AttributeKind::kInt, std::int64_t{-1}}},
      .summary = "rows of NonMaxSuppression with room for all, and how many there are",
      .infer = infer_suppress,
      .evaluate = evaluate_suppress,
      .lower = lower_suppress,
  };
  return op;
}

}  // namespace gcompile::ir

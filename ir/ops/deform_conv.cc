// DeformConv: a convolution whose taps are moved by offsets of their own. What the taps read, between elements,
// is gathered first; the sums are a product.

#include <fmt/format.h>

#include "ir/ops/convolution.h"
#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

constexpr int kImage = 0, kWeight = 1, kOffset = 2, kBias = 3, kMask = 4;

void normalise(RewriteContext& context) { normalise_window_of(context, kWeight); }

void infer(InferContext& context) {
  require_float(context, kImage);
  same_type(context);
  const Shape &x = context.shape(kImage), &w = context.shape(kWeight);
  const std::int64_t group = context.attributes().int_of("group"),
                     parts = context.attributes().int_of("offset_group");
  if (group < 1 || parts < 1 || !x[1].is_constant() || x[1] % group != 0 || x[1] % parts != 0) {
    operator_error(fmt::format("{} channels do not divide into {} groups and {} groups of offsets",
                               to_string(x[1]), group, parts));
  }
  const Window window = window_of(context.attributes());
  const Shape y = convolution_shape(context);
  const auto check = [&](int operand, const char* what, std::int64_t values) {
    Shape expected = {x[0], parts * window.taps() * values};
    expected.insert(expected.end(), y.begin() + 2, y.end());
    if (context.shape(operand) != expected) {
      operator_error(fmt::format("{} must have the shape {}, not {}", what, to_string(expected),
                                 to_string(context.shape(operand))));
    }
  };
  check(kOffset, "the offset", window.spatial());
  if (context.has_operand(kMask)) check(kMask, "the mask", 1);
  if (context.has_operand(kBias) && context.shape(kBias) != Shape{w[0]}) {
    operator_error(fmt::format("the bias must have the shape ({}), not {}", to_string(w[0]),
                               to_string(context.shape(kBias))));
  }
  for (std::size_t i = 2; i < x.size(); ++i) {
    if (!always_less(0, x[i])) operator_error("an image that may be empty has no elements to read");
  }
  context.set_result(0, context.element(kImage), y);
}

/// Product of the gathered taps (N, group, places, taps * channels) with the weights of each group.
bool decompose(RewriteContext& context) {
  const Shape y = context.result(0).shape, w = context.shape(kWeight);
  const std::int64_t group = context.attributes().int_of("group");
  const Window window = window_of(context.attributes());
  Attributes attributes;
  for (const char* name : {"kernel_shape", "strides", "dilations", "pads"}) {
    attributes.set(name, context.attributes().ints_of(name));
  }
  for (const char* name : {"group", "offset_group"}) attributes.set(name, context.attributes().int_of(name));
  std::vector<ValueId> operands = {context.operand_id(kImage), context.operand_id(kOffset)};
  if (context.has_operand(kMask)) operands.push_back(context.operand_id(kMask));
  const Dim places = element_count(Shape(y.begin() + 2, y.end())), taps = window.taps();
  const Dim depth = w[1] * taps, rows = w[0] / group;
  ValueId samples = context.emit("DeformedTaps", operands, attributes);
  samples = emit_reshape(context, samples, {y[0], group, places, depth});
  ValueId weights = emit_reshape(context, context.operand_id(kWeight), {group, rows, w[1], taps});
  weights = emit_transpose(context, weights, {0, 3, 2, 1});
  weights = emit_reshape(context, weights, {group, depth, rows});
  const ValueId products = context.emit("MatMul", {samples, weights});
  ValueId sum = emit_reshape(context, emit_transpose(context, products, {0, 1, 3, 2}), y);
  if (context.has_operand(kBias)) {
    Shape channels(y.size() - 1, 1);
    channels[0] = w[0];
    sum = context.emit("Add", {sum, emit_reshape(context, context.operand_id(kBias), channels)});
  }
  context.replace_result(0, sum);
  return true;
}

// DeformedTaps: (N, group, places..., kernel..., channels of the group) of image, offsets and perhaps a mask.
// Channels come last, because all of those of an offset are read at one place.

constexpr int kTapsOffset = 1, kTapsMask = 2;

void infer_taps(InferContext& context) {
  const Window window = window_of(context.attributes());
  const Shape &x = context.shape(kImage), &offset = context.shape(kTapsOffset);
  const std::int64_t group = context.attributes().int_of("group");
  Shape y = {x[0], group};
  y.insert(y.end(), offset.begin() + 2, offset.end());
  y.insert(y.end(), window.kernel.begin(), window.kernel.end());
  y.push_back(x[1] / group);
  context.set_result(0, context.element(kImage), std::move(y));
}

/// Elements on both sides of a tap along one axis, and their weights, 0 outside of the image.
struct Neighbours {
  Index index[2];
  int weights[2];
};

class TapLoops {
 public:
  explicit TapLoops(const LowerContext& context)
      : context_(context),
        window_(window_of(context.attributes())),
        stored_(context.element(kImage)),
        compute_(compute_type(stored_)),
        form_(LoopForm::over(context.result(0).shape)),
        dag_(form_.dag) {
    const Dim channels = context.shape(kImage)[1], parts = context.attributes().int_of("offset_group");
    channel_ = Index::axis(1) * (channels / context.attributes().int_of("group")) +
               Index::axis(kernel_axis(spatial()));
    part_ = floor_div(channel_, max(1, channels / parts), form_.ranges());
    for (int i = 0; i < spatial(); ++i) {
      tap_ = tap_ * window_.kernel[static_cast<std::size_t>(i)] + Index::axis(kernel_axis(i));
    }
  }

  Form form() {
    for (int i = 0; i < spatial(); ++i) neighbours_.push_back(neighbours_of(i));
    index_ = {Index::axis(0), channel_};
    int value = sum_from(0);
    if (context_.has_operand(kTapsMask)) {
      const int mask = placed(kTapsMask, part_ * window_.taps() + tap_);
      value = dag_.apply(ScalarOp::kMul, {value, mask});
    }
    form_.set_root(dag_.cast(value, stored_));
    return std::move(form_);
  }

 private:
  int spatial() const { return window_.spatial(); }
  static int place_axis(int i) { return 2 + i; }
  int kernel_axis(int i) const { return 2 + spatial() + i; }

  /// Channel `channel` of an operand at the place of the result.
  int placed(int operand, const Index& channel) {
    std::vector<Index> at = {Index::axis(0), channel};
    for (int i = 0; i < spatial(); ++i) at.push_back(Index::axis(place_axis(i)));
    return dag_.cast(dag_.load(operand, stored_, std::move(at)), compute_);
  }

  Neighbours neighbours_of(int i) {
    const auto at = static_cast<std::size_t>(i);
    const Dim extent = context_.shape(kImage)[at + 2];
    const Index home = Index::axis(place_axis(i)) * window_.strides[at] +
                       Index::axis(kernel_axis(i)) * window_.dilations[at] - Index(window_.begin(i));
    const int offset = placed(kTapsOffset, (part_ * window_.taps() + tap_) * spatial() + Index(i));
    const int moved = dag_.apply(ScalarOp::kAdd, {dag_.cast(dag_.iota(home), compute_), offset});
    const int floor = dag_.apply(ScalarOp::kFloor, {moved}), one = dag_.constant(compute_, 1);
    const int ratio = dag_.apply(ScalarOp::kSub, {moved, floor});
    const int rest = dag_.apply(ScalarOp::kSub, {one, ratio}),
              next = dag_.apply(ScalarOp::kAdd, {floor, one});
    return {{place(floor, extent), place(next, extent)},
            {inside(floor, extent, rest), inside(next, extent, ratio)}};
  }
  int inside(int whole, Dim extent, int weight) {
    const int zero = dag_.constant(compute_, 0), last = dag_.size(compute_, extent - 1);
    const int is_above = dag_.apply(ScalarOp::kLessEqual, {zero, whole});
    const int is_below = dag_.apply(ScalarOp::kLessEqual, {whole, last});
    return dag_.apply(ScalarOp::kSelect,
                      {dag_.apply(ScalarOp::kLogicalAnd, {is_above, is_below}), weight, zero});
  }
  Index place(int whole, Dim extent) {
    const int first = dag_.constant(ElementType::kInt64, 0), last = dag_.size(extent - 1);
    const int low = dag_.apply(ScalarOp::kMax, {dag_.cast(whole, ElementType::kInt64), first});
    return Index::loaded(dag_.apply(ScalarOp::kMin, {low, last}), Range{0, extent});
  }

  /// The sum over both neighbours along axis `i` and those behind it.
  int sum_from(int i) {
    if (i == spatial()) return dag_.cast(dag_.load(kImage, stored_, index_), compute_);
    int total = -1;
    for (const int side : {0, 1}) {
      index_.push_back(neighbours_[static_cast<std::size_t>(i)].index[side]);
      const int inner = sum_from(i + 1);
      index_.pop_back();
      const int term =
          dag_.apply(ScalarOp::kMul, {neighbours_[static_cast<std::size_t>(i)].weights[side], inner});
      total = total < 0 ? term : dag_.apply(ScalarOp::kAdd, {total, term});
    }
    return total;
  }

  const LowerContext& context_;
  const Window window_;
  const ElementType stored_, compute_;
  LoopForm form_;
  Dag& dag_;
  Index channel_, part_, tap_;
  std::vector<Neighbours> neighbours_;
  std::vector<Index> index_;
};

Form lower_taps(const LowerContext& context) { return TapLoops(context).form(); }

}  // namespace

const Operator& operator_DeformConv() {
  static const Operator op = [] {
    Operator o;
    o.name = "DeformConv";
    o.versions = {19, 22};
    o.operands = {3, 5};
    o.attributes = {{"kernel_shape", AttributeKind::kInts, std::nullopt},
                    {"strides", AttributeKind::kInts, std::nullopt},
                    {"dilations", AttributeKind::kInts, std::nullopt},
                    {"pads", AttributeKind::kInts, std::nullopt},
                    {"group", AttributeKind::kInt, std::int64_t{1}},
                    {"offset_group", AttributeKind::kInt, std::int64_t{1}}};
    o.accuracy = Accuracy::kSum;
    o.summary = "convolution whose taps are moved by offsets";
    o.normalise = normalise;
    o.infer = infer;
    o.decompose = decompose;
    return o;
  }();
  return op;
}

const Operator& operator_DeformedTaps() {
  static const Operator op = {
      .name = "DeformedTaps",
      .domain = "gcompile",
      .versions = {1},
      .operands = {2, 3},
      .attributes = {{"kernel_shape", AttributeKind::kInts, std::nullopt},
                     {"strides", AttributeKind::kInts, std::nullopt},
                     {"dilations", AttributeKind::kInts, std::nullopt},
                     {"pads", AttributeKind::kInts, std::nullopt},
                     {"group", AttributeKind::kInt, std::int64_t{1}},
                     {"offset_group", AttributeKind::kInt, std::int64_t{1}}},
      .accuracy = Accuracy::kSum,
      .summary = "what the taps of a deformed convolution read",
      .infer = infer_taps,
      .lower = lower_taps,
  };
  return op;
}

}  // namespace gcompile::ir

#include "passes/forms/attention_mask.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace gcompile::passes {
namespace {

using ir::Shape;
using ir::Tensor;
using ir::ValueId;
using Step = AttentionStep;

class Joiner {
 public:
  Joiner(const ir::Graph& graph, ir::RewriteContext* context, ir::Dim rows, ir::Dim columns, bool finite_fill,
         bool both, AttentionMask& mask)
      : graph_(graph),
        context_(context),
        rows_(rows),
        columns_(columns),
        finite_fill_(finite_fill),
        both_(both),
        mask_(mask) {}

  std::string run(const std::vector<Step>& steps) {
    masks_ =
        std::count_if(steps.begin(), steps.end(), [](const Step& s) { return s.kind != Step::Kind::kScale; });
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      const std::string reason = step->kind == Step::Kind::kScale ? scale(step->number)
                                 : join_causal(*step)             ? ""
                                 : step->kind == Step::Kind::kAdd ? add(step->mask)
                                                                  : keep(*step);
      if (!reason.empty()) return reason;
    }
    if (!finite_fill_ && mask_.kept.valid() && !mask_.added.valid() && std::isfinite(mask_.fill)) {
      if (mask_.fill > kHiddenScore) return "its mask does not hide";
      keep_by_adding();
    }
    const auto scale = static_cast<float>(mask_.scale);
    return mask_.scale == 0 || std::isnormal(scale) ? "" : "the scale is not finite, or loses its digits";
  }

 private:
  ValueId emit(std::string_view op, std::vector<ValueId> operands) {
    return context_ ? context_->emit(op, std::move(operands)) : operands.back();
  }
  ValueId number(double value) {
    return context_ ? context_->constant_scalar(ir::ElementType::kFloat32, value) : ValueId{};
  }

  std::string scale(double factor) {
    const bool masked = mask_.causal || mask_.kept.valid() || mask_.added.valid();
    if (masked && !(factor > 0 && std::isfinite(factor))) return "a mask is scaled by no positive number";
    if (mask_.added.valid()) mask_.added = emit("Mul", {number(factor), mask_.added});
    mask_.fill *= factor;
    mask_.scale *= factor;
    return "";
  }

  /// Whether the step leaves element i of its constant mask alone.
  static bool is_kept(const Step& step, const Tensor& tensor, std::int64_t i) {
    return step.kind == Step::Kind::kAdd ? tensor.real_at(i) == 0 : (tensor.int_at(i) != 0) != step.inverted;
  }

  /// What element i of a mask that does not keep leaves of the score.
  static double hidden(const Step& step, const Tensor& tensor, std::int64_t i) {
    return step.kind == Step::Kind::kAdd ? tensor.real_at(i) : step.number;
  }

  /// A constant of (1..., rows, columns) whose row i keeps columns up to i + past needs no memory. A number
  /// that is not infinite would show in rows of which nothing else is kept,
  /// so there it must be the only mask.
  bool join_causal(const Step& step) {
    const Tensor* tensor = graph_.constant(step.mask);
    if (mask_.causal || !tensor || tensor->count() != rows_ * columns_ || tensor->shape().size() < 2)
      return false;
    const Shape& shape = tensor->shape();
    if (shape.back() != columns_ || shape[shape.size() - 2] != rows_) return false;
    std::int64_t past = -1;
    while (past + 1 < columns_ && is_kept(step, *tensor, past + 1)) ++past;
    const bool finite_is_hidden = past >= 0 && masks_ == 1;
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t j = 0; j < columns_; ++j) {
        const std::int64_t at = i * columns_ + j;
        if (is_kept(step, *tensor, at) != (j <= i + past)) return false;
        if (j <= i + past) continue;
        const double left = hidden(step, *tensor, at);
        if (!(left <= kHiddenScore) || (std::isfinite(left) && !finite_is_hidden)) return false;
      }
    }
    mask_.causal = true;
    mask_.past = past;
    return true;
  }

  /// kept ? s : fill is s + (kept ? 0 : fill), as fill swallows s.
  void keep_by_adding() {
    mask_.added = context_ ? emit("Where", {mask_.kept, number(0), number(mask_.fill)}) : mask_.kept;
    mask_.kept = {};
  }

  /// (kept ? s : fill) + m is s + ((kept ? 0 : fill) + m) likewise. A number that does not hide, as the
  /// -10000 of GPT-2, shows in rows of which m hides the rest.
  std::string add(ValueId added) {
    if (mask_.kept.valid() && mask_.fill <= kHiddenScore) keep_by_adding();
    if (mask_.kept.valid() && !both_) return "a mask is added to one that does not hide";
    mask_.added = mask_.added.valid() ? emit("Add", {mask_.added, added}) : added;
    return "";
  }

  /// kept ? s + m : fill is s + (kept ? m : fill) likewise.
  std::string keep(const Step& step) {
    const ValueId kept = step.inverted ? emit("Not", {step.mask}) : step.mask;
    if (mask_.kept.valid() && mask_.added.valid())
      return "a mask follows one that is added to one that does not hide";
    if (mask_.added.valid()) {
      if (step.number > kHiddenScore) return "a mask that does not hide follows another";
      const ValueId before = mask_.added;
      mask_.added = emit("Where", {kept, before, number(step.number)});
      if (!context_) mask_.added = before;
    } else if (mask_.kept.valid()) {
      if (mask_.fill != step.number) return "its masks hide with different numbers";
      mask_.kept = emit("And", {mask_.kept, kept});
    } else {
      if (mask_.causal && !std::isinf(step.number)) return "its masks hide with different numbers";
      mask_.kept = kept;
      mask_.fill = step.number;
    }
    return "";
  }

  const ir::Graph& graph_;
  ir::RewriteContext* context_;
  const ir::Dim rows_, columns_;
  const bool finite_fill_, both_;
  AttentionMask& mask_;
  std::int64_t masks_ = 0;
};

}  // namespace

std::string combine_masks(const ir::Graph& graph, ir::RewriteContext* context,
                          const std::vector<AttentionStep>& steps, ir::Dim rows, ir::Dim columns,
                          bool finite_fill, bool both, AttentionMask& mask) {
  return Joiner(graph, context, rows, columns, finite_fill, both, mask).run(steps);
}

}  // namespace gcompile::passes

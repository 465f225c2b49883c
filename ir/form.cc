#include "ir/form.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ir/diagnostics.h"
#include "ir/interrupt.h"
#include "ir/map_evaluator.h"

namespace gcompile::ir {
namespace {

std::vector<Index> axes_of(int count) {
  std::vector<Index> out;
  for (int axis = 0; axis < count; ++axis) out.push_back(Index::axis(axis));
  return out;
}

/// Advances a position through a box in row-major order; false after the last.
bool advance(std::vector<std::int64_t>& position, const std::vector<Range>& box, std::size_t first,
             std::size_t last) {
  for (std::size_t axis = last; axis-- > first;) {
    if (++position[axis] < box[axis].high) return true;
    position[axis] = box[axis].low;
  }
  return false;
}

bool empty(const std::vector<Range>& box, std::size_t first, std::size_t last) {
  for (std::size_t axis = first; axis < last; ++axis) {
    if (box[axis].high <= box[axis].low) return true;
  }
  return false;
}

/// Runs stages and regions of one form.
class Interpreter {
 public:
  Interpreter(const LoopForm& form, const std::vector<const Tensor*>& operands, const TensorType& type,
              const Tensor* accumulator)
      : form_(form), operands_(operands), accumulator_(accumulator), result_(type) {
    for (const Tensor* operand : operands) {
      strides_.push_back(operand ? row_major_strides(operand->shape()) : Shape{});
    }
    result_strides_ = row_major_strides(type.shape);
    inputs_.load = [this](const ScalarNode& node, std::span<const std::int64_t> position) {
      const auto k = static_cast<std::size_t>(node.operand);
      GC_CHECK(k < operands_.size() && operands_[k] && position.size() == operands_[k]->shape().size());
      std::int64_t at = 0;
      for (std::size_t i = 0; i < position.size(); ++i) {
        GC_CHECK(position[i] >= 0 && position[i] < operands_[k]->shape()[i]);
        at += position[i] * strides_[k][i];
      }
      return operands_[k]->at(at);
    };
    inputs_.accumulator = [this](int which) { return accumulated_[static_cast<std::size_t>(which)]; };
  }

  Tensor run() {
    check_bounds();
    if (form_.is_map()) {
      evaluate_map(form_, operands_, accumulator_, result_);
      return std::move(result_);
    }
    const std::vector<Range> box = form_.ranges();
    std::vector<std::int64_t> axes(box.size(), 0);
    const auto parallel = static_cast<std::size_t>(form_.parallel);
    std::vector<ExpressionEvaluator> stages;
    for (const Stage& stage : form_.stages) stages.emplace_back(form_.dag, stage.root, inputs_);
    std::vector<ExpressionEvaluator> finals;
    for (const Region& region : form_.regions) finals.emplace_back(form_.dag, region.root, inputs_);
    if (empty(box, 0, parallel)) return std::move(result_);
    do {
      accumulated_.clear();
      for (std::size_t k = 0; k < stages.size(); ++k) reduce(form_.stages[k], stages[k], axes, box);
      for (std::size_t r = 0; r < finals.size(); ++r) finish(form_.regions[r], finals[r], axes);
    } while (advance(axes, box, 0, parallel));
    return std::move(result_);
  }

 private:
  void store(const std::vector<std::int64_t>& axes, const Scalar& value) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < form_.store.size(); ++i) {
      std::int64_t coordinate = form_.store[i].constant();
      for (const Index::Term& t : form_.store[i].terms()) {
        GC_CHECK(t.atom.kind == IndexAtom::Kind::kAxis);
        coordinate += t.coefficient * axes[static_cast<std::size_t>(t.atom.axis)];
      }
      at += coordinate * result_strides_[i];
    }
    const ElementType type = result_.element();
    GC_CHECK(value.type == type);
    result_.set(at, is_float(type) ? Scalar::of_real(type, value.real) : value);
  }

  void reduce(const Stage& stage, ExpressionEvaluator& value, std::vector<std::int64_t>& axes,
              const std::vector<Range>& box) {
    const auto parallel = static_cast<std::size_t>(form_.parallel);
    const ElementType type = form_.dag.type(stage.root);
    const bool real = is_float(type);
    Scalar accumulated;
    accumulated.type = type;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    switch (stage.combine) {
      case Combine::kSum:
        break;
      case Combine::kProduct:
        accumulated.real = accumulated.integer = 1;
        break;
      case Combine::kMax:
      case Combine::kArgMax:
        accumulated.real = -kInfinity;
        accumulated.integer = integer_or(type, true);
        break;
      case Combine::kMin:
      case Combine::kArgMin:
        accumulated.real = kInfinity;
        accumulated.integer = integer_or(type, false);
    }
    const bool arg = stage.combine == Combine::kArgMax || stage.combine == Combine::kArgMin;
    std::int64_t position = 0, best = 0;
    bool first = true;
    for (std::size_t axis = parallel; axis < axes.size(); ++axis) axes[axis] = 0;
    if (!empty(box, parallel, axes.size())) {
      do {
        poll_interrupt();
        const Scalar v = value(axes);
        const Scalar pair[] = {accumulated, v};
        switch (stage.combine) {
          case Combine::kSum:
            accumulated = ir::evaluate(ScalarOp::kAdd, pair);
            break;
          case Combine::kProduct:
            accumulated = ir::evaluate(ScalarOp::kMul, pair);
            break;
          case Combine::kMax:
            accumulated = ir::evaluate(ScalarOp::kMax, pair);
            break;
          case Combine::kMin:
            accumulated = ir::evaluate(ScalarOp::kMin, pair);
            break;
          case Combine::kArgMax:
          case Combine::kArgMin: {
            // NaN counts as the extremum, the first one wins (numpy.argmax).
            const bool held_nan = real && std::isnan(accumulated.real);
            const ScalarOp better = stage.combine == Combine::kArgMax ? ScalarOp::kGreater : ScalarOp::kLess;
            const Scalar swapped[] = {v, accumulated};
            const bool equal = ir::evaluate(ScalarOp::kEqual, pair).integer != 0;
            if (first ||
                (!held_nan && ((real && std::isnan(v.real)) || ir::evaluate(better, swapped).integer != 0 ||
                               (stage.select_last && equal)))) {
              accumulated = v;
              best = position;
            }
          }
        }
        first = false;
        ++position;
      } while (advance(axes, box, parallel, axes.size()));
    }
    for (std::size_t axis = parallel; axis < axes.size(); ++axis) axes[axis] = 0;
    if (arg) accumulated = Scalar::of_integer(ElementType::kInt64, best);
    accumulated_.push_back(accumulated);
  }

  static std::int64_t integer_or(ElementType type, bool lowest) {
    if (is_float(type)) return 0;
    if (type == ElementType::kBool) return lowest ? 0 : 1;
    return lowest ? integer_lowest(type) : static_cast<std::int64_t>(integer_highest(type));
  }

  void finish(const Region& region, ExpressionEvaluator& value, std::vector<std::int64_t>& axes) {
    const auto parallel = static_cast<std::size_t>(form_.parallel);
    for (std::size_t axis = 0; axis < parallel; ++axis) {
      if (axes[axis] < region.box[axis].low || axes[axis] >= region.box[axis].high) return;
    }
    if (!form_.final_over_reduced) {
      store(axes, value(axes));
      return;
    }
    if (empty(region.box, parallel, axes.size())) return;
    for (std::size_t axis = parallel; axis < axes.size(); ++axis) axes[axis] = region.box[axis].low;
    do {
      poll_interrupt();
      store(axes, value(axes));
    } while (advance(axes, region.box, parallel, axes.size()));
    for (std::size_t axis = parallel; axis < axes.size(); ++axis) axes[axis] = 0;
  }

  void check_bounds() {
    for (const BoundsCheck& check : form_.checks) {
      ExpressionEvaluator value(form_.dag, check.scalar, inputs_);
      std::vector<Range> box = form_.ranges();
      for (std::size_t axis = 0; axis < box.size(); ++axis) {
        if (!form_.dag.depends_on_axis(check.scalar, static_cast<int>(axis))) {
          box[axis] = {0, std::min<std::int64_t>(box[axis].high, 1)};
        }
      }
      if (empty(box, 0, box.size())) continue;
      std::vector<std::int64_t> axes(box.size(), 0);
      do {
        poll_interrupt();
        const std::int64_t index = value(axes).integer;
        if (index < check.range.low || index >= check.range.high) {
          throw CompileError(ExitCode::kModel, fmt::format("index {} is outside [{}, {})", index,
                                                           check.range.low, check.range.high));
        }
      } while (advance(axes, box, 0, axes.size()));
    }
  }

  const LoopForm& form_;
  const std::vector<const Tensor*>& operands_;
  const Tensor* accumulator_;
  Tensor result_;
  std::vector<Shape> strides_;
  Shape result_strides_;
  ExpressionInputs inputs_;
  std::vector<Scalar> accumulated_;
};

}  // namespace

LoopForm LoopForm::over(const Shape& shape) {
  LoopForm form;
  form.extents = shape;
  form.parallel = static_cast<int>(shape.size());
  form.store = axes_of(form.parallel);
  return form;
}

void LoopForm::set_root(int root) {
  std::vector<Range> box = ranges();
  box.resize(static_cast<std::size_t>(final_axes()));
  regions = {Region{std::move(box), root}};
}

std::vector<Index> LoopForm::identity() const { return axes_of(static_cast<int>(extents.size())); }

bool LoopForm::has_identity_store() const {
  if (static_cast<int>(store.size()) != final_axes()) return false;
  for (std::size_t i = 0; i < store.size(); ++i) {
    if (store[i].as_axis() != static_cast<int>(i)) return false;
  }
  return true;
}

const Work* work_of(const Form& form) {
  if (const auto* contract = std::get_if<ContractForm>(&form)) return &contract->work;
  if (const auto* library = std::get_if<LibraryForm>(&form)) return &library->work;
  return nullptr;
}

const ScalarNode* pure_load(const LoopForm& form) {
  if (!form.is_map() || form.regions.size() != 1 || !form.has_identity_store() || !form.checks.empty())
    return nullptr;
  const ScalarNode& root = form.dag[form.regions[0].root];
  return root.op == ScalarOp::kLoad ? &root : nullptr;
}

std::optional<ViewStrides> view_strides(const LoopForm& form, std::span<const std::int64_t> operand_strides) {
  const ScalarNode* load = pure_load(form);
  if (!load) return std::nullopt;
  const std::vector<Range> ranges = form.ranges();
  const Index address = recombine(address_of(load->index, operand_strides), ranges);
  if (!address.is_affine()) return std::nullopt;
  ViewStrides view;
  view.offset = address.constant();
  for (int axis = 0; axis < form.parallel; ++axis) view.strides.push_back(address.coefficient_of(axis));
  return view;
}

Shape strides_in_order(const Shape& shape, const std::vector<int>& order) {
  if (order.empty()) return row_major_strides(shape);
  Shape strides(shape.size(), 1);
  std::int64_t stride = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    strides[static_cast<std::size_t>(order[i])] = stride;
    stride *= shape[static_cast<std::size_t>(order[i])];
  }
  return strides;
}

bool same_layout(const Shape& shape, std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1 && a[i] != b[i]) return false;
  }
  return true;
}

std::string to_string(const LoopForm& form) {
  std::string text = fmt::format("loops {} parallel {}\n", to_string(form.extents), form.parallel);
  for (std::size_t id = 0; id < form.dag.nodes().size(); ++id) {
    text += fmt::format("  %{} {} = {}\n", id, name_of(form.dag.nodes()[id].type),
                        to_string(form.dag, static_cast<int>(id)));
  }
  constexpr const char* kNames[] = {"sum", "product", "max", "min", "argmax", "argmin"};
  for (std::size_t k = 0; k < form.stages.size(); ++k) {
    text += fmt::format("  acc{} = {}(%{})\n", k, kNames[static_cast<int>(form.stages[k].combine)],
                        form.stages[k].root);
  }
  for (const Region& region : form.regions) {
    text += "  for";
    for (const Range& r : region.box) text += fmt::format(" [{},{})", r.low, r.high);
    text += fmt::format(": result[");
    for (std::size_t i = 0; i < form.store.size(); ++i) text += (i ? ", " : "") + to_string(form.store[i]);
    text += fmt::format("] = %{}\n", region.root);
  }
  return text;
}

Tensor evaluate(const LoopForm& form, const std::vector<const Tensor*>& operands, const TensorType& type,
                const Tensor* accumulator) {
  return Interpreter(form, operands, type, accumulator).run();
}

}  // namespace gcompile::ir

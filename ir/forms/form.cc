#include "ir/forms/form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/diagnostics.h"
#include "base/interrupt.h"
#include "ir/forms/map_evaluator.h"
#include "ir/forms/rounding.h"

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
  }

  Tensor run() {
    check_bounds();
    if (accumulator_) accumulators_.push_back(accumulator_->reshaped(form_.extents));
    for (const Stage& stage : form_.stages) accumulators_.push_back(reduced(stage));
    evaluate_regions(form_, operands_, accumulators_, result_);
    return std::move(result_);
  }

 private:
  /// A value that the combination with anything leaves what it is.
  static Scalar neutral(Combine combine, ElementType type) {
    Scalar start;
    start.type = type;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    switch (combine) {
      case Combine::kSum:
        break;
      case Combine::kProduct:
        start.real = start.integer = 1;
        break;
      case Combine::kMax:
      case Combine::kArgMax:
        start.real = -kInfinity;
        start.integer = integer_or(type, true);
        break;
      case Combine::kMin:
      case Combine::kArgMin:
        start.real = kInfinity;
        start.integer = integer_or(type, false);
    }
    return start;
  }

  static std::int64_t integer_or(ElementType type, bool lowest) {
    if (is_float(type)) return 0;
    if (type == ElementType::kBool) return lowest ? 0 : 1;
    return lowest ? integer_lowest(type) : static_cast<std::int64_t>(integer_highest(type));
  }

  /// What one stage comes to for every point of the parallel axes: real numbers unrounded, in float64, others
  /// in int64. Values are combined in row-major order of the reduced axes.
  Tensor reduced(const Stage& stage) {
    const ElementType type = form_.dag.type(stage.root);
    const bool arg = stage.combine == Combine::kArgMax || stage.combine == Combine::kArgMin;
    const Scalar start = neutral(stage.combine, type);
    const Shape points(form_.extents.begin(), form_.extents.begin() + form_.parallel);
    const bool real = is_float(type);
    std::vector<Scalar> held(static_cast<std::size_t>(element_count(points)), start);
    std::vector<std::int64_t> best(arg ? held.size() : 0, 0);
    const std::int64_t each =
        element_count(Shape(form_.extents.begin() + form_.parallel, form_.extents.end()));
    for_each_value(form_, stage.root, operands_, accumulators_, [&](const Values& values) {
      for (std::int64_t i = 0; i < values.count;) {
        // Values are combined as far as they belong to one point.
        const std::int64_t position = (values.first + i) % each;
        const std::int64_t end = std::min(values.count, i + each - position);
        const auto point = static_cast<std::size_t>((values.first + i) / each);
        if (arg) {
          find(stage, values, i, end, position, held[point], best[point]);
        } else {
          combine(stage.combine, values, i, end, held[point]);
        }
        i = end;
      }
    });
    if (Rounding::in_force() && real && !arg) round_inside(stage.combine, type, each, held);
    Tensor out({real && !arg ? ElementType::kFloat64 : ElementType::kInt64, points});
    for (std::size_t point = 0; point < held.size(); ++point) {
      const auto at = static_cast<std::int64_t>(point);
      out.set(at, real && !arg
                      ? Scalar::of_real(ElementType::kFloat64, held[point].real)
                      : Scalar::of_integer(ElementType::kInt64, arg ? best[point] : held[point].integer));
    }
    return out;
  }

  /// Rounds as floats do that are combined one by one; only to see how far that moves the model.
  static void round_inside(Combine combine, ElementType type, std::int64_t terms, std::vector<Scalar>& held) {
    if (combine != Combine::kSum && combine != Combine::kProduct) return;
    const double count = roundings_of_sum(static_cast<double>(terms));
    for (Scalar& value : held) {
      value.real = Rounding::in_force()->inside_unless_exact(value.real, type, count);
    }
  }

  static Scalar value_at(const Values& values, std::int64_t i, ElementType type) {
    Scalar value;
    value.type = type;
    if (is_float(type)) {
      value.real = values.real[i];
    } else {
      value.integer = values.integer[i];
    }
    return value;
  }

  static void combine(Combine how, const Values& values, std::int64_t begin, std::int64_t end, Scalar& held) {
    if (how == Combine::kSum && is_float(held.type)) {
      for (std::int64_t i = begin; i < end; ++i) held.real += values.real[i];
      return;
    }
    if (how == Combine::kSum && held.type != ElementType::kBool) {
      auto sum = static_cast<std::uint64_t>(held.integer);  // wrapping at the end is wrapping at each step
      for (std::int64_t i = begin; i < end; ++i) sum += static_cast<std::uint64_t>(values.integer[i]);
      held = Scalar::of_integer(held.type, static_cast<std::int64_t>(sum));
      return;
    }
    const ScalarOp op = how == Combine::kSum       ? ScalarOp::kAdd
                        : how == Combine::kProduct ? ScalarOp::kMul
                        : how == Combine::kMax     ? ScalarOp::kMax
                                                   : ScalarOp::kMin;
    for (std::int64_t i = begin; i < end; ++i) {
      const Scalar pair[] = {held, value_at(values, i, held.type)};
      held = ir::evaluate(op, pair);
    }
  }

  /// NaN counts as the extremum, the first one wins (numpy.argmax).
  /// `position`: of values[begin] in its point.
  static void find(const Stage& stage, const Values& values, std::int64_t begin, std::int64_t end,
                   std::int64_t position, Scalar& held, std::int64_t& best) {
    const bool real = is_float(held.type);
    const ScalarOp better = stage.combine == Combine::kArgMax ? ScalarOp::kGreater : ScalarOp::kLess;
    for (std::int64_t i = begin; i < end; ++i, ++position) {
      const Scalar value = value_at(values, i, held.type);
      const Scalar pair[] = {value, held};
      const bool is_equal = ir::evaluate(ScalarOp::kEqual, pair).integer != 0;
      const bool is_better = (real && std::isnan(value.real)) || ir::evaluate(better, pair).integer != 0 ||
                             (stage.select_last && is_equal);
      if (position != 0 && ((real && std::isnan(held.real)) || !is_better)) continue;
      held = value;
      best = position;
    }
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
  ExpressionInputs inputs_;
  std::vector<Tensor> accumulators_;  // what Accumulator(k) is
};

}  // namespace

LoopForm LoopForm::over(const Shape& shape) {
  LoopForm form;
  form.extents = shape;
  form.parallel = static_cast<int>(shape.size());
  form.store = axes_of(form.parallel);
  return form;
}

bool Region::is_empty() const {
  return std::any_of(box.begin(), box.end(), [](const Range& r) { return always_less_equal(r.high, r.low); });
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

bool copies_in_place(const LoopForm& form, const Region& region, const Shape& operand) {
  const ScalarNode& root = form.dag[region.root];
  return root.op == ScalarOp::kLoad && form.is_map() && form.has_identity_store() &&
         operand == form.extents && root.index == form.identity();
}

std::optional<ViewStrides> view_strides(const LoopForm& form, std::span<const Dim> operand_strides) {
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
  Dim stride = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride *= shape[order[i]];
  }
  return strides;
}

bool same_layout(const Shape& shape, std::span<const Dim> a, std::span<const Dim> b) {
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
    for (const Range& r : region.box) text += fmt::format(" [{},{})", to_string(r.low), to_string(r.high));
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

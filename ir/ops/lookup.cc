// gcompile.Lookup: for each element the value that belongs to its key. Keys are sorted, so that a search by halves finds
// them: a form without branches, for any number of keys.

#include "ir/ops/lookup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace gcompile::ir {
namespace {

constexpr int kX = 0, kKeys = 1, kValues = 2, kOther = 3, kOfNan = 4;

void infer(InferContext& context) {
  const Shape &keys = context.shape(kKeys), &values = context.shape(kValues);
  if (keys.size() != 1 || keys != values || context.element(kKeys) != context.element(kX)) {
    operator_error("keys and values do not fit");
  }
  context.set_result(0, context.element(kValues), context.shape(kX));
}

/// The number of keys below x, from its highest bit on; there are a power of two of keys, the last of which are equal.
Form lower(const LowerContext& context) {
  const TensorType& type = context.result(0);
  LoopForm form = LoopForm::over(type.shape);
  Dag& dag = form.dag;
  const ElementType integer = ElementType::kInt64, key_type = context.element(kKeys);
  const std::int64_t count = context.shape(kKeys)[0].constant();
  const int x = dag.load(kX, key_type, form.identity());
  const auto at = [&](int operand, int position) {
    return dag.load(operand, context.element(operand), {Index::loaded(position, Range{0, count})});
  };
  int below = dag.constant(integer, 0);
  for (std::int64_t step = count / 2; step > 0; step /= 2) {
    const int last = dag.apply(ScalarOp::kAdd, {below, dag.constant(integer, static_cast<double>(step - 1))});
    const int next = dag.apply(ScalarOp::kAdd, {below, dag.constant(integer, static_cast<double>(step))});
    below = dag.apply(ScalarOp::kSelect, {dag.apply(ScalarOp::kLess, {at(kKeys, last), x}), next, below});
  }
  const int is_found = dag.apply(ScalarOp::kEqual, {at(kKeys, below), x});
  int other = dag.load(kOther, type.element, {});
  if (is_float(key_type)) {
    const int of_nan = dag.load(kOfNan, type.element, {}), is_nan = dag.apply(ScalarOp::kIsNan, {x});
    other = dag.apply(ScalarOp::kSelect, {is_nan, of_nan, other});
  }
  form.set_root(dag.apply(ScalarOp::kSelect, {is_found, at(kValues, below), other}));
  return form;
}

bool is_before(const Scalar& a, const Scalar& b) {
  return is_float(a.type) ? a.real < b.real : a.integer < b.integer;
}

bool is_nan(const Scalar& value) { return is_float(value.type) && std::isnan(value.real); }

std::vector<std::int64_t> sorted_positions(const Tensor& keys) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(keys.count()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::erase_if(order, [&](std::int64_t i) { return is_nan(keys.at(i)); });
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return is_before(keys.at(a), keys.at(b)); });
  return order;
}

}  // namespace

void require_distinct(const Tensor& keys, std::string_view what) {
  const std::vector<std::int64_t> order = sorted_positions(keys);
  const bool has_equal = std::adjacent_find(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
                           return !is_before(keys.at(a), keys.at(b));
                         }) != order.end();
  if (has_equal || keys.count() > static_cast<std::int64_t>(order.size()) + 1) {
    operator_error(fmt::format("{} are listed twice", what));
  }
}

ValueId emit_lookup(RewriteContext& context, ValueId x, const Tensor& keys, const Tensor& values,
                    const Scalar& other) {
  const std::vector<std::int64_t> order = sorted_positions(keys);
  Scalar of_nan = other;
  for (std::int64_t i = 0; i < keys.count(); ++i) {
    if (is_nan(keys.at(i))) of_nan = values.at(i);
  }
  std::int64_t count = 1;
  while (count < static_cast<std::int64_t>(order.size())) count *= 2;
  Tensor sorted(TensorType{keys.element(), {count}}), sorted_values(TensorType{values.element(), {count}});
  for (std::int64_t i = 0; i < count; ++i) {
    if (order.empty()) {  // nothing is found
      if (is_float(keys.element())) {
        sorted.set(i, Scalar::of_real(keys.element(), std::numeric_limits<double>::quiet_NaN()));
      }
      sorted_values.set(i, other);
      continue;
    }
    const std::int64_t from = order[static_cast<std::size_t>(
        std::min<std::int64_t>(i, static_cast<std::int64_t>(order.size()) - 1))];
    sorted.set(i, keys.at(from));
    sorted_values.set(i, values.at(from));
  }
  std::vector<ValueId> operands = {x, context.constant(std::move(sorted)),
                                   context.constant(std::move(sorted_values)),
                                   context.constant(Tensor::scalar(other))};
  if (is_float(keys.element())) operands.push_back(context.constant(Tensor::scalar(of_nan)));
  return context.emit("Lookup", std::move(operands));
}

}  // namespace gcompile::ir

namespace gcompile::ir {

const Operator& operator_Lookup() {
  static const Operator op = {
      .name = "Lookup",
      .domain = "gcompile",
      .versions = {1},
      .operands = {4, 5},
      .summary = "the value of each element's key",
      .infer = infer,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir

// Unique: the different elements, or slices along an axis, where the first of each is, which one each element is, and
// how often it occurs. How many there are depends on data: what only a run knows is counted (ir/ops/counted.h).

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

/// -1, 0, 1. NaN comes last, and is like no other.
int order_of(const Scalar& a, const Scalar& b) {
  if (is_float(a.type)) {
    const bool nan_a = std::isnan(a.real), nan_b = std::isnan(b.real);
    if (nan_a || nan_b) return nan_a && nan_b ? 0 : (nan_a ? 1 : -1);
    return a.real < b.real ? -1 : (b.real < a.real ? 1 : 0);
  }
  if (a.type == ElementType::kUInt64) {
    const auto x = static_cast<std::uint64_t>(a.integer), y = static_cast<std::uint64_t>(b.integer);
    return x < y ? -1 : (y < x ? 1 : 0);
  }
  return a.integer < b.integer ? -1 : (b.integer < a.integer ? 1 : 0);
}

/// A tensor as slices along an axis, of all of its elements where there is none.
class Slices {
 public:
  Slices(const Tensor& x, const Attributes& attributes) : x_(x) {
    const Shape& shape = x.shape();
    rest_ = shape;
    if (!attributes.has("axis")) {
      count_ = x.count();
      rest_ = {count_};
      return;
    }
    axis_ =
        static_cast<std::size_t>(normalise_axis(attributes.int_of("axis"), static_cast<int>(shape.size())));
    count_ = shape[axis_].constant();
    inner_ = row_major_strides(shape)[axis_].constant();
    outer_ = count_ == 0 ? 0 : x.count() / (count_ * inner_);
  }

  std::int64_t count() const { return count_; }
  int compare(std::int64_t a, std::int64_t b) const {
    for (std::int64_t i = 0; i < outer_ * inner_; ++i) {
      const int order = order_of(x_.at(place(a, i)), x_.at(place(b, i)));
      if (order != 0) return order;
    }
    return 0;
  }
  bool holds_nan(std::int64_t a) const {
    for (std::int64_t i = 0; i < outer_ * inner_; ++i) {
      const Scalar element = x_.at(place(a, i));
      if (is_float(element.type) && std::isnan(element.real)) return true;
    }
    return false;
  }
  Tensor chosen(const std::vector<std::int64_t>& slices) const {
    Shape shape = rest_;
    shape[axis_] = static_cast<std::int64_t>(slices.size());
    Tensor out({x_.element(), shape});
    const auto count = static_cast<std::int64_t>(slices.size());
    for (std::int64_t k = 0; k < count; ++k) {
      for (std::int64_t i = 0; i < outer_ * inner_; ++i)
        out.set((i / inner_ * count + k) * inner_ + i % inner_,
                x_.at(place(slices[static_cast<std::size_t>(k)], i)));
    }
    return out;
  }

 private:
  std::int64_t place(std::int64_t slice, std::int64_t i) const {
    return (i / inner_ * count_ + slice) * inner_ + i % inner_;
  }

  const Tensor& x_;
  Shape rest_;
  std::size_t axis_ = 0;
  std::int64_t count_ = 0, inner_ = 1, outer_ = 1;
};

std::vector<Tensor> unique_of(const Tensor& x, const Attributes& attributes) {
  const Slices slices(x, attributes);
  std::vector<std::int64_t> order(static_cast<std::size_t>(slices.count()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return slices.compare(a, b) < 0; });
  std::vector<std::int64_t> firsts, counts, group(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool is_new = i == 0 || slices.compare(order[i - 1], order[i]) != 0 || slices.holds_nan(order[i]);
    if (is_new) {
      firsts.push_back(order[i]);
      counts.push_back(0);
    }
    ++counts.back();
    group[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(firsts.size()) - 1;
  }
  if (!attributes.flag("sorted")) {
    std::vector<std::size_t> by_first(firsts.size());
    std::iota(by_first.begin(), by_first.end(), std::size_t{0});
    std::sort(by_first.begin(), by_first.end(),
              [&](std::size_t a, std::size_t b) { return firsts[a] < firsts[b]; });
    std::vector<std::int64_t> place(firsts.size()), new_firsts, new_counts;
    for (std::size_t i = 0; i < by_first.size(); ++i) {
      place[by_first[i]] = static_cast<std::int64_t>(i);
      new_firsts.push_back(firsts[by_first[i]]);
      new_counts.push_back(counts[by_first[i]]);
    }
    for (std::int64_t& each : group) each = place[static_cast<std::size_t>(each)];
    firsts = std::move(new_firsts);
    counts = std::move(new_counts);
  }
  const auto list = [](const std::vector<std::int64_t>& values) {
    return Tensor::of_ints(values, {static_cast<std::int64_t>(values.size())});
  };
  return {slices.chosen(firsts), list(firsts), list(group), list(counts)};
}

void infer(InferContext& context) {
  const Tensor* const x = context.constant(0);
  if (!x) operator_error("the size of the result depends on data");
  const std::vector<Tensor> results = unique_of(*x, context.attributes());
  for (int i = 0; i < context.result_count(); ++i)
    context.set_result(i, results[static_cast<std::size_t>(i)].type());
}

std::vector<Tensor> evaluate(const EvaluateContext& context) {
  return unique_of(*context.value(0), context.attributes());
}

Form lower(const LowerContext&) {
  operator_error("the size of the result depends on data; constant folding must remove this node");
}

}  // namespace

const Operator& operator_Unique() {
  static const Operator op = {
      .name = "Unique",
      .versions = {11},
      .operands = {1, 1},
      .results = {1, 4},
      .attributes = {{"axis", AttributeKind::kInt, std::nullopt},
                     {"sorted", AttributeKind::kInt, std::int64_t{1}}},
      .summary = "different elements, and where and how often they are",
      .infer = infer,
      .evaluate = evaluate,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir

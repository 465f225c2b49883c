#include "ir/map_evaluator.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gcompile::ir {
namespace {

/// The law, element by element, with the evaluator that other passes use for one expression.
Tensor by_elements(const LoopForm& form, const std::vector<const Tensor*>& operands, const TensorType& type,
                   const Tensor* accumulator = nullptr) {
  Tensor result(type);
  ExpressionInputs inputs;
  inputs.load = [&](const ScalarNode& node, std::span<const std::int64_t> position) {
    const Tensor& operand = *operands[static_cast<std::size_t>(node.operand)];
    const Shape strides = row_major_strides(operand.shape());
    std::int64_t at = 0;
    for (std::size_t i = 0; i < position.size(); ++i) at += position[i] * strides[i];
    return operand.at(at);
  };
  std::vector<std::int64_t> axes(form.extents.size(), 0);
  inputs.accumulator = [&](int) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) at = at * form.extents[i] + axes[i];
    return accumulator->at(at);
  };
  for (const Region& region : form.regions) {
    if (region.is_empty()) continue;
    ExpressionEvaluator value(form.dag, region.root, inputs);
    for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = region.box[i].low;
    while (true) {
      const Shape strides = row_major_strides(type.shape);
      std::int64_t at = 0;
      for (std::size_t i = 0; i < form.store.size(); ++i) {
        std::int64_t coordinate = form.store[i].constant();
        for (std::size_t axis = 0; axis < axes.size(); ++axis) {
          coordinate += form.store[i].coefficient_of(static_cast<int>(axis)) * axes[axis];
        }
        at += coordinate * strides[i];
      }
      const Scalar element = value(axes);
      result.set(at, is_float(type.element) ? Scalar::of_real(type.element, element.real) : element);
      std::size_t axis = axes.size();
      while (axis-- > 0 && ++axes[axis] == region.box[axis].high) axes[axis] = region.box[axis].low;
      if (axis == static_cast<std::size_t>(-1)) break;
    }
  }
  return result;
}

Tensor numbers(ElementType element, const Shape& shape) {
  Tensor tensor(TensorType{element, shape});
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const auto value = static_cast<double>((i * 7919 + 13) % 1009) / 37 - 9;
    tensor.set(i, is_float(element) ? Scalar::of_real(element, i % 97 == 5 ? std::nan("") : value)
                                    : Scalar::of_integer(element, static_cast<std::int64_t>(value * 10)));
  }
  return tensor;
}

void expect_same(const LoopForm& form, const std::vector<const Tensor*>& operands, const TensorType& type,
                 const Tensor* accumulator = nullptr) {
  Tensor result(type);
  evaluate_map(form, operands, accumulator, result);
  EXPECT_TRUE(result.identical(by_elements(form, operands, type, accumulator))) << to_string(form);
}

constexpr ElementType kTypes[] = {ElementType::kFloat32,  ElementType::kFloat64, ElementType::kFloat16,
                                  ElementType::kBFloat16, ElementType::kInt8,    ElementType::kUInt8,
                                  ElementType::kInt16,    ElementType::kInt32,   ElementType::kInt64,
                                  ElementType::kUInt64,   ElementType::kBool};

TEST(MapEvaluator, MovesEveryType) {
  for (const ElementType type : kTypes) {
    const Tensor x = numbers(type, {5, 70, 33});
    for (const std::vector<int>& order :
         {std::vector<int>{0, 1, 2}, {2, 0, 1}, {1, 2, 0}, {0, 2, 1}, {2, 1, 0}}) {
      Shape shape;
      std::vector<Index> index(3);
      for (std::size_t i = 0; i < 3; ++i) {
        shape.push_back(x.shape()[static_cast<std::size_t>(order[i])]);
        index[static_cast<std::size_t>(order[i])] = Index::axis(static_cast<int>(i));
      }
      LoopForm form = LoopForm::over(shape);
      form.set_root(form.dag.load(0, type, index));
      expect_same(form, {&x}, TensorType{type, shape});
    }
  }
}

TEST(MapEvaluator, ReversesBroadcastsAndSplitsIntoBoxes) {
  const Tensor x = numbers(ElementType::kFloat32, {4, 300}), row = numbers(ElementType::kFloat32, {300});
  LoopForm form = LoopForm::over({4, 300});
  Dag& dag = form.dag;
  const int reversed = dag.load(0, ElementType::kFloat32, {Index::axis(0), Index(299) - Index::axis(1)});
  const int added =
      dag.apply(ScalarOp::kAdd, {reversed, dag.load(1, ElementType::kFloat32, {Index::axis(1)})});
  const int plain = dag.load(0, ElementType::kFloat32, {Index::axis(0), Index::axis(1)});
  form.regions = {Region{{{0, 4}, {0, 7}}, plain}, Region{{{0, 4}, {7, 300}}, added}};
  expect_same(form, {&x, &row}, TensorType{ElementType::kFloat32, {4, 300}});
}

TEST(MapEvaluator, DequantisesPerChannel) {
  for (const ElementType type : {ElementType::kInt8, ElementType::kUInt8, ElementType::kInt32}) {
    const Tensor w = numbers(type, {6, 5, 3, 3}), scale = numbers(ElementType::kFloat32, {6}),
                 zero = numbers(type, {6});
    LoopForm form = LoopForm::over({6, 5, 3, 3});
    Dag& dag = form.dag;
    const auto wide = [&](int operand, std::vector<Index> index) {
      return dag.cast(dag.load(operand, type, std::move(index)), ElementType::kInt32);
    };
    const int difference = dag.apply(ScalarOp::kSub, {wide(0, form.identity()), wide(2, {Index::axis(0)})});
    const int product = dag.apply(ScalarOp::kMul, {dag.cast(difference, ElementType::kFloat32),
                                                   dag.load(1, ElementType::kFloat32, {Index::axis(0)})});
    form.set_root(dag.round(product));
    expect_same(form, {&w, &scale, &zero}, TensorType{ElementType::kFloat32, {6, 5, 3, 3}});
  }
}

TEST(MapEvaluator, LooksUpDividesAndComputesEverywhere) {
  const Tensor table = numbers(ElementType::kFloat16, {11, 9});
  Tensor which(TensorType{ElementType::kInt64, {5, 40}});
  for (std::int64_t i = 0; i < which.count(); ++i)
    which.set(i, Scalar::of_integer(ElementType::kInt64, i * i % 11));
  const Shape shape = {5, 40, 9};
  LoopForm form = LoopForm::over(shape);
  Dag& dag = form.dag;
  const int picked = dag.load(1, ElementType::kInt64, {Index::axis(0), Index::axis(1)});
  const int element =
      dag.cast(dag.load(0, ElementType::kFloat16, {Index::loaded(picked, {0, 11}), Index::axis(2)}),
               ElementType::kFloat32);
  const std::vector<Range> ranges = form.ranges();
  const int turn =
      dag.cast(dag.iota(modulo(Index::axis(1) * 3 + Index::axis(2), 7, ranges)), ElementType::kFloat32);
  const int quotient = dag.cast(dag.iota(floor_div(Index::axis(1), 4, ranges)), ElementType::kFloat32);
  const int is_large = dag.apply(ScalarOp::kGreater, {element, turn});
  const int chosen = dag.apply(ScalarOp::kSelect, {is_large, dag.apply(ScalarOp::kTanh, {element}),
                                                   dag.apply(ScalarOp::kMax, {quotient, turn})});
  form.set_root(dag.cast(chosen, ElementType::kBFloat16));
  expect_same(form, {&table, &which}, TensorType{ElementType::kBFloat16, shape});
}

TEST(MapEvaluator, ReadsAccumulatorsAndSingleElements) {
  const Tensor sums = numbers(ElementType::kFloat32, {3, 1, 600});
  LoopForm form = LoopForm::over({3, 1, 600});
  Dag& dag = form.dag;
  const int sum = dag.accumulator(0, ElementType::kFloat32);
  form.set_root(dag.apply(ScalarOp::kMul, {sum, dag.constant(ElementType::kFloat32, 0.3)}));
  expect_same(form, {}, TensorType{ElementType::kFloat32, {3, 1, 600}}, &sums);

  const Tensor one = numbers(ElementType::kInt32, {});
  LoopForm scalar = LoopForm::over({});
  scalar.set_root(scalar.dag.apply(ScalarOp::kNeg, {scalar.dag.load(0, ElementType::kInt32, {})}));
  expect_same(scalar, {&one}, TensorType{ElementType::kInt32, {}});

  const Tensor none(TensorType{ElementType::kFloat32, {0, 3}});
  LoopForm empty = LoopForm::over({0, 3});
  empty.set_root(empty.dag.load(0, ElementType::kFloat32, empty.identity()));
  expect_same(empty, {&none}, none.type());
}

}  // namespace
}  // namespace gcompile::ir

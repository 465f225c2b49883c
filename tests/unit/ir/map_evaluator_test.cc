#include "ir/forms/map_evaluator.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/forms/form.h"

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
  const Tensor result = evaluate(form, operands, type, accumulator);
  EXPECT_TRUE(result.identical(by_elements(form, operands, type, accumulator))) << to_string(form);
}

constexpr ElementType kTypes[] = {ElementType::kFloat32,  ElementType::kFloat64, ElementType::kFloat16,
                                  ElementType::kBFloat16, ElementType::kInt8,    ElementType::kUInt8,
                                  ElementType::kInt16,    ElementType::kInt32,   ElementType::kInt64,
                                  ElementType::kUInt64,   ElementType::kBool};

TEST(MapEvaluator, ReadsBitsOfASum) {
  constexpr std::pair<ElementType, ElementType> kPairs[] = {{ElementType::kFloat32, ElementType::kInt32},
                                                            {ElementType::kFloat64, ElementType::kUInt64}};
  for (const auto& [real, whole] : kPairs) {
    const Tensor x = numbers(real, {5, 60});
    LoopForm form = LoopForm::over({5, 60});
    const int element = form.dag.load(0, real, form.identity());
    const int sum = form.dag.apply(ScalarOp::kAdd, {element, form.dag.constant(real, 0.1)});
    const int bits = form.dag.bits(sum, whole);
    form.set_root(bits);
    expect_same(form, {&x}, {whole, {5, 60}});
    const Tensor got = evaluate(form, {&x}, {whole, {5, 60}});
    LoopForm back = LoopForm::over({5, 60});
    back.set_root(back.dag.bits(back.dag.load(0, whole, back.identity()), real));
    const Tensor again = evaluate(back, {&got}, {real, {5, 60}});
    EXPECT_EQ(again.real_at(0), Scalar::of_real(real, x.real_at(0) + Scalar::of_real(real, 0.1).real).real);
    EXPECT_EQ(back.dag.bits(back.dag.constant(real, 1), whole),
              back.dag.constant(bits_as(Scalar::of_real(real, 1), whole)));
  }
  EXPECT_EQ(bits_as(Scalar::of_real(ElementType::kFloat32, 1), ElementType::kUInt32).integer, 0x3f800000);
}

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

/// One stage over the last axis of [points, reduced], value by value.
std::vector<Scalar> combined(const LoopForm& form, const Stage& stage, const Tensor& x) {
  ExpressionInputs inputs;
  inputs.load = [&](const ScalarNode&, std::span<const std::int64_t> position) {
    return x.at(position[0] * x.shape()[1] + position[1]);
  };
  ExpressionEvaluator value(form.dag, stage.root, inputs);
  const bool arg = stage.combine == Combine::kArgMax || stage.combine == Combine::kArgMin;
  std::vector<Scalar> out;
  for (std::int64_t point = 0; point < x.shape()[0]; ++point) {
    Scalar held;
    std::int64_t best = 0;
    for (std::int64_t r = 0; r < x.shape()[1]; ++r) {
      const std::int64_t axes[] = {point, r};
      const Scalar v = value(axes);
      const auto of = [&](ScalarOp op, const Scalar& a, const Scalar& b) {
        const Scalar pair[] = {a, b};
        return evaluate(op, pair);
      };
      const auto is = [&](ScalarOp op) { return of(op, v, held).integer != 0; };
      const bool was_nan = is_float(v.type) && std::isnan(held.real);
      const bool nan = is_float(v.type) && std::isnan(v.real);
      const bool first = r == 0;
      const bool last_wins = stage.select_last && !first && is(ScalarOp::kEqual);
      switch (stage.combine) {
        case Combine::kSum:
          held = first ? v : of(ScalarOp::kAdd, held, v);
          break;
        case Combine::kProduct:
          held = first ? v : of(ScalarOp::kMul, held, v);
          break;
        case Combine::kMax:
          held = first ? v : of(ScalarOp::kMax, held, v);
          break;
        case Combine::kMin:
          held = first ? v : of(ScalarOp::kMin, held, v);
          break;
        default:
          if (first ||
              (!was_nan && (nan || last_wins ||
                            is(stage.combine == Combine::kArgMax ? ScalarOp::kGreater : ScalarOp::kLess)))) {
            held = v;
            best = r;
          }
      }
    }
    out.push_back(arg ? Scalar::of_integer(ElementType::kInt64, best) : held);
  }
  return out;
}

TEST(MapEvaluator, ReducesEveryWayInEveryType) {
  for (const ElementType type : kTypes) {
    for (const Shape& shape : {Shape{70, 3}, Shape{5, 700}, Shape{1, 256}, Shape{300, 1}}) {
      const Tensor x = numbers(type, shape);
      for (int k = 0; k < 12; ++k) {
        const auto combine = static_cast<Combine>(k % 6);
        const bool arg = combine == Combine::kArgMax || combine == Combine::kArgMin;
        if (k >= 6 && !arg) continue;
        if (type == ElementType::kBool && combine <= Combine::kProduct) continue;
        LoopForm form;
        form.extents = shape;
        form.parallel = 1;
        form.store = {Index::axis(0)};
        Dag& dag = form.dag;
        const int loaded = dag.load(0, type, form.identity());
        const int value = dag.cast(loaded, compute_type(type));
        form.stages = {Stage{combine, value, k >= 6}};
        const ElementType result = arg ? ElementType::kInt64 : compute_type(type);
        form.set_root(dag.accumulator(0, result));
        const Tensor got = evaluate(form, {&x}, TensorType{result, {shape[0]}});
        const std::vector<Scalar> wanted = combined(form, form.stages[0], x);
        for (std::int64_t i = 0; i < shape[0]; ++i) {
          const Scalar& want = wanted[static_cast<std::size_t>(i)];
          const Scalar stored = is_float(result) ? Scalar::of_real(result, want.real) : want;
          const bool both_nan = is_float(result) && std::isnan(stored.real) && std::isnan(got.at(i).real);
          EXPECT_TRUE(both_nan || got.at(i) == stored) << to_string(form) << " point " << i;
        }
      }
    }
  }
}

TEST(MapEvaluator, LaterStagesAndTheFinalReadEarlierOnes) {
  const Tensor x = numbers(ElementType::kInt32, {4, 300});
  LoopForm form;
  form.extents = {4, 300};
  form.parallel = 1;
  form.final_over_reduced = true;
  form.store = form.identity();
  Dag& dag = form.dag;
  const int value = dag.load(0, ElementType::kInt32, form.identity());
  const int shifted = dag.apply(ScalarOp::kSub, {value, dag.accumulator(0, ElementType::kInt32)});
  form.stages = {Stage{Combine::kMax, value, false}, Stage{Combine::kSum, shifted, false}};
  form.set_root(dag.apply(ScalarOp::kMul, {shifted, dag.accumulator(1, ElementType::kInt32)}));
  const Tensor got = evaluate(form, {&x}, x.type());
  for (std::int64_t point = 0; point < 4; ++point) {
    std::int64_t largest = x.int_at(point * 300), sum = 0;
    for (std::int64_t r = 0; r < 300; ++r) largest = std::max(largest, x.int_at(point * 300 + r));
    for (std::int64_t r = 0; r < 300; ++r) sum += x.int_at(point * 300 + r) - largest;
    for (std::int64_t r = 0; r < 300; ++r) {
      EXPECT_EQ(got.int_at(point * 300 + r),
                static_cast<std::int32_t>((x.int_at(point * 300 + r) - largest) * sum));
    }
  }
}

}  // namespace
}  // namespace gcompile::ir

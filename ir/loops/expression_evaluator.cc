// One expression, computed at one position of the axes.

#include "ir/loops/expression.h"

namespace gcompile::ir {

ExpressionEvaluator::ExpressionEvaluator(const Dag& dag, int root, ExpressionInputs inputs)
    : dag_(dag), root_(root), inputs_(std::move(inputs)), values_(dag.nodes().size()) {
  const int roots[] = {root};
  order_ = dag.reachable(roots);
}

std::int64_t ExpressionEvaluator::index_value(const Index& index, std::span<const std::int64_t> axes) const {
  std::int64_t sum = index.constant();
  for (const Index::Term& t : index.terms()) {
    std::int64_t value = 0;
    switch (t.atom.kind) {
      case IndexAtom::Kind::kAxis:
        value = axes[t.atom.axis];
        break;
      case IndexAtom::Kind::kLoaded:
        value = values_[t.atom.axis].integer;
        break;
      case IndexAtom::Kind::kFloorDiv:
        value = floor_div(index_value(*t.atom.inner, axes), t.atom.divisor);
        break;
      case IndexAtom::Kind::kMod: {
        const std::int64_t inner = index_value(*t.atom.inner, axes);
        value = inner - floor_div(inner, t.atom.divisor) * t.atom.divisor;
      }
    }
    sum += t.coefficient * value;
  }
  return sum;
}

Scalar ExpressionEvaluator::operator()(std::span<const std::int64_t> axes) {
  std::vector<std::int64_t> position;
  std::vector<Scalar> arguments;
  for (const int id : order_) {
    const ScalarNode& node = dag_[id];
    Scalar& out = values_[id];
    switch (node.op) {
      case ScalarOp::kConstant:
        out = node.constant;
        break;
      case ScalarOp::kIota:
        out = Scalar::of_integer(ElementType::kInt64, index_value(node.index[0], axes));
        break;
      case ScalarOp::kAccumulator:
        out = inputs_.accumulator(node.operand);
        break;
      case ScalarOp::kLoad:
        position.clear();
        for (const Index& index : node.index) position.push_back(index_value(index, axes));
        out = inputs_.load(node, position);
        break;
      case ScalarOp::kCast:
        out = cast(values_[node.arguments[0]], node.type);
        break;
      case ScalarOp::kBits:
        out = bits_as(values_[node.arguments[0]], node.type);
        break;
      default:
        arguments.clear();
        for (const int argument : node.arguments) arguments.push_back(values_[argument]);
        out = evaluate(node.op, arguments);
    }
  }
  return values_[root_];
}

}  // namespace gcompile::ir

#include "ir/expression.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>

#include "ir/diagnostics.h"

namespace gcompile::ir {
namespace {

std::string key_of(const ScalarNode& node) {
  std::string key = fmt::format("{}:{}:{}:{}", static_cast<int>(node.op), static_cast<int>(node.type),
                                node.operand, fmt::join(node.arguments, ","));
  for (const Index& index : node.index) key += ";" + to_string(index);
  if (node.op == ScalarOp::kConstant) {
    key += fmt::format("#{:x}:{}", std::bit_cast<std::uint64_t>(node.constant.real), node.constant.integer);
  }
  return key;
}

void collect_loaded(const Index& index, std::vector<int>& out) {
  for (const Index::Term& t : index.terms()) {
    if (t.atom.kind == IndexAtom::Kind::kLoaded) out.push_back(t.atom.axis);
    if (t.atom.inner) collect_loaded(*t.atom.inner, out);
  }
}

}  // namespace

ElementType compute_type(ElementType type) {
  return type == ElementType::kFloat16 || type == ElementType::kBFloat16 ? ElementType::kFloat32 : type;
}

int Dag::intern(ScalarNode node) {
  const auto [at, inserted] = ids_.try_emplace(key_of(node), static_cast<int>(nodes_.size()));
  if (inserted) nodes_.push_back(std::move(node));
  return at->second;
}

int Dag::load(int operand, ElementType type, std::vector<Index> index) {
  ScalarNode node;
  node.op = ScalarOp::kLoad;
  node.type = type;
  node.operand = operand;
  node.index = std::move(index);
  return intern(std::move(node));
}

int Dag::constant(const Scalar& value) {
  ScalarNode node;
  node.type = value.type;
  node.constant = value;
  return intern(std::move(node));
}

int Dag::constant(ElementType type, double value) {
  return constant(ir::cast(Scalar::of_real(ElementType::kFloat64, value), type));
}

int Dag::iota(const Index& index) {
  ScalarNode node;
  node.op = ScalarOp::kIota;
  node.type = ElementType::kInt64;
  node.index = {index};
  return intern(std::move(node));
}

int Dag::accumulator(int which, ElementType type) {
  ScalarNode node;
  node.op = ScalarOp::kAccumulator;
  node.type = type;
  node.operand = which;
  return intern(std::move(node));
}

int Dag::cast(int argument, ElementType to) {
  if (type(argument) == to) return argument;
  if ((*this)[argument].op == ScalarOp::kConstant) return constant(ir::cast((*this)[argument].constant, to));
  ScalarNode node;
  node.op = ScalarOp::kCast;
  node.type = to;
  node.arguments = {argument};
  return intern(std::move(node));
}

int Dag::round(int argument) {
  const ScalarNode& node = (*this)[argument];
  const bool exact = !is_float(node.type) || node.op == ScalarOp::kLoad || node.op == ScalarOp::kConstant ||
                     node.op == ScalarOp::kRound || node.op == ScalarOp::kCast || node.op == ScalarOp::kNeg ||
                     node.op == ScalarOp::kAbs;
  if (exact) return argument;
  ScalarNode rounded;
  rounded.op = ScalarOp::kRound;
  rounded.type = node.type;
  rounded.arguments = {argument};
  return intern(std::move(rounded));
}

int Dag::apply(ScalarOp op, std::vector<int> arguments) {
  const ScalarOpRow& row = row_of(op);
  GC_CHECK(op > ScalarOp::kRound && static_cast<int>(arguments.size()) == row.arity);
  const std::size_t first = op == ScalarOp::kSelect ? 1 : 0;
  for (std::size_t i = first; i < arguments.size(); ++i)
    GC_CHECK(type(arguments[i]) == type(arguments[first]));
  const ElementType operand_type = type(arguments[first]);
  GC_CHECK(compute_type(operand_type) == operand_type);
  ScalarNode node;
  node.op = op;
  node.type = row.bool_result ? ElementType::kBool : operand_type;
  bool constants = true;
  for (const int argument : arguments) constants &= (*this)[argument].op == ScalarOp::kConstant;
  if (constants) {
    std::vector<Scalar> values;
    for (const int argument : arguments) values.push_back((*this)[argument].constant);
    const Scalar value = evaluate(op, values);
    return constant(is_float(value.type) ? Scalar::of_real(value.type, value.real) : value);
  }
  if (const auto same = neutral(op, arguments)) return *same;
  node.arguments = std::move(arguments);
  return intern(std::move(node));
}

/// x * 1, x / 1 and x - 0 are x; for integers x + 0 too (for floats -0.0 + 0 is not -0.0).
std::optional<int> Dag::neutral(ScalarOp op, const std::vector<int>& arguments) const {
  if (arguments.size() != 2) return std::nullopt;
  const auto is = [&](int id, double value) {
    const ScalarNode& node = (*this)[id];
    return node.op == ScalarOp::kConstant && node.constant.as_double() == value &&
           !std::signbit(node.constant.as_double());
  };
  const bool exact_sum = !is_float(type(arguments[0]));
  const int x = arguments[0], y = arguments[1];
  if ((op == ScalarOp::kMul || op == ScalarOp::kDiv) && is(y, 1)) return x;
  if (op == ScalarOp::kMul && is(x, 1)) return y;
  if (op == ScalarOp::kSub && is(y, 0)) return x;
  if (op == ScalarOp::kAdd && exact_sum && is(y, 0)) return x;
  if (op == ScalarOp::kAdd && exact_sum && is(x, 0)) return y;
  return std::nullopt;
}

int Dag::import(const Dag& other, int root, std::span<const Index> axes, std::span<const Range> ranges,
                const std::function<int(const ScalarNode&)>& leaf) {
  const int roots[] = {root};
  std::map<int, int> moved;
  const auto scalar = [&moved](int id) { return moved.at(id); };
  for (const int id : other.reachable(roots)) {
    ScalarNode node = other[id];
    for (Index& index : node.index) index = substitute(index, axes, ranges, scalar);
    for (int& argument : node.arguments) argument = moved.at(argument);
    if (node.op == ScalarOp::kLoad || node.op == ScalarOp::kAccumulator) {
      moved[id] = leaf(node);
    } else if (node.op == ScalarOp::kRound) {
      moved[id] = round(node.arguments[0]);
    } else if (node.op == ScalarOp::kCast) {
      moved[id] = cast(node.arguments[0], node.type);
    } else if (node.op > ScalarOp::kRound) {
      moved[id] = apply(node.op, std::move(node.arguments));
    } else {
      moved[id] = intern(std::move(node));
    }
  }
  return moved.at(root);
}

std::vector<int> Dag::reachable(std::span<const int> roots) const {
  std::vector<bool> seen(nodes_.size());
  for (const int root : roots) seen[static_cast<std::size_t>(root)] = true;
  std::vector<int> loaded;
  for (std::size_t id = nodes_.size(); id-- > 0;) {
    if (!seen[id]) continue;
    for (const int argument : nodes_[id].arguments) seen[static_cast<std::size_t>(argument)] = true;
    loaded.clear();
    for (const Index& index : nodes_[id].index) collect_loaded(index, loaded);
    for (const int scalar : loaded) seen[static_cast<std::size_t>(scalar)] = true;
  }
  std::vector<int> out;
  for (std::size_t id = 0; id < seen.size(); ++id) {
    if (seen[id]) out.push_back(static_cast<int>(id));
  }
  return out;
}

bool Dag::index_depends_on_axis(const Index& index, int axis) const {
  if (index.mentions(axis)) return true;
  std::vector<int> loaded;
  collect_loaded(index, loaded);
  for (const int scalar : loaded) {
    if (depends_on_axis(scalar, axis)) return true;
  }
  return false;
}

bool Dag::depends_on_axis(int root, int axis) const {
  const int roots[] = {root};
  for (const int id : reachable(roots)) {
    for (const Index& index : (*this)[id].index) {
      if (index.mentions(axis)) return true;
    }
  }
  return false;
}

std::string to_string(const Dag& dag, int root) {
  const ScalarNode& node = dag[root];
  switch (node.op) {
    case ScalarOp::kConstant:
      return is_float(node.type) ? fmt::format("{}", node.constant.real)
                                 : fmt::format("{}", node.constant.integer);
    case ScalarOp::kLoad: {
      std::string text = fmt::format("x{}[", node.operand);
      for (std::size_t i = 0; i < node.index.size(); ++i) text += (i ? ", " : "") + to_string(node.index[i]);
      return text + "]";
    }
    case ScalarOp::kIota:
      return fmt::format("iota({})", to_string(node.index[0]));
    case ScalarOp::kAccumulator:
      return fmt::format("acc{}", node.operand);
    default: {
      std::string text(row_of(node.op).name);
      if (node.op == ScalarOp::kCast) text += fmt::format("<{}>", name_of(node.type));
      text += "(";
      for (std::size_t i = 0; i < node.arguments.size(); ++i) {
        text += (i ? ", " : "") + fmt::format("%{}", node.arguments[i]);
      }
      return text + ")";
    }
  }
}

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
        value = axes[static_cast<std::size_t>(t.atom.axis)];
        break;
      case IndexAtom::Kind::kLoaded:
        value = values_[static_cast<std::size_t>(t.atom.axis)].integer;
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
    Scalar& out = values_[static_cast<std::size_t>(id)];
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
        out = cast(values_[static_cast<std::size_t>(node.arguments[0])], node.type);
        break;
      default:
        arguments.clear();
        for (const int argument : node.arguments)
          arguments.push_back(values_[static_cast<std::size_t>(argument)]);
        out = evaluate(node.op, arguments);
    }
  }
  return values_[static_cast<std::size_t>(root_)];
}

}  // namespace gcompile::ir

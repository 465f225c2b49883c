#include "ir/graph/at_sizes.h"

#include <memory>
#include <utility>

#include "ir/forms/form.h"

namespace gcompile::ir {
namespace {

using ValueOf = std::function<std::int64_t(int)>;

Shape numbers(const Shape& shape, const ValueOf& value_of) {
  Shape out;
  for (const Dim size : shape) out.push_back(size.at(value_of));
  return out;
}

Range numbers(const Range& range, const ValueOf& value_of) {
  return {range.low.at(value_of), range.high.at(value_of)};
}

/// `ids`: of the scalars that are loaded.
Index numbers(const Index& index, const ValueOf& value_of, const std::vector<int>& ids) {
  Index out(Dim(index.constant().at(value_of)));
  for (const Index::Term& term : index.terms()) {
    IndexAtom atom = term.atom;
    atom.divisor = atom.divisor.at(value_of);
    atom.range = numbers(atom.range, value_of);
    if (atom.kind == IndexAtom::Kind::kLoaded) atom.axis = ids[static_cast<std::size_t>(atom.axis)];
    if (atom.inner) atom.inner = std::make_shared<const Index>(numbers(*atom.inner, value_of, ids));
    out = out + Index::of(atom) * Dim(term.coefficient.at(value_of));
  }
  return out;
}

/// All scalars of `from`, and their numbers in `to`.
std::vector<int> copy(const Dag& from, Dag& to, const ValueOf& value_of) {
  std::vector<int> ids;
  for (const ScalarNode& node : from.nodes()) {
    std::vector<Index> index;
    for (const Index& each : node.index) index.push_back(numbers(each, value_of, ids));
    Arguments arguments;
    for (const int argument : node.arguments) arguments.push_back(ids[static_cast<std::size_t>(argument)]);
    switch (node.op) {
      case ScalarOp::kLoad:
        ids.push_back(to.load(node.operand, node.type, std::move(index)));
        break;
      case ScalarOp::kConstant:
        ids.push_back(to.constant(node.constant));
        break;
      case ScalarOp::kIota:
        ids.push_back(to.iota(index[0]));
        break;
      case ScalarOp::kAccumulator:
        ids.push_back(to.accumulator(node.operand, node.type));
        break;
      case ScalarOp::kCast:
        ids.push_back(to.cast(arguments[0], node.type));
        break;
      case ScalarOp::kBits:
        ids.push_back(to.bits(arguments[0], node.type));
        break;
      case ScalarOp::kRound:
        ids.push_back(to.round(arguments[0]));
        break;
      default:
        ids.push_back(to.apply(node.op, arguments));
    }
  }
  return ids;
}

LoopForm numbers(const LoopForm& form, const ValueOf& value_of) {
  LoopForm out;
  const std::vector<int> ids = copy(form.dag, out.dag, value_of);
  const auto moved = [&](int scalar) { return ids[static_cast<std::size_t>(scalar)]; };
  out.extents = numbers(form.extents, value_of);
  out.parallel = form.parallel;
  out.final_over_reduced = form.final_over_reduced;
  for (Stage stage : form.stages) {
    stage.root = moved(stage.root);
    out.stages.push_back(stage);
  }
  for (const Region& region : form.regions) {
    Region& at = out.regions.emplace_back();
    at.root = moved(region.root);
    for (const Range& range : region.box) at.box.push_back(numbers(range, value_of));
  }
  for (const Index& index : form.store) out.store.push_back(numbers(index, value_of, ids));
  for (const BoundsCheck& check : form.checks)
    out.checks.push_back({moved(check.scalar), numbers(check.range, value_of)});
  return out;
}

std::shared_ptr<const Form> numbers(const std::shared_ptr<const Form>& form, const ValueOf& value_of) {
  if (const auto* loops = std::get_if<LoopForm>(form.get()))
    return std::make_shared<const Form>(numbers(*loops, value_of));
  const auto* contract = std::get_if<ContractForm>(form.get());
  if (!contract) return form;
  ContractForm out = *contract;
  out.epilogue = numbers(contract->epilogue, value_of);
  return std::make_shared<const Form>(std::move(out));
}

/// What is known of the elements, as a tensor.
void fill_in(Value& value, const ValueOf& value_of) {
  if (!value.sizes && !value.fractions) return;
  Tensor tensor(value.type);
  const Shape& elements = value.sizes ? *value.sizes : value.fractions->elements;
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const std::int64_t number = elements[static_cast<std::size_t>(i)].at(value_of);
    if (value.sizes) {
      tensor.set(i, Scalar::of_integer(value.type.element, number));
    } else {
      const double divisor = static_cast<double>(value.fractions->divisor);
      tensor.set(i, Scalar::of_real(value.type.element, static_cast<double>(number) / divisor));
    }
  }
  value.constant = std::move(tensor);
  value.sizes.reset();
  value.fractions.reset();
}

}  // namespace

Graph at_sizes(const Graph& graph, const ValueOf& value_of) {
  Graph out = graph;
  for (const ValueId id : out.values()) {
    Value& value = out.value(id);
    value.type.shape = numbers(value.type.shape, value_of);
    fill_in(value, value_of);
  }
  for (const NodeId id : out.nodes()) {
    Node& node = out.node(id);
    if (node.form) node.form = numbers(node.form, value_of);
    for (Graph& branch : node.subgraphs) branch = at_sizes(branch, value_of);
  }
  return out;
}

}  // namespace gcompile::ir

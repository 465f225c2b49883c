#include "driver/data/random_inputs.h"

#include <algorithm>

#include "ir/graph/checks.h"

namespace gcompile {

std::uint64_t RandomInputs::next() {
  state_ += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double RandomInputs::uniform() { return static_cast<double>(next() >> 40) * 0x1p-23 - 1.0; }

ir::Tensor RandomInputs::tensor(const ir::TensorType& type) {
  ir::Tensor out(type);
  for (std::int64_t i = 0; i < out.count(); ++i) {
    if (is_float(type.element)) {
      out.set(i, ir::Scalar::of_real(type.element, uniform()));
    } else {
      out.set(i, ir::Scalar::of_integer(type.element, static_cast<std::int64_t>(next() & 1)));
    }
  }
  return out;
}

std::vector<ir::Tensor> RandomInputs::inputs_of(const ir::Graph& graph) {
  const std::vector<ir::Demand> demands = ir::demands_of(graph);
  std::vector<ir::Tensor> inputs;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const std::string& name = graph.value(graph.inputs()[i]).name;
    const auto demand = std::find_if(demands.begin(), demands.end(),
                                     [&](const ir::Demand& each) { return each.input == name; });
    inputs.push_back(demand == demands.end() ? tensor(graph.input_type(i)) : demand->example);
  }
  return inputs;
}

}  // namespace gcompile

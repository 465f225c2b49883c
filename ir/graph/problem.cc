#include "ir/graph/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "ir/forms/form.h"
#include "ir/loops/scalar_op.h"
#include "ir/tensors/strided_nest.h"

namespace gcompile::ir {
namespace {

template <class T>
ConstantFacts extremes(const Tensor& tensor) {
  ConstantFacts facts;
  if (tensor.count() == 0) return facts;
  const auto* elements = reinterpret_cast<const T*>(tensor.bytes().data());
  T low = elements[0], high = elements[0];
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    low = std::min(low, elements[i]);
    high = std::max(high, elements[i]);
  }
  facts.low = low;
  facts.high = high;
  const std::int64_t entries = tensor.shape().empty() ? Dim(1) : tensor.shape()[0];
  const std::int64_t size = tensor.count() / entries;
  for (std::int64_t entry = 0; entry < entries; ++entry) {
    const T* const first = elements + entry * size;
    const std::int64_t sum = std::accumulate(first, first + size, std::int64_t{0},
                                             [](std::int64_t a, T b) { return a + std::abs(int{b}); });
    facts.largest_sum = std::max(facts.largest_sum, sum);
  }
  return facts;
}

ConstantFacts facts_of(const Tensor& tensor, bool reads_floats) {
  ConstantFacts facts;
  if (is_float(tensor.element())) {
    if (reads_floats) facts.fits_float16 = fits_float16(tensor);
    return facts;
  }
  if (bits_of(tensor.element()) > 16) return facts;  // weights that kernels multiply have 16 bits at most
  if (tensor.element() == ElementType::kInt8) return extremes<std::int8_t>(tensor);
  if (tensor.element() == ElementType::kUInt8) return extremes<std::uint8_t>(tensor);
  if (tensor.element() == ElementType::kInt16) return extremes<std::int16_t>(tensor);
  if (tensor.element() == ElementType::kUInt16) return extremes<std::uint16_t>(tensor);
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const std::int64_t value = tensor.int_at(i);
    facts.low = i == 0 ? value : std::min(facts.low, value);
    facts.high = i == 0 ? value : std::max(facts.high, value);
  }
  return facts;
}

struct MultiplyAdds {
  const Problem& problem;
  Dim results() const { return element_count(problem.results.at(0).shape); }
  Dim operator()(const ConvWork& w) const { return results() * problem.shape(1)[1] * w.window.taps(); }
  Dim operator()(const ConvTransposeWork& w) const {
    return element_count(problem.shape(0)) * problem.shape(1)[1] * w.window.taps();
  }
  Dim operator()(const ProductWork&) const { return results() * problem.shape(0).back(); }
  Dim operator()(const AttentionWork& w) const { return element_count(w.scores()) * (w.size + w.value_size); }
  Dim operator()(const RecurrentWork& w) const {
    return w.directions * w.steps * w.batch * gates_of(w.cell) * w.hidden * (w.inputs + w.hidden);
  }
  Dim operator()(const LinearAttentionWork& w) const {
    return w.batch * w.steps * (w.results() + 2 * w.heads) * w.size * w.value_size;
  }
  template <class T>
  Dim operator()(const T&) const {
    return 0;
  }
};

std::string text_of(const ProblemOperand& operand) {
  if (!operand.present) return "none";
  const TensorType type{operand.element, operand.shape};
  std::string text = to_string(type);
  if (operand.constant) return text + " constant";
  if (!same_layout(operand.shape, operand.strides, row_major_strides(operand.shape))) {
    text += fmt::format(" strides {}", to_string(operand.strides));
  }
  return text;
}

EpilogueFacts facts_of(const LoopForm& epilogue) {
  EpilogueFacts facts;
  std::vector<int> roots;
  for (const Region& region : epilogue.regions) roots.push_back(region.root);
  std::vector<int> sides;
  for (const int n : epilogue.dag.reachable(roots)) {
    facts.work += row_of(epilogue.dag[n].op).cost;
    if (epilogue.dag[n].op == ScalarOp::kLoad) sides.push_back(epilogue.dag[n].operand);
  }
  std::sort(sides.begin(), sides.end());
  facts.sides = static_cast<int>(std::unique(sides.begin(), sides.end()) - sides.begin());
  return facts;
}

}  // namespace

bool fits_float16(const Tensor& weights) {
  double largest = 0;
  const auto see = [&](double value) {
    const double magnitude = std::fabs(value);
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  };
  if (weights.element() == ElementType::kFloat32) {
    const std::byte* bytes = weights.bytes().data();
    for (std::int64_t i = 0; i < weights.count(); ++i) see(static_cast<double>(read<float>(bytes, i)));
  } else {
    for (std::int64_t i = 0; i < weights.count(); ++i) see(weights.real_at(i));
  }
  return largest == 0 ||
         (largest >= std::ldexp(1.0, -14) && std::isfinite(round_to(ElementType::kFloat16, largest)));
}

AxisOrder channels_last(std::size_t rank) {
  AxisOrder order = {0};
  for (std::size_t axis = 2; axis < rank; ++axis) order.push_back(static_cast<int>(axis));
  if (rank > 1) order.push_back(1);
  return order;
}

Dim Problem::multiply_adds() const { return std::visit(MultiplyAdds{*this}, work); }

std::int64_t Problem::bytes() const {
  std::int64_t sum = 0;
  for (const auto* list : {&operands, &results}) {
    for (const ProblemOperand& operand : *list) {
      if (operand.present) sum += TensorType{operand.element, operand.shape}.bytes();
    }
  }
  return sum;
}

namespace {

template <class F>
void for_each_size(Problem& problem, F f) {
  if (auto* attention = std::get_if<AttentionWork>(&problem.work)) {
    for (Dim& size : attention->heads) f(size);
    for (Dim& size : attention->key_heads) f(size);
    f(attention->rows);
    f(attention->columns);
  } else if (auto* recurrent = std::get_if<RecurrentWork>(&problem.work)) {
    f(recurrent->steps);
    f(recurrent->batch);
  } else if (auto* linear = std::get_if<LinearAttentionWork>(&problem.work)) {
    f(linear->steps);
    f(linear->batch);
  } else if (auto* top = std::get_if<TopKWork>(&problem.work)) {
    f(top->k);
  } else if (auto* suppress = std::get_if<SuppressWork>(&problem.work)) {
    f(suppress->most);
  }
  for (auto* list : {&problem.operands, &problem.results}) {
    for (ProblemOperand& operand : *list) {
      for (Shape* sizes : {&operand.shape, &operand.strides}) {
        for (Dim& size : *sizes) f(size);
      }
    }
  }
}

}  // namespace

bool are_constant(const Problem& problem) {
  const auto holds = [](const ProblemOperand& operand) {
    return are_constant(operand.shape) && are_constant(operand.strides);
  };
  return std::all_of(problem.operands.begin(), problem.operands.end(), holds) &&
         std::all_of(problem.results.begin(), problem.results.end(), holds);
}

Problem at_typical(Problem problem) {
  problem.stands_for_formulas = !are_constant(problem);
  for_each_size(problem, [](Dim& size) { size = typical(size); });
  return problem;
}

Problem at_highest(Problem problem) {
  problem.stands_for_formulas = !are_constant(problem);
  for_each_size(problem, [](Dim& size) { size = highest(size); });
  return problem;
}

std::string to_string(const Problem& problem) {
  std::string text = to_string(problem.work) + ":";
  for (std::size_t i = 0; i < problem.operands.size(); ++i) {
    text += (i ? ", " : " ") + text_of(problem.operands[i]);
  }
  text += " ->";
  for (std::size_t i = 0; i < problem.results.size(); ++i)
    text += (i ? ", " : " ") + text_of(problem.results[i]);
  if (problem.reassociates) text += "; may reassociate";
  if (problem.epilogue.work > 0) {
    text +=
        fmt::format("; epilogue of work {} with {} operands", problem.epilogue.work, problem.epilogue.sides);
  }
  return text;
}

std::optional<Problem> problem_of(const Graph& graph, NodeId id, const Form& form,
                                  const std::function<Shape(ValueId)>& strides, bool reads_floats) {
  const Node& node = graph.node(id);
  const auto of_value = [&](ValueId value) {
    ProblemOperand operand;
    operand.present = value.valid();
    if (!operand.present) return operand;
    const TensorType& type = graph.value(value).type;
    operand.element = type.element;
    operand.shape = type.shape;
    if (const Tensor* constant = graph.constant(value)) {
      operand.strides = row_major_strides(type.shape);
      operand.constant = facts_of(*constant, reads_floats);
    } else if (graph.value(value).sizes) {
      operand.strides = row_major_strides(type.shape);  // it lies nowhere: what it is, the work says
    } else {
      operand.strides = strides(value);
    }
    return operand;
  };
  Problem problem;
  std::size_t base = node.operands.size();
  if (const auto* contract = std::get_if<ContractForm>(&form)) {
    problem.work = contract->work;
    problem.accumulator = contract->accumulator;
    problem.reassociates = contract->reassociates;
    base = static_cast<std::size_t>(contract->base_operands);
    ProblemOperand result = of_value(node.results[0]);
    result.element = contract->accumulator;
    if (result.shape != contract->epilogue.extents) {
      result.shape = contract->epilogue.extents;
      result.strides = row_major_strides(result.shape);
    }
    problem.results = {std::move(result)};
    problem.epilogue = facts_of(contract->epilogue);
  } else if (const auto* library = std::get_if<LibraryForm>(&form)) {
    problem.work = library->work;
    for (const ValueId result : node.results) problem.results.push_back(of_value(result));
  } else {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < base; ++i) problem.operands.push_back(of_value(node.operands[i]));
  return problem;
}

}  // namespace gcompile::ir

// Shapes and shape arithmetic as formulas against the same graph in numbers: twenty thousand random graphs.
#include <gtest/gtest.h>

#include <random>

#include "ir/graph/operator.h"
#include "ir/sizes/sizes.h"

namespace gcompile::ir {
namespace {

constexpr int kGraphs = 20'000;
constexpr int kNodes = 12;
constexpr int kRuns = 3;  // of each graph, at sizes of their own

struct Step {
  std::string op;
  std::vector<int> operands;  // positions in the list of values; what is made goes to its end
  Attributes attributes;
};

using Symbols = std::vector<std::int64_t>;  // a value for each

/// Values that are made one after another, the first of them inputs.
class Twin {
 public:
  explicit Twin(const std::vector<Shape>& inputs) {
    for (const Shape& shape : inputs) values_.push_back(graph_.add_input("", {ElementType::kFloat32, shape}));
  }

  /// Throws OperatorError and makes nothing where the operator does not take its operands.
  void apply(const Step& step) {
    std::vector<ValueId> operands;
    for (const int operand : step.operands) operands.push_back(values_[static_cast<std::size_t>(operand)]);
    Attributes attributes = step.attributes;
    const Operator& op = operator_named(step.op);
    complete_attributes(op, attributes);
    const NodeId node = graph_.add_node(op, operands, attributes, 1);
    try {
      infer_node(graph_, node);
    } catch (const OperatorError&) {
      graph_.erase_node(node);
      throw;
    } catch (const CompileError& error) {  // a negative size, or a number too large
      graph_.erase_node(node);
      operator_error(error.what());
    }
    propagate(node);
    values_.push_back(graph_.node(node).results[0]);
  }
  void real_constant(double number, ElementType type) {
    Tensor tensor(TensorType{type, {}});
    tensor.set(0, Scalar::of_real(type, number));
    values_.push_back(graph_.add_constant(std::move(tensor)));
  }
  void constant(std::vector<std::int64_t> elements, bool is_scalar) {
    const Shape shape = is_scalar ? Shape{} : Shape{elements.size()};
    values_.push_back(graph_.add_constant(Tensor::of_ints(elements, shape)));
  }

  int count() const { return static_cast<int>(values_.size()); }
  const Value& at(int i) const { return graph_.value(values_[static_cast<std::size_t>(i)]); }
  /// Integers whose elements are known.
  bool knows(int i) const { return !is_float(at(i).type.element) && (at(i).sizes || at(i).constant); }
  Shape elements(int i) const { return at(i).sizes ? *at(i).sizes : shape_of(at(i).constant->ints()); }

 private:
  void propagate(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<const Tensor*> operands;
    for (const ValueId operand : node.operands) {
      operands.push_back(graph_.constant(operand));
      if (!operands.back() && !node.op->traits.reads_types_only) return;
    }
    if (node.op->traits.reads_types_only && !are_constant(graph_.value(node.operands[0]).type.shape)) return;
    graph_.value(node.results[0]).constant = evaluate_node(graph_, id, operands).at(0);
  }

  Graph graph_;
  std::vector<ValueId> values_;
};

class RandomGraph {
 public:
  explicit RandomGraph(std::uint32_t seed) : random_(seed) {
    for (const char* name : {"a", "b", "c"}) {
      const std::int64_t low = pick(0, 5) == 0 ? 0 : pick(1, 4);
      sizes_.add_symbol({name, {low, low + pick(0, 40)}, low});
    }
    scope_.emplace(&sizes_);
    for (int i = 0; i < 3; ++i) {
      Shape shape;
      for (std::int64_t rank = pick(1, 4); rank > 0; --rank) shape.push_back(dim());
      inputs_.push_back(shape);
    }
    open_.emplace(inputs_);
    for (int i = 0; i < kNodes; ++i) add_steps();
  }

  int nodes() const { return static_cast<int>(steps_.size()); }

  /// At sizes within the bounds. False: they do not fulfil what the graph was taken to need.
  bool run() {
    Symbols symbols;
    for (const SizeSymbol& symbol : sizes_.symbols())
      symbols.push_back(pick(symbol.bounds.low, symbol.bounds.high));
    const auto number = [&](Dim dim) {
      return dim.at([&](int symbol) { return symbols[static_cast<std::size_t>(symbol)]; });
    };
    for (const SizeCheck& check : sizes_.checks()) {
      if (number(check.a) != number(check.b)) return false;
    }
    std::vector<Shape> inputs = inputs_;
    for (Shape& shape : inputs) {
      for (Dim& dim : shape) dim = number(dim);
    }
    Twin closed(inputs);
    for (const Made& made : steps_) {
      if (made.real_type) {
        closed.real_constant(made.real, *made.real_type);
      } else if (made.is_constant) {
        closed.constant(made.elements, made.is_scalar);
      } else {
        EXPECT_NO_THROW(closed.apply(made.step)) << made.step.op;
      }
      const int last = closed.count() - 1;
      const Value &open = open_->at(last), &value = closed.at(last);
      // What is left of no elements, the operator's definition leaves open.
      if (made.step.op == "Reshape" && value.type.count() == 0) return true;
      Shape shape = open.type.shape;
      for (Dim& dim : shape) dim = number(dim);
      EXPECT_EQ(to_string(shape), to_string(value.type.shape)) << made.step.op;
      if (open_->knows(last)) {
        Shape elements = open_->elements(last);
        for (Dim& element : elements) element = number(element);
        EXPECT_TRUE(closed.knows(last)) << made.step.op;
        if (!closed.knows(last)) return true;
        EXPECT_EQ(to_string(elements), to_string(closed.elements(last))) << made.step.op;
      }
      if (testing::Test::HasFailure()) return true;
    }
    return true;
  }

 private:
  struct Made {
    Step step;
    bool is_constant = false, is_scalar = false;
    std::vector<std::int64_t> elements = {};
    std::optional<ElementType> real_type = {};  // it is a constant of floats
    double real = 0;
  };

  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

  Dim dim() {
    const std::int64_t kind = pick(0, 9);
    if (kind < 3) return pick(1, 8);
    Dim size = Dim::symbol(static_cast<int>(pick(0, 2)));
    if (kind == 3) size = size * pick(2, 4);
    if (kind == 4) size = size + pick(1, 3);
    if (kind == 5) size = size + Dim::symbol(static_cast<int>(pick(0, 2)));
    return size;
  }

  /// -1 where the operator refuses.
  int apply(const std::string& op, std::vector<int> operands, Attributes attributes = {}) {
    Step step{op, std::move(operands), std::move(attributes)};
    try {
      open_->apply(step);
    } catch (const OperatorError&) {
      return -1;
    }
    steps_.push_back({std::move(step)});
    return open_->count() - 1;
  }
  int constant(std::vector<std::int64_t> elements, bool is_scalar = false) {
    open_->constant(elements, is_scalar);
    steps_.push_back({{}, true, is_scalar, std::move(elements)});
    return open_->count() - 1;
  }

  int real_constant(double number, ElementType type) {
    open_->real_constant(number, type);
    steps_.push_back({{}, true, true, {}, type, number});
    return open_->count() - 1;
  }

  template <class Wanted>
  int any(Wanted wanted) {
    std::vector<int> found;
    for (int i = 0; i < open_->count(); ++i) {
      if (wanted(i)) found.push_back(i);
    }
    return found.empty()
               ? -1
               : found[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(found.size()) - 1))];
  }
  int any_data(int lowest_rank = 1) {
    return any([&](int i) {
      return is_float(open_->at(i).type.element) && open_->at(i).type.rank() >= lowest_rank;
    });
  }
  int any_list() {
    return any([&](int i) {
      return open_->knows(i) && open_->at(i).type.element == ElementType::kInt64 &&
             open_->at(i).type.rank() == 1;
    });
  }
  int any_scalar() {
    return any([&](int i) {
      return open_->knows(i) && open_->at(i).type.element == ElementType::kInt64 &&
             open_->at(i).type.rank() == 0;
    });
  }
  /// Whether a tensor of that shape fits into memory at all sizes.
  bool is_small(int list) const {
    double count = 1;
    for (const Dim element : open_->elements(list))
      count *= static_cast<double>(std::max<std::int64_t>(1, highest(element)));
    return count <= 1 << 20;
  }
  std::int64_t rank(int i) const { return open_->at(i).type.rank(); }

  static Attributes with(const char* name, std::int64_t value) {
    Attributes attributes;
    attributes.set(name, value);
    return attributes;
  }

  /// Size of an axis as models compute it.
  int size_of(int data, std::int64_t axis) {
    const int shape = apply("Shape", {data});
    return apply("Gather", {shape, constant({axis}, true)}, with("axis", 0));
  }
  int as_list(int scalar) { return scalar < 0 ? -1 : apply("Unsqueeze", {scalar, constant({0})}); }

  void add_steps() {
    switch (pick(0, 20)) {
      case 0:
        apply("Shape", {any_data()});
        return;
      case 1:
        apply("Size", {any_data()});
        return;
      case 2: {
        const int data = any_data();
        size_of(data, pick(0, rank(data) - 1));
        return;
      }
      case 3:
      case 4:
      case 5: {
        const int a = any_scalar(), b = pick(0, 1) == 0 ? any_scalar() : constant({pick(1, 5)}, true);
        const char* kOps[] = {"Add", "Sub", "Mul", "Div", "Min", "Max", "Mod"};
        if (a >= 0 && b >= 0) apply(kOps[pick(0, 6)], {a, b});
        return;
      }
      case 6: {
        const int list = any_list();
        if (list < 0) return;
        const int from = constant({pick(-3, 2)}), to = constant({pick(0, 2) == 0 ? INT64_MAX : pick(-2, 4)});
        apply("Slice", {list, from, to});
        return;
      }
      case 7: {
        const int a = any_list(), b = any_list();
        if (a >= 0 && b >= 0) apply("Concat", {a, b}, with("axis", 0));
        return;
      }
      case 8: {
        const int list = any_list();
        if (list >= 0)
          apply(pick(0, 1) == 0 ? "ReduceProd" : "ReduceSum", {list}, with("keepdims", pick(0, 1)));
        return;
      }
      case 9: {  // the number, or another where it is some number
        const int scalar = any_scalar();
        if (scalar < 0) return;
        const int is_one = apply(pick(0, 1) == 0 ? "Equal" : "Less", {scalar, constant({pick(-1, 3)}, true)});
        if (is_one >= 0) apply("Where", {is_one, constant({pick(1, 4)}, true), scalar});
        return;
      }
      case 10: {  // neighbours become one axis
        const int data = any_data(2);
        if (data < 0) return;
        const std::int64_t merged = pick(0, rank(data) - 2);
        std::vector<int> parts;
        for (std::int64_t axis = 0; axis < rank(data); ++axis) {
          if (axis == merged) {
            parts.push_back(constant({-1}));
          } else if (axis != merged + 1) {
            parts.push_back(pick(0, 1) == 0 ? as_list(size_of(data, axis))
                            : axis < merged ? constant({0})
                                            : as_list(size_of(data, axis)));
          }
        }
        if (std::count(parts.begin(), parts.end(), -1) > 0) return;
        const int shape = apply("Concat", parts, with("axis", 0));
        if (shape >= 0) apply("Reshape", {data, shape});
        return;
      }
      case 11: {  // an axis becomes two
        const int data = any_data();
        const std::int64_t at = pick(0, rank(data) - 1);
        std::vector<int> parts;
        for (std::int64_t axis = 0; axis < rank(data); ++axis) {
          if (axis == at) {
            parts.push_back(constant({-1}));
            parts.push_back(constant({pick(1, 4)}));
          } else {
            parts.push_back(as_list(size_of(data, axis)));
          }
        }
        if (std::count(parts.begin(), parts.end(), -1) > 0) return;
        const int shape = apply("Concat", parts, with("axis", 0));
        if (shape >= 0) apply("Reshape", {data, shape});
        return;
      }
      case 12: {
        const int list = any_list();
        if (list >= 0 && is_small(list)) apply("ConstantOfShape", {list});
        return;
      }
      case 13: {
        const int data = any_data(), list = any_list();
        if (list >= 0 && is_small(list)) apply("Expand", {data, list});
        return;
      }
      case 14: {
        const int data = any_data(), scalar = any_scalar();
        if (scalar < 0) return;
        const std::int64_t axis = pick(0, rank(data) - 1);
        const int end = as_list(scalar), start = constant({pick(-3, 2)}), axes = constant({axis}),
                  steps = constant({pick(0, 3) == 0 ? pick(-2, -1) : pick(1, 3)});
        if (end >= 0) apply("Slice", {data, start, end, axes, steps});
        return;
      }
      case 15: {
        const int a = any_data(), b = any_data();
        apply("Concat", {a, b}, with("axis", pick(0, rank(a) - 1)));
        return;
      }
      case 16:
        apply("Add", {any_data(), any_data()});
        return;
      case 17: {
        const int a = any_data(2), b = any_data(2);
        if (a >= 0 && b >= 0) apply("MatMul", {a, b});
        return;
      }
      case 19: {  // through floats and back, as scales and clamps are computed
        const int scalar = any_scalar();
        if (scalar < 0) return;
        int real = apply("Cast", {scalar}, with("to", pick(0, 3) == 0 ? 11 : 1));
        for (std::int64_t steps = pick(1, 3); steps > 0 && real >= 0; --steps) {
          const char* kOps[] = {"Mul", "Div", "Add", "Sub", "Min", "Max"};
          const double kNumbers[] = {0.5, 2, 0.25, 1.5, 3, 7, 0.1, 10};
          const int other = real_constant(kNumbers[pick(0, 7)], open_->at(real).type.element);
          const int next = apply(kOps[pick(0, 5)], {real, other});
          if (next >= 0) real = next;
          const char* kRounds[] = {"Floor", "Ceil", "Round"};
          if (pick(0, 2) == 0) real = apply(kRounds[pick(0, 2)], {real});
        }
        if (real >= 0) apply("Cast", {real}, with("to", 7));
        return;
      }
      case 18: {
        const int data = any_data();
        if (rank(data) != 4) {
          apply("Flatten", {data}, with("axis", pick(0, rank(data))));
          return;
        }
        Attributes attributes;
        attributes.set("kernel_shape", std::vector<std::int64_t>{pick(1, 3), pick(1, 3)});
        attributes.set("strides", std::vector<std::int64_t>{pick(1, 3), pick(1, 3)});
        attributes.set("dilations", std::vector<std::int64_t>{1, pick(1, 2)});
        attributes.set("pads", std::vector<std::int64_t>{pick(0, 1), 0, pick(0, 1), 0});
        attributes.set("ceil_mode", pick(0, 1));
        apply("MaxPool", {data}, attributes);
        return;
      }
      default: {
        const int scalar = any_scalar();
        if (scalar >= 0)
          apply("Range",
                {constant({pick(-2, 2)}, true), scalar, constant({pick(0, 3) == 0 ? -2 : pick(1, 3)}, true)});
        return;
      }
    }
  }

  std::mt19937 random_;
  Sizes sizes_;
  std::optional<SizesScope> scope_;
  std::vector<Shape> inputs_;
  std::optional<Twin> open_;
  std::vector<Made> steps_;
};

TEST(SizePropagationTest, RandomGraphsHaveTheSizesOfTheirNumbers) {
  std::int64_t nodes = 0, runs = 0;
  for (std::uint32_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph graph(seed);
    nodes += graph.nodes();
    for (int run = 0; run < kRuns; ++run) runs += graph.run() ? 1 : 0;
    if (HasFailure()) return;
  }
  // Graphs that refuse everything would show nothing.
  EXPECT_GT(nodes, kGraphs * 15);
  EXPECT_GT(runs, kGraphs * kRuns / 2);
}

}  // namespace
}  // namespace gcompile::ir

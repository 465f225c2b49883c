#pragma once
// Expressions of fused kernels: a hash-consed DAG of typed scalar operators over operand elements at computed
// indices. Never a tree: x*sigmoid(x) repeated would grow exponentially (DESIGN law 1).

#include <array>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/loops/index.h"
#include "ir/loops/scalar_op.h"

namespace gcompile::ir {

/// Ids of at most three scalars, in place: expressions are made by the million, and no operator has more.
class Arguments {
 public:
  static constexpr std::size_t kMost = 3;
  Arguments() = default;
  Arguments(std::initializer_list<int> ids) {
    for (const int id : ids) push_back(id);
  }
  void push_back(int id);
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int operator[](std::size_t i) const { return ids_[i]; }
  int& operator[](std::size_t i) { return ids_[i]; }
  const int* begin() const { return ids_.data(); }
  const int* end() const { return ids_.data() + size_; }
  int* begin() { return ids_.data(); }
  int* end() { return ids_.data() + size_; }
  bool operator==(const Arguments&) const = default;

 private:
  std::array<int, kMost> ids_{};
  std::uint8_t size_ = 0;
};

struct ScalarNode {
  ScalarOp op = ScalarOp::kConstant;
  ElementType type = ElementType::kFloat32;
  Arguments arguments;       // ids of earlier nodes
  int operand = -1;          // kLoad: operand of the kernel. kAccumulator: which
  std::vector<Index> index;  // kLoad: one per axis of the operand. kIota: one
  Scalar constant;           // kConstant
};

/// Nodes are in topological order: arguments and loaded indices have smaller ids.
/// Arithmetic is in float32, float64, integers and bool; 16-bit floats are loaded, cast and stored, never
/// computed in.
class Dag {
 public:
  const std::vector<ScalarNode>& nodes() const { return nodes_; }
  const ScalarNode& operator[](int id) const { return nodes_[id]; }
  ElementType type(int id) const { return (*this)[id].type; }

  int load(int operand, ElementType type, std::vector<Index> index);
  int constant(const Scalar& value);
  int constant(ElementType type, double value);  // converted to the type
  int iota(const Index& index);                  // int64
  int size(Dim size);                            // int64
  int bits(int argument, ElementType to);        // the same bits, ScalarOp::kBits
  int size(ElementType type, Dim size);          // converted to the type
  int accumulator(int which, ElementType type);
  int cast(int argument, ElementType to);  // folds no-op casts
  int round(int argument);                 // no-op on non-floats and on nodes already exact in their type
  /// Checks arity and equal argument types; folds constants. Arguments of operators that commute bit for bit
  /// (NaN payloads aside) are put in an order that depends on what they are, not on how the caller had them.
  int apply(ScalarOp op, Arguments arguments);

  /// Copies expression `root` of `other` here. Loads and accumulators go through the callbacks (which receive
  /// the node with its indices already rewritten and return an id here),
  /// axes through `axes` with ranges `ranges`.
  int import(const Dag& other, int root, std::span<const Index> axes, std::span<const Range> ranges,
             const std::function<int(const ScalarNode&)>& leaf);

  /// Whether all nodes are the same, unused ones too; and a number that is then equal.
  bool operator==(const Dag& other) const;
  std::uint64_t hash() const;

  /// Load of operand k becomes a load of numbers[k], -1 where there is none. Only when that keeps the
  /// operands apart and in their order, on which the order of arguments rests;
  /// else false, and nothing is changed.
  bool renumber_operands(std::span<const int> numbers);

  /// Ids reachable from the roots, ascending.
  std::vector<int> reachable(std::span<const int> roots) const;
  /// Whether the value can change along the axis (through indices, iotas and loaded indices).
  bool depends_on_axis(int root, int axis) const;
  bool index_depends_on_axis(const Index& index, int axis) const;

 private:
  int intern(ScalarNode node);
  int find_or_claim(const ScalarNode& node);
  void hash_all();
  int compare(int a, int b) const;
  std::optional<int> neutral(ScalarOp op, const Arguments& arguments) const;
  static constexpr std::size_t kSearched = 8;  // so few nodes are compared one by one, without a table
  std::vector<ScalarNode> nodes_;
  std::vector<int> table_;  // ids by hash of their content, linear probing; -1: free
};

/// float32 for the 16-bit floats, the type itself otherwise.
ElementType compute_type(ElementType type);

std::string to_string(const Dag& dag, int root);

/// Value of a root at one iteration point. `load` and `accumulator` supply leaves.
struct ExpressionInputs {
  std::function<Scalar(const ScalarNode&, std::span<const std::int64_t> position)> load;
  std::function<Scalar(int which)> accumulator;
};
class ExpressionEvaluator {
 public:
  ExpressionEvaluator(const Dag& dag, int root, ExpressionInputs inputs);
  /// Floats are not rounded at the end: the caller stores through Scalar::of_real.
  Scalar operator()(std::span<const std::int64_t> axes);

 private:
  std::int64_t index_value(const Index& index, std::span<const std::int64_t> axes) const;
  const Dag& dag_;
  int root_;
  ExpressionInputs inputs_;
  std::vector<int> order_;
  std::vector<Scalar> values_;
};

}  // namespace gcompile::ir

#pragma once
// The graph of a model: a value type of slots with generation-checked ids and def-use lists. Graph outputs
// are uses, so "has one use" needs no second question. Nothing recurses over graph depth.

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/tensors/attributes.h"
#include "ir/tensors/tensor.h"

namespace gcompile::ir {

struct Form;
struct Operator;
class Graph;

/// Index of a slot plus the slot's generation: a stale id is caught, not followed.
/// Default: "none" (omitted operand).
template <class Tag>
struct SlotId {
  std::uint32_t index = ~0u;
  std::uint32_t generation = 0;
  bool valid() const { return index != ~0u; }
  auto operator<=>(const SlotId&) const = default;
};
using ValueId = SlotId<struct ValueTag>;
using NodeId = SlotId<struct NodeTag>;

/// Operand `slot` of `node`; an invalid node means output `slot` of the graph.
struct Use {
  NodeId node;
  int slot = 0;
  auto operator<=>(const Use&) const = default;
};

/// Floats that follow from sizes: element i is elements[i] / divisor, or, where the divisor is no power of
/// two, the nearest float.
struct SizeFractions {
  Shape elements;
  std::int64_t divisor = 1;
};

struct Value {
  std::string name;  // from the model; metadata only
  TensorType type;
  NodeId producer;  // invalid for graph inputs and constants
  int result_index = 0;
  bool is_input = false;  // of its graph
  /// Set for constants, and for computed values that are known at compile time until folding
  /// removes the producer.
  std::optional<Tensor> constant;
  /// The elements of integers that are formulas of the model's dimensions, at least one of them not a number.
  /// Without a producer the value is nothing else.
  std::optional<Shape> sizes;
  /// The elements of floats that follow from formulas, such as a size and a half.
  std::optional<SizeFractions> fractions;
  std::vector<Use> uses;  // sorted
  /// Physical order of the axes, outermost first; empty: row-major. Set by layout assignment.
  std::vector<int> order;
};

/// A node of the model, or a pass, that a node came from.
struct Origin {
  std::string what;                 // "Conv"; a pass: "layout"
  std::optional<std::string> name;  // of the model's node
  auto operator<=>(const Origin&) const = default;
};
/// "Conv 'conv1'", printable.
std::string to_string(const Origin& origin);

struct Node {
  const Operator* op = nullptr;
  std::string name;
  Attributes attributes;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;  // invalid: the model does not want it
  std::vector<Graph> subgraphs;  // If: then, else. Their inputs are operands 1... of the node
  /// Set by lowering; passes that fuse rewrite it. Without form the operator speaks for itself.
  std::shared_ptr<const Form> form;
  std::vector<Origin> origins;  // merged by fusion
};

class Graph {
 public:
  Graph();
  Graph(const Graph&);
  Graph(Graph&&) noexcept;
  Graph& operator=(const Graph&);
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  std::string name;
  /// Not empty: a branch of an If that cannot be typed (DESIGN law 8). It has the captures as inputs, no
  /// nodes and no outputs; running it returns a shape status with this reason.
  std::string trap;

  ValueId add_input(std::string name, TensorType type);
  ValueId add_constant(Tensor tensor, std::string name = {});
  /// Integers, not all of them numbers.
  ValueId add_sizes(ElementType element, Shape shape, Shape elements);
  /// Adds a node with `result_count` results whose types the caller sets (or infer_node does).
  NodeId add_node(const Operator& op, std::vector<ValueId> operands, Attributes attributes, int result_count,
                  std::string name = {});
  /// Adds one more result slot.
  ValueId add_result(NodeId node, std::string name = {});
  void add_output(ValueId value, std::string name);

  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  /// The types of inputs and outputs as the caller has them: those of the values, but where these are the bytes
  /// of elements of less than 8 bits.
  const TensorType& input_type(std::size_t position) const;
  const TensorType& output_type(std::size_t position) const;
  /// The value is uint8, of as many elements as `type` has bytes.
  void pack_input(std::size_t position, TensorType type);
  void pack_output(std::size_t position, TensorType type);
  void remove_input(std::size_t position);  // the value must have no uses
  void set_output(std::size_t position, ValueId value);

  const Value& value(ValueId id) const;
  Value& value(ValueId id);
  const Node& node(NodeId id) const;
  Node& node(NodeId id);
  bool alive(NodeId id) const;
  bool alive(ValueId id) const;

  const Tensor* constant(ValueId id) const;
  bool is_input(ValueId id) const;
  bool is_output(ValueId id) const;
  /// Uses that are operands or outputs, counted with multiplicity.
  std::size_t use_count(ValueId id) const { return value(id).uses.size(); }

  void set_operand(NodeId node, int slot, ValueId value);
  /// Replaces the whole operand list.
  void set_operands(NodeId node, std::vector<ValueId> operands);
  /// Redirects every use; graph outputs keep their names.
  void replace_uses(ValueId from, ValueId to);
  /// Removes a node none of whose results are used; its results disappear.
  void erase_node(NodeId node);
  /// Removes constants (and only those) that nobody uses.
  void erase_unused_constants();

  /// All nodes, operands before users; ties by slot index, so the order is a function of the graph alone.
  /// Throws CompileError (model error) on a cycle.
  std::vector<NodeId> topological_order() const;
  std::vector<NodeId> nodes() const;    // in slot order
  std::vector<ValueId> values() const;  // in slot order
  std::size_t node_count() const { return live_nodes_; }

 private:
  template <class T>
  struct Slot {
    std::uint32_t generation = 0;
    std::unique_ptr<T> item;  // stable addresses: references survive insertions
  };
  void add_use(ValueId value, Use use);
  void remove_use(ValueId value, Use use);
  ValueId add_value(Value value);
  void erase_value(ValueId value);
  bool is_in_order() const;

  std::vector<Slot<Value>> values_;
  std::vector<Slot<Node>> nodes_;
  std::size_t live_nodes_ = 0;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<std::string> output_names_;
  std::map<std::size_t, TensorType> packed_inputs_, packed_outputs_;  // by position
};

}  // namespace gcompile::ir

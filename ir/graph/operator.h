#pragma once
// One operator, one record: name, opset history, operands, attributes with defaults, type and shape
// inference, reference evaluation, accuracy class, lowering to a form (DESIGN, rule 2). Records live in
// ir/ops/*.cc and are listed in ir/ops/operators.def.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/operator_error.h"
#include "ir/graph/graph.h"

namespace gcompile::ir {

/// What a user may expect of the emitted result against evaluate().
enum class Accuracy : std::uint8_t {
  kExact,     // bit for bit: data movement, integers, comparisons, min, max, neg, abs
  kRounding,  // one rounding per element: add, mul, sqrt, ...
  kFunction,  // a gcrt function within its stated ULP
  kSum,       // sums of products in another order
};

struct AttributeSpec {
  std::string_view name;
  AttributeKind kind;
  /// Absent: required when `required`, else optional without default.
  std::optional<AttributeValue> default_value;
  bool required = false;
};

struct Arity {
  int min = 1;
  int max = 1;  // -1: any number
};

/// Read access to a node and the types and known values of its operands.
class NodeView {
 public:
  NodeView(const Graph& graph, NodeId id) : graph_(graph), id_(id) {}
  const Graph& graph() const { return graph_; }
  NodeId id() const { return id_; }
  const Node& node() const { return graph_.node(id_); }
  const Attributes& attributes() const { return node().attributes; }
  int operand_count() const { return static_cast<int>(node().operands.size()); }
  int result_count() const { return static_cast<int>(node().results.size()); }
  bool has_operand(int i) const { return i < operand_count() && node().operands[i].valid(); }
  bool has_result(int i) const { return i < result_count() && node().results[i].valid(); }
  const TensorType& operand(int i) const;
  const Shape& shape(int i) const { return operand(i).shape; }
  ElementType element(int i) const { return operand(i).element; }
  const TensorType& result(int i) const;  // after inference
  /// Compile-time value of an operand, or nullptr.
  const Tensor* constant(int i) const;
  /// Elements of an integer operand that must be known; otherwise an OperatorError that says so.
  std::vector<std::int64_t> constant_ints(int i, std::string_view what) const;
  /// The same where they may be formulas of the model's dimensions.
  Shape known_sizes(int i, std::string_view what) const;
  /// Some of the elements are formulas.
  bool knows_sizes(int i) const;

 protected:
  const Graph& graph_;
  NodeId id_;
};

/// Inference: sets every result type, or throws OperatorError.
class InferContext : public NodeView {
 public:
  InferContext(Graph& graph, NodeId id) : NodeView(graph, id), mutable_graph_(graph) {}
  void set_result(int i, TensorType type);
  void set_result(int i, ElementType element, Shape shape) {
    set_result(i, TensorType{element, std::move(shape)});
  }
  /// The elements of result 0, integers, when not all of them are numbers; else nothing.
  void set_sizes(Shape elements);

 private:
  Graph& mutable_graph_;
};

/// Rewrites a node as imported (any opset) into the internal form, or a node into simpler ones.
class RewriteContext : public NodeView {
 public:
  RewriteContext(Graph& graph, NodeId id, int opset)
      : NodeView(graph, id), mutable_graph_(graph), opset_(opset) {}
  using NodeView::constant;
  using NodeView::constant_ints;
  Graph& mutable_graph() { return mutable_graph_; }
  Attributes& mutable_attributes() { return mutable_graph_.node(id_).attributes; }
  int opset() const { return opset_; }  // of the operator's domain in the model; normalise only
  /// Operand i; invalid when omitted.
  ValueId operand_id(int i) const { return has_operand(i) ? node().operands[i] : ValueId{}; }
  /// Sets operand i (growing the list with omitted operands).
  void set_operand(int i, ValueId value);
  ValueId constant_ints(std::span<const std::int64_t> values);  // 1-D int64
  ValueId constant_ints(std::span<const Dim> values);
  ValueId constant_scalar(ElementType type, double value);  // rank 0
  /// With the name of `like`, a value of the model that it was made of, or stands for.
  ValueId constant(Tensor tensor, ValueId like = {});
  /// Moves an int-list attribute to operand i (opset change "axes became an input"); absent attribute:
  /// nothing.
  void attribute_to_operand(std::string_view name, int i);
  /// Adds a node, infers its type (defaults filled) and returns result 0.
  /// Origins are those of the rewritten node.
  ValueId emit(std::string_view op, std::vector<ValueId> operands, Attributes attributes = {});
  NodeId emit_node(std::string_view op, std::vector<ValueId> operands, Attributes attributes,
                   int result_count);
  const TensorType& type(ValueId id) const { return graph_.value(id).type; }
  /// Turns the node itself into another operator with the same results (normalisation).
  void replace_with(std::string_view op, std::vector<ValueId> operands, Attributes attributes = {});
  /// Ends a decomposition: result i of the node is `value`.
  void replace_result(int i, ValueId value);

 private:
  Graph& mutable_graph_;
  int opset_;
};

/// Reference evaluation: double and libm inside, rounded to the element type at the edge.
class EvaluateContext : public NodeView {
 public:
  EvaluateContext(const Graph& graph, NodeId id, const std::vector<const Tensor*>& operands)
      : NodeView(graph, id), operands_(operands) {}
  /// Value of operand i; nullptr when omitted.
  const Tensor* value(int i) const { return i < static_cast<int>(operands_.size()) ? operands_[i] : nullptr; }
  const std::vector<const Tensor*>& values() const { return operands_; }

 private:
  const std::vector<const Tensor*>& operands_;
};

/// Lowering: builds the form from the inferred node.
class LowerContext : public NodeView {
 public:
  using NodeView::NodeView;
};

/// What passes and the driver ask of an operator instead of its name. Every fact is one of the operator as
/// ONNX defines it, but the last two, which are of all kernels that this compiler has for it.
struct Traits {
  /// Two operands may change places.
  bool commutative = false;
  /// Its float result jumps where an operand passes some number, so that a last bit may show as a whole step:
  /// it rounds, compares or ranks. Integers made of floats need no mark, the types tell.
  bool decides = false;
  /// Results depend on the types of the operands, not on their elements.
  bool reads_types_only = false;
  /// Result 0 has the elements of operand 0 in row-major order, perhaps as another type.
  bool keeps_elements = false;
  /// The last result holds positions of chosen elements of operand 0 along the attribute "axis".
  bool gives_positions = false;
  /// Makes, or computes with, integers that stand for multiples of a scale.
  bool quantised = false;
  /// The result spells out integers that stand for multiples of a scale: constants are better left packed.
  bool unpacks = false;
  /// Floats are computed in float32 alone: legalisation widens 16-bit operands.
  bool computed_in_float = false;
  /// Takes operands at any strides; operand 0 in rows without gaps.
  bool takes_strides = false;
};

struct Operator {
  std::string_view name = {};
  std::string_view domain = {};    // "" is ai.onnx; "gcompile" for internal operators
  std::vector<int> versions = {};  // opsets in which the definition changed, ascending
  Arity operands = {};
  Arity results = {};
  std::vector<AttributeSpec> attributes = {};
  Accuracy accuracy = Accuracy::kExact;
  bool deterministic = true;      // false: never folded, merged or dropped as duplicate (random numbers)
  std::string_view summary = {};  // one line for `gcompile ops`
  Traits traits = {};

  /// Older (or newer) opset -> internal form: attributes and operands of the newest definition listed in
  /// `versions`. Runs before defaults are filled. Null: every version reads alike.
  void (*normalise)(RewriteContext&) = nullptr;
  /// Sets the result types. Never null.
  void (*infer)(InferContext&) = nullptr;
  /// Expresses the node in simpler operators (calls replace_result for every used result) and returns true;
  /// false leaves it as it is. Null: the operator is lowered itself.
  bool (*decompose)(RewriteContext&) = nullptr;
  /// Null: evaluate() interprets the lowered form.
  std::vector<Tensor> (*evaluate)(const EvaluateContext&) = nullptr;
  /// Null only for operators that always decompose.
  Form (*lower)(const LowerContext&) = nullptr;
};

/// The record, or nullptr. Domains "" and "ai.onnx" are one.
const Operator* find_operator(std::string_view domain, std::string_view name);
/// The record of an operator that the compiler itself uses; its absence is a bug.
const Operator& operator_named(std::string_view name);
/// All records, sorted by domain, then name.
std::span<const Operator* const> all_operators();

/// Checks attribute names and kinds against the record and fills defaults; throws OperatorError.
void complete_attributes(const Operator& op, Attributes& attributes);
/// Checks operand and result counts, then runs op.infer. Throws OperatorError.
void infer_node(Graph& graph, NodeId id);
/// The form of a node: the one attached by passes, else op.lower.
Form form_of(const Graph& graph, NodeId id);
/// Results of one node on given operand values (node.form when attached, else op.evaluate,
/// else the lowered form).
std::vector<Tensor> evaluate_node(const Graph& graph, NodeId id, const std::vector<const Tensor*>& operands);
/// Results of the whole graph on given inputs (in graph order).
std::vector<Tensor> evaluate_graph(const Graph& graph, const std::vector<Tensor>& inputs);
/// All values along the way, by value slot index; used by layer-by-layer verification.
std::vector<std::optional<Tensor>> evaluate_all(const Graph& graph, const std::vector<Tensor>& inputs);

/// How many roundings meet in an element of the node's results. The terms of a sum are estimated from the
/// numbers of elements of operands and result: exact for a product of two matrices.
double roundings(const Graph& graph, NodeId id);

/// "node 'layer3/conv2' (Conv)" with operands and their types, for diagnostics.
Diagnostic diagnose(const Graph& graph, NodeId id, std::string code, const OperatorError& error);

}  // namespace gcompile::ir

#pragma once
// What the importer makes of a node whose operator no graph has; for made_nodes.cc, import_sequence.cc, trips.cc
// and import_loop.cc only.

#include <string>
#include <vector>

#include "frontend/import/importer.h"

namespace gcompile::frontend {

/// What is wrong with such a node, and the code of the error.
struct MadeError {
  const char* code;
  OperatorError error;
};

/// Something is wrong elsewhere, and said there.
struct Poisoned {};

[[noreturn]] void malformed(std::string message);
/// The axis from 0 on.
int axis_within(std::int64_t axis, int rank);

/// Nodes of other operators, which take their places in the graph and have the node as their origin.
class Importer::MadeNodes {
 public:
  using Values = std::vector<ir::ValueId>;

  // Members throw MadeError, OperatorError or Poisoned.
  MadeNodes(Importer& importer, const onnx::NodeProto& node, const ir::Operator& op, Scope& scope)
      : importer_(importer), node_(node), op_(op), scope_(scope), name_(scope.prefix + name_of(node)) {}

 protected:
  bool has_operand(int i) const;
  /// Omitted where it is an optional without an element.
  Binding given(int i) const;
  ir::ValueId operand(int i) const;
  /// The tensor that something is.
  static ir::ValueId tensor_of(const Binding& binding, std::string_view what);
  /// The sequence of values with elements of this type; others it refuses.
  Sequence sequence_of(Values values, ir::ElementType element) const;
  bool is_read(int i) const { return i < node_.output_size() && !node_.output(i).empty(); }
  void bind_result(int i, Binding binding) { importer_.bind(scope_, node_.output(i), std::move(binding)); }

  /// All attributes but those that are read elsewhere, with their defaults.
  ir::Attributes attributes_without(std::initializer_list<std::string_view> names) const;
  ir::ValueId emit(std::string_view op, Values operands, ir::Attributes attributes, const std::string& name);
  Values emit(std::string_view op, Values operands, ir::Attributes attributes, const std::string& name,
              const std::vector<std::string>& results);
  ir::ValueId add_constant(const ir::Scalar& value, const std::string& name);
  ir::ValueId add_constant(const std::vector<std::int64_t>& values, const std::string& name);
  /// One position of an axis, which the result does not have.
  ir::ValueId slice(ir::ValueId value, int axis, std::int64_t position, const std::string& name);
  /// Values of one type, at least one, along a new axis.
  ir::ValueId stack(const Values& values, std::int64_t axis, bool is_backward, const std::string& name);
  const ir::TensorType& type(ir::ValueId value) const { return scope_.graph->value(value).type; }

  Importer& importer_;
  const onnx::NodeProto& node_;
  const ir::Operator& op_;
  Scope& scope_;
  const std::string name_;
};

}  // namespace gcompile::frontend

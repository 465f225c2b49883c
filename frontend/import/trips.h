#pragma once
// How the trips of a Loop or Scan become nodes; for frontend/import/trips.cc and import_loop.cc only.

#include <string>
#include <vector>

#include "frontend/import/importer.h"

namespace gcompile::frontend {

/// What is wrong with a loop, and the code of the error.
struct LoopError {
  const char* code;
  OperatorError error;
};

/// Something is wrong elsewhere, and said there.
struct Poisoned {};

[[noreturn]] void malformed(std::string message);
/// The axis from 0 on.
int axis_within(std::int64_t axis, int rank);

/// The trips of one node.
class Importer::Trips {
 public:
  Trips(Importer& importer, const onnx::NodeProto& node, const ir::Operator& op, Scope& scope)
      : importer_(importer), node_(node), op_(op), scope_(scope), name_(scope.prefix + name_of(node)) {}

  // Each binds the results of the node. They throw LoopError, OperatorError or Poisoned.
  void loop();
  void scan();

 private:
  struct Sequence {
    ir::ValueId value;
    int axis = 0;
    bool is_backward = false;
  };
  using Values = std::vector<ir::ValueId>;
  /// Carried values, and for each output that trips add to what they have given; none where nobody reads it.
  struct Ran {
    Values carried;
    std::vector<Values> rows;
  };

  void read_attributes();
  void begin(int first_operand, int first_result, int carried);
  void scan_of_batches();
  void scan_nothing(std::int64_t entries, std::int64_t length);
  Ran run_sequence(const std::string& place, Values carried, const std::vector<Sequence>& sequences,
                   std::int64_t length);
  Values trip(const std::string& number, const Values& inputs);
  Values guarded_trip(const std::string& number, const Values& inputs);
  Scope scope_of_trip(const std::string& number, const Values& inputs);
  void count_trip();
  ir::TensorType row_type(const Values& inputs, int k);
  ir::ValueId operand(int i) const;
  bool has_operand(int i) const;
  std::optional<std::int64_t> most_trips() const;
  void require_condition(ir::ValueId condition) const;
  void require_type(int i, ir::ValueId given, ir::ValueId made, bool any_shape) const;
  bool is_read(int i) const { return i < node_.output_size() && !node_.output(i).empty(); }
  void bind_result(int i, ir::ValueId value) { importer_.bind(scope_, node_.output(i), Binding::of(value)); }

  ir::ValueId emit(std::string_view op, Values operands, ir::Attributes attributes, const std::string& name);
  ir::ValueId add_constant(const ir::Scalar& value, const std::string& name);
  ir::ValueId zeros(ir::TensorType type, const std::string& name);
  ir::ValueId slice(ir::ValueId value, int axis, std::int64_t position, const std::string& name);
  ir::ValueId stack(const Values& rows, std::int64_t axis, bool is_backward, const std::string& name);
  const ir::TensorType& type(ir::ValueId value) const { return scope_.graph->value(value).type; }

  Importer& importer_;
  const onnx::NodeProto& node_;
  const ir::Operator& op_;
  Scope& scope_;
  const std::string name_;
  const onnx::GraphProto* body_ = nullptr;
  ir::Attributes attributes_;
  int first_result_ = 0;  // of the body: behind a Loop's condition
  int carried_ = 0;
  int rows_ = 0;  // outputs behind the carried ones
  Scope once_;    // what all trips share: the body's initializers
  std::optional<NodeOrder> order_;
  onnx::GraphProto inside_;  // the body, taking its inputs as it takes other values of the graph around it
  onnx::NodeProto choice_;   // a trip that is made or not
  std::int64_t nodes_of_trip_ = 0;
};

}  // namespace gcompile::frontend

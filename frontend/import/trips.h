#pragma once
// How the trips of a Loop or Scan become nodes; for frontend/import/trips.cc and import_loop.cc only.

#include <string>
#include <vector>

#include "frontend/import/made_nodes.h"

namespace gcompile::frontend {

/// The trips of one node.
class Importer::Trips : public MadeNodes {
 public:
  using MadeNodes::MadeNodes;

  // Each binds the results of the node.
  void loop();
  void scan();
  void sequence_map();

 private:
  /// What a Scan reads position by position.
  struct Scanned {
    ir::ValueId value;
    int axis = 0;
    bool is_backward = false;
  };
  using Bindings = std::vector<Binding>;
  /// Carried values, and for each output that trips add to what they have given; none where nobody reads it.
  struct Ran {
    Bindings carried;
    std::vector<Values> rows;
  };

  void read_attributes();
  void begin(int first_operand, int first_result, int carried);
  void scan_of_batches();
  void scan_nothing(std::int64_t entries, std::int64_t length);
  Ran run_scan(const std::string& place, Bindings carried, const std::vector<Scanned>& scanned,
               std::int64_t length);
  Bindings trip(const std::string& number, const Bindings& inputs);
  Bindings guarded_trip(const std::string& number, const Bindings& inputs);
  Scope scope_of_trip(const std::string& number, const Bindings& inputs);
  void count_trip();
  ir::TensorType row_type(const Bindings& inputs, int k);
  ir::ValueId row_of(const Bindings& outputs, int k) const;
  ir::ValueId stacked(const Values& rows, std::int64_t axis, bool is_backward, const std::string& name);
  std::optional<std::int64_t> most_trips() const;
  std::optional<std::int64_t> declared_trips() const;
  bool is_handed_on(ir::ValueId made, ir::ValueId given) const;
  void demand_trips(std::int64_t trips, ir::ValueId condition);
  void require_condition(const Binding& condition) const;
  void require_type(int i, const Binding& given, const Binding& made, bool any_shape) const;
  ir::ValueId zeros(ir::TensorType type, const std::string& name);

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

#pragma once
// The work behind import.h; for frontend/import/import*.cc only.

#include <onnx/onnx_pb.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frontend/files/attribute_import.h"
#include "frontend/files/external_data.h"
#include "frontend/files/model_ports.h"
#include "frontend/files/opset_table.h"
#include "frontend/import/import.h"
#include "frontend/import/name_order.h"
#include "frontend/import/unsupported.h"
#include "frontend/sizes/suggested_sizes.h"
#include "ir/graph/operator.h"
#include "ir/ops/counted.h"
#include "ir/ops/settle.h"

namespace gcompile::frontend {

/// Values under one name. No graph has sequences: what reads one becomes nodes that read its elements.
struct Sequence {
  ir::ElementType element = ir::ElementType::kFloat32;
  std::vector<ir::ValueId> values;
};

/// What a name of the model stands for. Users of a poisoned name are left out without a word: the error is
/// elsewhere. An optional is its element, and without one it is omitted.
struct Binding {
  enum class State { kValue, kSequence, kPoisoned, kOmitted };
  State state = State::kPoisoned;
  ir::ValueId value;
  std::shared_ptr<const Sequence> sequence = {};  // not null where it is one

  static Binding of(ir::ValueId value) { return {State::kValue, value}; }
  static Binding of(Sequence sequence) {
    return {State::kSequence, {}, std::make_shared<const Sequence>(std::move(sequence))};
  }
  static Binding omitted() { return {State::kOmitted, {}}; }
  /// The value, those of the sequence, or none.
  std::vector<ir::ValueId> values() const;
  /// The same with other values in their places.
  Binding with(const std::vector<ir::ValueId>& values) const;
};

/// "float32[2, 3]", "a sequence of 2 of float32", "none".
std::string describe(const Binding& binding, const ir::Graph& graph);

/// A graph among a node's attributes; nullptr: it has none of that name.
const onnx::GraphProto* graph_of(const onnx::NodeProto& node, std::string_view name);

/// Names of one graph, function body, branch or trip.
struct Scope {
  ir::Graph* graph = nullptr;
  const Scope* outer = nullptr;  // a branch imported into the graph around it: its names are visible too
  std::map<std::string, Binding> names;
  const OpsetTable* opsets = nullptr;
  const AttributeEnvironment* environment = nullptr;  // of the function call
  Diagnostics* findings = nullptr;                    // where errors of types and shapes go
  std::string graph_name;
  std::string prefix;  // of names that come from a function body: "call/"
  std::string place;   // for messages: ", in function 'f'"
  int graph_depth = 0;
  bool is_repeated = false;                       // in a trip of a loop
  const ir::DeclaredShapes* declared = nullptr;   // of the model's own values
  std::vector<const onnx::FunctionProto*> calls;  // functions being inlined, outermost first

  /// Makes the scope of a graph inside this one, which becomes part of `into`.
  Scope inside(ir::Graph& into) const;
  const Binding* find(const std::string& name) const;
  bool knows(const std::string& name) const { return find(name) != nullptr; }
  const ir::Tensor* constant(const std::string& name) const;
};

class Importer {
 public:
  /// `file`: what `model` was parsed from with RawData::kLeft, else null.
  Importer(const onnx::ModelProto& model, const std::string& folder, const ImportOptions& options,
           Diagnostics& diagnostics, std::shared_ptr<const FileBytes> file = nullptr);
  ImportedModel run();
  const ExternalData& external_data() const { return external_; }
  /// The node that needs each check of the sizes in force is noted there;
  /// "" for those before the nodes.
  void note_places(std::vector<std::string>& places) { places_ = &places; }
  const SingleNumbers& numbers() const { return numbers_; }

 private:
  // import.cc: the model
  void import_functions();
  std::vector<ResolvedInput> resolve_sizes(const std::vector<DeclaredInput>& declared);
  SuggestedSizes legal_sizes(const std::vector<DeclaredInput>& declared);
  std::optional<bool> fits(const InputBindings& bindings);
  void suggest_choices(const std::vector<DeclaredInput>& declared, SuggestedSizes& sizes);
  ir::DeclaredShapes declared_shapes(const onnx::GraphProto& graph) const;

  // import_ports.cc: inputs and outputs of the model
  std::optional<DeclaredInput> declared_input(const onnx::ValueInfoProto& info);
  void warn_of_defaults(const std::vector<std::string>& names);
  bool check_counts();
  const ElementsBinding* count_of(const ModelPort& port) const;
  std::vector<DeclaredInput> tensors_of(const ModelPort& port, DeclaredInput declared) const;
  void import_inputs(const onnx::GraphProto& graph, Scope& scope);
  void import_outputs(const onnx::GraphProto& graph, Scope& scope);
  void check_output(const onnx::ValueInfoProto& info, const Binding& made, const ir::Graph& graph,
                    bool has_words);

  // import_graph.cc: graphs and branches
  void import_initializers(const onnx::GraphProto& graph, Scope& scope);
  void note_type(ir::ElementType type);  // of an initialiser, a Constant node or an input
  void note_number(const ir::Tensor& value, const std::string& initializer);  // "" of a Constant node
  struct NodeOrder {
    std::vector<int> nodes;
    std::set<std::string> unusable;  // names that nobody makes, or several nodes
  };
  NodeOrder order_in(const NodeList& nodes, const Scope& scope);
  void import_nodes(const NodeList& nodes, Scope& scope);
  void import_nodes(const NodeList& nodes, const NodeOrder& order, Scope& scope);
  void import_if(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope);
  bool check_branch(const onnx::NodeProto& node, const onnx::GraphProto& branch, const char* name,
                    const Scope& scope);
  void inline_branch(const onnx::NodeProto& node, const onnx::GraphProto& branch, Scope& scope);
  struct Captures {
    std::vector<ir::ValueId> values;          // run-time values, in the order of the If's operands 1...
    std::set<ir::ValueId> seen;               // the same
    std::map<std::string, Binding> bindings;  // what names stand for in the graph around
  };
  static void capture(const std::string& name, const Binding& binding, const ir::Graph& graph,
                      Captures& captures);
  Captures captures_of(const std::vector<const onnx::GraphProto*>& branches, const Scope& scope);
  /// For each result of an If, the input that it feeds as a state; nullptr: none.
  std::vector<const std::string*> fed_inputs(const onnx::NodeProto& node) const;
  struct Branch {
    ir::Graph graph;
    std::vector<Binding>
        outputs;  // of the file's graph, whose values are the graph's outputs one after another
    bool poisoned = false;
    ir::CountedFacts counts = {};  // of the graph
  };
  Branch import_branch(const onnx::GraphProto& proto, const Captures& captures, const Scope& scope,
                       const std::string& node_name, const std::vector<const std::string*>& fed);

  /// What stands for a branch with errors of types: the same inputs and the reason, which becomes a warning.
  static ir::Graph trapped_branch(const ir::Graph& branch, const Diagnostics& findings, Diagnostics& to);
  static void trap_smaller(ir::Graph& a, ir::Graph& b, Diagnostics& to);
  static void require_same_kinds(const onnx::NodeProto& node, const Branch& then_branch,
                                 const Branch& else_branch);
  /// An axis that a run fills in part of a result of an If, and which result says how far.
  struct CountOfResult {
    std::size_t result, count;
    int axis;
  };
  void capture_counts(const ir::Graph& graph, Captures& captures) const;
  void carry_counts(const ir::Graph& from, const std::map<ir::ValueId, ir::ValueId>& inside,
                    ir::Graph& branch);
  static std::vector<CountOfResult> join_counts(const std::vector<Branch*>& branches);
  void bind_if(const onnx::NodeProto& node, const ir::Operator& op, const Captures& captures,
               Branch&& then_branch, Branch&& else_branch, Scope& scope);

  // made_nodes.cc: nodes whose operators no graph has
  class MadeNodes;
  void import_made(const onnx::NodeProto& node, Scope& scope, const std::function<void()>& make);
  void count_elements(std::size_t count);

  // import_sequence.cc: sequences and optionals
  class Sequences;
  /// False: the operator is none of those.
  bool import_sequence(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope);

  // import_loop.cc: Loop, Scan and SequenceMap
  class Trips;
  int opset_of(const Scope& scope) const { return scope.opsets->version("").value_or(1); }
  void import_loop(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope);
  void import_scan(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope);
  void import_sequence_map(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope);
  void import_trips(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope,
                    void (Trips::*import)());

  // import_counted.cc: results of which only data knows how many elements there are
  /// Whether other nodes stand for the node, so that it is never typed.
  bool count_by_data(ir::NodeId id, Scope& scope);
  void follow_counts(ir::NodeId id, Scope& scope);
  void note_counts(const ir::CountedResult& result, const ir::Graph& graph);
  bool is_replaced(ir::NodeId id, const Scope& scope) const;
  /// What stands for a result of a node; the result itself where nothing else does.
  ir::ValueId standing_for(const Scope& scope, ir::ValueId result) const;
  const ir::CountedAxis* counted_axis(const ir::Graph& graph, ir::ValueId value) const;
  /// A branch may lie where another one was.
  void enter_branch(const ir::Graph& branch);
  void refuse_counts(const Branch& branch);
  /// An output for each count, behind all others.
  void add_counts(Scope& scope, std::set<std::string>& taken);

  // import_function.cc: functions
  struct Function {
    const onnx::FunctionProto* proto = nullptr;
    OpsetTable opsets;
    std::vector<onnx::AttributeProto> defaults;
  };
  void import_call(const onnx::NodeProto& node, const Function& entry, Scope& scope);
  AttributeEnvironment call_environment(const onnx::NodeProto& node, const Function& entry,
                                        const Scope& scope);
  class FlexAttention;
  void import_flex_attention(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope);
  /// An operator without a record, by the function that ONNX's schema has; false: it has none.
  bool import_schema_function(const onnx::NodeProto& node, Scope& scope);

  // import_node.cc: one node
  void import_node(const onnx::NodeProto& node, Scope& scope);
  void import_constant(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope);
  void import_operator(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope);
  void count_node(const onnx::NodeProto& node, const Scope& scope);
  void check_opset(const onnx::NodeProto& node, const ir::Operator& op, const Scope& scope);
  /// Operands in order; nullopt when one is poisoned.
  std::optional<std::vector<ir::ValueId>> operands_of(const onnx::NodeProto& node, const Scope& scope);
  /// `results`: a name for each, "" where it is omitted.
  ir::NodeId add_node(const onnx::NodeProto& node, const ir::Operator& op, std::vector<ir::ValueId> operands,
                      ir::Attributes attributes, const std::vector<std::string>& results, Scope& scope);
  /// Normalises, completes and infers; false after a diagnosed error.
  bool type_node(ir::NodeId id, Scope& scope, int opset);
  void settle_operands(ir::NodeId id, Scope& scope);
  void tell_settled(const ir::Settled& settled, const std::string& node, const Scope& scope);
  void note_checks(const ir::Node& node);
  void propagate(ir::Graph& graph, ir::NodeId id);
  void check_result_sizes(const ir::Graph& graph, ir::NodeId id);
  void bind_results(const onnx::NodeProto& node, ir::NodeId id, Scope& scope);
  /// Tells the words that an output's positions stand for, or that columns stand for a map; false: there are none.
  bool tell_words(const onnx::ValueInfoProto& info, const Binding& made, const Scope& scope);
  /// Follows the strings that values stand for; false: the node computes with them, which was told.
  bool note_words(const onnx::NodeProto& node, ir::NodeId id, std::vector<std::string> words, Scope& scope);
  void poison_results(const onnx::NodeProto& node, Scope& scope);
  void bind(Scope& scope, const std::string& name, Binding binding);
  std::string describe_operands(const onnx::NodeProto& node, const Scope& scope);

  void error(std::string code, std::string message, std::string location = {}, std::string help = {});
  void warning(std::string code, std::string message, std::string location = {}, std::string help = {});
  /// An error of one node, with operator, name and place.
  void node_error(Diagnostics& to, const onnx::NodeProto& node, const Scope& scope, std::string code,
                  const OperatorError& error);
  std::string location(const onnx::NodeProto& node, const Scope& scope);
  /// Errors of attributes, one for all nodes of an operator that have it.
  void add_attribute_error(const onnx::NodeProto& node, const Scope& scope, const OperatorError& error);
  void report_attribute_errors();

  const onnx::ModelProto& model_;
  const ImportOptions& options_;
  Diagnostics& diagnostics_;
  const std::string folder_;
  const std::shared_ptr<const FileBytes> file_;
  ExternalData external_;
  SingleNumbers numbers_;
  OpsetTable opsets_;
  using FunctionKey = std::pair<std::string, std::string>;  // domain, name
  std::map<FunctionKey, Function> functions_;
  ModelPorts ports_;
  Unsupported unsupported_;
  std::map<std::pair<std::string, std::string>, Diagnostic> wrong_attributes_;  // by operator and message
  std::set<std::string> warned_;  // operators older models do not have; domains not imported
  /// Strings that the elements of a value are positions of, or whose values its columns are.
  std::map<std::pair<const ir::Graph*, ir::ValueId>, std::vector<std::string>> words_;
  std::map<const ir::Graph*, ir::CountedFacts> counted_;
  std::map<std::pair<const ir::Graph*, ir::ValueId>, ir::ValueId> standing_for_;
  std::vector<CountedOutput> counted_outputs_;
  bool is_trial_ = false;  // of sizes; it does not try others itself
  std::vector<std::string>* places_ = nullptr;
  int nodes_ = 0;
  int looked_at_ = 0;  // nodes, by trials
  /// Codes and places of what the first trial found unsupported, at whatever sizes.
  std::optional<std::set<std::pair<std::string, std::string>>> unsupported_anyway_;
  int nodes_of_calls_ = 0;
  std::int64_t bytes_of_calls_ = 0;
  std::int64_t folded_bytes_ = 0;
};

}  // namespace gcompile::frontend

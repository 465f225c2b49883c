#include "tests/conformance/official_case.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <optional>

#include "codegen/choice/prices.h"
#include "codegen/program/lowering.h"
#include "frontend/files/file_bytes.h"
#include "frontend/import/data_files.h"
#include "frontend/import/import.h"
#include "ir/graph/operator.h"
#include "passes/engine/pass_manager.h"

namespace gcompile::conformance {
namespace {

/// kRest: all but the first.
enum class Known { kNone, kIntegers, kSmall, kRest, kAll };

constexpr const char* kKnownNames[] = {"", "integers", "small", "rest", "all"};

bool is_known(Known known, const ir::Tensor& value, std::size_t position) {
  if (known == Known::kAll) return true;
  if (position == 0 || known == Known::kNone) return false;
  if (known == Known::kRest) return true;
  return known == Known::kSmall ? value.count() <= 32 : !ir::is_float(value.element());
}

onnx::ModelProto read_model(const std::string& folder) {
  onnx::ModelProto model;
  const std::string path = folder + "/model.onnx";
  if (!model.ParseFromString(frontend::read_file(path, INT32_MAX))) {
    throw CompileError(ExitCode::kModel, path + " is no model");
  }
  return model;
}

/// The model with known inputs as initializers.
void import_bound(const onnx::ModelProto& model, const frontend::TestData& data, const std::string& folder,
                  Known known, OfficialCase& out) {
  onnx::ModelProto bound = model;
  frontend::ImportOptions options;
  options.bindings.elements = data.elements;
  out.inputs.clear();
  std::set<std::string> removed;
  std::size_t at = 0;
  for (const frontend::ModelPort& port : frontend::ports_of(model.graph()).inputs) {
    if (!port.is_sequence && !port.is_optional) {
      if (at >= data.inputs.size()) {
        removed.insert(port.name);
      } else if (const ir::Tensor& value = data.inputs[at++].value; is_known(known, value, at - 1)) {
        bound.mutable_graph()->add_initializer()->ParseFromString(frontend::write_tensor({port.name, value}));
        removed.insert(port.name);
      } else {
        options.bindings.data_shapes[port.name] = value.shape();
        out.inputs.push_back(value);
      }
      continue;
    }
    for (const std::string& name : frontend::input_names({{port}, {}}, data.elements)) {
      const ir::Tensor& value = data.inputs.at(at++).value;
      options.bindings.data_shapes[name] = value.shape();
      out.inputs.push_back(value);
    }
  }
  bound.mutable_graph()->clear_input();
  for (const auto& input : model.graph().input()) {
    if (removed.count(input.name()) == 0) *bound.mutable_graph()->add_input() = input;
  }
  Diagnostics diagnostics;
  frontend::ImportedModel imported =
      frontend::import_model_bytes(bound.SerializeAsString(), folder, options, diagnostics);
  out.graph = std::move(imported.graph);
  out.counted = std::move(imported.counted);
}

/// What a case draws is for its own generator to say: of the given outputs the types count.
void draw_outputs(OfficialCase& out) {
  const std::vector<ir::NodeId> nodes = out.graph.nodes();
  if (std::none_of(nodes.begin(), nodes.end(), [&](ir::NodeId id) {
        return out.graph.node(id).op == &ir::operator_named("RandomNumbers");
      }))
    return;
  std::vector<ir::Tensor> drawn = ir::evaluate_graph(out.graph, out.inputs);
  for (std::size_t i = 0; i < out.outputs.size(); ++i) {
    if (drawn.at(i).type() == out.outputs[i].type()) continue;
    throw CompileError(ExitCode::kInternal, "what is drawn has another type than the case says");
  }
  out.outputs = std::move(drawn);
}

/// What kernel families say of weights that are no constants.
constexpr const char* kRunWeights = "weights that only the run knows";

/// Whether a step is left to plain loops for want of constants.
bool has_computed_weights(const Program& program) {
  return std::any_of(program.schedules.back().layers.begin(), program.schedules.back().layers.end(),
                     [](const Layer& layer) {
                       return std::any_of(layer.rivals.begin(), layer.rivals.end(),
                                          [](const Rival& rival) { return rival.refusal == kRunWeights; });
                     });
}

bool needs_constants(const std::string& message) {
  for (const char* text :
       {"must be known at compile time", "must be constants", "must be a constant", kRunWeights}) {
    if (message.find(text) != std::string::npos) return true;
  }
  return false;
}

ir::Graph optimised(const OfficialCase& given, int level, Target target) {
  ir::Graph graph = given.graph;
  passes::Options options;
  options.level = level;
  const MachinePrices prices(default_machine(target));
  options.prices = &prices;
  passes::optimise(graph, options);
  return graph;
}

std::string first_line(const CompileError& error) {
  if (!error.diagnostics().empty()) return error.diagnostics().front().message;
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::set<std::string> operator_kinds(const std::string& folder) {
  std::set<std::string> kinds;
  try {
    const onnx::ModelProto model = read_model(folder);
    for (const auto& node : model.graph().node()) kinds.insert(node.op_type());
  } catch (const CompileError&) {
    // read_official_case says so.
  }
  return kinds;
}

std::vector<OfficialCase> read_official_case(const std::string& folder, const std::string& name,
                                             Target target) {
  OfficialCase out;
  out.name = name;
  onnx::ModelProto model;
  frontend::TestData data;
  try {
    model = read_model(folder);
    data = frontend::read_test_data(folder + "/test_data_set_0", {}, frontend::ports_of(model.graph()));
  } catch (const CompileError& error) {
    out.refusal = first_line(error);
    return {out};
  }
  for (const auto& output : data.outputs) out.outputs.push_back(output.value);
  std::vector<OfficialCase> variants;
  for (const Constants constants : {Constants::kNeeded, Constants::kForFastKernels}) {
    OfficialCase bound = bind_inputs(model, data, folder, target, out, constants);
    if (variants.empty() || variants.front().known != bound.known) variants.push_back(std::move(bound));
  }
  return variants;
}

OfficialCase bind_inputs(const onnx::ModelProto& model, const frontend::TestData& data,
                         const std::string& folder, Target target, OfficialCase out, Constants constants) {
  const std::string at_least = out.known;
  bool begun = false;
  std::optional<OfficialCase> by_plain_loops;
  for (const Known known : {Known::kNone, Known::kIntegers, Known::kSmall, Known::kRest, Known::kAll}) {
    begun = begun || at_least == kKnownNames[static_cast<int>(known)];
    if (!begun) continue;
    try {
      out.refusal.clear();
      out.known = kKnownNames[static_cast<int>(known)];
      import_bound(model, data, folder, known, out);
      draw_outputs(out);
      out.is_exact = true;
      for (const ir::NodeId id : out.graph.nodes()) {
        out.is_exact = out.is_exact && out.graph.node(id).op->accuracy == ir::Accuracy::kExact;
      }
      const Program program = lower_case(out, 3, "c", target);
      out.computes = optimised(out, 3, target).node_count() > 0;
      if (constants == Constants::kNeeded || !has_computed_weights(program)) return out;
      if (!by_plain_loops) by_plain_loops = out;
      continue;
    } catch (const CompileError& error) {
      out.refusal = first_line(error);
      out.is_bug = error.exit_code() == ExitCode::kInternal;
    }
    if (out.is_bug || !needs_constants(out.refusal)) break;
  }
  if (by_plain_loops && !out.is_bug) return *by_plain_loops;
  return out;
}

Program lower_case(const OfficialCase& given, int level, const std::string& name, Target target) {
  LoweringOptions lowering;
  lowering.kernels.machine = default_machine(target);
  lowering.name = name;
  Program program = lower_graph(optimised(given, level, target), lowering);
  program.tool_version = "test";
  return program;
}

std::string refusal_reason(const std::string& message) {
  struct Row {
    const char* text;
    const char* reason;
  };
  static constexpr Row kRows[] = {
      {"CUDA kernel", "no CUDA kernel yet"},
      {"--target cuda yet", "no CUDA kernel yet"},
      {"the size of the result depends on data", "size known at run time only"},
      {"tf_half_pixel_for_nn", "coordinates that opset 13 removed"},
      {"opsets before", "opset too old"},
      {"in which nothing computes", "element type without arithmetic"},
      {"quantising to", "element type without arithmetic"},
      {"has elements of", "element type without arithmetic"},
      {"tensors of", "element type that is not read"},
      {"is no tensor", "sequence, optional or map"},
  };
  // "operator Foo (opset 9) is not supported; the model has ..."
  if (message.rfind("operator ", 0) == 0 &&
      message.find(" is not supported; the model has") != std::string::npos) {
    return message.substr(0, message.find(" ("));
  }
  for (const Row& row : kRows) {
    if (message.find(row.text) != std::string::npos) return row.reason;
  }
  return {};
}

}  // namespace gcompile::conformance

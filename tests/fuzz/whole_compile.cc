#include "tests/fuzz/whole_compile.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <new>

#include "codegen/choice/prices.h"
#include "codegen/emit/emit.h"
#include "codegen/program/lowering.h"
#include "frontend/files/model_file.h"
#include "frontend/files/model_ports.h"
#include "frontend/import/import.h"
#include "ir/graph/operator.h"
#include "passes/engine/pass_manager.h"

namespace gcompile::fuzz {
namespace {

/// Sequences of two, and optionals with their elements.
frontend::ImportOptions options_for(const std::string& model) {
  frontend::ImportOptions options;
  const onnx::ModelProto proto = frontend::parse_model_bytes(model, options.limits);
  for (const frontend::ModelPort& port : frontend::ports_of(proto.graph()).inputs) {
    if (port.is_sequence || port.is_optional)
      options.bindings.elements.push_back({port.name, port.is_sequence ? 2 : 1});
  }
  return options;
}

void compile(const std::string& model, const Setting& setting) {
  Diagnostics diagnostics;
  frontend::ImportedModel imported =
      setting.is_text ? frontend::import_model_text(model, {}, diagnostics)
                      : frontend::import_model_bytes(model, "", options_for(model), diagnostics);
  passes::Options options;
  options.level = setting.level;
  const Machine machine = default_machine(setting.cuda ? Target::kCuda : Target::kCpp);
  const MachinePrices prices(machine);
  options.prices = &prices;
  passes::optimise(imported.graph, options);
  LoweringOptions lowering;
  lowering.kernels.machine = machine;
  lowering.name = "model";
  Program program = lower_graph(imported.graph, lowering);
  program.tool_version = "test";
  emit(program, {});
}

}  // namespace

std::string to_string(const Setting& setting) {
  return fmt::format("{}{} -O{}", setting.is_text ? "text, " : "", setting.cuda ? "cuda" : "cpp",
                     setting.level);
}

Outcome compile_in_memory(const std::string& model, const Setting& setting) {
  try {
    compile(model, setting);
    return {true, ""};
  } catch (const CompileError& error) {
    if (error.exit_code() == ExitCode::kModel) return {};
    return {false, fmt::format("exit {}: {}", static_cast<int>(error.exit_code()), error.what())};
  } catch (const OperatorError& error) {
    return {false, "an error of an operator that nobody caught: " + error.message};
  } catch (const std::bad_alloc&) {
    return {false, "out of memory"};
  } catch (const std::exception& error) {
    return {false, std::string("exception: ") + error.what()};
  }
}

}  // namespace gcompile::fuzz

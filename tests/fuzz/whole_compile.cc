#include "tests/fuzz/whole_compile.h"

#include <fmt/format.h>

#include <new>

#include "codegen/emit/emit.h"
#include "codegen/kernels/prices.h"
#include "codegen/program/lowering.h"
#include "frontend/import.h"
#include "ir/operator.h"
#include "passes/pass_manager.h"

namespace gcompile::fuzz {
namespace {

void compile(const std::string& model, const Setting& setting) {
  ir::Diagnostics diagnostics;
  frontend::ImportedModel imported = frontend::import_model_bytes(model, "", {}, diagnostics);
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
  return fmt::format("{} -O{}", setting.cuda ? "cuda" : "cpp", setting.level);
}

std::string defect_of(const std::string& model, const Setting& setting) {
  try {
    compile(model, setting);
  } catch (const ir::CompileError& error) {
    if (error.exit_code() == ir::ExitCode::kModel) return {};
    return fmt::format("exit {}: {}", static_cast<int>(error.exit_code()), error.what());
  } catch (const ir::OperatorError& error) {
    return "an error of an operator that nobody caught: " + error.message;
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::exception& error) {
    return std::string("exception: ") + error.what();
  }
  return {};
}

}  // namespace gcompile::fuzz

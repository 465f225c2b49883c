// Random models, emitted, compiled, run and compared.
//
//     random_models --cases FOLDER --build FOLDER [options]
//
// FOLDER holds what tests/random_models/generate.py wrote: NAME/model.onnx and NAME/test_data_set_0. Each
// model is lowered at -O3 and at -O0; its outputs are compared with the evaluator's on the graph as imported,
// and with output_K.pb where ONNX Runtime made them. What rounding alone moves
// (driver/verify/rounding_noise.h) is no difference. The types that the generator wrote into the model are a
// second opinion on the inference of shapes. The model is evaluated behind each pass too, on random, special
// and extreme inputs. One line a finding.
// Exit: 0 nothing found, 1 something, 2 usage, 77 there are no models.

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "base/diagnostics.h"
#include "codegen/choice/prices.h"
#include "codegen/program/lowering.h"
#include "driver/verify/compare.h"
#include "driver/verify/verify_passes.h"
#include "driver/verify/verify_reference.h"
#include "frontend/files/file_bytes.h"
#include "frontend/import/data_files.h"
#include "frontend/import/import.h"
#include "passes/engine/pass_manager.h"
#include "tests/conformance/case_project.h"
#include "tests/conformance/project_arguments.h"

namespace gcompile::conformance {
namespace {

namespace fs = std::filesystem;
using Tensors = std::map<std::string, ir::Tensor>;

/// A model, its inputs, and what the evaluator makes of them.
struct RandomModel {
  ir::Graph graph;
  Tensors inputs;
  std::vector<ir::Tensor> from_runtime;  // empty: ONNX Runtime said nothing
};

/// How the shapes that the generator wrote differ from those that the importer inferred; empty: nowhere.
std::string shape_difference(const onnx::GraphProto& model, const ir::Graph& graph) {
  std::map<std::string, const onnx::TypeProto*> declared;
  for (const auto& infos : {&model.value_info(), &model.output()}) {
    for (const auto& info : *infos) declared[info.name()] = &info.type();
  }
  for (const ir::ValueId id : graph.values()) {
    const ir::Value& value = graph.value(id);
    const auto found = declared.find(value.name);
    if (found == declared.end()) continue;
    ir::Shape shape;
    bool is_open = false;
    for (const auto& dim : found->second->tensor_type().shape().dim()) {
      is_open = is_open || !dim.has_dim_value();
      shape.push_back(dim.dim_value());
    }
    if (is_open || shape == value.type.shape) continue;
    return fmt::format("'{}' is {} and not {}", value.name, ir::to_string(value.type), ir::to_string(shape));
  }
  return {};
}

class Test {
 public:
  explicit Test(const ProjectOptions& options) : options_(options), project_(options, GCOMPILE_SOURCE_DIR) {}

  int run(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (fs::exists(entry.path() / "model.onnx")) names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    if (names.empty()) {
      std::cout << fmt::format("skipped: no models in {}\n", folder);
      return 77;
    }
    for (const std::string& name : names) emit(name, folder + "/" + name);
    const std::map<std::string, std::string> ran = project_.build_and_run();
    for (const auto& [program, running] : running_) judge(program, running, ran);
    if (refused_ * 10 > static_cast<int>(names.size())) find("all models", "too many are refused");
    std::cout << fmt::format(
        "{} models, {} outputs compared behind passes, {} programs, {} tensors compared, {} of them with "
        "ONNX Runtime; {} refused, {} findings\n",
        names.size(), by_pass_, running_.size(), compared_, with_runtime_, refused_, findings_);
    return findings_ == 0 ? 0 : 1;
  }

 private:
  struct Running {
    std::string model;
    int level;
    std::vector<ir::TensorType> outputs;
  };

  void find(const std::string& model, const std::string& what) {
    ++findings_;
    std::cout << fmt::format("{}: {}\n", model, what) << std::flush;
  }

  void emit(const std::string& name, const std::string& folder) {
    try {
      RandomModel& model = models_[name] = read(name, folder);
      const std::string number = std::to_string(models_.size());
      for (const int level : {3, 0}) {
        ir::Graph graph = model.graph;
        passes::Options options;
        options.level = level;
        const MachinePrices prices(default_machine(options_.target));
        options.prices = &prices;
        const PassCheck check = check_passes(graph, options, models_.size());
        by_pass_ += check.compared;
        for (const PassDifference& difference : check.differences) find(name, to_string(difference));
        LoweringOptions lowering;
        lowering.kernels.machine = default_machine(options_.target);
        lowering.name = fmt::format("{}{}", level == 3 ? "c" : "b", number);
        Program program = lower_graph(std::move(graph), lowering);
        program.tool_version = "test";
        std::vector<ir::Tensor> inputs;
        for (const ir::ValueId id : model.graph.inputs())
          inputs.push_back(model.inputs.at(model.graph.value(id).name));
        project_.add(program, inputs);
        Running running{name, level, {}};
        for (const Port& port : program.schedules.back().outputs) running.outputs.push_back(port.type);
        running_.emplace(program.name, std::move(running));
      }
    } catch (const CompileError& error) {
      ++refused_;
      // The host of a CUDA project does not know what kernels find out: such a condition is refused by name.
      const std::string_view text = error.what();
      const bool is_expected =
          options_.target == Target::kCuda && text.find("has on the device only") != text.npos;
      if (!is_expected) find(name, fmt::format("refused: {}", text));
    }
  }

  RandomModel read(const std::string& name, const std::string& folder) {
    RandomModel out;
    const std::string bytes = frontend::read_file(folder + "/model.onnx", INT32_MAX);
    onnx::ModelProto proto;
    if (!proto.ParseFromString(bytes)) throw CompileError(ExitCode::kModel, "no model");
    frontend::ImportOptions options;
    const frontend::TestData data = frontend::read_test_data(folder + "/test_data_set_0", {});
    for (std::size_t i = 0; i < data.inputs.size(); ++i) {
      const std::string& input = proto.graph().input(static_cast<int>(i)).name();
      options.bindings.data_shapes[input] = data.inputs[i].value.shape();
      out.inputs.emplace(input, data.inputs[i].value);
    }
    for (const auto& output : data.outputs) out.from_runtime.push_back(output.value);
    Diagnostics diagnostics;
    out.graph = frontend::import_model_bytes(bytes, folder, options, diagnostics).graph;
    const std::string difference = shape_difference(proto.graph(), out.graph);
    if (!difference.empty()) find(name, "shape: " + difference);
    return out;
  }

  void judge(const std::string& program, const Running& running,
             const std::map<std::string, std::string>& ran) {
    const RandomModel& model = models_.at(running.model);
    const std::string label = fmt::format("-O{}", running.level);
    const auto found = ran.find(program);
    if (found == ran.end() || found->second != "ok") {
      return find(running.model,
                  fmt::format("{} {}", label, found == ran.end() ? "did not run" : found->second));
    }
    const Reference reference(model.graph);
    const CaseReference values(reference, model.inputs, Precision::kFp32);
    for (std::size_t i = 0; i < running.outputs.size(); ++i) {
      const ir::Tensor actual = project_.output(program, static_cast<int>(i), running.outputs[i]);
      compare_with(running.model, label + " and the evaluator", values, i, values.get().outputs.at(i),
                   actual);
      if (model.from_runtime.empty()) continue;
      ++with_runtime_;
      const ir::Tensor& expected = model.from_runtime.at(i);
      if (is_rounding_of_constants(model, i, expected, actual)) continue;
      compare_with(running.model, label + " and ONNX Runtime", values, i, expected, actual);
    }
  }

  /// ONNX Runtime keeps float32 between nodes of 16-bit floats also where no input reaches them, and folding
  /// rounds behind each, as the model says (docs/differences.md). The noise of that is measured as if such
  /// constants were inputs.
  static bool is_rounding_of_constants(const RandomModel& model, std::size_t i, const ir::Tensor& expected,
                                       const ir::Tensor& actual) {
    const Comparison c = compare(expected, actual, false);
    if (c.same || !c.mismatch.empty()) return c.same;
    ir::Graph graph = model.graph;
    std::map<std::string, ir::Tensor> inputs = model.inputs;
    for (const ir::ValueId id : graph.values()) {
      const ir::Tensor* constant = graph.constant(id);
      if (!constant || !is_float(constant->element()) || bits_of(constant->element()) != 16) continue;
      const std::string name = fmt::format("constant {}", id.index);
      const ir::Tensor tensor = *constant;
      if (graph.value(id).producer.valid()) {  // found by the import
        graph.value(id).constant.reset();
        continue;
      }
      inputs.emplace(name, tensor);
      graph.replace_uses(id, graph.add_input(name, tensor.type()));
    }
    if (inputs.size() == model.inputs.size()) return false;
    const Reference reference(graph);
    const CaseReference values(reference, inputs, Precision::kFp32);
    return is_noise(c, values.noise().outputs[i]);
  }

  void compare_with(const std::string& model, const std::string& label, const CaseReference& values,
                    std::size_t i, const ir::Tensor& expected, const ir::Tensor& actual) {
    ++compared_;
    const Comparison c = compare(expected, actual, values.is_quantised());
    if (c.same) return;
    const std::string& name = values.reference().graph().output_names()[i];
    if (!c.mismatch.empty()) return find(model, fmt::format("{}: '{}': {}", label, name, c.mismatch));
    if (is_noise(c, values.noise().outputs[i])) return;
    find(model, fmt::format("{}: '{}': {} of {} elements, worst at {}: {:.9g} instead of {:.9g}", label, name,
                            c.wrong, expected.count(), position_text(expected.shape(), c.worst), c.actual,
                            c.expected));
  }

  const ProjectOptions& options_;
  CaseProject project_;
  std::map<std::string, RandomModel> models_;
  std::map<std::string, Running> running_;  // by program
  std::int64_t by_pass_ = 0;
  int compared_ = 0, with_runtime_ = 0, refused_ = 0, findings_ = 0;
};

int run_main(int argc, char** argv) {
  std::string cases;
  ProjectOptions options;
  CLI::App app("Random models, emitted, compiled, run and compared.");
  app.add_option("--cases", cases, "Folder of what generate.py wrote")->required();
  add_project_arguments(app, options);
  app.add_option("--per-unit", options.cases_per_unit, "Programs in one translation unit");
  CLI11_PARSE(app, argc, argv);
  return Test(options).run(cases);
}

}  // namespace
}  // namespace gcompile::conformance

int main(int argc, char** argv) {
  try {
    return gcompile::conformance::run_main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "random_models: " << error.what() << '\n';
    return 1;
  }
}

// Imports every model of a folder of real models when there is one (GCOMPILE_MODELS, or ../shared/models),
// with sizes bound by its test data, and reports what keeps the others from importing. Nothing may crash.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "frontend/files/file_bytes.h"
#include "frontend/files/model_file.h"
#include "frontend/import/data_files.h"
#include "frontend/import/import.h"

namespace gcompile {
namespace {

namespace fs = std::filesystem;

fs::path models_folder() {
  if (const char* given = std::getenv("GCOMPILE_MODELS")) return given;
  return fs::path(GCOMPILE_SOURCE_DIR) / ".." / "shared" / "models";
}

/// Shapes of the first data set by input name: files are in graph order, initializers not counted.
std::map<std::string, ir::Shape> data_shapes(const fs::path& model) {
  std::map<std::string, ir::Shape> shapes;
  const auto folders = frontend::test_data_folders(model.parent_path().string());
  if (folders.empty()) return shapes;
  const frontend::TestData data = frontend::read_test_data(folders[0], {});
  const onnx::ModelProto proto =
      frontend::parse_model_bytes(frontend::read_file(model.string(), INT32_MAX), {});
  std::set<std::string> constants;
  for (const auto& tensor : proto.graph().initializer()) constants.insert(tensor.name());
  std::size_t k = 0;
  for (const auto& input : proto.graph().input()) {
    if (constants.count(input.name()) == 0 && k < data.inputs.size())
      shapes[input.name()] = data.inputs[k++].value.shape();
  }
  return shapes;
}

TEST(FrontendModels, EveryRealModelImportsOrSaysWhy) {
  std::error_code error;
  if (!fs::is_directory(models_folder(), error)) GTEST_SKIP() << "no folder of real models";
  std::vector<fs::path> models;
  for (const auto& entry : fs::directory_iterator(models_folder())) {
    const fs::path model = entry.path() / "model.onnx";
    if (fs::exists(model)) models.push_back(model);
  }
  std::sort(models.begin(), models.end());
  ASSERT_FALSE(models.empty());
  int imported = 0;
  for (const fs::path& model : models) {
    const std::string name = model.parent_path().filename().string();
    frontend::ImportOptions options;
    Diagnostics diagnostics;
    try {
      options.bindings.data_shapes = data_shapes(model);
      const auto result = frontend::import_model_file(model.string(), options, diagnostics);
      EXPECT_FALSE(result.graph.outputs().empty()) << name;
      EXPECT_EQ(result.graph.topological_order().size(), result.graph.node_count()) << name;
      ++imported;
      fmt::print("{}: {} nodes\n", name, result.graph.node_count());
    } catch (const CompileError& failure) {
      // An internal error is never an answer to a model.
      EXPECT_EQ(failure.exit_code(), ExitCode::kModel) << name << ": " << failure.what();
      fmt::print("{}: {} errors\n", name, failure.diagnostics().size());
      for (const Diagnostic& diagnostic : failure.diagnostics())
        fmt::print("    {} {}\n", diagnostic.code, diagnostic.message);
    }
    for (const Diagnostic& warning : diagnostics.all()) {
      if (warning.severity == Severity::kWarning) fmt::print("    {} {}\n", warning.code, warning.message);
    }
  }
  fmt::print("{} of {} models imported\n", imported, models.size());
}

}  // namespace
}  // namespace gcompile

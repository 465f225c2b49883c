#include "driver/commands/model_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "base/nearest_name.h"
#include "driver/commands/state_patterns.h"
#include "driver/machine/file_system.h"
#include "driver/machine/interrupt.h"
#include "frontend/files/file_kind.h"

namespace gcompile {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(ExitCode code, std::string message, std::string help) {
  Diagnostic diagnostic;
  if (code == ExitCode::kModel) diagnostic.code = "E0007";
  diagnostic.message = std::move(message);
  diagnostic.help = std::move(help);
  throw CompileError(code, std::vector<Diagnostic>{std::move(diagnostic)});
}

/// Names of the models in a folder, sorted.
std::vector<std::string> models_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string extension = at->path().extension().string();
    if (extension == ".onnx" || extension == ".onnxtxt") names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

[[noreturn]] void no_such_file(const std::string& model) {
  fs::path folder = fs::path(model).parent_path();
  if (folder.empty()) folder = ".";
  const std::vector<std::string> names = models_in(folder);
  std::string help = did_you_mean(fs::path(model).filename().string(), names);
  std::error_code error;
  if (help.empty() && !fs::is_directory(folder, error)) {
    help = fmt::format("there is no folder '{}' either", printable(folder.string()));
  } else if (help.empty() && !names.empty()) {
    help = fmt::format("models in its folder: {}", fmt::join(names, ", "));
  } else if (help.empty()) {
    help = "name an .onnx file that exists; its folder holds none";
  }
  fail(ExitCode::kInputOutput, fmt::format("cannot read '{}': No such file or directory", printable(model)),
       help);
}

[[noreturn]] void is_folder(const std::string& model) {
  const auto holds = [&](const char* name) {
    std::error_code error;
    return fs::exists(fs::path(model) / name, error);
  };
  std::string what = "is a folder", help = "name the .onnx file in it";
  if (const std::vector<std::string> names = models_in(model); !names.empty()) {
    help = fmt::format("name the model in it: {}", fmt::join(names, ", "));
  } else if (holds("saved_model.pb")) {
    what = "is a TensorFlow SavedModel";
    help = fmt::format("`python -m tf2onnx.convert --saved-model {} --output model.onnx` converts it",
                       shell_quoted(model));
  } else if (holds("config.json")) {
    what = "is a folder of Hugging Face";
    help = fmt::format("`optimum-cli export onnx --model {} onnx` exports it", shell_quoted(model));
  }
  fail(ExitCode::kModel, fmt::format("'{}' {}, not an ONNX model", printable(model), what), help);
}

}  // namespace

ModelSource::ModelSource(const Options& options) : options_(options) {
  if (options_.model.empty()) return;
  if (options_.model == "-") {
    read_standard_input();
  } else {
    std::error_code error;
    const fs::file_status status = fs::status(options_.model, error);
    if (status.type() == fs::file_type::not_found) no_such_file(options_.model);
    if (status.type() == fs::file_type::directory) is_folder(options_.model);
  }
  name_states();
}

/// An input that --set makes a constant is none.
void ModelSource::name_states() {
  std::vector<StatePair>& states = options_.import.states;
  if (std::none_of(states.begin(), states.end(), has_star)) return;
  frontend::ModelPorts ports = frontend::model_ports(options_.model, options_.import.limits);
  const auto is_set = [&](const frontend::ModelPort& port) {
    const auto& sets = options_.import.bindings.sets;
    return std::any_of(sets.begin(), sets.end(), [&](const auto& set) { return set.input == port.name; });
  };
  ports.inputs.erase(std::remove_if(ports.inputs.begin(), ports.inputs.end(), is_set), ports.inputs.end());
  states = without_patterns(states, ports);
}

void ModelSource::read_standard_input() {
  if (::isatty(STDIN_FILENO) == 1) {
    fail(ExitCode::kUsage, "- reads the model from standard input, which is this terminal",
         "for example gcompile - -o DIR < model.onnx");
  }
  std::string bytes, block(std::size_t{1} << 16, '\0');
  while (true) {
    throw_if_interrupted();
    const ssize_t got = ::read(STDIN_FILENO, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("read", "standard input");
    if (got == 0) break;
    bytes.append(block, 0, static_cast<std::size_t>(got));
    if (static_cast<std::int64_t>(bytes.size()) > options_.import.limits.file_bytes) {
      fail(ExitCode::kInputOutput, "standard input holds more bytes than a model may have",
           "name the model's file; weights can lie beside it");
    }
  }
  folder_.emplace();
  const std::string name = frontend::is_onnx_text(bytes) ? "model.onnxtxt" : "model.onnx";
  write_text_file(folder_->path(), name, bytes);
  options_.model = folder_->path() + "/" + name;
  options_.is_piped = true;
}

}  // namespace gcompile

#include "driver/data/test_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/diagnostics.h"
#include "driver/data/tensor_files.h"
#include "frontend/files/model_ports.h"
#include "frontend/import/data_files.h"

namespace gcompile {
namespace {

namespace fs = std::filesystem;

using Tensors = std::vector<std::pair<std::string, ir::Tensor>>;

[[noreturn]] void fail(const std::string& folder, const std::string& why, const std::string& help = {}) {
  throw CompileError(ExitCode::kInputOutput, fmt::format("'{}': {}", printable(folder), why), help);
}

std::string last_part(const std::string& path) {
  const fs::path trimmed = fs::path(path + "/.").lexically_normal().parent_path();
  return trimmed.filename().string();
}

/// By name when every name is one of the model's, else by position.
std::map<std::string, ir::Tensor> match_inputs(const std::string& folder, const Tensors& tensors,
                                               const std::vector<std::string>& names) {
  const std::set<std::string> known(names.begin(), names.end());
  std::set<std::string> given;
  for (const auto& [name, tensor] : tensors) given.insert(name);
  const bool by_name =
      given.size() == tensors.size() && std::includes(known.begin(), known.end(), given.begin(), given.end());
  if (!by_name && tensors.size() > names.size()) {
    fail(folder, fmt::format("{} inputs for a model with {}", tensors.size(), names.size()));
  }
  std::map<std::string, ir::Tensor> out;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    out[by_name ? tensors[i].first : names[i]] = tensors[i].second;
  }
  return out;
}

Tensors from_npz(const std::string& path) {
  Tensors out;
  for (NamedTensor& tensor : read_npz(path)) out.emplace_back(tensor.name, std::move(tensor.tensor));
  return out;
}

Tensors from_pb(std::vector<frontend::NamedTensor> tensors) {
  Tensors out;
  for (frontend::NamedTensor& tensor : tensors) out.emplace_back(tensor.name, std::move(tensor.value));
  return out;
}

void read_folder(const std::string& folder, const Options& options, const frontend::ModelPorts& ports,
                 std::vector<TestCase>& cases) {
  if (fs::exists(folder + "/input_0.pb") || fs::exists(folder + "/output_0.pb")) {
    frontend::TestData data = frontend::read_test_data(folder, options.import.limits, ports);
    TestCase added;
    added.elements = std::move(data.elements);
    const std::vector<std::string> names = frontend::input_names(ports, added.elements);
    added.name = last_part(folder);
    added.inputs = match_inputs(folder, from_pb(std::move(data.inputs)), names);
    added.outputs = from_pb(std::move(data.outputs));
    cases.push_back(std::move(added));
  }
  if (fs::exists(folder + "/inputs.npz")) {
    if (!fs::exists(folder + "/outputs.npz")) fail(folder, "outputs.npz is missing");
    TestCase added;
    added.name = last_part(folder) + "/inputs.npz";
    const std::vector<std::string> names = frontend::input_names(ports, options.import.bindings.elements);
    added.inputs = match_inputs(folder, from_npz(folder + "/inputs.npz"), names);
    added.outputs = from_npz(folder + "/outputs.npz");
    added.outputs_named = true;
    cases.push_back(std::move(added));
  }
}

}  // namespace

std::vector<TestCase> read_test_cases(const std::string& folder, const Options& options) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    fail(folder, "no such folder", "check the path; without --data inputs are random");
  const frontend::ModelPorts ports = frontend::model_ports(options.model, options.import.limits);
  std::vector<TestCase> cases;
  read_folder(folder, options, ports, cases);
  for (const std::string& inner : frontend::test_data_folders(folder))
    read_folder(inner, options, ports, cases);
  if (cases.empty()) {
    fail(folder, "holds no inputs",
         "it must hold input_0.pb and output_0.pb, inputs.npz and outputs.npz, or test_data_set_* folders of "
         "them; "
         "without --data inputs are random");
  }
  return cases;
}

std::vector<std::vector<TestCase>> groups_of(std::vector<TestCase> cases, bool of_same_shapes) {
  std::map<std::string, std::size_t> places;
  std::vector<std::vector<TestCase>> groups;
  for (TestCase& test : cases) {
    std::string key;
    for (const auto& [name, count] : test.elements)
      key += fmt::format("{} {} ", name, count ? std::to_string(*count) : "none");
    for (const auto& [name, tensor] : test.inputs)
      if (of_same_shapes) key += name + ir::to_string(tensor.shape());
    const auto [at, is_new] = places.emplace(std::move(key), groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].push_back(std::move(test));
  }
  return groups;
}

void bind_elements(Options& options, const TestCase& test) {
  std::vector<frontend::ElementsBinding>& elements = options.import.bindings.elements;
  for (const frontend::ElementsBinding& found : test.elements) {
    const bool is_given = std::any_of(elements.begin(), elements.end(),
                                      [&](const auto& each) { return each.input == found.input; });
    if (!is_given) elements.push_back(found);
  }
}

}  // namespace gcompile

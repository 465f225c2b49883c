#include "frontend/import/data_files.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

#include "base/diagnostics.h"
#include "frontend/files/file_bytes.h"
#include "frontend/import/tensor_import.h"
#include "ir/graph/operator.h"

namespace gcompile::frontend {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(ExitCode code, const std::string& path, const std::string& why) {
  throw CompileError(code, fmt::format("'{}': {}", printable(path), why));
}

/// K of "PREFIX_K SUFFIX".
std::optional<int> number_in(const std::string& name, std::string_view prefix, std::string_view suffix) {
  if (name.size() <= prefix.size() + suffix.size() || name.compare(0, prefix.size(), prefix) != 0 ||
      name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0) {
    return std::nullopt;
  }
  int number = 0;
  const char* const last = name.data() + name.size() - suffix.size();
  const auto [end, error] = std::from_chars(name.data() + prefix.size(), last, number);
  return error == std::errc() && end == last && number >= 0 ? std::optional(number) : std::nullopt;
}

/// Entries of a folder by their number.
std::map<int, std::string> numbered(const std::string& folder, std::string_view prefix,
                                    std::string_view suffix) {
  std::map<int, std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (const auto number = number_in(name, prefix, suffix)) found[*number] = folder + "/" + name;
  }
  if (error) fail(ExitCode::kInputOutput, folder, error.message());
  return found;
}

std::vector<NamedTensor> read_all(const std::string& folder, std::string_view prefix, const Limits& limits) {
  std::vector<NamedTensor> tensors;
  for (const auto& [number, path] : numbered(folder, prefix, ".pb")) {
    if (number != static_cast<int>(tensors.size())) {
      fail(ExitCode::kInputOutput, folder, fmt::format("{}{}.pb is missing", prefix, tensors.size()));
    }
    tensors.push_back(read_tensor_file(path, limits));
  }
  return tensors;
}

}  // namespace

NamedTensor read_tensor_file(const std::string& path, const Limits& limits) {
  const std::string bytes = read_file(path, limits.file_bytes);
  onnx::TensorProto proto;
  // Sequences and optional values have the same file names in ONNX's own test suite;
  // as tensors they have no type.
  if (!proto.ParseFromString(bytes) || proto.data_type() == 0) {
    fail(ExitCode::kModel, path, "the file holds no tensor");
  }
  try {
    return {proto.name(), import_tensor(proto, limits, nullptr)};
  } catch (const OperatorError& error) {
    fail(ExitCode::kModel, path, error.message);
  }
}

std::string write_tensor(const NamedTensor& tensor) {
  onnx::TensorProto proto;
  proto.set_name(tensor.name);
  proto.set_data_type(onnx_type_of(tensor.value.element()));
  for (const std::int64_t dim : tensor.value.shape()) proto.add_dims(dim);
  const auto bytes = tensor.value.bytes();
  proto.set_raw_data(bytes.data(), bytes.size());
  return proto.SerializeAsString();
}

TestData read_test_data(const std::string& folder, const Limits& limits) {
  TestData data{read_all(folder, "input_", limits), read_all(folder, "output_", limits)};
  if (data.inputs.empty() && data.outputs.empty()) {
    fail(ExitCode::kInputOutput, folder, "the folder holds neither input_0.pb nor output_0.pb");
  }
  return data;
}

std::vector<std::string> test_data_folders(const std::string& model_folder) {
  std::vector<std::string> folders;
  for (const auto& entry : numbered(model_folder, "test_data_set_", "")) folders.push_back(entry.second);
  return folders;
}

}  // namespace gcompile::frontend

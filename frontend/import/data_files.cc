#include "frontend/import/data_files.h"

#include <fmt/format.h>
#include <onnx/onnx-data_pb.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

#include "base/diagnostics.h"
#include "frontend/files/file_bytes.h"
#include "frontend/files/tensor_import.h"
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

NamedTensor tensor_of(const onnx::TensorProto& proto, const std::string& path, const Limits& limits) {
  try {
    return {proto.name(), import_tensor(proto, limits, nullptr)};
  } catch (const OperatorError& error) {
    fail(ExitCode::kModel, path, error.message);
  }
}

template <class Proto>
Proto parsed(const std::string& path, const Limits& limits, const char* what) {
  Proto proto;
  if (!proto.ParseFromString(read_file(path, limits.file_bytes)))
    fail(ExitCode::kModel, path, fmt::format("the file holds no {}", what));
  return proto;
}

/// What a file holds of a value of the model's interface.
struct Held {
  std::vector<NamedTensor> tensors;
  bool is_none = false;
};

void add_elements(const onnx::SequenceProto& sequence, const ModelPort& port, const std::string& path,
                  const Limits& limits, Held& held) {
  const bool has_others = sequence.sparse_tensor_values_size() + sequence.sequence_values_size() +
                              sequence.map_values_size() + sequence.optional_values_size() !=
                          0;
  if (has_others) fail(ExitCode::kModel, path, "the file holds a sequence of others than tensors");
  for (const onnx::TensorProto& element : sequence.tensor_values()) {
    NamedTensor tensor = tensor_of(element, path, limits);
    tensor.name = port.element(held.tensors.size());
    held.tensors.push_back(std::move(tensor));
  }
}

Held read_value(const std::string& path, const ModelPort& port, const Limits& limits) {
  Held held;
  if (port.is_optional) {
    const auto optional = parsed<onnx::OptionalProto>(path, limits, "optional");
    if (optional.elem_type() == onnx::OptionalProto::TENSOR) {
      held.tensors.push_back(tensor_of(optional.tensor_value(), path, limits));
      held.tensors.back().name = port.name;
    } else if (optional.elem_type() == onnx::OptionalProto::SEQUENCE && port.is_sequence) {
      add_elements(optional.sequence_value(), port, path, limits, held);
    } else if (optional.elem_type() != onnx::OptionalProto::UNDEFINED) {
      fail(ExitCode::kModel, path, "the file holds an optional of neither a tensor nor a sequence");
    }
    held.is_none = !optional.has_tensor_value() && !optional.has_sequence_value();
    if (held.is_none) held.tensors.clear();
  } else if (port.is_sequence) {
    add_elements(parsed<onnx::SequenceProto>(path, limits, "sequence"), port, path, limits, held);
  } else {
    held.tensors.push_back(read_tensor_file(path, limits));
  }
  return held;
}

std::vector<NamedTensor> read_all(const std::string& folder, std::string_view prefix, const Limits& limits,
                                  const std::vector<ModelPort>& ports,
                                  std::vector<ElementsBinding>* elements) {
  std::vector<NamedTensor> tensors;
  std::size_t at = 0;
  for (const auto& [number, path] : numbered(folder, prefix, ".pb")) {
    if (number != static_cast<int>(at))
      fail(ExitCode::kInputOutput, folder, fmt::format("{}{}.pb is missing", prefix, at));
    const ModelPort port = at < ports.size() ? ports[at] : ModelPort{};
    ++at;
    Held held = read_value(path, port, limits);
    if (elements && (port.is_sequence || port.is_optional)) {
      const auto count = static_cast<std::int64_t>(held.tensors.size());
      elements->push_back({port.name, held.is_none ? std::nullopt : std::optional(count)});
    }
    std::move(held.tensors.begin(), held.tensors.end(), std::back_inserter(tensors));
  }
  return tensors;
}

}  // namespace

std::vector<std::string> input_names(const ModelPorts& ports, const std::vector<ElementsBinding>& elements) {
  std::vector<std::string> names;
  for (const ModelPort& port : ports.inputs) {
    const auto given = std::find_if(elements.begin(), elements.end(),
                                    [&](const ElementsBinding& each) { return each.input == port.name; });
    const bool is_list = port.is_sequence || port.is_optional;
    const std::int64_t count = !is_list ? 1 : given == elements.end() ? 0 : given->count.value_or(0);
    for (std::int64_t k = 0; k < count; ++k)
      names.push_back(port.is_sequence ? port.element(static_cast<std::size_t>(k)) : port.name);
  }
  return names;
}

NamedTensor read_tensor_file(const std::string& path, const Limits& limits) {
  const auto proto = parsed<onnx::TensorProto>(path, limits, "tensor");
  if (proto.data_type() == 0) fail(ExitCode::kModel, path, "the file holds no tensor");
  return tensor_of(proto, path, limits);
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

TestData read_test_data(const std::string& folder, const Limits& limits, const ModelPorts& ports) {
  TestData data;
  data.inputs = read_all(folder, "input_", limits, ports.inputs, &data.elements);
  data.outputs = read_all(folder, "output_", limits, ports.outputs, nullptr);
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

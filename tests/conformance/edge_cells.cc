#include "tests/conformance/edge_cells.h"

#include <fmt/format.h>
#include <onnx/defs/parser.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>

#include "base/diagnostics.h"
#include "driver/machine/local_files.h"
#include "frontend/files/file_bytes.h"
#include "frontend/files/tensor_import.h"
#include "frontend/import/data_files.h"
#include "ir/graph/operator.h"

namespace gcompile::conformance {
namespace {

namespace fs = std::filesystem;

/// How many official cases of each operator are taken.
constexpr std::size_t kMostOfficial = 4;

std::string operator_name(const onnx::NodeProto& node) {
  return node.domain().empty() || node.domain() == "ai.onnx" ? node.op_type()
                                                             : node.domain() + "." + node.op_type();
}

/// What a case is about: cases that agree in it would go the same ways.
std::string signature(const EdgeModel& given) {
  std::string text = given.operator_name;
  for (const ir::Tensor& input : given.inputs) {
    text += fmt::format(" {}{}", ir::is_float(input.element()) ? "f" : "i", input.type().rank());
  }
  std::set<std::string> attributes;
  for (const auto& attribute : given.model.graph().node(0).attribute()) attributes.insert(attribute.name());
  return fmt::format("{} {}", text, fmt::join(attributes, ","));
}

void set_shape(onnx::ValueInfoProto& info, const ir::Shape& shape) {
  auto& dims = *info.mutable_type()->mutable_tensor_type()->mutable_shape();
  dims.clear_dim();
  for (const std::int64_t dim : shape) dims.add_dim()->set_dim_value(dim);
}

/// Inputs have the shapes of their values; those of results follow.
void settle_shapes(EdgeModel& given) {
  onnx::GraphProto& graph = *given.model.mutable_graph();
  for (std::size_t i = 0; i < given.inputs.size(); ++i) {
    set_shape(*graph.mutable_input(static_cast<int>(i)), given.inputs[i].shape());
  }
  for (auto& output : *graph.mutable_output()) output.mutable_type()->mutable_tensor_type()->clear_shape();
}

bool has_tensors_only(const onnx::GraphProto& graph) {
  for (const auto& infos : {graph.input(), graph.output()}) {
    for (const auto& info : infos) {
      if (!info.type().has_tensor_type()) return false;
    }
  }
  return true;
}

/// Values below 1 that are positive, so that they may be scales and variances; integers from 0 on.
ir::Tensor value_of(const onnx::ValueInfoProto& info, std::mt19937& random) {
  ir::TensorType type;
  type.element = frontend::element_type_of(info.type().tensor_type().elem_type()).value();
  for (const auto& dim : info.type().tensor_type().shape().dim()) type.shape.push_back(dim.dim_value());
  ir::Tensor tensor(type);
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const auto number = static_cast<std::int64_t>(random() % 64);
    if (ir::is_float(type.element)) {
      tensor.set(i, ir::Scalar::of_real(type.element, static_cast<double>(number + 1) / 64));
    } else {
      tensor.set(i, ir::Scalar::of_integer(type.element, number % 2));
    }
  }
  return tensor;
}

std::int64_t newest_opset() {
  std::int64_t newest = 1;
  for (const ir::Operator* op : ir::all_operators()) {
    if (op->domain.empty()) newest = std::max<std::int64_t>(newest, op->versions.back());
  }
  return newest;
}

/// The first elements along every axis, or those over again; 1 where there was none.
ir::Tensor resized(const ir::Tensor& from, const ir::Shape& shape) {
  ir::Tensor to(ir::TensorType{from.element(), shape});
  const bool is_float = ir::is_float(from.element());
  for (std::int64_t i = 0; i < to.count(); ++i) {
    if (from.count() == 0) {
      to.set(i,
             is_float ? ir::Scalar::of_real(from.element(), 1) : ir::Scalar::of_integer(from.element(), 1));
      continue;
    }
    std::int64_t left = i, place = 0, stride = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      const std::int64_t size = shape[axis], before = from.shape()[axis];
      place += left % size % before * stride;
      left /= size;
      stride *= before;
    }
    to.set(i, from.at(place));
  }
  return to;
}

}  // namespace

std::vector<EdgeModel> official_models(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder + "/node", error)) {
    if (fs::exists(entry.path() / "model.onnx")) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  std::map<std::string, std::vector<EdgeModel>> by_operator;
  std::set<std::string> known;
  for (const std::string& name : names) {
    EdgeModel given;
    given.name = name;
    const std::string path = folder + "/node/" + name;
    given.model.ParseFromString(frontend::read_file(path + "/model.onnx", INT32_MAX));
    if (given.model.graph().node_size() != 1 || !has_tensors_only(given.model.graph())) continue;
    try {
      for (auto& input : frontend::read_test_data(path + "/test_data_set_0", {}).inputs)
        given.inputs.push_back(std::move(input.value));
    } catch (const CompileError&) {
      continue;
    }
    if (static_cast<int>(given.inputs.size()) != given.model.graph().input_size()) continue;
    const onnx::NodeProto& node = given.model.graph().node(0);
    given.operator_name = operator_name(node);
    if (ir::find_operator(node.domain(), node.op_type()) == nullptr) continue;
    if (!known.insert(signature(given)).second) continue;
    settle_shapes(given);
    by_operator[given.operator_name].push_back(std::move(given));
  }
  std::vector<EdgeModel> out;
  for (auto& [name, models] : by_operator) {
    // Those with the most operands first: they have the most axes.
    std::stable_sort(models.begin(), models.end(), [](const EdgeModel& a, const EdgeModel& b) {
      return a.inputs.size() > b.inputs.size();
    });
    for (std::size_t i = 0; i < std::min(models.size(), kMostOfficial); ++i)
      out.push_back(std::move(models[i]));
  }
  return out;
}

std::vector<EdgeModel> written_models(const std::string& path) {
  std::istringstream lines(frontend::read_file(path, INT32_MAX));
  std::vector<std::string> texts;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == ' ' && !texts.empty()) {
      texts.back() += line;
    } else {
      texts.push_back(line);
    }
  }
  std::vector<EdgeModel> out;
  for (const std::string& text : texts) {
    EdgeModel given;
    const std::string whole = fmt::format(
        "<ir_version: 10, opset_import: [\"\" : {}, \"com.microsoft\" : 1, \"ai.onnx.ml\" : 1]>\ncell {}",
        newest_opset(), text);
    const auto status = onnx::OnnxParser(whole.c_str()).Parse(given.model);
    if (!status.IsOK()) throw std::runtime_error(fmt::format("{}: {}", text, status.ErrorMessage()));
    given.operator_name = operator_name(given.model.graph().node(0));
    given.name = fmt::format("{} {}", text.substr(text.rfind('{')), text.substr(0, text.find(" =>")));
    std::mt19937 random(static_cast<unsigned>(out.size()));
    for (const auto& input : given.model.graph().input()) given.inputs.push_back(value_of(input, random));
    settle_shapes(given);
    out.push_back(std::move(given));
  }
  return out;
}

std::string EdgeCell::name() const {
  return fmt::format("{}: axis {} of input {} is {}", model->name, place.axis, place.input, size);
}

std::vector<EdgeCell> cells_of(const EdgeModel& model) {
  std::vector<EdgeCell> out;
  for (std::size_t input = 0; input < model.inputs.size(); ++input) {
    const ir::Shape& shape = model.inputs[input].shape();
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      for (const std::int64_t size : {0, 1}) {
        if (shape[axis] != size) out.push_back({&model, {input, axis}, size});
      }
    }
  }
  return out;
}

std::vector<EdgeModel> resized_models(const EdgeCell& cell) {
  const std::vector<ir::Tensor>& inputs = cell.model->inputs;
  const EdgePlace at = cell.place;
  const std::int64_t before = inputs[at.input].shape()[at.axis];
  const std::size_t rank = inputs[at.input].shape().size();
  const std::function<bool(std::size_t, std::size_t)> links[] = {
      [&](std::size_t, std::size_t) { return false; },
      [&](std::size_t other_rank, std::size_t axis) { return other_rank - axis == rank - at.axis; },
      [&](std::size_t, std::size_t axis) { return axis == at.axis; },
      [&](std::size_t, std::size_t) { return true; }};
  std::vector<EdgeModel> out;
  std::vector<std::vector<EdgePlace>> known;
  for (const auto& is_linked : links) {
    EdgeModel made = *cell.model;
    std::vector<EdgePlace> changed;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      ir::Shape shape = inputs[i].shape();
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const EdgePlace place{i, axis};
        if (!(place == at) && !(shape[axis] == before && is_linked(shape.size(), axis))) continue;
        shape[axis] = cell.size;
        changed.push_back(place);
      }
      made.inputs[i] = resized(inputs[i], shape);
    }
    if (std::find(known.begin(), known.end(), changed) != known.end()) continue;
    known.push_back(changed);
    settle_shapes(made);
    out.push_back(std::move(made));
  }
  return out;
}

EdgeModel with_zero_positions(EdgeModel model) {
  for (ir::Tensor& input : model.inputs) {
    if (input.element() == ir::ElementType::kInt32 || input.element() == ir::ElementType::kInt64)
      input = ir::Tensor(input.type());
  }
  return model;
}

}  // namespace gcompile::conformance

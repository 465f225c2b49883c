#include "frontend/files/wire_scan.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostics.h"

namespace gcompile::frontend {
namespace {

enum class Message {
  kNone,
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kFunction,
  kTensor,
  kSparseTensor,
  kValueInfo,
  kType,
  kTensorType,
  kSequenceType,
  kMapType,
  kOptionalType,
  kShape,
  kDimension,
  kOpset,
  kTraining,
  kLeaf,  // entries of strings, segments, device configurations: bounds are checked, fields are not
};

struct Field {
  int number;
  const char* name;
  Message message = Message::kNone;  // kNone: a scalar, string or packed list
  /// Newer than ONNX 1.12 and not to be ignored: refused unless empty.
  bool refused = false;
};

struct Schema {
  const char* name;
  std::vector<Field> fields;
};

/// onnx-ml.proto of ONNX 1.23 (IR version 14).
const Schema& schema_of(Message message) {
  using M = Message;
  static const std::map<Message, Schema> schemas = {
      {M::kModel,
       {"ModelProto",
        {{1, "ir_version"},
         {2, "producer_name"},
         {3, "producer_version"},
         {4, "domain"},
         {5, "model_version"},
         {6, "doc_string"},
         {7, "graph", M::kGraph},
         {8, "opset_import", M::kOpset},
         {14, "metadata_props", M::kLeaf},
         {20, "training_info", M::kTraining},
         {25, "functions", M::kFunction},
         {26, "configuration", M::kLeaf}}}},
      {M::kGraph,
       {"GraphProto",
        {{1, "node", M::kNode},
         {2, "name"},
         {5, "initializer", M::kTensor},
         {10, "doc_string"},
         {11, "input", M::kValueInfo},
         {12, "output", M::kValueInfo},
         {13, "value_info", M::kValueInfo},
         {14, "quantization_annotation", M::kLeaf},
         {15, "sparse_initializer", M::kSparseTensor},
         {16, "metadata_props", M::kLeaf}}}},
      {M::kNode,
       {"NodeProto",
        {{1, "input"},
         {2, "output"},
         {3, "name"},
         {4, "op_type"},
         {5, "attribute", M::kAttribute},
         {6, "doc_string"},
         {7, "domain"},
         {8, "overload", M::kNone, true},
         {9, "metadata_props", M::kLeaf},
         {10, "device_configurations", M::kLeaf}}}},
      {M::kAttribute,
       {"AttributeProto",
        {{1, "name"},
         {2, "f"},
         {3, "i"},
         {4, "s"},
         {5, "t", M::kTensor},
         {6, "g", M::kGraph},
         {7, "floats"},
         {8, "ints"},
         {9, "strings"},
         {10, "tensors", M::kTensor},
         {11, "graphs", M::kGraph},
         {13, "doc_string"},
         {14, "tp", M::kType},
         {15, "type_protos", M::kType},
         {20, "type"},
         {21, "ref_attr_name"},
         {22, "sparse_tensor", M::kSparseTensor},
         {23, "sparse_tensors", M::kSparseTensor}}}},
      {M::kFunction,
       {"FunctionProto",
        {{1, "name"},
         {2, "since_version"},
         {3, "status"},
         {4, "input"},
         {5, "output"},
         {6, "attribute"},
         {7, "node", M::kNode},
         {8, "doc_string"},
         {9, "opset_import", M::kOpset},
         {10, "domain"},
         {11, "attribute_proto", M::kAttribute},
         {12, "value_info", M::kValueInfo},
         {13, "overload", M::kNone, true},
         {14, "metadata_props", M::kLeaf}}}},
      {M::kTensor,
       {"TensorProto",
        {{1, "dims"},
         {2, "data_type"},
         {3, "segment", M::kLeaf},
         {4, "float_data"},
         {5, "int32_data"},
         {6, "string_data"},
         {7, "int64_data"},
         {8, "name"},
         {9, "raw_data"},
         {10, "double_data"},
         {11, "uint64_data"},
         {12, "doc_string"},
         {13, "external_data", M::kLeaf},
         {14, "data_location"},
         {16, "metadata_props", M::kLeaf}}}},
      {M::kSparseTensor,
       {"SparseTensorProto", {{1, "values", M::kTensor}, {2, "indices", M::kTensor}, {3, "dims"}}}},
      {M::kValueInfo,
       {"ValueInfoProto",
        {{1, "name"}, {2, "type", M::kType}, {3, "doc_string"}, {4, "metadata_props", M::kLeaf}}}},
      {M::kType,
       {"TypeProto",
        {{1, "tensor_type", M::kTensorType},
         {4, "sequence_type", M::kSequenceType},
         {5, "map_type", M::kMapType},
         {6, "denotation"},
         {7, "opaque_type", M::kLeaf, true},
         {8, "sparse_tensor_type", M::kTensorType},
         {9, "optional_type", M::kOptionalType}}}},
      {M::kTensorType, {"TypeProto.Tensor", {{1, "elem_type"}, {2, "shape", M::kShape}}}},
      {M::kSequenceType, {"TypeProto.Sequence", {{1, "elem_type", M::kType}}}},
      {M::kMapType, {"TypeProto.Map", {{1, "key_type"}, {2, "value_type", M::kType}}}},
      {M::kOptionalType, {"TypeProto.Optional", {{1, "elem_type", M::kType}}}},
      {M::kShape, {"TensorShapeProto", {{1, "dim", M::kDimension}}}},
      {M::kDimension,
       {"TensorShapeProto.Dimension", {{1, "dim_value"}, {2, "dim_param"}, {3, "denotation"}}}},
      {M::kOpset, {"OperatorSetIdProto", {{1, "domain"}, {2, "version"}}}},
      {M::kTraining,
       {"TrainingInfoProto",
        {{1, "initialization", M::kGraph},
         {2, "algorithm", M::kGraph},
         {3, "initialization_binding", M::kLeaf},
         {4, "update_binding", M::kLeaf}}}},
  };
  return schemas.at(message);
}

class Scanner {
 public:
  Scanner(std::string_view bytes, const Limits& limits) : bytes_(bytes), limits_(limits) {}

  void scan() {
    scan_message(Message::kModel, 0, bytes_.size(), 0);
    if (refused_.empty()) return;
    throw CompileError(ExitCode::kModel, refused_);
  }

 private:
  [[noreturn]] void fail(std::string code, std::string message, std::string help = {}) const {
    Diagnostic diagnostic;
    diagnostic.code = std::move(code);
    diagnostic.message = std::move(message);
    diagnostic.help = std::move(help);
    throw CompileError(ExitCode::kModel, std::vector<Diagnostic>{std::move(diagnostic)});
  }

  std::string path() const {
    std::string text = "ModelProto";
    for (const char* name : path_) text += fmt::format(".{}", name);
    return text;
  }

  [[noreturn]] void malformed(std::size_t at, const std::string& why) const {
    fail("E0002",
         fmt::format("the file is not an ONNX model, or is cut off: byte {}, in {}: {}", at, path(), why),
         "the file may have been downloaded incompletely");
  }

  std::uint64_t varint(std::size_t& at, std::size_t end) const {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at >= end) malformed(at, "a number is cut off");
      const auto byte = static_cast<unsigned char>(bytes_[at++]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    malformed(at, "a number is longer than ten bytes");
  }

  void scan_message(Message message, std::size_t at, std::size_t end, int depth) {
    if (depth > kMaximumMessageDepth) fail("E0004", "messages of the file are nested too deeply");
    graph_depth_ += message == Message::kGraph;
    // The outermost graph is not inside another.
    if (graph_depth_ > limits_.graph_nesting + 1) {
      fail("E0004", fmt::format("graphs are nested deeper than the limit of {}", limits_.graph_nesting));
    }
    while (at < end) at = scan_field(message, at, end, depth);
    graph_depth_ -= message == Message::kGraph;
  }

  /// Returns the position after the field.
  std::size_t scan_field(Message message, std::size_t at, std::size_t end, int depth) {
    const std::size_t begin = at;
    const std::uint64_t key = varint(at, end);
    const auto number = key >> 3;
    const auto wire = static_cast<int>(key & 7);
    if (number == 0 || number > (1u << 29) - 1)
      malformed(begin, fmt::format("field number {} cannot be", number));
    const Field* field = find(message, number);
    std::size_t size = 0;
    switch (wire) {
      case 0:
        size = varint(at, end) != 0 ? 1 : 0;
        break;
      case 1:
      case 5:
        size = wire == 1 ? 8 : 4;
        if (size > end - at) malformed(begin, "a number is cut off");
        at += size;
        break;
      case 2: {
        const std::uint64_t length = varint(at, end);
        if (length > end - at) {
          malformed(begin, fmt::format("{} needs {} bytes, but {} are left", field ? field->name : "a field",
                                       length, end - at));
        }
        size = static_cast<std::size_t>(length);
        if (field && field->message != Message::kNone && field->message != Message::kLeaf) {
          path_.push_back(field->name);
          scan_message(field->message, at, at + size, depth + 1);
          path_.pop_back();
        }
        at += size;
        break;
      }
      default:  // groups (3, 4) are in no version of onnx.proto
        malformed(begin, fmt::format("wire type {} cannot be", wire));
    }
    // An empty string says nothing; neither does a zero.
    if (message != Message::kLeaf && size > 0 && (!field || field->refused)) refuse(message, number, field);
    return at;
  }

  static const Field* find(Message message, std::uint64_t number) {
    if (message == Message::kLeaf) return nullptr;
    for (const Field& field : schema_of(message).fields) {
      if (static_cast<std::uint64_t>(field.number) == number) return &field;
    }
    return nullptr;
  }

  void refuse(Message message, std::uint64_t number, const Field* field) {
    const std::string name = field ? fmt::format("{}.{}", schema_of(message).name, field->name)
                                   : fmt::format("field {} of {}", number, schema_of(message).name);
    if (!named_.insert(name).second) return;
    Diagnostic diagnostic;
    diagnostic.code = "E0006";
    diagnostic.message = field ? fmt::format("the model uses {}, which is not supported", name)
                               : fmt::format("the model uses {}, which this compiler does not know", name);
    diagnostic.location = path();
    refused_.push_back(std::move(diagnostic));
  }

  std::string_view bytes_;
  const Limits& limits_;
  int graph_depth_ = 0;
  std::vector<const char*> path_;
  std::set<std::string> named_;
  std::vector<Diagnostic> refused_;
};

}  // namespace

void scan_model(std::string_view bytes, const Limits& limits) { Scanner(bytes, limits).scan(); }

}  // namespace gcompile::frontend

#include "frontend/files/model_file.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/unknown_field_set.h>
#include <onnx/defs/parser.h>

#include <algorithm>
#include <limits>

#include "base/diagnostics.h"
#include "frontend/files/file_kind.h"
#include "frontend/files/raw_data.h"
#include "frontend/files/wire_scan.h"

namespace gcompile::frontend {
namespace {

[[noreturn]] void fail(std::string code, std::string message, std::string help = {}) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.message = std::move(message);
  diagnostic.help = std::move(help);
  throw CompileError(ExitCode::kModel, std::vector<Diagnostic>{std::move(diagnostic)});
}

/// The parser recurses over nested graphs: braces are counted first.
void check_text(const std::string& text, const Limits& limits) {
  int depth = 0;
  bool comment = false;
  bool quoted = false;
  for (const char c : text) {
    if (comment) {
      comment = c != '\n';
    } else if (c == '"') {
      quoted = !quoted;
    } else if (quoted) {
      continue;
    } else if (c == '#') {
      comment = true;
    } else if (c == '{') {
      if (++depth > limits.graph_nesting + 2)
        fail("E0004", fmt::format("graphs are nested deeper than the limit of {}", limits.graph_nesting));
    } else if (c == '}') {
      --depth;
    }
  }
  if (quoted) fail("E0005", "a string in the text does not end");
}

}  // namespace

onnx::ModelProto parse_model_bytes(std::string_view bytes, const Limits& limits, RawData raw_data) {
  if (bytes.empty()) fail("E0002", "the file is empty", "fetch it again, or export the model anew");
  if (static_cast<std::int64_t>(bytes.size()) > limits.file_bytes) {
    fail("E0004",
         fmt::format("the model has {} bytes, more than the limit of {}", bytes.size(), limits.file_bytes),
         "keep the weights in external data");
  }
  expect_model(bytes);
  scan_model(bytes, limits);
  std::optional<std::string> without_raw_data;
  if (raw_data == RawData::kLeft) without_raw_data = leave_raw_data(bytes);
  if (without_raw_data) bytes = *without_raw_data;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  // The scan has bounded the depth.
  stream.SetRecursionLimit(kMaximumMessageDepth + 1);
  onnx::ModelProto model;
  if (!model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    fail("E0002", "the file is not an ONNX model: protobuf cannot read it");
  }
  if (!model.has_graph())
    fail("E0003", "the file holds no graph", "check that it is a model, and fetch it again");
  return model;
}

onnx::ModelProto parse_model_text(const std::string& text, const Limits& limits) {
  if (static_cast<std::int64_t>(text.size()) > limits.file_bytes)
    fail("E0004", "the text is larger than the limit");
  if (text.find('\0') != std::string::npos) {
    expect_model(text);
    fail("E0005", "the text contains a NUL byte", "a binary model has a name that ends in .onnx");
  }
  check_text(text, limits);
  onnx::ModelProto model;
  std::string why;
  try {
    onnx::OnnxParser parser(text.c_str());
    const auto status = parser.Parse(model);
    if (!status.IsOK()) {
      why = status.ErrorMessage();
    } else if (!parser.EndOfInput()) {
      why = "text follows the model " + parser.GetCurrentPos();
    }
  } catch (const std::exception& error) {  // std::stoll of a number that is too large
    why = fmt::format("a number cannot be read ({})", error.what());
  }
  if (!why.empty()) fail("E0005", fmt::format("the ONNX text cannot be parsed: {}", why));
  return model;
}

std::optional<RawPlace> raw_place(const onnx::TensorProto& proto) {
  const auto& unknown = proto.unknown_fields();
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto& field = unknown.field(i);
    if (field.number() != kRawPlaceField) continue;
    GC_CHECK(field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED);
    return decode_raw_place(field.length_delimited());
  }
  return std::nullopt;
}

bool is_text_name(const std::string& path) {
  const auto ends = [&](std::string_view end) {
    return path.size() >= end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0;
  };
  return ends(".onnxtxt") || ends(".txt");
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

namespace {

template <class FunctionProto>
std::vector<onnx::AttributeProto> defaults_of(const FunctionProto& function) {
  std::vector<onnx::AttributeProto> defaults;
  if constexpr (requires { function.attribute_proto(); }) {
    defaults.assign(function.attribute_proto().begin(), function.attribute_proto().end());
  } else {
    constexpr int kAttributeProto = 11;
    const auto& unknown = function.unknown_fields();
    for (int i = 0; i < unknown.field_count(); ++i) {
      const auto& field = unknown.field(i);
      if (field.number() != kAttributeProto ||
          field.type() != std::decay_t<decltype(field)>::TYPE_LENGTH_DELIMITED)
        continue;
      if (!defaults.emplace_back().ParseFromString(field.length_delimited())) {
        fail("E0002",
             fmt::format("an attribute of function '{}' cannot be read", printable(function.name())));
      }
    }
  }
  return defaults;
}

}  // namespace

std::vector<onnx::AttributeProto> attribute_defaults(const onnx::FunctionProto& function) {
  return defaults_of(function);
}

}  // namespace gcompile::frontend

#include "frontend/files/file_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/diagnostics.h"

namespace gcompile::frontend {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kLfs = "version https://git-lfs";

constexpr const char* kTorchExport =
    "load it in Python and write torch.onnx.export(model, inputs, 'model.onnx')";

/// A format whose files have `magic` at `at`.
struct Magic {
  std::size_t at;
  std::string_view magic;
  const char* what;
  const char* help;
};

constexpr Magic kMagics[] = {
    {0, kLfs, "a Git LFS pointer", "`git lfs pull` fetches the file that it stands for"},
    {0, "\x1f\x8b"sv, "compressed by gzip",
     "`gunzip FILE` unpacks it; `zcat FILE | gcompile - -o DIR` reads it as it is"},
    {0, "BZh"sv, "compressed by bzip2",
     "`bunzip2 FILE` unpacks it; `bzcat FILE | gcompile - -o DIR` reads it as it is"},
    {0,
     "\xfd"
     "7zXZ"sv,
     "compressed by xz", "`unxz FILE` unpacks it; `xzcat FILE | gcompile - -o DIR` reads it as it is"},
    {0, "\x28\xb5\x2f\xfd"sv, "compressed by zstd",
     "`unzstd FILE` unpacks it; `zstdcat FILE | gcompile - -o DIR` reads it as it is"},
    {4, "TFL3"sv, "a TensorFlow Lite model",
     "`python -m tf2onnx.convert --tflite FILE --output model.onnx` converts it"},
    {4, "ORTM"sv, "a model in ONNX Runtime's own format", "compile the .onnx file that it was made of"},
    {0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file, as Keras writes",
     "`python -m tf2onnx.convert --keras FILE --output model.onnx` converts it"},
    {0, "\x80\x02"sv, "a Python pickle, as torch.save() writes", kTorchExport},
    {0, "\x80\x03"sv, "a Python pickle", kTorchExport},
    {0, "\x80\x04"sv, "a Python pickle", kTorchExport},
    {257, "ustar"sv, "a tar archive", "`tar -xf FILE` unpacks it; then name the .onnx file"},
    {0, "GGUF"sv, "a GGUF file, weights without a graph",
     "`optimum-cli export onnx --model NAME DIR` exports the model that it was made of"},
    {0, "\x93NUMPY"sv, "an array of NumPy",
     "name the model's file; `gcompile verify --data DIR` takes arrays"},
    {0,
     "\x7f"
     "ELF"sv,
     "a program or a library", "name the model's file"},
};

/// Reads the frame of protobuf messages, as far as formats are told apart by it.
class Wire {
 public:
  explicit Wire(std::string_view bytes) : bytes_(bytes) {}

  bool take(std::string_view tag) {
    if (bytes_.substr(0, tag.size()) != tag) return false;
    bytes_.remove_prefix(tag.size());
    return true;
  }
  bool skip_number() { return number().has_value(); }
  /// A field of bytes with this tag.
  std::optional<std::string_view> field(char tag) {
    if (!take(std::string_view(&tag, 1))) return std::nullopt;
    const auto size = number();
    if (!size || *size > bytes_.size()) return std::nullopt;
    const std::string_view value = bytes_.substr(0, *size);
    bytes_.remove_prefix(*size);
    return value;
  }

 private:
  std::optional<std::size_t> number() {
    std::size_t value = 0;
    for (int shift = 0; shift < 35 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[0]);
      bytes_.remove_prefix(1);
      value |= static_cast<std::size_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::string_view bytes_;
};

/// SavedModel: schema version 1, then a MetaGraphDef, whose first field is a message. In an ONNX model a name
/// would stand there.
bool is_saved_model(std::string_view bytes) {
  Wire wire(bytes);
  if (!wire.take("\x08\x01"sv)) return false;
  const auto meta_graph = wire.field('\x12');
  return meta_graph && meta_graph->substr(0, 1) == "\n";
}

/// GraphDef: nodes from the first byte on, each with a name and an operator.
bool is_frozen_graph(std::string_view bytes) {
  const auto node = Wire(bytes).field('\n');
  if (!node) return false;
  Wire inner(*node);
  if (!inner.field('\n')) return false;
  const auto op = inner.field('\x12');
  return op && !op->empty() && (*op)[0] >= 'A' && (*op)[0] <= 'Z';
}

/// TensorProto: dimensions, then the element type. In an ONNX model neither can stand at the start.
bool is_tensor(std::string_view bytes) {
  Wire wire(bytes);
  while (wire.take("\x08"sv)) {
    if (!wire.skip_number()) return false;
  }
  return wire.take("\x10"sv);
}

/// Files within a zip archive are told by their names, which stand in it as they are.
FileKind kind_of_zip(std::string_view bytes) {
  const auto holds = [&](std::string_view name) { return bytes.find(name) != std::string_view::npos; };
  if (holds("data.pkl")) {
    return {holds("constants.pkl") ? "a TorchScript archive" : "a PyTorch checkpoint, a zip of pickles",
            kTorchExport};
  }
  if (holds("model.weights.h5")) {
    return {"a Keras archive", "load it in Python and write model.export('model.onnx', format='onnx')"};
  }
  if (holds(".npy")) return {"an archive of NumPy arrays", "name the model's file; --data takes arrays"};
  return {"a zip archive", "`unzip FILE`, and name the .onnx file in it"};
}

/// safetensors: the size of a header in JSON, then that.
bool is_safetensors(std::string_view bytes) {
  if (bytes.size() < 10 || bytes[8] != '{' || (bytes[9] != '"' && bytes[9] != '}' && bytes[9] != ' '))
    return false;
  return bytes[5] == '\0' && bytes[6] == '\0' && bytes[7] == '\0';
}

bool is_printable_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\r' || c == '\t';
  });
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text[0] == ' ' || text[0] == '\n' || text[0] == '\r' || text[0] == '\t'))
    text.remove_prefix(1);
  return text;
}

FileKind kind_of_text(std::string_view text) {
  std::string start(without_blanks(text).substr(0, 256));
  std::transform(start.begin(), start.end(), start.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const auto begins = [&](std::string_view word) { return start.compare(0, word.size(), word) == 0; };
  if (begins("<!doctype html") || begins("<html")) {
    return {
        "a web page",
        "download the file itself: `curl -LO URL` with /raw/ on GitHub, /resolve/ on Hugging Face, where the "
        "page has /blob/"};
  }
  if (begins("<?xml") && text.find("<net ") != std::string_view::npos)
    return {"an OpenVINO model", "export the model that it was made of to ONNX"};
  if (is_onnx_text(text)) return {"ONNX text", "give it a name that ends in .onnxtxt"};
  return {"text", "name the model's file, which is binary, or ONNX text in a file called .onnxtxt"};
}

}  // namespace

bool is_git_lfs_pointer(std::string_view bytes) { return bytes.substr(0, kLfs.size()) == kLfs; }

bool is_onnx_text(std::string_view bytes) {
  std::string_view start = without_blanks(bytes);
  if (start.substr(0, 1) != "<") return false;
  start = start.substr(0, 4096);
  return start.find("ir_version") != std::string_view::npos && is_printable_text(start);
}

std::optional<FileKind> kind_of_other_file(std::string_view bytes) {
  for (const Magic& row : kMagics) {
    // A FlatBuffer begins with an offset of less than 64 KiB.
    const bool is_framed = row.at != 4 || (bytes.size() > 8 && bytes[2] == '\0' && bytes[3] == '\0');
    if (is_framed && bytes.size() >= row.at && bytes.substr(row.at, row.magic.size()) == row.magic)
      return FileKind{row.what, row.help};
  }
  if (bytes.substr(0, 4) == "PK\x03\x04") return kind_of_zip(bytes);
  if (is_safetensors(bytes)) {
    return FileKind{"a safetensors file, weights without a graph",
                    "`optimum-cli export onnx --model DIR onnx` exports a Hugging Face model; other models "
                    "torch.onnx.export() in Python"};
  }
  if (is_saved_model(bytes)) {
    return FileKind{
        "a TensorFlow SavedModel",
        "`python -m tf2onnx.convert --saved-model DIR --output model.onnx` converts the folder that "
        "holds it"};
  }
  if (is_frozen_graph(bytes)) {
    return FileKind{
        "a frozen graph of TensorFlow",
        "`python -m tf2onnx.convert --graphdef FILE --inputs X:0 --outputs Y:0 --output model.onnx` "
        "converts it"};
  }
  if (is_tensor(bytes)) {
    return FileKind{"a single tensor (TensorProto), as test data are",
                    "name the model's file; `gcompile verify MODEL --data DIR` reads such tensors"};
  }
  if (!bytes.empty() && is_printable_text(bytes.substr(0, 512))) return kind_of_text(bytes);
  return std::nullopt;
}

void expect_model(std::string_view bytes) {
  const auto kind = kind_of_other_file(bytes);
  if (!kind) return;
  Diagnostic diagnostic;
  diagnostic.code = "E0007";
  diagnostic.message = fmt::format("the file is not an ONNX model, but {}", kind->what);
  diagnostic.help = kind->help;
  throw CompileError(ExitCode::kModel, std::vector<Diagnostic>{std::move(diagnostic)});
}

}  // namespace gcompile::frontend

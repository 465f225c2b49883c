#pragma once
// A model file, its bytes or its ONNX text -> ir::Graph: functions inlined, nodes sorted and normalised to
// one internal form, every type known. No protobuf in this header.
//
// Codes: E00xx file, E01xx operators and opsets, E02xx types and shapes, E03xx tensors and their data, E04xx
// sizes of inputs, E05xx structure of the graph; W.... warnings.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "frontend/files/limits.h"
#include "frontend/sizes/dims.h"
#include "ir/graph/graph.h"

namespace gcompile::frontend {

struct ImportOptions {
  InputBindings bindings;
  bool allow_symlinks = false;  // external data through symbolic and hard links
  /// The sizes are those of one run of a model that has others: a branch of an If that they contradict is not
  /// taken then, and a trap.
  bool of_one_run = false;
  /// Inputs, and the outputs that feed them at the next run.
  std::vector<std::pair<std::string, std::string>> states;
  Limits limits;
};

/// Floats of one element by value: initialisers with axes, which are weights, by their names; those without,
/// which are weights or constants of formulas; and what Constant nodes hold, which is the model's text.
struct SingleNumbers {
  std::map<double, std::string> with_axes, without_axes;
  std::set<double> written;
  bool has_16_bits = false;  // an initialiser or an input is of floats of 16 bits
};

/// What the model says about itself; for the manifest.
struct ModelInfo {
  /// The digest of the bytes that were read, as 64 hexadecimal digits. For a model with external data that of
  /// a text as sha256sum prints it: a line "DIGEST  model" for the model's file, then one "DIGEST  LOCATION"
  /// for each file of data, sorted by location.
  std::string sha256;
  /// Names of the files of external data, in the model's folder; sorted.
  std::vector<std::string> data_files;
  std::int64_t ir_version = 0;
  std::int64_t model_version = 0;
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  std::string graph_name;
  std::map<std::string, std::int64_t> opsets;  // by domain; "" is ai.onnx
  SingleNumbers numbers = {};
};

/// An output of which a run fills the first positions along an axis, and the output that says how many: an int64
/// of rank 0 that the model does not have.
struct CountedOutput {
  std::string name;
  int axis = 0;
  std::string count;
};

struct ImportedModel {
  ir::Graph graph;
  ModelInfo info;
  /// What the graph's formulas are made of; null where every size is a number.
  std::shared_ptr<ir::Sizes> sizes;
  std::vector<CountedOutput> counted = {};
};

// Warnings go to `diagnostics`. Errors of the model are collected and thrown together as one CompileError
// (kModel); unreadable files throw CompileError (kInputOutput).

/// `.onnxtxt` and `.txt` are ONNX text, everything else is a binary ModelProto.
ImportedModel import_model_file(const std::string& path, const ImportOptions& options,
                                Diagnostics& diagnostics);
/// `folder` is where external data may lie; empty: external data is refused.
ImportedModel import_model_bytes(std::string_view bytes, const std::string& folder,
                                 const ImportOptions& options, Diagnostics& diagnostics);
ImportedModel import_model_text(const std::string& text, const ImportOptions& options,
                                Diagnostics& diagnostics);

}  // namespace gcompile::frontend

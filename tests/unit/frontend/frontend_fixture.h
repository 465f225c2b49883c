#pragma once
// What tests of the frontend share: import from text or message, and the findings as one text.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <vector>

#include "frontend/files/model_file.h"
#include "frontend/import/import.h"
#include "ir/graph/operator.h"

namespace gcompile::frontend_test {

struct Outcome {
  std::optional<frontend::ImportedModel> model;
  ExitCode code = ExitCode::kOk;
  std::string errors;    // as shown to the user
  std::string warnings;  // likewise

  const ir::Graph& graph() const { return model.value().graph; }
};

template <class Import>
Outcome outcome_of(Import import) {
  Outcome outcome;
  Diagnostics diagnostics;
  try {
    outcome.model = import(diagnostics);
  } catch (const CompileError& error) {
    outcome.code = error.exit_code();
    outcome.errors = error.what();
  }
  for (const Diagnostic& found : diagnostics.all()) {
    if (found.severity == Severity::kWarning) outcome.warnings += to_string(found) + "\n";
  }
  return outcome;
}

inline Outcome import_text(const std::string& text, const frontend::ImportOptions& options = {}) {
  return outcome_of([&](Diagnostics& d) { return frontend::import_model_text(text, options, d); });
}

inline Outcome import_bytes(const std::string& bytes, const frontend::ImportOptions& options = {},
                            const std::string& folder = {}) {
  return outcome_of([&](Diagnostics& d) { return frontend::import_model_bytes(bytes, folder, options, d); });
}

inline Outcome import_proto(const onnx::ModelProto& model, const frontend::ImportOptions& options = {},
                            const std::string& folder = {}) {
  return import_bytes(model.SerializeAsString(), options, folder);
}

/// A message from ONNX text.
inline onnx::ModelProto proto_of(const std::string& text) { return frontend::parse_model_text(text, {}); }

/// `body` in a model of opset 17 with the given signature.
inline std::string model_text(const std::string& signature, const std::string& body) {
  return fmt::format("<ir_version: 8, opset_import: [\"\" : 17]>\nagraph {}\n{{\n{}\n}}\n", signature, body);
}

/// "float32[1, 2] float32[3]" of the graph's outputs.
inline std::string output_types(const ir::Graph& graph) {
  std::string text;
  for (const ir::ValueId id : graph.outputs()) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", ir::to_string(graph.value(id).type));
  }
  return text;
}

using Reals = std::vector<double>;

/// All elements of output `i`; none, and a failure, where the model was refused.
inline Reals reals_of(const Outcome& outcome, const std::vector<ir::Tensor>& inputs, std::size_t i = 0) {
  EXPECT_TRUE(outcome.model) << outcome.errors;
  if (!outcome.model) return {};
  const ir::Tensor output = ir::evaluate_graph(outcome.graph(), inputs).at(i);
  Reals reals;
  for (std::int64_t k = 0; k < output.count(); ++k) reals.push_back(output.real_at(k));
  return reals;
}

}  // namespace gcompile::frontend_test

#pragma once
// Small changes to a model that a careless or hostile exporter might make.

#include <onnx/onnx_pb.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/choice.h"

namespace gcompile::fuzz {

struct Mutator {
  std::string name;
  /// Changes the model as the choices say; false when there is nothing to change.
  bool (*run)(onnx::ModelProto& model, Choice& choice);
};

/// Operands, results, attributes, types, shapes, constants, nodes, opsets and the graph's signature.
const std::vector<Mutator>& mutators();

/// One to four mutations drawn by `choice`.
void mutate(onnx::ModelProto& model, Choice& choice);

/// The same of a model as text: its tokens and characters are left out, repeated, exchanged, replaced.
void mutate(std::string& text, Choice& choice);

/// Every smaller model that differs by one part left out: a node, an operand at the end, an attribute, an
/// initializer, an input or output.
std::vector<onnx::ModelProto> smaller_models(const onnx::ModelProto& model);
/// Without each of a few pieces, the largest first.
std::vector<std::string> smaller_texts(const std::string& text);

}  // namespace gcompile::fuzz

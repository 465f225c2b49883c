#pragma once
// Models of one node, and what becomes of them where an axis of an operand has the size 0 or 1.

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ir/tensors/tensor.h"

namespace gcompile::conformance {

struct EdgeModel {
  std::string name;           // "test_abs", "edge 12 Conv"
  std::string operator_name;  // "Abs", "com.microsoft.Gelu"
  onnx::ModelProto model;
  std::vector<ir::Tensor> inputs;
  std::string known = {};  // which inputs are constants, as OfficialCase has it
};

/// Official cases of one node, of each operator a few that differ in what they are about: ranks, element
/// types, attributes. Sequences and types that are not read are left out.
std::vector<EdgeModel> official_models(const std::string& folder);
/// A file of "(inputs) => (results) <constants> { node }", with values from a seed.
std::vector<EdgeModel> written_models(const std::string& path);

struct EdgePlace {
  std::size_t input = 0, axis = 0;
  bool operator==(const EdgePlace&) const = default;
};

struct EdgeCell {
  const EdgeModel* model = nullptr;
  EdgePlace place;
  std::int64_t size = 0;
  std::string name() const;
};

/// Every axis of every input, with each of the two sizes that it does not have already.
std::vector<EdgeCell> cells_of(const EdgeModel& model);

/// The cell's model in the order of how much of it changes: the axis alone; with it what is counted with it,
/// by position from the end, by position from the start, or anywhere.
std::vector<EdgeModel> resized_models(const EdgeCell& cell);

/// Integers as zeros: positions that are valid wherever any is.
EdgeModel with_zero_positions(EdgeModel model);

}  // namespace gcompile::conformance

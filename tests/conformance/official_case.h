#pragma once
// One official case of ONNX: a folder with model.onnx and test_data_set_0.

#include <onnx/onnx_pb.h>

#include <set>
#include <string>
#include <vector>

#include "codegen/program/program.h"
#include "frontend/import/data_files.h"
#include "frontend/import/import.h"
#include "ir/graph/graph.h"

namespace gcompile::conformance {

/// A case that was read and imported, or the reason why not.
struct OfficialCase {
  std::string name;             // "test_abs", "simple/test_strnorm"
  std::set<std::string> kinds;  // operators in the model
  std::string refusal;          // first line of the error; empty: imported
  bool is_bug = false;          // the refusal is an internal error
  std::string known;            // which inputs became constants: "", "integers", "small", "rest", "all"
  ir::Graph graph;              // as imported
  std::vector<ir::Tensor> inputs, outputs;  // of the graph, in its order; no counts among the outputs
  std::vector<frontend::CountedOutput> counted;
  bool is_exact = false;  // every operator is exact: outputs are equal bit for bit
  bool computes = false;  // at -O3 something is left for the emitted code to compute
};

/// The operators in a model's main graph; empty when the file cannot be read.
std::set<std::string> operator_kinds(const std::string& folder);

/// Why inputs of a run become constants: some operators must know them, and fast kernels must know weights.
enum class Constants { kNeeded, kForFastKernels };

/// The case with as few constants as it takes, and behind it, where weights that a run gives leave a step to
/// plain loops, the same with these weights as constants.
std::vector<OfficialCase> read_official_case(const std::string& folder, const std::string& name,
                                             Target target);

/// A model at hand and the data of its inputs, of which as few become constants as it takes; `out` holds what
/// else is known of the case, and in `known` which inputs become constants at least.
OfficialCase bind_inputs(const onnx::ModelProto& model, const frontend::TestData& data,
                         const std::string& folder, Target target, OfficialCase out, Constants constants);

/// Optimised at `level` and lowered under the prefix `name`. Throws CompileError.
Program lower_case(const OfficialCase& given, int level, const std::string& name, Target target);

/// "operator Foo", "strings", ...: why a case is refused, by what the message says; empty when a refusal of
/// this kind is not expected.
std::string refusal_reason(const std::string& message);

}  // namespace gcompile::conformance

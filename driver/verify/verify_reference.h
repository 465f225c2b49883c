#pragma once
// What the evaluator makes of the graph as imported: the oracle of verify.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/choice/precision.h"
#include "driver/verify/rounding_noise.h"
#include "ir/graph/graph.h"

namespace gcompile {

/// Whether the model computes with quantised integers.
bool is_quantised(const ir::Graph& graph);

struct ReferenceValues {
  std::vector<ir::Tensor> outputs;
  std::map<std::string, ir::Tensor> by_name;  // values along the way whose name is theirs alone
};

/// The noise of the same values.
struct ReferenceNoise {
  std::vector<Noise> outputs;
  std::map<std::string, Noise> by_name;
};

class Reference {
 public:
  explicit Reference(const ir::Graph& imported) : graph_(imported) {}
  const ir::Graph& graph() const { return graph_; }

  /// Throws CompileError (kInputOutput) when an input is missing.
  ReferenceValues evaluate(const std::map<std::string, ir::Tensor>& inputs) const;

  /// How far rounding moves the values that `evaluate` has made of `inputs`: kNoiseRuns evaluations in which
  /// every result that was rounded is moved.
  ReferenceNoise noise(const std::map<std::string, ir::Tensor>& inputs, const ReferenceValues& values,
                       Precision precision) const;

  /// Whether `output` is an index found by comparing floats (ArgMax, ArgMin, TopK), and wherever the two
  /// differ, the floats they point at differ by less than the float tolerance of `precision`:
  /// both are right.
  bool is_close_decision(const std::string& output, const std::map<std::string, ir::Tensor>& inputs,
                         const ir::Tensor& expected, const ir::Tensor& actual, Precision precision) const;

 private:
  ReferenceValues named(const std::vector<std::optional<ir::Tensor>>& all) const;
  std::vector<ir::Tensor> in_order(const std::map<std::string, ir::Tensor>& inputs) const;

  const ir::Graph& graph_;
};

/// The reference of one case, computed when it is first asked for: expected outputs may come from a file, and
/// the noise is wanted only where the tolerance does not settle the matter.
class CaseReference {
 public:
  CaseReference(const Reference& reference, const std::map<std::string, ir::Tensor>& inputs,
                Precision precision)
      : reference_(reference), inputs_(inputs), precision_(precision) {}
  const Reference& reference() const { return reference_; }
  bool is_quantised() const { return gcompile::is_quantised(reference_.graph()); }
  const ReferenceValues& get() const;
  const ReferenceNoise& noise() const;

 private:
  const Reference& reference_;
  const std::map<std::string, ir::Tensor>& inputs_;
  const Precision precision_;
  mutable std::optional<ReferenceValues> values_;
  mutable std::optional<ReferenceNoise> noise_;
};

}  // namespace gcompile

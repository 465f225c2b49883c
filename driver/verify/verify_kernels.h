#pragma once
// verify --layers: every kernel by itself. What a kernel has made of its operands, as the program computed
// them, is compared with what the evaluator makes of the same operands. An error of one kernel is so found
// where it is made, and nowhere else, however little of it reaches the outputs and however much rounding has
// gathered before.

#include <map>
#include <string>
#include <vector>

#include "driver/verify/compare.h"
#include "driver/verify/rounding_noise.h"
#include "ir/graph/graph.h"

namespace gcompile {

/// One result of one kernel.
struct KernelFinding {
  std::string value;    // name of the output that exposes it
  std::string origins;  // the nodes of the model that the kernel computes
  ir::TensorType type;
  Comparison comparison;
  Noise noise;          // what rounding alone may do in this kernel
  double relative = 0;  // the noise's root mean square in units of the value's
  bool is_right = true;
};

class KernelCheck {
 public:
  /// Makes every result in `graph` an output, under its own name where that is not taken. `graph` must
  /// outlive the check.
  explicit KernelCheck(ir::Graph& graph);

  /// Names of the values that have a name of their own, in the order in which they are computed.
  const std::vector<std::string>& names() const { return names_; }

  /// All results of all kernels, in order. An input that is not given is a state, which is zero. `actual`:
  /// what the program computed, by name of the output.
  std::vector<KernelFinding> run(const std::map<std::string, ir::Tensor>& inputs,
                                 const std::map<std::string, ir::Tensor>& actual, bool quantised,
                                 Precision precision) const;

 private:
  const ir::Graph& graph_;
  std::map<std::uint32_t, std::string> exposed_;  // by index of the value
  std::vector<std::string> names_;
};

}  // namespace gcompile

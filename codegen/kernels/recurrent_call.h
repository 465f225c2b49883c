#pragma once
// What the calls of LSTM, GRU and RNN share on all targets: operands padded to whole vectors of units,
// options.

#include "codegen/kernels/kernel_call.h"
#include "ir/ops/recurrent.h"

namespace gcompile {

/// Adds the parameters of a recurrent node to `call`, in the order of construction, weights(), rest().
class RecurrentCall {
 public:
  /// Sets the family and adds operand x. Throws ir::OperatorError when there is no kernel for the node.
  RecurrentCall(KernelBuilder& builder, KernelCall& call, ir::NodeId id);

  const ir::Recurrence& sizes() const { return sizes_; }
  int gates() const { return gates_; }
  /// Activations of each direction.
  int functions() const { return functions_; }
  bool linear_before_reset() const { return linear_before_reset_; }
  /// W, (directions, gates * hidden, inputs), and R, (directions, gates * hidden, hidden).
  const ir::Tensor& input_weights() const { return *input_weights_; }
  const ir::Tensor& state_weights() const { return *state_weights_; }

  /// Packed W as parameter w, then packed R as r.
  void weights(Packing w, Packing r);
  /// Biases and peepholes padded to `units` per gate, and the optional operands and results.
  void rest(std::int64_t units);

  /// "constexpr RnnShape shape{...};"
  std::string shape_line() const;
  /// "constexpr RnnOptions options{...};"
  std::string options_line() const;
  /// "RnnOperands{x, w, r, ..., scratch}", where `scratch` is a parameter that the caller adds.
  std::string operands() const;

 private:
  void pack(Packing packing, int operand, const char* parameter);
  void bias(std::int64_t units);
  void peepholes(std::int64_t units);
  void optional_operand(int i, const char* parameter);
  void optional_result(int i, const char* parameter);

  KernelBuilder& builder_;
  KernelCall& call_;
  ir::NodeId id_;
  ir::NodeView view_;
  ir::Recurrence sizes_;
  int gates_ = 1;
  int functions_ = 1;
  bool linear_before_reset_ = false;
  const ir::Tensor* input_weights_ = nullptr;
  const ir::Tensor* state_weights_ = nullptr;
  std::vector<std::string> optional_;  // members of RnnOperands behind r: parameters or nullptr
};

}  // namespace gcompile

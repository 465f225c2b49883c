#pragma once
// What the calls of recurrent cells share on all targets: operands padded to whole vectors of units, options.

#include "codegen/calls/call_writer.h"

namespace gcompile {

/// Adds the parameters of a recurrent node to a call, in the order of construction, weights(), rest().
class RecurrentOperands {
 public:
  /// Adds operand x.
  RecurrentOperands(const ir::Problem& problem, CallWriter& writer);

  /// Packed W as parameter w, then packed R as r.
  void weights(Packing w, Packing r);
  /// Biases and peepholes padded to `units` per gate, and the optional operands and results.
  void rest(std::int64_t units);
  /// Instead of both: every tensor as it lies, for plain loops.
  void as_they_lie();

  /// "constexpr RnnShape shape{...};", const where only a run knows its sizes.
  std::string shape_line() const;
  /// "constexpr RnnOptions options{...};"
  std::string options_line() const;
  /// "RnnOperands{x, w, r, ..., scratch}", where `scratch` is a parameter that the caller adds; of tensors as
  /// they lie "RnnTensors<float>{...}".
  std::string operands() const;

 private:
  bool has_cell_state() const { return work_.cell == ir::RecurrentCell::kLstm; }
  void bias(std::int64_t units);
  void peepholes(std::int64_t units);
  void floats(int operand, const std::vector<float>& values, const char* what, const char* parameter);
  void states_and_results();
  void optional_operand(int i, const char* parameter);
  void optional_result(int i, const char* parameter);

  const ir::RecurrentWork& work_;
  CallWriter& writer_;
  int gates_;
  std::string type_ = "RnnOperands";   // of operands()
  std::vector<std::string> optional_;  // members of RnnOperands behind r: parameters or nullptr
};

/// "lstm", "gru", "rnn": names of gcrt's functions.
const char* function_of(ir::RecurrentCell cell);

}  // namespace gcompile

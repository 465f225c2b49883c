#pragma once
// Makes the call of one kernel: what families write with, and the loops that no family is asked for.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/calls/kernel_call.h"
#include "codegen/choice/family.h"
#include "codegen/choice/trained_numbers.h"
#include "codegen/loops/loop_nest.h"
#include "codegen/packing/weights.h"
#include "ir/graph/operator.h"

namespace gcompile {

/// Where a value lies. Constants have no home.
using HomeOf = std::function<const Storage&(ir::ValueId)>;

/// An operand, a matrix of rows, of which the first lie in one place and the others in another. The kernel
/// reads them there, and writes those that the joined value does not have yet. Strides are along the
/// operand's own axes.
struct JoinedOperand {
  Storage past, fresh, joined;
  ir::Dim past_rows;
  ir::Dim first_written, end_written;  // among the rows of `joined`
};
using JoinedOperands = std::map<int, JoinedOperand>;  // by their places among the operands

class CallWriter {
 public:
  CallWriter(const ir::Graph& graph, ir::NodeId id, const ir::Form& form, HomeOf home, WeightBlob& weights,
             const Machine& machine);

  KernelCall& call() { return call_; }
  /// What only a call of a device has; asked for where the target is one.
  DeviceCall& device() { return *call_.device; }
  const Machine& machine() const { return machine_; }
  bool on_device() const { return call_.device.has_value(); }
  /// First argument of calls of device code.
  const char* queue_argument() const { return on_device() ? "queue, " : ""; }

  /// The node's operand; nullptr when it is not a constant.
  const ir::Tensor* constant(int operand) const { return view_.constant(operand); }
  const ir::TensorType& type(int operand) const { return view_.operand(operand); }
  const std::string& name(int operand) const { return value(operand).name; }
  /// Whether the operator has it: behind a contraction's own operands lie those of its epilogue.
  bool has_operand(int operand) const;
  bool has_result(int i) const { return view_.has_result(i); }
  /// Whether anything reads result `i`.
  bool wants_result(int i) const;
  bool is_contraction() const { return std::holds_alternative<ir::ContractForm>(form_); }
  /// The Map on the accumulators of a contraction.
  const ir::LoopForm& epilogue() const { return std::get<ir::ContractForm>(form_).epilogue; }

  /// Adds the parameter for operand i: a weights entry for constants, the value's home otherwise.
  KernelTensor operand(int i, const std::string& parameter);
  KernelTensor result(int i, const std::string& parameter);
  void scratch(std::int64_t bytes, const std::string& parameter, const std::string& c_type);
  /// Adds the parameter for an entry of the weights.
  void weights(int entry, const std::string& parameter, const std::string& c_type);
  /// The same for constant operand i in the format of a family; `format` says which: "packed for conv2d".
  void packed(int i, Packing packing, const std::string& format, const std::string& parameter,
              const std::string& c_type = "float");
  /// `wanted`, with a number where the call has such a parameter.
  std::string unused_parameter(const std::string& wanted);
  WeightBlob& blob() { return blob_; }
  /// Numbers that training changes are read from the weights, at each call of the kernel;
  /// without it all are literals.
  void read_numbers(const TrainedNumbers& numbers) { numbers_ = &numbers; }
  /// The parameter, which this adds by that word, that points to the number; empty: it is a literal.
  std::string number(const ir::Scalar& value, const std::string& word);

  /// Every block of a device is to make operand 0 by itself, by the loops of the node that computes it; false:
  /// these loops cannot be shared by a block. Takes the place of operand(0).
  bool make_rows(ir::NodeId producer, const ir::LoopForm& loops, int threads);
  /// "gemm_4_rows{r0, r1}" of those loops; empty: operand 0 lies in memory.
  const Text& made_rows() const { return made_rows_; }

  /// These operands lie in two places each, and are written joined, as a recipe for a device may say.
  void join(JoinedOperands operands);
  /// nullptr: operand i lies in one place.
  const JoinedOperand* joined(int i) const;
  /// Adds the parameter for `rows` rows of operand i at a place of their own.
  KernelTensor rows_of(int i, const Storage& place, ir::Dim rows, bool writes, const std::string& parameter);

  /// The call is to make rows [begin, end) of its result, which the kernel is told.
  void by_rows() { call_.by_rows = true; }

  /// Body of a kernel that walks loops over operands of the node and its result 0: "x", "residual"..., "y".
  void loops(const ir::LoopForm& whole);

 private:
  const ir::Value& value(int operand) const { return view_.graph().value(view_.node().operands[operand]); }
  KernelTensor stored(ir::ValueId id, bool writes, const std::string& parameter);
  KernelTensor placed(const Storage& place, const ir::TensorType& type, bool writes,
                      const std::string& parameter);
  ir::Shape strides_of(int i) const;
  /// Adds the parameter for a value: an entry of the weights for constants, its home otherwise.
  KernelTensor parameter_for(ir::ValueId id, const std::string& parameter);

  ir::NodeView view_;
  const ir::Form& form_;
  HomeOf home_;
  WeightBlob& blob_;
  const Machine& machine_;
  KernelCall call_;
  // Names that the first arguments of the call have, so that the next one costs the same whatever their number.
  std::size_t listed_ = 0;
  std::set<std::string> parameters_;
  std::map<std::string, int> counts_;  // the last number behind each word
  Text made_rows_;
  JoinedOperands joined_;
  const TrainedNumbers* numbers_ = nullptr;
  std::map<std::pair<bool, double>, std::string> number_parameters_;  // of float64, or not
};

/// Adds the headers that types and functions of an expression take, beside those of every kernel.
void add_headers_of_expressions(KernelCall& call, const ir::Dag& dag);

/// Copies a tensor from one home to another.
KernelCall copy_call(const ir::TensorType& type, const Storage& from, const Storage& to,
                     const Machine& machine);

/// The epilogue functor of a contraction whose accumulators lie at (row m, column n).
/// Sets the call's functor.
class EpilogueWriter {
 public:
  /// `rows`: result axes that m counts, outermost first; `column`: the axis n runs along; other axes are
  /// batch axes, walked by loops b<axis> outside the kernel; a device walks those of `grid_axes`, outermost first,
  /// by its grid.
  EpilogueWriter(CallWriter& writer, std::vector<int> rows, int column, std::vector<int> grid_axes = {});
  /// "FUNCTOR{bias, y, 58}".
  const Text& value() const { return value_; }
  /// "const FUNCTOR epilogue{bias, y, 58};", inside the batch loops.
  const Text& declaration() const { return declaration_; }
  /// Batch axes b<axis> that the declaration names.
  const std::vector<int>& named_axes() const { return named_axes_; }

 private:
  struct Access {
    std::string field;        // pointer member
    std::string position;     // "m * residual_row + n" or literal formula
    ir::Dim column = 0;       // stride along n
    std::string column_step;  // its text
  };
  struct BatchStep {
    std::string field;
    std::string elements;  // "64 * b0"
    std::vector<int> axes;
  };
  Access access(const ir::Index& address, const KernelTensor& tensor, const std::string& field);
  /// What the member for a load is called: "bias" where a constant is added that is the same for all rows,
  /// "residual" where a computed value is, "scale" and "factor" where they multiply.
  std::string role_of(int load, const ir::Index& address, bool is_constant) const;
  /// A literal, or the member that holds a size which only a run knows.
  std::string in_functor(ir::Dim size, const std::string& field);
  /// Adds the member that counts rows, and returns the position of row m.
  std::string row_position(const ir::Index& address, const std::string& field);
  /// Lanes of an aligned access along n, at most `lanes`.
  int aligned_lanes(const ir::Index& address, const KernelTensor& tensor, int lanes) const;
  std::vector<std::string> batch_coordinates();
  void write_move_to_batch(CodeText& code, const std::vector<std::string>& coordinates) const;
  struct Parts;
  void add_operands(CallWriter& writer, Parts& parts) const;
  void add_constant(CallWriter& writer, int node, const std::string& field, Parts& parts);
  void add_members(CallWriter& writer, Parts& parts);
  std::string write_value(CodeText& code, const Parts& parts) const;
  std::string store_text(const Parts& parts, const std::string& value) const;
  static bool stores_rows(const Parts& parts);
  static void write_function(CodeText& code, const std::string& head, const std::string& input,
                             const CodeText& body);
  void write_functions(CodeText& code, const Parts& parts) const;
  Text functor_text(const Parts& parts);
  void write(CallWriter& writer);

  const ir::LoopForm& loops_;
  SizeParameters& sizes_;
  std::vector<int> rows_;
  int column_;
  std::vector<int> grid_axes_;
  int lanes_ = 4;
  std::vector<int> named_axes_;
  std::vector<BatchStep> batch_steps_;
  std::vector<std::pair<std::string, std::string>> members_;  // declaration, initialiser
  Text value_, declaration_;
};

/// "threads", which the call then has; or "nullptr", if it is too short for more than the caller's.
const char* threads_argument(KernelCall& out);

/// "FUNCTION(threads, ARGUMENTS);": a function of gcrt that shares its work among threads. By rows,
/// "FUNCTION(ARGUMENTS, begin, end);".
void call_with_threads(KernelCall& out, CodeText& code, const std::string& function, const Text& arguments);
/// "parallel_for(threads, WORK_ITEMS, ...{ CALL; });" where CALL is for work items [begin, end). The call is
/// threaded then.
void call_in_parallel(KernelCall& out, CodeText& code, const std::string& work_items,
                      const std::string& call);

}  // namespace gcompile

#pragma once
// The four forms every operator lowers to, which are also the four kinds of kernel (DESIGN, "How a model
// flows"). Map and Reduce share one structure, LoopForm: a Map is a LoopForm without stages.

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/forms/work.h"
#include "ir/loops/expression.h"

namespace gcompile::ir {

/// How a stage folds its values. Arg* keep the first index of the extremum unless `select_last`.
enum class Combine : std::uint8_t { kSum, kProduct, kMax, kMin, kArgMax, kArgMin };

/// One reduction over the reduced axes for every point of the parallel axes. Its value is Accumulator(k) in
/// later stages and in the regions. Sums of float32 are accumulated by the emitted code in float32 lanes.
struct Stage {
  Combine combine = Combine::kSum;
  int root = 0;  // scalar in the form's dag; type of the accumulator (int64 for Arg*)
  bool select_last = false;
  bool operator==(const Stage&) const = default;
};

/// A box of the axes the final expression runs over, and the expression there.
struct Region {
  std::vector<Range> box;
  int root = 0;
  bool is_empty() const;
  bool operator==(const Region&) const = default;
};

/// A run-time index that must lie in `range` wherever the kernel uses it; checked before the kernel runs.
struct BoundsCheck {
  int scalar = 0;  // int64 scalar in the dag
  Range range;
  bool operator==(const BoundsCheck&) const = default;
};

/// result[store(i)] = root(i) for i in the regions. Axes 0..parallel-1 are parallel, the rest are reduced by
/// the stages. The final expression runs over all axes (`final_over_reduced`, softmax) or over the parallel
/// ones only (sum). Operand k of Load nodes is operand k of the node. Regions are disjoint and cover the axes
/// the final runs over; `store` is injective and covers the result.
struct LoopForm {
  Shape extents;
  int parallel = 0;
  Dag dag;
  std::vector<Stage> stages;
  bool final_over_reduced = false;
  std::vector<Region> regions;
  std::vector<Index> store;  // one per result axis
  std::vector<BoundsCheck> checks;

  bool is_map() const { return stages.empty(); }
  /// Number of axes the final expression runs over.
  int final_axes() const {
    return final_over_reduced || is_map() ? static_cast<int>(extents.size()) : parallel;
  }
  /// Map over `shape` with identity store and no region yet.
  static LoopForm over(const Shape& shape);
  /// Adds the region that covers everything.
  void set_root(int root);
  /// Axes as indices: {axis(0), axis(1), ...}.
  std::vector<Index> identity() const;
  std::vector<Range> ranges() const { return full_ranges(extents); }
  /// Whether the store is result[i] = root(i) with the result's own axes.
  bool has_identity_store() const;
  bool operator==(const LoopForm&) const = default;
};

/// A hand-tuned kernel of two operands applied to the final accumulators by an epilogue: the node's own
/// operator (Conv, MatMul, ...) evaluated on its first `base_operands` operands gives Accumulator(0) over the
/// epilogue's axes.
struct ContractForm {
  Work work;
  int base_operands = 2;
  ElementType accumulator = ElementType::kFloat32;
  bool reassociates = false;  // sums may be formed by another algebra: their last bits decide nothing
  LoopForm epilogue;          // a Map; axes are the result axes of the contraction
};

/// One runtime kernel with its own control.
struct LibraryForm {
  Work work;
  /// Operand that result 0 overwrites in place when nothing else needs it (scatter's data); -1: none.
  int in_place_operand = -1;
  /// Operand of which the work says all that the kernel has to know (a number of elements); -1: none.
  int unread_operand = -1;
};

/// Runs one of two subgraphs.
struct IfForm {};

/// A struct, which headers can name without its parts.
struct Form : std::variant<LoopForm, ContractForm, LibraryForm, IfForm> {
  using std::variant<LoopForm, ContractForm, LibraryForm, IfForm>::variant;
};

/// The form's work; nullptr for loops and If.
const Work* work_of(const Form& form);

/// The single Load that a pure data movement of one operand consists of: result[i] = operand[index(i)];
/// nullptr for everything else.
const ScalarNode* pure_load(const LoopForm& form);

/// Whether a region of a map is an operand of that shape, the result's, where it stays: what an assignment to a
/// slice leaves as it was.
bool copies_in_place(const LoopForm& form, const Region& region, const Shape& operand);

/// Element strides of a pure load's result, over its own axes, as a view of the operand's memory.
struct ViewStrides {
  Dim offset = 0;
  Shape strides;
};
/// nullopt when the composition with the operand's strides is not affine: then the movement needs a kernel.
std::optional<ViewStrides> view_strides(const LoopForm& form, std::span<const Dim> operand_strides);

/// Strides of a dense tensor of `shape` whose axes lie in `order` (outermost first; empty: row-major).
Shape strides_in_order(const Shape& shape, const std::vector<int>& order);
/// Equal wherever the extent is not one.
bool same_layout(const Shape& shape, std::span<const Dim> a, std::span<const Dim> b);

/// Multi-line dump.
std::string to_string(const LoopForm& form);

/// Interprets a loop form in double; the result has `type`. `accumulator`: elements of Accumulator(0) over
/// the axes for contract epilogues (nullptr otherwise). Throws CompileError when a bounds check fails.
Tensor evaluate(const LoopForm& form, const std::vector<const Tensor*>& operands, const TensorType& type,
                const Tensor* accumulator = nullptr);

}  // namespace gcompile::ir

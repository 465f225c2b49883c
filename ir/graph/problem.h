#pragma once
// What a kernel family is asked: the work, the operands' shapes, strides and element types, facts about
// constants, and what the epilogue adds (DESIGN law 11). No ids, names or pointers: it prints, compares and
// can be stored.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/forms/work.h"
#include "ir/graph/graph.h"

namespace gcompile::ir {

/// Whether float16 keeps 11 significant bits of the largest finite element: it is zero, or from 2^-14 to
/// 65504. What is smaller beside it then errs by at most 2^-11 of the largest one.
bool fits_float16(const Tensor& weights);

/// What choices may know of a constant's contents.
struct ConstantFacts {
  bool fits_float16 = true;
  std::int64_t low = 0, high = 0;  // integers: of the elements
  /// Integers: the largest sum of magnitudes for one index of the first axis.
  std::int64_t largest_sum = 0;
  bool operator==(const ConstantFacts&) const = default;
};

struct ProblemOperand {
  bool present = true;  // an optional operand may be absent
  ElementType element = ElementType::kFloat32;
  Shape shape;
  Shape strides;  // in elements
  std::optional<ConstantFacts> constant;
  std::int64_t rank() const { return static_cast<std::int64_t>(shape.size()); }
  bool operator==(const ProblemOperand&) const = default;
};

/// What is applied to the final accumulators before they are stored.
struct EpilogueFacts {
  int work = 0;   // sum of the costs of its scalar operators
  int sides = 0;  // operands it reads
  bool operator==(const EpilogueFacts&) const = default;
};

struct Problem {
  Work work;
  ElementType accumulator = ElementType::kFloat32;
  bool reassociates = false;             // see ContractForm
  std::vector<ProblemOperand> operands;  // of the kernel itself, not of its epilogue
  std::vector<ProblemOperand> results;   // of a contraction: the axes of the accumulators
  EpilogueFacts epilogue;
  bool stands_for_formulas = false;  // its sizes are some that a run may have, in place of formulas
  Kind kind() const { return kind_of(work); }
  const Shape& shape(std::size_t operand) const { return operands[operand].shape; }
  /// Multiply-adds of a product; 0 for other work.
  Dim multiply_adds() const;
  /// Bytes of operands and results, each once.
  std::int64_t bytes() const;
  bool operator==(const Problem&) const = default;
};

/// No size in it is a formula.
bool are_constant(const Problem& problem);
/// With numbers for formulas: by the typical values in force, and by the highest, for costs and statistics.
Problem at_typical(Problem problem);
Problem at_highest(Problem problem);

/// "conv 3x3: float32[1, 8, 4, 4] (channels last), float32 constant [8, 8, 3, 3] -> float32[1, 8, 4, 4]".
std::string to_string(const Problem& problem);

/// The problem of a node whose values lie with these strides. nullopt: the node's form is no contraction and
/// no library kernel. `reads_floats`: facts of float constants are looked up, which reads them all.
std::optional<Problem> problem_of(const Graph& graph, NodeId id, const Form& form,
                                  const std::function<Shape(ValueId)>& strides, bool reads_floats);

/// The order of a tensor's axes in memory, outermost first; empty: row-major.
using AxisOrder = std::vector<int>;

/// Orders in which a kernel reads its operands and writes its result; nullopt: any.
struct LayoutOffer {
  std::vector<std::optional<AxisOrder>> operands;
  std::optional<AxisOrder> result;
  std::int64_t picoseconds = 0;
};

/// What the family that would serve a problem costs, or why none does.
struct Price {
  std::optional<std::int64_t> picoseconds;
  std::string refusal;
};

/// What kernels offer and cost, for passes that weigh layouts and fusions; they know no kernel.
class KernelPrices {
 public:
  virtual ~KernelPrices() = default;
  virtual Price price(const Problem& problem) const = 0;
  /// The 16-bit type to which products round float32 factors; nullopt: they keep more bits.
  virtual std::optional<ElementType> factor_type() const { return std::nullopt; }
  /// Multiples of channels that convolutions may copy faster than others, ascending.
  virtual std::vector<std::int64_t> channel_units() const { return {}; }
  /// Channels of integers that kernels compute together: fewer of them take as long.
  virtual std::int64_t channels_together() const { return 1; }
  /// Whether kernels of loops check run-time indices where they use them, so that a check costs no kernel of
  /// its own.
  virtual bool checks_where_used() const { return false; }
  /// Picoseconds until so many bytes were read or written.
  virtual std::int64_t moved(std::int64_t) const { return 0; }
  /// What the families that take the problem offer, the fastest first.
  virtual std::vector<LayoutOffer> offers(const Problem& problem) const = 0;
};

/// (N, spatial..., C) of a tensor (N, C, spatial...).
AxisOrder channels_last(std::size_t rank);

}  // namespace gcompile::ir

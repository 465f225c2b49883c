#pragma once
// Rounding as a program of floats meets it, for evaluation that asks how far it moves a model. The oracle
// computes an operator in double and rounds at its edge; a kernel rounds on the way as well, and a
// recurrence, a normalisation or a sharp softmax may make much of that.

#include <span>

#include "ir/loops/expression.h"
#include "ir/tensors/tensor.h"

namespace gcompile::ir {

/// What the evaluator hands to while it is in force (RoundingScope).
class Rounding {
 public:
  virtual ~Rounding() = default;
  /// `value`, which is computed inside of an operator, behind `count` roundings to `type`.
  virtual double inside(double value, ElementType type, double count) = 0;
  /// A result of an operator: `count` roundings meet in each of its elements.
  virtual Tensor result(const Tensor& tensor, double count) = 0;

  /// `value`, a sum, a difference or a product, behind `count` roundings; as it is where it is exact.
  double inside_unless_exact(double value, ElementType type, double count);
  /// What a node of an expression computes, where a program of floats rounds it.
  void round_inside(const ScalarNode& node, std::span<double> values);

  /// nullptr: nothing rounds but the edges of operators.
  static Rounding* in_force() { return in_force_; }

 private:
  friend class RoundingScope;
  inline static Rounding* in_force_ = nullptr;
};

class RoundingScope {
 public:
  explicit RoundingScope(Rounding* rounding) : outer_(Rounding::in_force_) { Rounding::in_force_ = rounding; }
  ~RoundingScope() { Rounding::in_force_ = outer_; }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  Rounding* outer_;
};

/// Whether some last bit of floats shows as a whole step: a tie that the model means to be one must not flip.
bool has_decision(const Dag& dag);

/// Roundings that meet in a sum of `terms`, added one by one: they err like a random walk, by 1 + sqrt(terms
/// / 2) times that of their sum.
double roundings_of_sum(double terms);

}  // namespace gcompile::ir

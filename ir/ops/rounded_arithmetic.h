#pragma once
// Arithmetic on expressions of one float type, of which each operation is rounded: for positions that other
// implementations compute step by step, so that all of them agree on the nearest element.
//
// Arguments of a call are evaluated in an order that compilers choose, and nodes are numbered as they are made:
// where two of them make nodes, each has a name first.

#include <vector>

#include "ir/loops/expression.h"

namespace gcompile::ir {

class RoundedArithmetic {
 public:
  RoundedArithmetic(Dag& dag, ElementType type) : dag_(dag), type_(type) {}

  int number(double value) const { return dag_.constant(type_, value); }
  int size(Dim size) const { return dag_.size(type_, size); }
  int add(int a, int b) const { return apply(ScalarOp::kAdd, a, b); }
  int sub(int a, int b) const { return apply(ScalarOp::kSub, a, b); }
  int mul(int a, int b) const { return apply(ScalarOp::kMul, a, b); }
  int div(int a, int b) const { return apply(ScalarOp::kDiv, a, b); }
  /// x, or the end of [low, high] that it is beyond.
  int clamped(int x, int low, int high) const {
    return dag_.apply(ScalarOp::kMin, {dag_.apply(ScalarOp::kMax, {x, low}), high});
  }
  /// Weights of the four elements around a place whose second one is `ratio` before it: cubic convolution
  /// (Keys, 1981).
  std::vector<int> cubic_weights(double a, int ratio) const;

 protected:
  int apply(ScalarOp op, int a, int b) const { return dag_.round(dag_.apply(op, {a, b})); }

  Dag& dag_;
  const ElementType type_;
};

}  // namespace gcompile::ir

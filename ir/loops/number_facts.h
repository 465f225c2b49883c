#pragma once
// What is known of the values of an expression whatever the run brings: enough to say which of them are never
// NaN, and which are whole. Kernels then need no care for what cannot happen.

#include <functional>
#include <optional>
#include <vector>

#include "ir/loops/expression.h"

namespace gcompile::ir {

struct NumberFacts {
  bool number = false;  // never NaN
  bool whole = false;   // an integer, or infinite
  double bound = 0;     // of the magnitude of a number; infinity: none
};

/// Largest magnitude of the elements; nullopt when one is NaN or infinite.
std::optional<double> bound_of(const Tensor& tensor);

/// Facts of every node. `bound_of_load`: of a load of floats, nullopt when nothing is known.
std::vector<NumberFacts> number_facts(
    const Dag& dag, const std::function<std::optional<double>(const ScalarNode& load)>& bound_of_load);

/// The node itself, or what a kRound of it rounds.
int unrounded(const Dag& dag, int id);

/// What a cast to an integer of 8 bits does at once:
/// `value` rounded to nearest even, plus `shift`, saturated.
struct Saturation {
  int value = 0;
  std::optional<int> shift = {};  // a whole constant of at most 8 bits; none: nothing is added
  bool fits = false;              // int32 holds every value, and every sum with `shift`
  /// The word that `value` is the product of, as a float32, with a float32.
  struct Product {
    int word = 0, factor = 0;
  };
  std::optional<Product> product = {};

  /// What the cast is made of; of a product the word and the float32.
  Arguments arguments() const;
};

/// The saturating cast that a cast is whose argument is a whole number and never NaN; clamps that saturation
/// repeats are left out. nullopt for other nodes.
/// `finds_products`: of which the kernels may make one step.
std::optional<Saturation> saturation_of(const Dag& dag, const std::vector<NumberFacts>& facts, int id,
                                        bool finds_products = false);

}  // namespace gcompile::ir

#pragma once
// The sizes that a kernel's text mentions and that only a run knows: its parameters, in the order in which they
// are first mentioned. What is passed for them is whole formulas, so that kernels compute no sizes, and have one
// text wherever they differ in sizes alone. They are called as the size is that all calls pass, n0, n1... else.
// Beside them, numbers that are read from the weights.

#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/sizes/dim.h"
#include "ir/tensors/tensor.h"

namespace gcompile {

class SizeParameters {
 public:
  /// "768", or the name of a parameter. C++ leaves open which argument of a call is evaluated first: where
  /// several sizes go into one, they are named before it.
  std::string operator()(ir::Dim size);
  /// The same as an int, which it is known to fit.
  std::string as_int(ir::Dim size);
  /// What stands for it in the text until the kernels of all calls are known (`KernelTable`).
  static std::string name(std::size_t index);
  /// "12, n0, n1": in the order of the list.
  std::string list(std::initializer_list<ir::Dim> sizes);
  const std::vector<ir::Dim>& sizes() const { return sizes_; }

  /// A float of the kernel's expressions that is no literal in its text: `text` reads it, as float64 where it is
  /// that and else as float32, from what the parameter points to.
  void name_number(const ir::Scalar& value, std::string parameter, std::string text);
  bool is_named(const ir::Scalar& number) const;
  const std::string& operator()(const ir::Scalar& named);

  /// The sizes that were mentioned since this was asked last: a function within the kernel's text takes
  /// no others.
  std::set<std::size_t> take_mentioned();
  /// The same for numbers: their parameters.
  std::set<std::string> take_mentioned_numbers();

 private:
  struct Number {
    std::string parameter, text;
  };
  using Key = std::pair<bool, double>;  // whether it is float64

  static Key key_of(const ir::Scalar& number);

  std::vector<ir::Dim> sizes_;
  std::set<std::size_t> mentioned_;
  std::map<Key, Number> numbers_;
  std::set<std::string> mentioned_numbers_;
};

}  // namespace gcompile

#pragma once
// The sizes that a kernel's text mentions and that only a run knows: its parameters, in the order in which they
// are first mentioned. What is passed for them is whole formulas, so that kernels compute no sizes, and have one
// text wherever they differ in sizes alone. They are called as the size is that all calls pass, n0, n1... else.
// Beside them, numbers that are read from the weights.

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/loops/code_text.h"
#include "ir/sizes/dim.h"
#include "ir/tensors/tensor.h"

namespace gcompile {

class SizeParameters {
 public:
  /// "768", or the name of a parameter. C++ leaves open which argument of a call is evaluated first: where
  /// several sizes go into one, they are named before it.
  std::string operator()(ir::Dim size) {
    if (size.is_constant()) return fmt::format("{}", size.constant());
    auto at = std::find(sizes_.begin(), sizes_.end(), size);
    if (at == sizes_.end()) at = sizes_.insert(at, size);
    const auto index = static_cast<std::size_t>(at - sizes_.begin());
    mentioned_.insert(index);
    return name(index);
  }
  /// The same as an int, which it is known to fit.
  std::string as_int(ir::Dim size) {
    return size.is_constant() ? (*this)(size) : fmt::format("static_cast<int>({})", (*this)(size));
  }
  /// What stands for it in the text until the kernels of all calls are known (`KernelTable`).
  static std::string name(std::size_t index) { return size_symbol(index); }
  /// "12, n0, n1": in the order of the list.
  std::string list(std::initializer_list<ir::Dim> sizes) {
    std::string text;
    for (const ir::Dim size : sizes) text += (text.empty() ? "" : ", ") + (*this)(size);
    return text;
  }
  const std::vector<ir::Dim>& sizes() const { return sizes_; }

  /// A float32 of the kernel's expressions that is no literal in its text: `text` reads it from what the
  /// parameter points to.
  void name_number(double value, std::string parameter, std::string text) {
    numbers_[value] = {std::move(parameter), std::move(text)};
  }
  bool is_named(const ir::Scalar& number) const {
    return number.type == ir::ElementType::kFloat32 && numbers_.count(number.as_double()) > 0;
  }
  const std::string& operator()(const ir::Scalar& named) {
    const Number& number = numbers_.at(named.as_double());
    mentioned_numbers_.insert(number.parameter);
    return number.text;
  }

  /// The sizes that were mentioned since this was asked last: a function within the kernel's text takes
  /// no others.
  std::set<std::size_t> take_mentioned() { return std::exchange(mentioned_, {}); }
  /// The same for numbers: their parameters.
  std::set<std::string> take_mentioned_numbers() { return std::exchange(mentioned_numbers_, {}); }

 private:
  struct Number {
    std::string parameter, text;
  };

  std::vector<ir::Dim> sizes_;
  std::set<std::size_t> mentioned_;
  std::map<double, Number> numbers_;
  std::set<std::string> mentioned_numbers_;
};

}  // namespace gcompile

#pragma once
// The sizes that a kernel's text mentions and that only a run knows: its parameters n0, n1, ..., in the order
// in which they are first mentioned. What is passed for them is whole formulas, so that kernels compute no
// sizes, and have one text wherever they differ in sizes alone.

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "ir/dim.h"

namespace gcompile {

class SizeParameters {
 public:
  /// "768", or the name of a parameter. C++ leaves open which argument of a call is evaluated first: where
  /// several sizes go into one, they are named before it.
  std::string operator()(ir::Dim size) {
    if (size.is_constant()) return fmt::format("{}", size.constant());
    auto at = std::find(sizes_.begin(), sizes_.end(), size);
    if (at == sizes_.end()) at = sizes_.insert(at, size);
    return fmt::format("n{}", at - sizes_.begin());
  }
  /// "12, n0, n1": in the order of the list.
  std::string list(std::initializer_list<ir::Dim> sizes) {
    std::string text;
    for (const ir::Dim size : sizes) text += (text.empty() ? "" : ", ") + (*this)(size);
    return text;
  }
  const std::vector<ir::Dim>& sizes() const { return sizes_; }

 private:
  std::vector<ir::Dim> sizes_;
};

}  // namespace gcompile

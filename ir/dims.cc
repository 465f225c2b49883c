#include "ir/dims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/operator.h"

namespace gcompile::ir {

Dims::Dims(std::vector<Dim> dims) {
  if (std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_constant(); })) {
    for (const Dim& dim : dims) numbers_.push_back(dim.constant());
  } else {
    open_ = std::make_shared<const std::vector<Dim>>(std::move(dims));
  }
}

std::vector<Dim> Dims::all() const {
  return open_ ? *open_ : std::vector<Dim>(numbers_.begin(), numbers_.end());
}

bool operator==(const Dims& a, const Dims& b) {
  if (a.is_open() != b.is_open()) return false;
  return a.is_open() ? *a.open_ == *b.open_ : a.numbers_ == b.numbers_;
}

std::string to_string(const Dims& dims) {
  std::vector<std::string> texts;
  for (const Dim& dim : dims.all()) {
    texts.push_back(to_string(dim, [](int symbol) { return fmt::format("s{}", symbol); }));
  }
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

Shape Dims::take() {
  if (open_) refuse();
  return std::move(numbers_);
}

void Dims::refuse() {
  operator_error("sizes that are known only when the model runs are not supported here",
                 "give the dimensions numbers with --dim or --shape");
}

}  // namespace gcompile::ir

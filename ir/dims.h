#pragma once
// The sizes of a value's axes: numbers, or formulas of the model's symbols (DESIGN law 13).

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/dim.h"

namespace gcompile::ir {

using Shape = std::vector<std::int64_t>;

/// Reads like a Shape. What reads formulas as numbers cannot do with them: it is refused, by an OperatorError
/// that says so, and never given a number that they may not be.
class Dims {
 public:
  Dims() = default;
  Dims(Shape numbers) : numbers_(std::move(numbers)) {}                     // NOLINT: numbers are sizes
  Dims(std::initializer_list<std::int64_t> numbers) : numbers_(numbers) {}  // NOLINT
  explicit Dims(std::vector<Dim> dims);

  /// Some of them are not numbers.
  bool is_open() const { return open_ != nullptr; }
  std::size_t size() const { return open_ ? open_->size() : numbers_.size(); }
  bool empty() const { return size() == 0; }
  Dim dim(std::size_t axis) const { return open_ ? (*open_)[axis] : Dim(numbers_[axis]); }
  std::vector<Dim> all() const;

  const Shape& numbers() const {
    if (open_) refuse();
    return numbers_;
  }
  operator const Shape&() const& { return numbers(); }  // NOLINT
  operator Shape() && { return take(); }                // NOLINT
  std::int64_t operator[](std::size_t axis) const { return numbers()[axis]; }
  std::int64_t& operator[](std::size_t axis) { return mutable_numbers()[axis]; }
  Shape::const_iterator begin() const { return numbers().begin(); }
  Shape::const_iterator end() const { return numbers().end(); }
  std::int64_t front() const { return numbers().front(); }
  std::int64_t back() const { return numbers().back(); }
  void push_back(std::int64_t number) { mutable_numbers().push_back(number); }
  void clear() { *this = Dims(); }

  friend bool operator==(const Dims& a, const Dims& b);

 private:
  [[noreturn]] static void refuse();
  Shape take();
  Shape& mutable_numbers() {
    if (open_) refuse();
    return numbers_;
  }
  Shape numbers_;
  std::shared_ptr<const std::vector<Dim>> open_;  // null: all are numbers
};

/// "[2, 3]", "[]"; symbols by their numbers, "[s0, 2*s1]".
std::string to_string(const Dims& dims);

}  // namespace gcompile::ir

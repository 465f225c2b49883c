#pragma once
// A dense tensor value: element type, dims and shared bytes in row-major order, little-endian.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/sizes/sizes.h"
#include "ir/tensors/element_type.h"

namespace gcompile::ir {

/// Product of dims (1 for rank 0). Throws CompileError when it does not fit in 63 bits.
Dim element_count(const Shape& shape);
/// Row-major strides in elements.
Shape row_major_strides(const Shape& shape);

Dim bytes_of(ElementType type, Dim count);

struct TensorType {
  ElementType element = ElementType::kFloat32;
  Shape shape;

  Dim count() const { return element_count(shape); }
  Dim bytes() const { return bytes_of(element, count()); }
  int rank() const { return static_cast<int>(shape.size()); }
  bool operator==(const TensorType&) const = default;
};

/// "float32[1, 3, 224, 224]".
std::string to_string(const TensorType& type);

/// One element, wide enough for every type:
/// floats as double, integers and bool as int64 (uint64 by bit pattern).
struct Scalar {
  ElementType type = ElementType::kFloat32;
  double real = 0;
  std::int64_t integer = 0;

  static Scalar of_real(ElementType type, double value);           // rounded to the type
  static Scalar of_integer(ElementType type, std::int64_t value);  // wrapped to the type
  /// The value of any type as double.
  double as_double() const;
  bool operator==(const Scalar&) const = default;  // floats compare by value: NaN != NaN
};

/// Memory that somebody else owns, such as a mapped file. Its bytes stay as they are while this object lives.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Nobody will read these soon: they need not stay in memory, and come back when they are read.
  virtual void rest(std::span<const std::byte> bytes) const = 0;
};

/// Copies share their bytes until one of them is written to.
class Tensor {
 public:
  Tensor() = default;
  /// Zero-filled.
  explicit Tensor(TensorType type);
  /// Takes bytes; their number must be type.bytes().
  Tensor(TensorType type, std::vector<std::byte> bytes);
  /// `bytes` of `source` as they are, at any alignment; type.bytes() of them.
  Tensor(TensorType type, std::span<const std::byte> bytes, std::shared_ptr<const ByteSource> source);

  static Tensor of_ints(std::span<const std::int64_t> values, Shape shape);  // int64
  static Tensor of_floats(std::span<const float> values, Shape shape);       // float32
  static Tensor scalar(const Scalar& value);                                 // rank 0
  static Tensor filled(TensorType type, const Scalar& value);

  const TensorType& type() const { return type_; }
  ElementType element() const { return type_.element; }
  const Shape& shape() const { return type_.shape; }
  std::int64_t count() const { return count_; }
  std::span<const std::byte> bytes() const;
  /// Bytes to write to; copies first when shared (value semantics).
  std::span<std::byte> mutable_bytes();
  /// Tells the source, if there is one, that bytes() will not be read soon.
  void rest() const;

  Scalar at(std::int64_t index) const;
  void set(std::int64_t index, const Scalar& value);
  double real_at(std::int64_t index) const { return at(index).as_double(); }
  std::int64_t int_at(std::int64_t index) const;
  /// All elements of an integer or bool tensor.
  std::vector<std::int64_t> ints() const;

  /// The same bytes with other dims of equal count.
  Tensor reshaped(Shape shape) const;
  /// Same type and same bytes.
  bool identical(const Tensor& other) const;

 private:
  struct Storage;
  TensorType type_;
  std::int64_t count_ = 0;
  std::shared_ptr<Storage> storage_;
};

}  // namespace gcompile::ir

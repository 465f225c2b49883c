#include "ir/tensors/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "base/diagnostics.h"

namespace gcompile::ir {
namespace {

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void write(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

/// Where an element of less than 8 bits lies in its byte.
int shift_of(ElementType type, std::int64_t index) { return static_cast<int>(index * bits_of(type) % 8); }

}  // namespace

Dim element_count(const Shape& shape) {
  std::int64_t numbers = 1;
  Dim forms = 1;
  for (const Dim dim : shape) {
    if (!dim.is_constant()) {
      forms = forms * dim;
    } else if (dim < 0 || __builtin_mul_overflow(numbers, dim.constant(), &numbers)) {
      throw CompileError(ExitCode::kModel, fmt::format("shape {} has too many elements", to_string(shape)));
    }
  }
  return forms * numbers;
}

Dim bytes_of(ElementType type, Dim count) {
  const std::int64_t bits = bits_of(type);
  return bits < 8 ? ceil_div(count * bits, 8) : count * (bits / 8);
}

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (int axis = static_cast<int>(shape.size()) - 2; axis >= 0; --axis) {
    strides[axis] = strides[axis + 1] * shape[axis + 1];
  }
  return strides;
}

std::string to_string(const TensorType& type) {
  return fmt::format("{}{}", name_of(type.element), to_string(type.shape));
}

Scalar Scalar::of_real(ElementType type, double value) {
  Scalar scalar;
  scalar.type = type;
  scalar.real = round_to(type, value);
  return scalar;
}

Scalar Scalar::of_integer(ElementType type, std::int64_t value) {
  Scalar scalar;
  scalar.type = type;
  switch (type) {
    case ElementType::kInt8:
      scalar.integer = static_cast<std::int8_t>(value);
      break;
    case ElementType::kInt16:
      scalar.integer = static_cast<std::int16_t>(value);
      break;
    case ElementType::kInt32:
      scalar.integer = static_cast<std::int32_t>(value);
      break;
    case ElementType::kUInt8:
      scalar.integer = static_cast<std::uint8_t>(value);
      break;
    case ElementType::kUInt16:
      scalar.integer = static_cast<std::uint16_t>(value);
      break;
    case ElementType::kUInt32:
      scalar.integer = static_cast<std::uint32_t>(value);
      break;
    case ElementType::kBool:
      scalar.integer = value != 0;
      break;
    case ElementType::kInt4:
      scalar.integer = ((value & 15) ^ 8) - 8;
      break;
    case ElementType::kUInt4:
      scalar.integer = value & 15;
      break;
    case ElementType::kInt2:
      scalar.integer = ((value & 3) ^ 2) - 2;
      break;
    case ElementType::kUInt2:
      scalar.integer = value & 3;
      break;
    default:
      scalar.integer = value;
  }
  return scalar;
}

double Scalar::as_double() const {
  if (is_float(type)) return real;
  return type == ElementType::kUInt64 ? static_cast<double>(static_cast<std::uint64_t>(integer))
                                      : static_cast<double>(integer);
}

/// Bytes of our own, or those of a source.
struct Tensor::Storage {
  explicit Storage(std::vector<std::byte> bytes) : own(std::move(bytes)), all(own) {}
  Storage(std::span<const std::byte> bytes, std::shared_ptr<const ByteSource> from)
      : source(std::move(from)), all(bytes) {}
  Storage(const Storage&) = delete;

  std::vector<std::byte> own;
  std::shared_ptr<const ByteSource> source;
  std::span<const std::byte> all;
};

Tensor::Tensor(TensorType type)
    : type_(std::move(type)),
      count_(type_.count()),
      storage_(std::make_shared<Storage>(std::vector<std::byte>(static_cast<std::size_t>(type_.bytes())))) {}

Tensor::Tensor(TensorType type, std::vector<std::byte> bytes)
    : type_(std::move(type)), count_(type_.count()), storage_(std::make_shared<Storage>(std::move(bytes))) {
  GC_CHECK(static_cast<std::int64_t>(storage_->all.size()) == type_.bytes());
}

Tensor::Tensor(TensorType type, std::span<const std::byte> bytes, std::shared_ptr<const ByteSource> source)
    : type_(std::move(type)),
      count_(type_.count()),
      storage_(std::make_shared<Storage>(bytes, std::move(source))) {
  GC_CHECK(static_cast<std::int64_t>(bytes.size()) == type_.bytes());
}

Tensor Tensor::of_ints(std::span<const std::int64_t> values, Shape shape) {
  Tensor tensor(TensorType{ElementType::kInt64, std::move(shape)});
  GC_CHECK(tensor.count() == static_cast<std::int64_t>(values.size()));
  if (!values.empty()) std::memcpy(tensor.mutable_bytes().data(), values.data(), values.size_bytes());
  return tensor;
}

Tensor Tensor::of_floats(std::span<const float> values, Shape shape) {
  Tensor tensor(TensorType{ElementType::kFloat32, std::move(shape)});
  GC_CHECK(tensor.count() == static_cast<std::int64_t>(values.size()));
  if (!values.empty()) std::memcpy(tensor.mutable_bytes().data(), values.data(), values.size_bytes());
  return tensor;
}

Tensor Tensor::scalar(const Scalar& value) { return filled(TensorType{value.type, {}}, value); }

Tensor Tensor::filled(TensorType type, const Scalar& value) {
  Tensor tensor(std::move(type));
  if (tensor.count() == 0) return tensor;
  if (bits_of(value.type) < 8) {
    for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.set(i, value);
    return tensor;
  }
  tensor.set(0, value);
  const std::span<std::byte> bytes = tensor.mutable_bytes();
  std::size_t filled = bytes.size() / static_cast<std::size_t>(tensor.count());
  while (filled < bytes.size()) {  // what is there twice as long
    const std::size_t more = std::min(filled, bytes.size() - filled);
    std::memcpy(bytes.data() + filled, bytes.data(), more);
    filled += more;
  }
  return tensor;
}

std::span<const std::byte> Tensor::bytes() const {
  return storage_ ? storage_->all : std::span<const std::byte>();
}

std::span<std::byte> Tensor::mutable_bytes() {
  if (!storage_) return {};
  if (storage_->source || storage_.use_count() > 1) {
    storage_ = std::make_shared<Storage>(std::vector<std::byte>(storage_->all.begin(), storage_->all.end()));
  }
  return storage_->own;
}

void Tensor::rest() const {
  if (storage_ && storage_->source) storage_->source->rest(storage_->all);
}

Scalar Tensor::at(std::int64_t index) const {
  GC_CHECK(index >= 0 && index < count_);
  const ElementType type = type_.element;
  const std::byte* base = storage_->all.data();
  const std::byte* at = base + index * bits_of(type) / 8;
  Scalar out;
  out.type = type;
  switch (type) {
    case ElementType::kFloat32:
      out.real = read<float>(at);
      break;
    case ElementType::kFloat64:
      out.real = read<double>(at);
      break;
    case ElementType::kFloat16:
      out.real = half_to_float(read<std::uint16_t>(at));
      break;
    case ElementType::kBFloat16:
      out.real = bfloat16_to_float(read<std::uint16_t>(at));
      break;
    case ElementType::kInt8:
      out.integer = read<std::int8_t>(at);
      break;
    case ElementType::kInt16:
      out.integer = read<std::int16_t>(at);
      break;
    case ElementType::kInt32:
      out.integer = read<std::int32_t>(at);
      break;
    case ElementType::kInt64:
      out.integer = read<std::int64_t>(at);
      break;
    case ElementType::kUInt8:
      out.integer = read<std::uint8_t>(at);
      break;
    case ElementType::kUInt16:
      out.integer = read<std::uint16_t>(at);
      break;
    case ElementType::kUInt32:
      out.integer = read<std::uint32_t>(at);
      break;
    case ElementType::kUInt64:
      out.integer = static_cast<std::int64_t>(read<std::uint64_t>(at));
      break;
    case ElementType::kBool:
      out.integer = read<std::uint8_t>(at) != 0;
      break;
    case ElementType::kInt4:
    case ElementType::kUInt4:
    case ElementType::kInt2:
    case ElementType::kUInt2:
      return Scalar::of_integer(type, read<std::uint8_t>(at) >> shift_of(type, index));
    case ElementType::kFloat4E2M1:
      out.real = small_float_value(type, (read<std::uint8_t>(at) >> shift_of(type, index)) & 15);
      break;
    default:
      out.real = small_float_value(type, read<std::uint8_t>(at));
  }
  return out;
}

void Tensor::set(std::int64_t index, const Scalar& value) {
  GC_CHECK(index >= 0 && index < count_ && value.type == type_.element);
  const int bits = bits_of(type_.element);
  std::byte* at = mutable_bytes().data() + index * bits / 8;
  const auto low_bits =
      static_cast<std::uint8_t>(is_small_float(value.type) ? small_float_code(value.type, value.real)
                                                           : static_cast<std::uint8_t>(value.integer));
  if (bits < 8) {
    const int shift = shift_of(type_.element, index), mask = (1 << bits) - 1;
    const int others = read<std::uint8_t>(at) & ~(mask << shift);
    return write(at, static_cast<std::uint8_t>(others | (low_bits & mask) << shift));
  }
  switch (type_.element) {
    case ElementType::kFloat32:
      write(at, static_cast<float>(value.real));
      break;
    case ElementType::kFloat64:
      write(at, value.real);
      break;
    case ElementType::kFloat16:
      write(at, float_to_half(static_cast<float>(value.real)));
      break;
    case ElementType::kBFloat16:
      write(at, float_to_bfloat16(static_cast<float>(value.real)));
      break;
    case ElementType::kInt64:
    case ElementType::kUInt64:
      write(at, value.integer);
      break;
    case ElementType::kInt32:
    case ElementType::kUInt32:
      write(at, static_cast<std::uint32_t>(value.integer));
      break;
    case ElementType::kInt16:
    case ElementType::kUInt16:
      write(at, static_cast<std::uint16_t>(value.integer));
      break;
    default:
      write(at, low_bits);
  }
}

std::int64_t Tensor::int_at(std::int64_t index) const {
  GC_CHECK(!is_float(type_.element));
  return at(index).integer;
}

std::vector<std::int64_t> Tensor::ints() const {
  std::vector<std::int64_t> values(static_cast<std::size_t>(count_));
  for (std::int64_t i = 0; i < count_; ++i) values[i] = int_at(i);
  return values;
}

Tensor Tensor::reshaped(Shape shape) const {
  GC_CHECK(element_count(shape) == count_);
  Tensor out = *this;
  out.type_.shape = std::move(shape);
  return out;
}

bool Tensor::identical(const Tensor& other) const {
  if (type_ != other.type_) return false;
  if (storage_ == other.storage_) return true;
  const auto a = bytes();
  const auto b = other.bytes();
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace gcompile::ir

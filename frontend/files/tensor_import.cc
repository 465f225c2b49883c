#include "frontend/files/tensor_import.h"

#include <fmt/format.h>

#include <cstring>

#include "frontend/files/model_file.h"
#include "ir/graph/operator.h"
#include "ir/ops/support.h"

namespace gcompile::frontend {
namespace {

using ir::ElementType;

/// Which typed field of TensorProto holds an element type (comments of onnx.proto).
enum class Field { kFloat, kInt32, kInt64, kDouble, kUInt64 };

Field field_of(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return Field::kFloat;
    case ElementType::kFloat64:
      return Field::kDouble;
    case ElementType::kInt64:
      return Field::kInt64;
    case ElementType::kUInt32:
    case ElementType::kUInt64:
      return Field::kUInt64;
    default:
      return Field::kInt32;
  }
}

std::string_view field_name(Field field) {
  constexpr std::string_view kNames[] = {"float_data", "int32_data", "int64_data", "double_data",
                                         "uint64_data"};
  return kNames[static_cast<int>(field)];
}

/// Entries of the typed field that a tensor of `count` elements has: types of less than 8 bits put a byte of
/// them into one entry.
std::int64_t entries_of(ElementType type, std::int64_t count) {
  return ir::bits_of(type) < 8 ? ir::bytes_of(type, count) : count;
}

std::int64_t entries_in(const onnx::TensorProto& proto, Field field) {
  switch (field) {
    case Field::kFloat:
      return proto.float_data_size();
    case Field::kInt32:
      return proto.int32_data_size();
    case Field::kInt64:
      return proto.int64_data_size();
    case Field::kDouble:
      return proto.double_data_size();
    case Field::kUInt64:
      return proto.uint64_data_size();
  }
  return 0;
}

struct EntryRange {
  std::int64_t lowest;
  std::int64_t highest;
};

/// What an entry of a typed field may hold for an element type.
EntryRange entry_range(ElementType type) {
  // A byte of elements, which some writers sign-extend.
  if (ir::bits_of(type) < 8) return {-128, 255};
  const int bits = ir::bits_of(type);
  if (ir::is_integer(type) && ir::is_signed(type)) {
    return {-(std::int64_t{1} << (bits - 1)), (std::int64_t{1} << (bits - 1)) - 1};
  }
  return {0, (std::int64_t{1} << bits) - 1};
}

/// Stores each entry's low bytes, little-endian.
/// Values beyond the type are refused: truncation would be silent.
template <class Entries>
void narrow(const Entries& entries, ElementType type, std::vector<std::byte>& out) {
  const auto width = static_cast<std::size_t>(std::max(ir::bits_of(type), 8) / 8);
  const EntryRange range = entry_range(type);
  std::size_t at = 0;
  for (const auto entry : entries) {
    const auto value = static_cast<std::int64_t>(entry);
    if (value < range.lowest || value > range.highest) {
      operator_error(
          fmt::format("the value {} at position {} does not fit {}", value, at / width, ir::name_of(type)));
    }
    std::memcpy(out.data() + at, &value, width);
    at += width;
  }
}

template <class Entries>
void copy(const Entries& entries, std::vector<std::byte>& out) {
  if (!out.empty()) std::memcpy(out.data(), entries.data(), out.size());
}

std::vector<std::byte> typed_bytes(const onnx::TensorProto& proto, ElementType type, std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  switch (field_of(type)) {
    case Field::kFloat:
      copy(proto.float_data(), out);
      break;
    case Field::kDouble:
      copy(proto.double_data(), out);
      break;
    case Field::kInt64:
      copy(proto.int64_data(), out);
      break;
    case Field::kUInt64:
      if (type == ElementType::kUInt64) {
        copy(proto.uint64_data(), out);
      } else {
        narrow(proto.uint64_data(), type, out);
      }
      break;
    case Field::kInt32:
      narrow(proto.int32_data(), type, out);
      break;
  }
  return out;
}

/// Bits of the last byte that no element has.
int unused_bits(ElementType type, std::int64_t count) {
  return static_cast<int>(ir::bytes_of(type, count) * 8 - count * ir::bits_of(type)) & 7;
}

/// Whether bytes of a file may say the same value in more than one way.
bool needs_canonical(ElementType type, std::int64_t count) {
  return type == ElementType::kBool || unused_bits(type, count) > 0;
}

/// bool is 0 or 1 in memory, whatever the file says; the unused high bits of the last byte are cleared.
void canonicalise(ElementType type, std::int64_t count, std::span<std::byte> bytes) {
  if (type == ElementType::kBool) {
    for (std::byte& b : bytes) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  }
  if (const auto unused = unused_bits(type, count); unused > 0) bytes.back() &= std::byte{0xff} >> unused;
}

}  // namespace

std::optional<ElementType> element_type_of(int onnx_type) { return ir::element_type_of_onnx(onnx_type); }

int onnx_type_of(ElementType type) { return static_cast<int>(ir::onnx_number_of(type)); }

std::string onnx_type_name(int onnx_type) {
  if (const auto type = element_type_of(onnx_type)) return std::string(ir::name_of(*type));
  switch (onnx_type) {
    case 0:
      return "undefined";
    case 8:
      return "string";
    case 14:
      return "complex64";
    case 15:
      return "complex128";
    case 27:
      return "float6e2m3";
    case 28:
      return "float6e3m2";
    default:
      return fmt::format("element type {}", onnx_type);
  }
}

ir::Shape checked_shape(const google::protobuf::RepeatedField<std::int64_t>& dims, const Limits& limits) {
  if (dims.size() > limits.rank) {
    operator_error(fmt::format("it has {} dimensions, more than the limit of {}", dims.size(), limits.rank));
  }
  ir::Shape shape(dims.begin(), dims.end());
  std::int64_t count = 1;
  for (const std::int64_t dim : shape) {
    if (dim < 0) operator_error(fmt::format("its shape {} has a negative dimension", ir::to_string(shape)));
    const std::int64_t factor = std::max<std::int64_t>(dim, 1);
    if (factor > limits.tensor_elements / count) {
      operator_error(fmt::format("its shape {} has more elements than the limit of {}", ir::to_string(shape),
                                 limits.tensor_elements));
    }
    count *= factor;
  }
  return shape;
}

ir::Tensor import_tensor(const onnx::TensorProto& proto, const Limits& limits, ExternalData* external) {
  const auto type = element_type_of(proto.data_type());
  if (!type)
    operator_error(fmt::format("tensors of {} are not supported", onnx_type_name(proto.data_type())));
  if (proto.has_segment()) operator_error("tensors in segments are not supported");
  ir::TensorType tensor_type{*type, checked_shape(proto.dims(), limits)};
  const std::int64_t count = tensor_type.count();
  const std::int64_t bytes = tensor_type.bytes();

  const auto check_raw_size = [&](std::int64_t given) {
    if (given == bytes) return;
    operator_error(
        fmt::format("raw_data has {} bytes, {} needs {}", given, ir::to_string(tensor_type), bytes));
  };
  // The bytes stay as they lie in a file, if they may.
  const auto of_file = [&](FilePart part) {
    ir::Tensor tensor(tensor_type, part.bytes, std::move(part.file));
    if (needs_canonical(*type, count)) canonicalise(*type, count, tensor.mutable_bytes());
    return tensor;
  };
  std::vector<std::byte> data;
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    if (!external)
      operator_error("its data lies in another file, which is only possible for tensors of a model");
    return of_file(external->find(proto, bytes));
  } else if (const std::optional<RawPlace> place = raw_place(proto)) {
    check_raw_size(place->bytes);
    GC_CHECK(external);
    return of_file(external->in_model(place->offset, place->bytes));
  } else if (proto.has_raw_data()) {
    check_raw_size(static_cast<std::int64_t>(proto.raw_data().size()));
    data.resize(static_cast<std::size_t>(bytes));
    if (bytes > 0) std::memcpy(data.data(), proto.raw_data().data(), data.size());
  } else {
    const Field field = field_of(*type);
    const std::int64_t given = entries_in(proto, field);
    if (given != entries_of(*type, count)) {
      operator_error(fmt::format("{} has {} entries, {} needs {}", field_name(field), given,
                                 ir::to_string(tensor_type), entries_of(*type, count)));
    }
    data = typed_bytes(proto, *type, static_cast<std::size_t>(bytes));
  }
  canonicalise(*type, count, data);
  return ir::Tensor(std::move(tensor_type), std::move(data));
}

}  // namespace gcompile::frontend

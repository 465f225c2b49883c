#include "driver/data/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "ir/loops/scalar_op.h"

namespace gcompile {
namespace {

using ir::ElementType;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMaxRank = 64;

struct TypeCode {
  std::string_view code;  ///< kind and bytes of an element, as in a dtype string after the byte order
  ElementType type;
};

constexpr TypeCode kTypeCodes[] = {
    {"b1", ElementType::kBool},    {"i1", ElementType::kInt8},    {"i2", ElementType::kInt16},
    {"i4", ElementType::kInt32},   {"i8", ElementType::kInt64},   {"u1", ElementType::kUInt8},
    {"u2", ElementType::kUInt16},  {"u4", ElementType::kUInt32},  {"u8", ElementType::kUInt64},
    {"f2", ElementType::kFloat16}, {"f4", ElementType::kFloat32}, {"f8", ElementType::kFloat64},
};

struct Header {
  std::string descr;
  bool fortran_order = false;
  ir::Shape shape;
};

/// Reads the Python dictionary of a header: three keys in any order, once each.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Header run() {
    Header header;
    std::array<bool, 3> seen{};
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      const std::size_t index = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : 3;
      if (index == 3 || std::exchange(seen[std::min<std::size_t>(index, 2)], true)) fail();
      if (index == 0) header.descr = string();
      if (index == 1) header.fortran_order = boolean();
      if (index == 2) header.shape = tuple();
      if (!accept(',') && !at('}')) fail();
    }
    skip_blanks();
    if (!text_.empty() || seen != std::array<bool, 3>{true, true, true}) fail();
    return header;
  }

 private:
  [[noreturn]] static void fail() { throw std::invalid_argument("its header is malformed"); }

  void skip_blanks() {
    const std::size_t first = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(std::min(first, text_.size()));
  }
  bool at(char c) {
    skip_blanks();
    return !text_.empty() && text_[0] == c;
  }
  bool accept(char c) {
    if (!at(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail();
  }

  std::string string() {
    if (at('[')) throw std::invalid_argument("arrays of records are not supported");
    const char quote = at('"') ? '"' : '\'';
    expect(quote);
    const std::size_t end = text_.find(quote);
    if (end == std::string_view::npos) fail();
    std::string value(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return value;
  }

  bool boolean() {
    skip_blanks();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(0, word.size()) != word) continue;
      text_.remove_prefix(word.size());
      return value;
    }
    fail();
  }

  ir::Shape tuple() {
    ir::Shape shape;
    expect('(');
    while (!accept(')')) {
      shape.push_back(integer());
      if (shape.size() > kMaxRank) fail();
      if (!accept(',') && !at(')')) fail();
    }
    return shape;
  }

  std::int64_t integer() {
    skip_blanks();
    const std::size_t digits = std::min(text_.find_first_not_of("0123456789"), text_.size());
    if (digits == 0 || digits > 18) fail();
    const std::int64_t value = std::stoll(std::string(text_.substr(0, digits)));
    text_.remove_prefix(digits);
    accept('L');  // Python 2 wrote long integers so
    return value;
  }

  std::string_view text_;
};

/// The header's text; `bytes` then begins with the data.
std::string_view take_header(std::string_view& bytes) {
  if (bytes.substr(0, kMagic.size()) != kMagic || bytes.size() < kMagic.size() + 4) {
    throw std::invalid_argument("it is not a .npy file");
  }
  const int version = static_cast<unsigned char>(bytes[kMagic.size()]);
  if (version < 1 || version > 3)
    throw std::invalid_argument(fmt::format("its version {} is not known", version));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  bytes.remove_prefix(kMagic.size() + 2);
  if (bytes.size() < length_bytes) throw std::invalid_argument("it is cut short");
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  bytes.remove_prefix(length_bytes);
  if (bytes.size() < length) throw std::invalid_argument("it is cut short");
  const std::string_view header = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return header;
}

ElementType element_type_of(const std::string& descr, bool& big_endian) {
  const std::string_view code = std::string_view(descr).substr(std::min<std::size_t>(descr.size(), 1));
  const auto* found = std::find_if(std::begin(kTypeCodes), std::end(kTypeCodes),
                                   [&](const TypeCode& entry) { return entry.code == code; });
  const bool known_order =
      !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  if (found == std::end(kTypeCodes) || !known_order) {
    throw std::invalid_argument(fmt::format("its element type '{}' is not supported", descr));
  }
  big_endian = descr[0] == '>';
  return found->type;
}

/// The number of elements, known not to exceed `limit`.
std::int64_t checked_count(const ir::Shape& shape, std::size_t limit) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::size_t count = 1;
  for (const std::int64_t dim : shape) {
    if (static_cast<std::size_t>(dim) > limit / count) throw std::invalid_argument("it is cut short");
    count *= static_cast<std::size_t>(dim);
  }
  return static_cast<std::int64_t>(count);
}

/// Elements stored first index fastest, put into row-major order.
std::vector<std::byte> from_fortran_order(const std::vector<std::byte>& bytes, const ir::Shape& shape,
                                          std::size_t size) {
  std::vector<std::byte> result(bytes.size());
  ir::Shape index(shape.size(), 0);
  std::vector<std::size_t> strides(shape.size());
  std::size_t stride = size;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    strides[axis] = stride;
    stride *= static_cast<std::size_t>(shape[axis]);
  }
  std::size_t source = 0;
  for (std::size_t target = 0; target < bytes.size(); target += size) {
    std::memcpy(&result[target], &bytes[source], size);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      source += strides[axis];
      if (++index[axis] < shape[axis]) break;
      source -= strides[axis] * static_cast<std::size_t>(shape[axis]);
      index[axis] = 0;
    }
  }
  return result;
}

bool numpy_has(ElementType type) {
  return std::any_of(std::begin(kTypeCodes), std::end(kTypeCodes),
                     [&](const TypeCode& entry) { return entry.type == type; });
}

/// `tensor` in a type that numpy has: the same values, or the codes of small floats.
ir::Tensor widened(const ir::Tensor& tensor) {
  const ElementType type = tensor.element();
  if (numpy_has(type)) return tensor;
  const bool has_codes = ir::is_small_float(type);
  const ElementType wide = has_codes             ? ElementType::kUInt8
                           : ir::is_float(type)  ? ElementType::kFloat32
                           : ir::is_signed(type) ? ElementType::kInt8
                                                 : ElementType::kUInt8;
  ir::Tensor result(ir::TensorType{wide, tensor.shape()});
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const ir::Scalar value = tensor.at(i);
    result.set(i, has_codes ? ir::Scalar::of_integer(wide, ir::small_float_code(type, value.real))
                            : ir::cast(value, wide));
  }
  return result;
}

}  // namespace

ir::Tensor parse_npy(std::string_view bytes) {
  const Header header = HeaderParser(take_header(bytes)).run();
  bool big_endian = false;
  const ElementType element = element_type_of(header.descr, big_endian);
  const auto size = static_cast<std::size_t>(ir::bits_of(element) / 8);
  const std::size_t data_bytes =
      static_cast<std::size_t>(checked_count(header.shape, bytes.size() / size)) * size;
  if (bytes.size() > data_bytes) throw std::invalid_argument("it has bytes after the end of the array");

  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  std::vector<std::byte> data(first, first + data_bytes);
  if (big_endian) {
    for (auto item = data.begin(); item != data.end(); item += static_cast<std::ptrdiff_t>(size)) {
      std::reverse(item, item + static_cast<std::ptrdiff_t>(size));
    }
  }
  if (element == ElementType::kBool) {
    for (std::byte& value : data) value = value == std::byte{0} ? std::byte{0} : std::byte{1};
  }
  if (header.fortran_order && header.shape.size() > 1) data = from_fortran_order(data, header.shape, size);
  return ir::Tensor(ir::TensorType{element, header.shape}, std::move(data));
}

std::string to_npy(const ir::Tensor& original) {
  const ir::Tensor tensor = widened(original);
  const auto* entry = std::find_if(std::begin(kTypeCodes), std::end(kTypeCodes),
                                   [&](const TypeCode& code) { return code.type == tensor.element(); });
  std::string shape;
  for (const std::int64_t dim : tensor.shape()) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", dim);
  if (tensor.shape().size() == 1) shape += ",";
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   entry->code[1] == '1' ? '|' : '<', entry->code, shape);
  const std::size_t prefix = kMagic.size() + 4;
  header.append((kAlignment - (prefix + header.size() + 1) % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += '\x01';
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xFF);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  const auto data = tensor.bytes();
  if (!data.empty()) bytes.append(reinterpret_cast<const char*>(data.data()), data.size());
  return bytes;
}

ir::Tensor as_element(const ir::Tensor& tensor, ir::ElementType element) {
  if (tensor.element() == element) return tensor;
  const bool has_codes = ir::is_small_float(element) && tensor.element() == ElementType::kUInt8;
  ir::Tensor out(ir::TensorType{element, tensor.shape()});
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const ir::Scalar value = tensor.at(i);
    out.set(i, has_codes
                   ? ir::Scalar::of_real(
                         element, ir::small_float_value(element, static_cast<std::uint8_t>(value.integer)))
                   : ir::cast(value, element));
  }
  return out;
}

ir::Tensor as_written(const ir::Tensor& tensor, ir::ElementType element) {
  return numpy_has(element) ? tensor : as_element(tensor, element);
}

}  // namespace gcompile

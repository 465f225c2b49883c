#pragma once
// Typed attributes of a node, kept sorted by name; defaults are filled at import, so nobody sees "missing".

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/tensors/tensor.h"

namespace gcompile::ir {

enum class AttributeKind : std::uint8_t { kInt, kFloat, kString, kInts, kFloats, kStrings, kTensor };

using AttributeValue = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>,
                                    std::vector<float>, std::vector<std::string>, Tensor>;

inline AttributeKind kind_of(const AttributeValue& value) {
  return static_cast<AttributeKind>(value.index());
}

class Attributes {
 public:
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  void set(std::string name, AttributeValue value) {
    values_.insert_or_assign(std::move(name), std::move(value));
  }
  void erase(std::string_view name) {
    if (const auto at = values_.find(name); at != values_.end()) values_.erase(at);
  }
  const std::map<std::string, AttributeValue, std::less<>>& all() const { return values_; }

  // Each throws an internal error when the attribute is absent or of another kind:
  // the import has checked both.
  std::int64_t int_of(std::string_view name) const { return get<std::int64_t>(name); }
  bool flag(std::string_view name) const { return int_of(name) != 0; }
  float float_of(std::string_view name) const { return get<float>(name); }
  const std::string& string_of(std::string_view name) const { return get<std::string>(name); }
  const std::vector<std::int64_t>& ints_of(std::string_view name) const {
    return get<std::vector<std::int64_t>>(name);
  }
  const std::vector<float>& floats_of(std::string_view name) const { return get<std::vector<float>>(name); }
  const std::vector<std::string>& strings_of(std::string_view name) const {
    return get<std::vector<std::string>>(name);
  }
  const Tensor& tensor_of(std::string_view name) const { return get<Tensor>(name); }

  /// Same names and values; floats by bit pattern.
  bool identical(const Attributes& other) const;

 private:
  template <class T>
  const T& get(std::string_view name) const;
  std::map<std::string, AttributeValue, std::less<>> values_;
};

std::string to_string(const AttributeValue& value);

}  // namespace gcompile::ir
